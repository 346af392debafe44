#include "session/published.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

namespace spillway {
namespace {

// Large enough that a reader meets a writer within it.
struct Record {
  std::array<std::uint64_t, 32> numbers{};

  static Record of(std::uint64_t number) {
    Record record;
    record.numbers.fill(number);
    return record;
  }
  bool is_whole() const {
    return std::ranges::all_of(numbers, [&](auto number) { return number == numbers.front(); });
  }
};

constexpr std::size_t kRoom = 4;
using Records = History<Record, kRoom>;

// One that changes the last record as often as it adds one, and now and then begins anew.
void write(Records& records, std::uint64_t number) {
  if (number % 64 == 0) records.clear();
  number % 2 == 0 ? records.add(Record::of(number)) : records.replace_last(Record::of(number));
}

TEST(History, HasWhatWasAddedAsItWasChangedLast) {
  const auto records = std::make_unique<Records>();
  EXPECT_EQ(records->count(), 0u);
  EXPECT_EQ(records->size(), 0u);
  for (const std::uint64_t number : {1, 2, 3}) records->add(Record::of(number));
  records->replace_last(Record::of(7));
  ASSERT_EQ(records->size(), 3u);
  EXPECT_EQ((*records)[0].numbers[0], 1u);
  EXPECT_EQ((*records)[1].numbers[0], 2u);
  EXPECT_EQ((*records)[2].numbers[0], 7u);
  records->clear();
  EXPECT_EQ(records->count(), 0u);
}

TEST(History, KeepsTheFirstOnesAndTheLastWhereThereAreMoreThanHaveRoom) {
  const auto records = std::make_unique<Records>();
  for (std::uint64_t number = 1; number <= kRoom + 3; ++number) records->add(Record::of(number));
  EXPECT_EQ(records->count(), kRoom + 3);
  ASSERT_EQ(records->size(), kRoom);
  for (std::size_t i = 0; i < kRoom; ++i) EXPECT_EQ((*records)[i].numbers[0], i + 1);
  EXPECT_EQ(records->last().record.numbers[0], kRoom + 3);
}

TEST(History, AThreadSeesTheLastRecordWholeWhileAnotherOneWrites) {
  const auto records = std::make_unique<Records>();
  std::atomic<bool> seen_enough{false};
  std::thread writer([&] {
    for (std::uint64_t number = 0; !seen_enough; ++number) write(*records, number);
  });
  std::uint64_t different = 0, before = 0;
  bool all_whole = true;
  while (different < 50) {
    const Record record = records->last().record;
    all_whole = all_whole && record.is_whole();
    if (!all_whole) break;
    different += std::exchange(before, record.numbers[0]) != record.numbers[0];
  }
  seen_enough = true;
  writer.join();
  EXPECT_TRUE(all_whole);
}

TEST(History, AProcessSeesAllRecordsWholeThatAnotherOneHasLeftWhenItWasKilled) {
  void* memory = ::mmap(nullptr, sizeof(Records), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& records = *static_cast<Records*>(memory);  // as a fresh session: all bytes are zero
  for (int round = 0; round < 10; ++round) {
    const pid_t writer = ::fork();
    ASSERT_GE(writer, 0);
    if (writer == 0)
      for (std::uint64_t number = 0;; ++number) write(records, number);
    std::uint64_t different = 0, before = 0;
    while (different < 3) {
      const Record record = records.last().record;
      EXPECT_TRUE(record.is_whole());
      different += std::exchange(before, record.numbers[0]) != record.numbers[0];
    }
    ::kill(writer, SIGKILL);
    ASSERT_EQ(::waitpid(writer, nullptr, 0), writer);
    EXPECT_TRUE(records.last().record.is_whole());
    for (std::size_t i = 0; i < records.size(); ++i) EXPECT_TRUE(records[i].is_whole()) << i;
  }
  ::munmap(memory, sizeof(Records));
}

}  // namespace
}  // namespace spillway
