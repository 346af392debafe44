// Paged memory and the rest of the system: system calls, forks, signals, errors of the disk.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <tuple>

#include "base/unique_fd.h"
#include "in_child.h"
#include "journalled.h"
#include "machines/cpu/budgets.h"
#include "pager_support.h"

namespace spillway {
namespace {

using PagerSystemTest = PagerTest;
INSTANTIATE_TEST_SUITE_P(Paths, PagerSystemTest, testing::Values(kCases[0], kCases[3]), name_of);

// What the copying path does not promise (README.md).
using MovingPagerTest = PagerSystemTest;
INSTANTIATE_TEST_SUITE_P(Paths, MovingPagerTest, testing::Values(kCases[0], kCases[2]), name_of);

UniqueFd nameless_file(int flags) {
  const int fd = ::open(spill_directory().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
  CHECK(fd >= 0);
  return UniqueFd(fd);
}

TEST_P(PagerSystemTest, SystemCallsWriteAndReadTensorsThatAreAway) {
  auto pager = started(config());
  const auto tensors = more_than_fits(*pager);
  const UniqueFd file = nameless_file(0);
  for (std::byte* tensor : tensors) ASSERT_EQ(::write(file.get(), tensor, kLarge), static_cast<ssize_t>(kLarge));
  for (std::size_t index = 0; index < tensors.size(); ++index)  // Each gets its neighbour's contents.
    ASSERT_EQ(::pread(file.get(), tensors[index], kLarge, static_cast<off_t>((index + 1) % 6 * kLarge)),
              static_cast<ssize_t>(kLarge));
  for (std::size_t index = 0; index < tensors.size(); ++index)
    EXPECT_TRUE(holds(tensors[index], kLarge, (index + 1) % 6));
  const iovec parts[] = {{tensors[0], kLarge}, {tensors[5], kLarge}};
  ASSERT_EQ(::pwritev(file.get(), parts, 2, 0), static_cast<ssize_t>(2 * kLarge));
}

TEST_P(PagerSystemTest, MessagesAreSentFromAndReceivedIntoTensorsThatAreAway) {
  auto pager = started(config());
  const auto tensors = more_than_fits(*pager);
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd ours(ends[0]), theirs(ends[1]);
  const auto all = [](int end, std::byte* tensor, auto transfer) {  // A socket takes and gives a part at a time.
    for (std::size_t done = 0; done < kLarge;) {
      iovec part{tensor + done, kLarge - done};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      const ssize_t bytes = transfer(end, &message, 0);
      if (bytes <= 0) return false;
      done += static_cast<std::size_t>(bytes);
    }
    return true;
  };
  for (std::size_t index = 0; index < tensors.size() / 2; ++index) {  // The second half gets what is in the first.
    std::byte* to = tensors[index + tensors.size() / 2];
    bool sent = false;
    std::thread sender([&] { sent = all(ours.get(), tensors[index], ::sendmsg); });
    EXPECT_TRUE(all(theirs.get(), to, ::recvmsg)) << std::strerror(errno);
    sender.join();
    EXPECT_TRUE(sent);
  }
  for (std::size_t index = 0; index < tensors.size(); ++index)
    EXPECT_TRUE(holds(tensors[index], kLarge, index % (tensors.size() / 2))) << index;
}

TEST_P(PagerSystemTest, DirectIoOnTensorsUnderPressureIsExact) {
  auto pager = started(config());
  const auto tensors = more_than_fits(*pager);
  std::byte* other = granted(*pager, kLarge);
  std::atomic<bool> stop{false};
  std::thread sweeper([&] {  // Its victims are the very pages that the kernel holds for the transfers.
    while (!stop)
      for (std::size_t at = 0; at < kLarge; at += 1 << 20) static_cast<volatile std::byte*>(other)[at] = std::byte{1};
  });
  const UniqueFd file = nameless_file(O_DIRECT);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t index = 0; index < 6; ++index)
      ASSERT_EQ(::pwrite(file.get(), tensors[index], kLarge, static_cast<off_t>(index * kLarge)),
                static_cast<ssize_t>(kLarge));
    for (std::size_t index = 0; index < 6; ++index)
      ASSERT_EQ(::pread(file.get(), tensors[index], kLarge, static_cast<off_t>(index * kLarge)),
                static_cast<ssize_t>(kLarge));
  }
  stop = true;
  sweeper.join();
  for (std::size_t index = 0; index < 6; ++index) EXPECT_TRUE(holds(tensors[index], kLarge, index)) << index;
}

// The copying path cannot do this (README.md): nothing tells that the kernel still writes to a page.
TEST_P(MovingPagerTest, DirectReadsIntoTensorsUnderPressureLoseNothing) {
  auto pager = started(config());
  const auto tensors = more_than_fits(*pager);
  std::byte* other = granted(*pager, kLarge);
  const UniqueFd file = nameless_file(O_DIRECT);
  for (std::size_t index = 0; index < 6; ++index)
    ASSERT_EQ(::pwrite(file.get(), tensors[index], kLarge, static_cast<off_t>(index * kLarge)),
              static_cast<ssize_t>(kLarge));
  std::atomic<bool> stop{false};
  std::thread sweeper([&] {
    while (!stop)
      for (std::size_t at = 0; at < kLarge; at += 1 << 20) static_cast<volatile std::byte*>(other)[at] = std::byte{1};
  });
  for (std::size_t round = 1; round < 4; ++round)
    for (std::size_t index = 0; index < 6; ++index) {
      const std::size_t source = (index + round) % 6;
      std::memset(tensors[index], 1, kLarge);
      ASSERT_EQ(::pread(file.get(), tensors[index], kLarge, static_cast<off_t>(source * kLarge)),
                static_cast<ssize_t>(kLarge));
      EXPECT_TRUE(holds(tensors[index], kLarge, source)) << index;
    }
  stop = true;
  sweeper.join();
  for (std::size_t index = 0; index < 6; ++index) EXPECT_TRUE(holds(tensors[index], kLarge, (index + 3) % 6)) << index;
}

TEST_P(PagerSystemTest, AScriptThatClosesAllDescriptorsEndsRatherThanReadingZeroes) {
  const ChildEnd end = in_child([&] {
    auto pager = started(config());
    const auto tensors = more_than_fits(*pager);
    ::close_range(3, ~0u, 0);
    // What the script opens next must not be taken for ours.
    const int reopened[] = {::memfd_create("a", 0), ::memfd_create("b", 0), ::memfd_create("c", 0),
                            ::memfd_create("d", 0), ::memfd_create("e", 0)};
    for (int posts = 0; posts < 10'000; ++posts) pager->free(*pager->allocate(1));
    struct stat status{};
    for (const int fd : reopened)
      if (::fstat(fd, &status) != 0 || status.st_size != 0) return 5;
    return all_hold(tensors, 0) ? 4 : 3;
  });
  EXPECT_TRUE(end.exits_with(1)) << end.status << end.text;
  EXPECT_TRUE(end.text.contains("spillway: "));
}

// One kernel that does nothing, and a plan for it that is followed from now on.
std::shared_ptr<const RunPlan> follow_a_plan(Pager& pager) {
  FollowedPlan followed{.id = {1}, .kernels = 1, .births = {{}}};
  followed.homes = {{{pager.cpu()->machine().blocks() - 1}, 1}};
  followed.rows = {{followed.homes.front(), {{0}}}};
  const auto plan = std::make_shared<const RunPlan>(std::move(followed));
  pager.adopt({plan, &plan->followed});
  const StreamId stream = pager.this_stream();
  pager.kernel_ready(stream, {.plan = plan.get(), .kernel = {0}, .execution = {}}, {});
  pager.kernel_done(stream);
  return plan;
}

// Nothing faults here: the kernel's thread is the first to notice.
TEST_P(PagerSystemTest, AKernelDoesNotWaitForEverWhereTheScriptHasClosedAllDescriptors) {
  const ChildEnd end = in_child([&] {
    ::alarm(60);
    auto pager = started(config());
    const auto tensors = more_than_fits(*pager);
    const auto plan = follow_a_plan(*pager);
    ::close_range(3, ~0u, 0);
    const ByteExtent extents[] = {{tensors[0], kLarge, false, false}};
    pager->kernel_ready(pager->this_stream(), {.plan = plan.get(), .kernel = {0}, .execution = {}}, extents);
    return 4;
  });
  EXPECT_TRUE(end.exits_with(1)) << end.status << end.text;
  EXPECT_TRUE(end.text.contains("os.closerange")) << end.text;
}

TEST_P(PagerSystemTest, PagesThatTheScriptDropsAreZeroesWhereverTheirBlockGoes) {
  constexpr std::size_t kPage = 4096, kStep = kBlockBytes.value;
  auto pager = started(config());
  const auto tensors = more_than_fits(*pager);
  std::byte* tensor = tensors[3];
  auto* block = tensor + (kStep - reinterpret_cast<std::uintptr_t>(tensor) % kStep);
  EXPECT_TRUE(holds(tensor, kLarge, 3));  // Now it is there.
  ASSERT_EQ(::madvise(block, 2 * kPage, MADV_DONTNEED), 0);
  ASSERT_EQ(::madvise(block + kStep, kStep, MADV_DONTNEED), 0);
  EXPECT_EQ(block[5], std::byte{});
  block[kPage + 1] = std::byte{7};
  for (int round = 0; round < 2; ++round) {
    for (const std::size_t other : {0, 1, 2, 4, 5}) EXPECT_TRUE(holds(tensors[other], kLarge, other));
    EXPECT_EQ(block[5], std::byte{});
    EXPECT_EQ(block[kPage + 1], std::byte{7});
    EXPECT_EQ(block[kPage + 2], std::byte{});
    for (std::size_t at = 0; at < kStep; at += kPage) EXPECT_EQ(block[kStep + at + 3], std::byte{});
  }
  std::byte* end = block + 2 * kStep;  // What follows is untouched.
  std::vector<std::byte> expected(kLarge);
  fill(expected.data(), kLarge, 3);
  EXPECT_EQ(std::memcmp(end, expected.data() + (end - tensor), static_cast<std::size_t>(tensor + kLarge - end)), 0);
}

TEST_P(PagerSystemTest, ATensorThatIsMovedToOtherAddressesEndsTheRunRatherThanReadingZeroes) {
  for (const std::size_t moved : {0, 5}) {  // one that is away, one that is there
    const ChildEnd end = in_child([&] {
      auto pager = started(config());
      const auto tensors = more_than_fits(*pager);
      std::byte* pages = tensors[moved] + (4096 - reinterpret_cast<std::uintptr_t>(tensors[moved]) % 4096);
      void* elsewhere = ::mremap(pages, kLarge / 2, kLarge / 2, MREMAP_MAYMOVE);
      void* free_place = ::mmap(nullptr, kLarge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (elsewhere == pages)
        elsewhere = ::mremap(pages, kLarge / 2, kLarge / 2, MREMAP_MAYMOVE | MREMAP_FIXED, free_place);
      if (elsewhere == MAP_FAILED) return 0;
      return static_cast<std::byte*>(elsewhere)[100] == std::byte{} ? 3 : 4;
    });
    EXPECT_TRUE(end.exits_with(1)) << end.status << end.text;
    EXPECT_TRUE(end.text.contains("mremap")) << end.text;
  }
}

TEST_P(PagerSystemTest, TensorsThatTheScriptProtectsKeepTheirBytes) {
  const ChildEnd end = in_child([&] {
    PagerConfig config = PagerTest::config();
    config.patience = Nanos{500'000'000};
    auto pager = started(config);
    const auto tensors = more_than_fits(*pager);
    for (const std::size_t index : {0, 5}) {  // one that is away, one that is there
      std::byte* pages = tensors[index] + (4096 - reinterpret_cast<std::uintptr_t>(tensors[index]) % 4096);
      if (::mprotect(pages, kLarge / 2 / 4096 * 4096, PROT_READ) != 0) return 2;
    }
    return all_hold(tensors, 0) && all_hold(tensors, 0) ? 0 : 3;
  });
  // What cannot leave any more may end the run, but with a word.
  const bool ended = end.exits_with(1) && end.text.contains("mprotect");
  EXPECT_TRUE(ended || end.exits_with(0)) << end.status << end.text;
}

TEST_P(PagerSystemTest, LockedPagesLeaveByCopyAndByMoveEndTheRunWithAWord) {
  const ChildEnd end = in_child([&] {
    PagerConfig config = PagerTest::config();
    config.patience = Nanos{200'000'000};
    auto pager = started(config);
    std::vector<std::byte*> tensors;
    for (std::size_t index = 0; index < 6; ++index) {
      tensors.push_back(granted(*pager, kLarge));
      if (::syscall(SYS_mlock, tensors.back(), kLarge) != 0) return 2;  // AddressSanitizer's mlock() does nothing.
      fill(tensors.back(), kLarge, index);
    }
    return all_hold(tensors, 0) ? 0 : 3;
  });
  if (GetParam().method == EvictionMethod::copy) {
    EXPECT_TRUE(end.exits_with(0)) << end.status << end.text;
  } else {
    EXPECT_TRUE(end.exits_with(1)) << end.status << end.text;
    EXPECT_TRUE(end.text.contains("mlock")) << end.text;
  }
}

TEST_P(PagerSystemTest, DeadTensorsWhosePagesStayLockedArePassedOver) {
  PagerConfig small = config();
  small.patience = Nanos{2'000'000'000};
  auto pager = started(small);
  constexpr std::size_t kLocked = kBlockBytes.value * 3;
  std::byte* locked = granted(*pager, kLocked);
  granted(*pager, kBlockBytes.value);  // keeps the hole that they leave too small for what follows
  fill(locked, kLocked, 9);
  ASSERT_EQ(::syscall(SYS_mlock, locked, kLocked), 0);
  pager->free(locked);
  const auto tensors = more_than_fits(*pager);
  for (std::size_t index = 0; index < tensors.size(); ++index)
    EXPECT_TRUE(holds(tensors[index], kLarge, index)) << index;
}

TEST_P(PagerSystemTest, NothingIsLeftWhenTheProcessIsKilled) {
  std::string folder = spill_directory() + "/spillway-test-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const ChildEnd end = in_child([&] {
    PagerConfig config = PagerTest::config();
    config.ssd_directory = folder;
    auto pager = started(config);
    more_than_fits(*pager);
    if (!std::filesystem::is_empty(folder)) return 1;
    ::raise(SIGKILL);
    return 2;
  });
  EXPECT_TRUE(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGKILL) << end.status << end.text;
  EXPECT_EQ(::rmdir(folder.c_str()), 0) << "something is in it";
}

TEST_P(PagerSystemTest, TwoPagersShareADirectory) {
  auto one = started(config());
  auto other = started(config());
  const auto ones = more_than_fits(*one);
  const auto others = more_than_fits(*other);
  std::memcpy(ones[0], others[3], kLarge);
  for (std::size_t index = 1; index < 6; ++index) EXPECT_TRUE(holds(ones[index], kLarge, index));
  for (std::size_t index = 0; index < 6; ++index) EXPECT_TRUE(holds(others[index], kLarge, index));
  one.reset();
  EXPECT_TRUE(holds(others[0], kLarge, 0));
}

TEST_P(PagerSystemTest, WhenAllTiersAreFullAnAllocationFailsWithTheirNumbersAndLaterOnesWork) {
  PagerConfig config = PagerTest::config();
  config.ssd_capacity = 100_MiB;
  auto pager = started(config);
  std::vector<std::byte*> tensors;
  std::string refusal;
  for (;;) {
    auto memory = pager->allocate(10 << 20);
    if (!memory) {
      EXPECT_EQ(memory.error().code, Errc::out_of_memory);
      refusal = memory.error().message;
      break;
    }
    tensors.push_back(static_cast<std::byte*>(*memory));
    fill(tensors.back(), 10 << 20, tensors.size());
  }
  EXPECT_TRUE(refusal.contains("device memory 80 MiB")) << refusal;
  EXPECT_TRUE(refusal.contains("ssd 100 MiB")) << refusal;
  EXPECT_TRUE(refusal.contains("raise --ssd-capacity")) << refusal;
  EXPECT_GE(tensors.size(), (80 + config.host.value / (1 << 20) + 100 - 32) / 10 - 2);
  for (std::size_t index = 0; index < tensors.size(); ++index) EXPECT_TRUE(holds(tensors[index], 10 << 20, index + 1));
  EXPECT_FALSE(pager->allocate(SIZE_MAX).has_value());
  EXPECT_FALSE(pager->allocate(SIZE_MAX / 2).has_value());
  pager->free(tensors.back());
  fill(granted(*pager, 10 << 20), 10 << 20, 5);
}

TEST_P(PagerSystemTest, ARefusalTellsWhatTensorsHoldFromTheBlocksThatTheyTakeAndAHoleFromAllThatThereIs) {
  PagerConfig config = PagerTest::config();
  config.ssd_capacity = 100_MiB;
  auto pager = started(config);
  std::vector<std::byte*> tensors;
  for (int count = 0; count < 100; ++count) tensors.push_back(granted(*pager, 1 << 20));
  for (std::size_t index = 0; index < tensors.size(); index += 2) pager->free(tensors[index]);
  const auto refusal = [&](Bytes bytes) {
    const auto memory = pager->allocate(bytes.value);
    return memory ? "granted" : memory.error().message;
  };
  const std::string text = refusal(Bytes{80_MiB} + config.host + 100_MiB - 32_MiB - 90_MiB);
  EXPECT_TRUE(text.contains("tensors take 50 MiB already in 100 MiB of blocks of 2 MiB;")) << text;
  const std::string more_than_there_is = refusal(1_GiB);
  EXPECT_FALSE(more_than_there_is.contains("no hole")) << more_than_there_is;
  EXPECT_TRUE(more_than_there_is.contains("raise --ssd-capacity")) << more_than_there_is;
}

TEST_P(PagerSystemTest, ALimitOnFileSizesIsAnOutOfMemoryNotASignal) {
  const ChildEnd end = in_child([&] {
    const rlimit low{150 << 20, 150 << 20};
    ::setrlimit(RLIMIT_FSIZE, &low);
    PagerConfig config = PagerTest::config();
    config.ssd_capacity = {};
    auto pager = started(config);
    for (int count = 0; count < 100; ++count) {
      auto memory = pager->allocate(10 << 20);
      if (!memory) return memory.error().code == Errc::out_of_memory && count > 15 ? 0 : 1;
      fill(static_cast<std::byte*>(*memory), 10 << 20, 1);
    }
    return 2;
  });
  EXPECT_TRUE(end.exits_with(0)) << end.status << end.text;
}

TEST_P(PagerSystemTest, TransfersThatFailNowAndThenCostTimeOnly) {
  PagerConfig config = PagerTest::config();
  std::atomic<int> transfers{0};
  config.around_io = around<FailingIo>([&](const Transfer&) { return ++transfers % 7 == 0 ? EIO : 0; });
  auto pager = started(config);
  const auto tensors = more_than_fits(*pager);
  for (std::size_t index = 0; index < 6; ++index) EXPECT_TRUE(holds(tensors[index], kLarge, index)) << index;
}

// Each transfer's end is told a tenth of a second late.
class LateIo final : public AroundIo {
 public:
  using AroundIo::AroundIo;

  Result<> wait(std::vector<Completion>& ended, std::optional<std::chrono::microseconds> timeout) override {
    constexpr std::chrono::microseconds kTurn{5'000};
    const std::size_t before = ended.size();
    std::vector<Completion> just;
    auto result = io_->wait(just, late_.empty() ? timeout : std::min(timeout.value_or(kTurn), kTurn));
    for (const Completion& completion : just)
      late_.emplace_back(Clock::now() + std::chrono::milliseconds(100), completion);
    for (; !late_.empty() && late_.front().first <= Clock::now(); late_.pop_front())
      ended.push_back(late_.front().second);
    if (ended.size() == before && !late_.empty() && !timeout) return wait(ended, timeout);
    return result;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::deque<std::pair<Clock::time_point, Completion>> late_;
};

TEST_P(PagerSystemTest, ADiskThatTakesATenthOfASecondCostsTimeOnly) {
  PagerConfig config = PagerTest::config();
  config.around_io = around<LateIo>();
  config.device = kBlockBytes * 20;
  auto pager = started(config);
  constexpr std::size_t kBytes = 8 * kBlockBytes.value;
  std::vector<std::byte*> tensors;
  for (std::size_t index = 0; index < 4; ++index) {
    tensors.push_back(granted(*pager, kBytes));
    fill(tensors.back(), kBytes, index);
  }
  for (std::size_t index = 0; index < 4; ++index) EXPECT_TRUE(holds(tensors[index], kBytes, index)) << index;
  EXPECT_GT(pager->stats().moved(Tier::ssd, Tier::device), Bytes{});
}

TEST_P(PagerSystemTest, ADiskThatTakesOrGivesNothingEndsTheRunWithAMessage) {
  const std::vector<std::tuple<bool, int, std::string>> cases{{true, EIO, "Input/output error"},
                                                              {true, ENOSPC, "No space left on device"},
                                                              {true, EDQUOT, "Disk quota exceeded"},
                                                              {false, EIO, "Input/output error"}};
  for (const auto& [writes, error, words] : cases) {
    SCOPED_TRACE(words);
    const JournalOfATest journal;
    const ChildEnd end = in_child([&] {
      PagerConfig config = PagerTest::config();
      config.journal = journal.options();
      config.around_io =
          around<FailingIo>([writes, error](const Transfer& transfer) { return transfer.write == writes ? error : 0; });
      auto pager = started(config);
      const auto tensors = more_than_fits(*pager);
      return all_hold(tensors, 0) ? 0 : 3;
    });
    EXPECT_TRUE(end.exits_with(1)) << end.status << end.text;
    EXPECT_TRUE(end.text.contains(words)) << end.text;
    const Replay replay = journal.replayed();
    EXPECT_EQ(replay.end, Replay::End::failed);
    EXPECT_TRUE(replay.why.contains(writes ? "no other tier takes them" : "cannot be read back")) << replay.why;
    EXPECT_TRUE(end.text.contains(spill_directory())) << end.text;
  }
}

TEST(PagerConfiguration, WhatCannotWorkIsRefusedWithTheReason) {
  REQUIRE_PAGE_FAULTS();
  const auto refusal = [](PagerConfig config) {
    const auto pager = Pager::start(std::move(config));
    return pager ? std::string("started") : pager.error().message;
  };
  PagerConfig config = small_config(EvictionMethod::copy);
  config.check_least_budget = true;
  config.device = least_device_budget() - Bytes{1};
  EXPECT_TRUE(refusal(config).contains("too little")) << refusal(config);
  config.device = {std::uint64_t{1} << 50};
  EXPECT_TRUE(refusal(config).contains("of memory that there is here")) << refusal(config);
  config.device = least_device_budget();
  EXPECT_EQ(refusal(config), "started");
  config.ssd_directory = "/dev/shm";
  EXPECT_TRUE(refusal(config).contains("tmpfs")) << refusal(config);
}

}  // namespace
}  // namespace spillway
