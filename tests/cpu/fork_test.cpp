// Processes that are forked while memory is paged: they see tensors as they were at the fork, or end with a word.
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>

#include "in_child.h"
#include "machines/real/block_io.h"
#include "pager_support.h"
#include "random_program.h"

namespace spillway {
namespace {

using ForkTest = PagerTest;
INSTANTIATE_TEST_SUITE_P(Paths, ForkTest, testing::Values(kCases[0], kCases[3]), name_of);

// A child that does something only when it is told to.
class WaitingChild {
 public:
  explicit WaitingChild(const std::function<int()>& body) {
    CHECK(::pipe2(pipe_, O_CLOEXEC) == 0);
    child_ = ::fork();
    CHECK(child_ >= 0);
    if (child_ != 0) return;
    char byte;
    ::_exit(::read(pipe_[0], &byte, 1) == 1 ? body() : 99);
  }
  void go() {
    CHECK(::write(pipe_[1], "", 1) == 1);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  int status_after_go() {
    go();
    return status();
  }
  void kill() { CHECK(::kill(child_, SIGKILL) == 0); }
  int status() {
    int status = 0;
    CHECK(::waitpid(child_, &status, 0) == child_);
    return status;
  }

 private:
  int pipe_[2];
  pid_t child_;
};

bool succeeded(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

template <class F>
void eventually(F&& holds) {
  while (!holds()) std::this_thread::yield();  // ctest ends a test that never comes to it.
}

TEST_P(ForkTest, AChildReadsTensorsThatAreAwayAndThere) {
  auto pager = started(config());
  const auto tensors = more_than_fits(*pager);
  for (int round = 0; round < 2; ++round) {
    const ChildEnd end = in_child([&] { return all_hold(tensors, 0) ? 0 : 1; });
    EXPECT_TRUE(succeeded(end.status)) << end.status << end.text;
  }
  EXPECT_TRUE(all_hold(tensors, 0));
}

TEST_P(ForkTest, WhatItsParentDoesNextIsNotShownToAChild) {
  PagerConfig keeping = config();
  keeping.keeps_copies = true;
  auto pager = started(keeping);
  auto tensors = more_than_fits(*pager);
  WaitingChild child([&] { return all_hold(tensors, 0) ? 0 : 1; });
  auto kept = tensors;
  for (std::size_t index = 0; index < kTensors; ++index)
    if (index % 3 == 0) {  // dead, and its memory another tensor's
      pager->free(kept[index]);
      kept[index] = granted(*pager, kLarge);
    }
  for (int round = 1; round < 3; ++round)
    for (std::size_t index = 0; index < kTensors; ++index)
      fill(kept[index], kLarge, 100 * static_cast<std::size_t>(round) + index);
  EXPECT_TRUE(succeeded(child.status_after_go()));
  EXPECT_TRUE(all_hold(kept, 200));
  EXPECT_LE(resident_bytes(pager->cpu()->machine().range()) + resident_bytes(pager->cpu()->machine().staging()),
            (config().device + config().host).value);
}

TEST_P(ForkTest, EachOfManyChildrenSeesItsOwnMomentAndLeavesNothing) {
  PagerConfig roomy = config();
  roomy.ssd_capacity = 2048_MiB;
  auto pager = started(roomy);
  auto tensors = more_than_fits(*pager);
  const Bytes held = pager->stats().held[Tier::ssd];
  {
    std::vector<WaitingChild> children;
    children.reserve(4);
    std::size_t seed = 0;
    for (int moment = 0; moment < 4; ++moment) {
      children.emplace_back([&] { return all_hold(tensors, seed) ? 0 : 1; });
      if (moment == 1) continue;  // The next one is of the same moment.
      seed += 100;
      for (std::size_t index = 0; index < kTensors; ++index) fill(tensors[index], kLarge, seed + index);
    }
    for (const std::size_t next : {2, 0, 3, 1}) EXPECT_TRUE(succeeded(children[next].status_after_go())) << next;
  }
  EXPECT_TRUE(all_hold(tensors, 300));
  eventually([&] { return pager->stats().held[Tier::ssd] <= held + 16_MiB; });
}

// Lets the run loop read what it is told when the test wants it to.
class HeldIo final : public AroundIo {
 public:
  HeldIo(std::unique_ptr<BlockIo> io, std::atomic<bool>& held, std::atomic<bool>& waits)
      : AroundIo(std::move(io)), held_(held), waits_(waits) {}
  Result<> wait(std::vector<Completion>& ended, std::optional<std::chrono::microseconds> timeout) override {
    auto result = io_->wait(ended, timeout);
    waits_ = held_.load();
    held_.wait(true);
    return result;
  }

 private:
  std::atomic<bool>&held_, &waits_;
};

TEST_P(ForkTest, WhatAnotherThreadMakesDuringTheForkDoesNotReadAsZeroes) {
  std::atomic<bool> held{false}, waits{false};
  PagerConfig roomy = config();
  roomy.device = 400_MiB;  // Dead blocks stay where they are.
  roomy.around_io = around<HeldIo>(std::ref(held), std::ref(waits));
  auto pager = started(roomy);
  std::byte* dead = granted(*pager, kLarge);
  granted(*pager, kLarge);  // keeps the hole as small as it is
  fill(dead, kLarge, 1);
  pager->free(dead);
  fill(granted(*pager, kLarge * 2), kLarge, 2);  // Its faults come after that news.
  held = true;
  ChildEnd end;
  std::thread forks([&] { end = in_child([&] { return holds(dead, kLarge, 3) ? 0 : 1; }); });
  eventually([&] { return waits.load(); });  // The loop has the news of the fork, and reads it later.
  std::byte* reborn = granted(*pager, kLarge);
  EXPECT_EQ(reborn, dead);
  if (reborn == dead) fill(reborn, kLarge, 3);  // All of it is mapped.
  held = false;
  held.notify_all();
  forks.join();
  EXPECT_TRUE(succeeded(end.status)) << end.status << end.text;
}

TEST_P(ForkTest, WhatItsParentFreesStaysWhateverItForksLater) {
  PagerConfig roomy = config();
  roomy.device = 400_MiB;  // Dead blocks stay where they are.
  auto pager = started(roomy);
  auto tensors = more_than_fits(*pager);
  std::vector<WaitingChild> children;
  children.reserve(2);
  children.emplace_back([&] { return all_hold(tensors, 0) ? 0 : 1; });
  pager->free(tensors[1]);
  pager->free(tensors[4]);
  children.emplace_back([&] { return holds(tensors[0], kLarge, 0) && holds(tensors[5], kLarge, 5) ? 0 : 1; });
  for (const std::size_t index : {1, 4}) fill(granted(*pager, kLarge), kLarge, 50 + index);
  for (WaitingChild& child : children) EXPECT_TRUE(succeeded(child.status_after_go()));
}

TEST_P(ForkTest, WhatRunsAnotherProgramKeepsNothing) {
  auto pager = started(config());
  auto tensors = more_than_fits(*pager);
  const Bytes held = pager->stats().held[Tier::ssd];
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), 0), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[1]);
    ::execlp("cat", "cat", nullptr);
    ::_exit(99);
  }
  ::close(ends[0]);
  eventually([&] {  // It is looked for when much is kept, and at the next fork.
    in_child([] { return 0; });
    for (std::size_t index = 0; index < kTensors; ++index) fill(tensors[index], kLarge, 100 + index);
    return pager->stats().held[Tier::ssd] <= held + 16_MiB;
  });
  ::close(ends[1]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_P(ForkTest, AChildHasNothingOfItsSiblings) {
  auto pager = started(config());
  const auto tensors = more_than_fits(*pager);
  const auto count_sockets = [] {
    int sockets = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      sockets += std::filesystem::read_symlink(entry, error).string().starts_with("socket:");
    }
    return sockets;
  };
  const int sockets_before = count_sockets();
  std::vector<WaitingChild> children;
  children.reserve(4);
  for (int child = 0; child < 4; ++child)
    children.emplace_back([&] {
      int others = 0;
      for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        const std::string target = std::filesystem::read_symlink(entry, error).string();
        others += target.find("userfaultfd") != std::string::npos || target.find("pidfd") != std::string::npos;
      }
      return count_sockets() <= 1 + sockets_before && others == 1 && all_hold(tensors, 0) ? 0 : 1;
    });
  for (WaitingChild& child : children) EXPECT_TRUE(succeeded(child.status_after_go()));
}

TEST_P(ForkTest, AChildMayWriteAndForkItself) {
  auto pager = started(config());
  const auto tensors = more_than_fits(*pager);
  const ChildEnd end = in_child([&] {
    fill(tensors[0], kLarge, 70);
    const ChildEnd inner = in_child([&] {
      if (!holds(tensors[0], kLarge, 70)) return 1;
      for (std::size_t index = 1; index < kTensors; ++index)
        if (!holds(tensors[index], kLarge, index)) return 2;
      return 0;
    });
    if (!succeeded(inner.status)) return 3;
    return holds(tensors[0], kLarge, 70) && holds(tensors[5], kLarge, 5) ? 0 : 4;
  });
  EXPECT_TRUE(succeeded(end.status)) << end.status << end.text;
  EXPECT_TRUE(all_hold(tensors, 0));
}

TEST_P(ForkTest, SystemCallsOfAChildReadTensors) {
  auto pager = started(config());
  const auto tensors = more_than_fits(*pager);
  const int file = ::open(spill_directory().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  const ChildEnd end = in_child([&] {
    for (const std::byte* tensor : tensors)
      if (::write(file, tensor, kLarge) != static_cast<ssize_t>(kLarge)) return 1;
    return 0;
  });
  EXPECT_TRUE(succeeded(end.status)) << end.status;
  std::vector<std::byte> read(kLarge);
  for (std::size_t index = 0; index < kTensors; ++index) {
    ASSERT_EQ(::pread(file, read.data(), kLarge, static_cast<off_t>(index * kLarge)), static_cast<ssize_t>(kLarge));
    EXPECT_TRUE(holds(read.data(), kLarge, index));
  }
  ::close(file);
}

// What its parent keeps as copies on the SSD never takes the space that a child was promised.
TEST_P(ForkTest, CopiesGiveTheirSlotsToChildren) {
  PagerConfig tight = config();
  tight.ssd_capacity = kBlockBytes * (kTensors * kLarge / kBlockBytes.value * 2 - 20);
  tight.keeps_copies = true;
  auto pager = started(tight);
  const auto tensors = more_than_fits(*pager);
  EXPECT_TRUE(all_hold(tensors, 0));
  WaitingChild child([&] { return all_hold(tensors, 0) ? 0 : 1; });
  for (int pass = 0; pass < 3; ++pass) EXPECT_TRUE(all_hold(tensors, 0));
  for (std::size_t index = 0; index < kTensors; ++index) fill(tensors[index], kLarge, 100 + index);
  EXPECT_TRUE(all_hold(tensors, 100));
  EXPECT_TRUE(succeeded(child.status_after_go()));
}

TEST_P(ForkTest, AChildWhoseBytesCouldNotBeKeptIsEndedAndTheParentIsNot) {
  PagerConfig tight = config();
  tight.ssd_capacity = 160_MiB;  // for the tensors, not for what children may want
  std::string why;               // the run loop's, until that has ended
  tight.on_child_ended = [&](std::string_view sentence) { why = sentence; };
  auto pager = started(tight);
  const auto tensors = more_than_fits(*pager);
  WaitingChild child([&] { return all_hold(tensors, 0) ? 0 : 1; });
  for (std::size_t index = 0; index < kTensors; ++index) fill(tensors[index], kLarge, 100 + index);
  const int status = child.status_after_go();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_TRUE(all_hold(tensors, 100));
  EXPECT_LE(pager->stats().peak[Tier::ssd], tight.ssd_capacity);
  pager.reset();
  EXPECT_TRUE(why.contains("--ssd-capacity")) << why;
}

TEST_P(ForkTest, AChildAndItsParentShareTheSpaceThatIsTooLittleForAllThatTheChildCouldWant) {
  PagerConfig tight = config();
  tight.ssd_capacity = 220_MiB;  // 66 blocks for the tensors; the child could want 90 more
  auto pager = started(tight);
  const auto tensors = more_than_fits(*pager);
  WaitingChild child([&] { return holds(tensors[0], kLarge, 0) ? 0 : 1; });
  fill(tensors[0], kLarge, 100);
  std::byte* another = granted(*pager, kLarge / 2);
  fill(another, kLarge / 2, 7);
  EXPECT_TRUE(succeeded(child.status_after_go()));
  EXPECT_TRUE(holds(tensors[0], kLarge, 100) && holds(another, kLarge / 2, 7));
}

TEST_P(ForkTest, AChildIsEndedWhereTheDiskFails) {
  std::atomic<bool> fails{false};
  PagerConfig failing = config();
  failing.device = 400_MiB;  // All is there: the disk is needed for the child alone.
  failing.around_io = around<FailingIo>([&](const Transfer&) { return fails ? EIO : 0; });
  auto pager = started(failing);
  const auto tensors = more_than_fits(*pager);
  fails = true;
  WaitingChild unkept([&] { return all_hold(tensors, 0) ? 0 : 1; });
  for (std::size_t index = 0; index < kTensors; ++index) fill(tensors[index], kLarge, 100 + index);
  EXPECT_TRUE(WIFSIGNALED(unkept.status_after_go()));
  fails = false;
  WaitingChild unread([&] { return all_hold(tensors, 100) ? 0 : 1; });
  for (std::size_t index = 0; index < kTensors; ++index) fill(tensors[index], kLarge, 200 + index);
  fails = true;
  EXPECT_TRUE(WIFSIGNALED(unread.status_after_go()));
  EXPECT_TRUE(all_hold(tensors, 200));
}

TEST_P(ForkTest, ABlockThatCouldNotBeKeptEndsOnlyTheChildThatAsksForIt) {
  std::atomic<bool> fails{false};
  PagerConfig failing = config();
  failing.device = 400_MiB;
  failing.around_io = around<FailingIo>([&](const Transfer&) { return fails ? EIO : 0; });
  auto pager = started(failing);
  const auto tensors = more_than_fits(*pager);
  WaitingChild asks([&] { return holds(tensors[0], kLarge, 0) ? 0 : 1; });
  WaitingChild does_not([&] {
    for (std::size_t index = 1; index < kTensors; ++index)
      if (!holds(tensors[index], kLarge, index)) return 1;
    return 0;
  });
  fails = true;
  fill(tensors[0], kLarge, 100);
  fails = false;
  for (std::size_t index = 1; index < kTensors; ++index) fill(tensors[index], kLarge, 100 + index);
  const int status = asks.status_after_go();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_TRUE(succeeded(does_not.status_after_go()));
  EXPECT_TRUE(all_hold(tensors, 100));
}

// What a script does meanwhile: kernels, new tensors, writes to and reads of those that are away.
void go_on(Pager& pager, const std::vector<std::byte*>& tensors, std::size_t seed) {
  const StreamId stream = pager.this_stream();
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const ByteExtent extent{tensors[index], kLarge, true};
    pager.kernel_ready(stream, {}, {&extent, 1});
    EXPECT_TRUE(holds(tensors[index], kLarge, index));
    fill(tensors[index], kLarge, seed + index);
    pager.kernel_done(stream);
  }
  std::byte* another = granted(pager, kLarge / 2);
  fill(another, kLarge / 2, seed);
  EXPECT_TRUE(holds(another, kLarge / 2, seed));
  pager.free(another);
  EXPECT_TRUE(all_hold(tensors, seed));
}

// What is read for a child is no whole block.
constexpr auto kIsAChilds = [](const Transfer& transfer) { return transfer.bytes < kBlockBytes.value; };

TEST_P(ForkTest, NobodyButTheChildWaitsForWhatItReads) {
  HoldingIo::Held held;
  PagerConfig roomy = config();
  roomy.ssd_capacity = 1024_MiB;
  roomy.around_io = around<HoldingIo>(std::ref(held), kIsAChilds);
  auto pager = started(roomy);
  const auto tensors = more_than_fits(*pager);  // The first ones are away, the last one is there.
  WaitingChild waits([&] { return all_hold(tensors, 0) ? 0 : 1; });
  WaitingChild other([&] { return holds(tensors.back(), kLarge, kTensors - 1) ? 0 : 1; });
  WaitingChild dies([&] { return all_hold(tensors, 0) ? 0 : 1; });
  held.on = true;
  waits.go();
  eventually([&] { return held.count == 1; });
  EXPECT_TRUE(succeeded(other.status_after_go()));
  dies.go();
  eventually([&] { return held.count == 2; });
  dies.kill();
  EXPECT_TRUE(WIFSIGNALED(dies.status()));
  go_on(*pager, tensors, 100);
  EXPECT_EQ(held.count, 2u);
  held.on = false;
  EXPECT_TRUE(succeeded(waits.status()));
  EXPECT_TRUE(all_hold(tensors, 100));
}

TEST_P(ForkTest, AChildIsNotGivenWhatIsLostWhileItIsRead) {
  HoldingIo::Held held;
  PagerConfig tight = config();
  tight.ssd_capacity = 160_MiB;  // for the tensors, not for what children may want
  tight.around_io = around<HoldingIo>(std::ref(held), kIsAChilds);
  auto pager = started(tight);
  const auto tensors = more_than_fits(*pager);
  WaitingChild child([&] { return holds(tensors[1], ChildServer::kPartBytes, 1) ? 0 : 1; });
  held.on = true;
  child.go();
  eventually([&] { return held.count == 1; });
  // The last ones take what may be kept.
  for (std::size_t index = kTensors; index-- > 0;) fill(tensors[index], kLarge, 100 + index);
  held.on = false;
  const int status = child.status();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_TRUE(all_hold(tensors, 100));
}

TEST_P(ForkTest, OnlyWhoWritesMoreThanIsKeptAtATimeWaits) {
  HoldingIo::Held held;
  PagerConfig roomy = config();
  roomy.device = 400_MiB;  // All is there: what is written is kept for children.
  roomy.around_io = around<HoldingIo>(std::ref(held), [](const Transfer& transfer) { return transfer.write; });
  auto pager = started(roomy);
  const auto tensors = more_than_fits(*pager);
  const std::vector<std::byte*> read_only(tensors.begin() + 1, tensors.end());
  WaitingChild child([&] { return all_hold(tensors, 0) ? 0 : 1; });
  held.on = true;
  std::atomic<bool> written{false};
  std::thread writer([&] {
    fill(tensors[0], kLarge, 100);
    written = true;
  });
  eventually([&] { return held.count == KeptBlocks::kMostWrites; });
  EXPECT_TRUE(all_hold(read_only, 1));
  std::byte* another = granted(*pager, kLarge / 2);
  fill(another, kLarge / 2, 7);
  EXPECT_TRUE(holds(another, kLarge / 2, 7));
  EXPECT_FALSE(written);
  EXPECT_TRUE(succeeded(child.status_after_go()));  // It needs no disk: nothing has been written yet.
  writer.join();                                    // Nobody wants the rest any more.
  EXPECT_EQ(held.count, KeptBlocks::kMostWrites);
  held.on = false;
  EXPECT_TRUE(holds(tensors[0], kLarge, 100) && all_hold(read_only, 1));
  eventually([&] { return pager->stats().held[Tier::ssd] == Bytes{}; });
}

TEST_P(ForkTest, AChildThatCannotBeServedIsToldWhyAndDies) {
  auto pager = started(config());
  const auto tensors = more_than_fits(*pager);
  const ChildEnd end = in_child([&] {
    ::close_range(3, ~0u, 0);  // as daemons do
    const pid_t inner = ::fork();
    if (inner == 0) ::_exit(static_cast<int>(tensors.front()[0]));
    int status = 0;
    ::waitpid(inner, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV && all_hold(tensors, 0) ? 7 : 0;
  });
  EXPECT_EQ(WEXITSTATUS(end.status), 7) << end.status;
  EXPECT_TRUE(end.text.contains("spawn")) << end.text;
  EXPECT_TRUE(all_hold(tensors, 0));
}

TEST_P(ForkTest, WhatAChildMapsNeverLiesInTheManagedRange) {
  auto pager = started(config());
  const ChildEnd end = in_child([&] {
    for (int round = 0; round < 100; ++round) {
      void* mapped = ::mmap(nullptr, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (mapped == MAP_FAILED || pager->contains(mapped)) return 1;
    }
    return 0;
  });
  EXPECT_TRUE(succeeded(end.status)) << end.status << end.text;
}

TEST_P(ForkTest, AChildHoldsNothingOfItsParents) {
  auto pager = started(config());
  const auto tensors = more_than_fits(*pager);
  const ChildEnd end = in_child([&] {
    if (pager->active() || pager->allocate(100).has_value()) return 1;
    pager->free(tensors[0]);
    pager->kernel_ready({0}, {}, {});
    pager->kernel_done({0});
    int userfaults = 0;  // one is its own
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      const std::string target = std::filesystem::read_symlink(entry, error).string();
      userfaults += target.find("userfaultfd") != std::string::npos;
      if (target.find("io_uring") != std::string::npos || target.find("eventpoll") != std::string::npos) return 2;
      if (target.find("(deleted)") != std::string::npos && target.find(spill_directory()) == 0) return 3;
    }
    pager.reset();
    return userfaults == 1 ? 0 : 4;
  });
  EXPECT_TRUE(succeeded(end.status)) << end.status << end.text;
  EXPECT_TRUE(all_hold(tensors, 0));
}

TEST_P(ForkTest, ChildrenOfARandomProgramSeeItsTensorsAsTheyWere) {
  constexpr std::uint64_t kSeed = 23;
  PagerConfig small = config();
  small.device = kBlockBytes * 12;
  small.ssd_capacity = 1024_MiB;
  small.keeps_copies = true;
  small.around_io = around<SlowIo>(kSeed);
  auto pager = started(small);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    Program program(*pager, kSeed + 1, {.most_bytes = 16 << 20});
    while (!stop) program.step();
    program.finish();
  });
  Program program(*pager, kSeed, {.most_bytes = 32 << 20});
  std::deque<WaitingChild> children;
  // Which block is split depends on who is faster: it goes on until there was one.
  const auto wants_more = [&](unsigned step) {
    return step < 60 * effort() || (pager->splits() == 0 && step < 2000 * effort());
  };
  for (unsigned step = 0; wants_more(step); ++step) {
    program.step();
    if (step % 10 != 0) continue;
    if (!children.empty()) children.back().go();  // It reads while the program goes on.
    children.emplace_back([&] { return program.holds_its_bytes() ? 0 : 1; });
    if (children.size() < 4) continue;
    EXPECT_TRUE(succeeded(children.front().status())) << step;
    children.pop_front();
  }
  children.back().go();
  for (WaitingChild& child : children) EXPECT_TRUE(succeeded(child.status()));
  stop = true;
  other.join();
  program.finish();
  EXPECT_GT(pager->splits(), 0u);
}

// Threads write all the time; each keeps the rule that all words of its tensor are equal but while it writes them, and
// counts its rounds in plain memory before and after. A child must find both of the same moment.
TEST_P(ForkTest, ChildrenSeeManagedAndOtherMemoryOfOneMoment) {
  PagerConfig roomy = config();
  roomy.ssd_capacity = 2048_MiB;
  roomy.keeps_copies = true;
  auto pager = started(roomy);
  constexpr std::size_t kThreads = 3, kWords = kLarge / sizeof(std::uint64_t);
  struct Counted {
    std::atomic<std::uint64_t> begun{0}, done{0};
  };
  std::array<Counted, kThreads> rounds;
  std::vector<std::uint64_t*> tensors;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    tensors.push_back(reinterpret_cast<std::uint64_t*>(granted(*pager, kLarge)));
    std::memset(tensors.back(), 0, kLarge);
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (std::uint64_t round = 1; !stop; ++round) {
        rounds[thread].begun.store(round);
        for (std::size_t word = 0; word < kWords; word += 64)
          std::atomic_ref(tensors[thread][word]).store(round, std::memory_order_release);
        rounds[thread].done.store(round);
      }
    });
  for (unsigned fork = 0; fork < effort(); ++fork) {
    const ChildEnd end = in_child([&] {
      for (std::size_t thread = 0; thread < kThreads; ++thread)
        for (std::size_t word = 0; word < kWords; word += 64) {
          const std::uint64_t found = std::atomic_ref(tensors[thread][word]).load();
          if (found < rounds[thread].done.load()) return 1;
          if (found > rounds[thread].begun.load()) return 2;
        }
      return 0;
    });
    EXPECT_TRUE(succeeded(end.status)) << end.status << end.text;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace spillway
