#include "machines/real/ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <thread>

#include "machines/real/memory_range.h"
#include "machines/real/spill_file.h"

namespace spillway {
namespace {

struct Rig {
  std::unique_ptr<SpillFile> file;
  Doorbell bell;
  std::unique_ptr<Ring> ring;
  MemoryRange memory;

  static Rig make(std::uint32_t slots) {
    auto file = SpillFile::open("/var/tmp", kBlockBytes * slots);
    CHECK(file.has_value() && file->reserve(slots).has_value());
    auto bell = Doorbell::make();
    auto memory = MemoryRange::reserve(slots);
    CHECK(bell.has_value() && memory.has_value());
    return {std::make_unique<SpillFile>(std::move(*file)), std::move(*bell), nullptr, std::move(*memory)};
  }
  void open(int fd) {
    auto opened = Ring::open(fd, bell);
    CHECK(opened.has_value());
    ring = std::move(*opened);
  }
  std::vector<Completion> all(std::size_t count) {
    std::vector<Completion> ended;
    while (ended.size() < count) CHECK(ring->wait(ended, std::nullopt).has_value());
    return ended;
  }
};

TEST(Ring, WhatIsWrittenIsReadBack) {
  Rig rig = Rig::make(8);
  rig.open(rig.file->fd());
  for (std::uint32_t block = 0; block < 8; ++block) {
    std::memset(rig.memory.block(block), static_cast<int>(block + 1), kBlockBytes.value);
    rig.ring->start({block, true, rig.memory.block(block), block * kBlockBytes.value});
  }
  for (const Completion& completion : rig.all(8)) EXPECT_EQ(completion.error, 0);
  std::memset(rig.memory.begin(), 0, rig.memory.bytes());
  for (std::uint32_t block = 0; block < 8; ++block)
    rig.ring->start({block, false, rig.memory.block(block), (7 - block) * kBlockBytes.value});
  for (const Completion& completion : rig.all(8)) EXPECT_EQ(completion.error, 0);
  for (std::uint32_t block = 0; block < 8; ++block) {
    EXPECT_EQ(rig.memory.block(block)[0], std::byte(8 - block));
    EXPECT_EQ(rig.memory.block(block)[kBlockBytes.value - 1], std::byte(8 - block));
  }
}

TEST(Ring, ReportsTheErrorOfATransfer) {
  Rig rig = Rig::make(2);
  const UniqueFd read_only(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  rig.open(read_only.get());
  rig.ring->start({5, true, rig.memory.begin(), 0});
  const auto ended = rig.all(1);
  EXPECT_EQ(ended[0].id, 5u);
  EXPECT_EQ(ended[0].error, EBADF);
}

TEST(Ring, AFileThatEndsTooEarlyIsAnError) {
  Rig rig = Rig::make(2);
  rig.open(rig.file->fd());
  ASSERT_EQ(::ftruncate(rig.file->fd(), 4096), 0);
  rig.ring->start({1, false, rig.memory.begin(), 0});
  EXPECT_EQ(rig.all(1)[0].error, EIO);
}

// A pipe takes as much of a write as it has room for.
TEST(Ring, WhatIsWrittenInPartsIsWrittenWholly) {
  Rig rig = Rig::make(2);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd out(ends[0]);
  std::optional<UniqueFd> in(ends[1]);
  rig.open(in->get());
  for (std::size_t at = 0; at < kBlockBytes.value; ++at) rig.memory.block(0)[at] = std::byte(at * 7 % 251);
  std::thread reader([&] {
    for (std::size_t at = 0; at < kBlockBytes.value;) {
      const ssize_t got = ::read(out.get(), rig.memory.block(1) + at, kBlockBytes.value - at);
      if (got <= 0) return;
      at += static_cast<std::size_t>(got);
    }
  });
  rig.ring->start({3, true, rig.memory.block(0), 0});
  EXPECT_EQ(rig.all(1)[0].error, 0);
  rig.ring.reset();
  in.reset();  // Who waits for more would see the end.
  reader.join();
  EXPECT_EQ(std::memcmp(rig.memory.block(0), rig.memory.block(1), kBlockBytes.value), 0);
}

TEST(Ring, TheBellWakesItAndTheTimeOutEndsTheWait) {
  Rig rig = Rig::make(1);
  rig.open(rig.file->fd());
  std::vector<Completion> ended;
  EXPECT_TRUE(rig.ring->wait(ended, std::chrono::microseconds(100)));
  for (int round = 0; round < 3; ++round) {
    std::thread ringer([&] { rig.bell.ring(); });
    EXPECT_TRUE(rig.ring->wait(ended, std::nullopt));
    ringer.join();
  }
  EXPECT_TRUE(ended.empty());
}

}  // namespace
}  // namespace spillway
