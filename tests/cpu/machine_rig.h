#pragma once

#include <sys/socket.h>

#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "machines/cpu/cpu_machine.h"
#include "support.h"

namespace spillway {

inline constexpr std::size_t kBlock = kBlockBytes.value;

struct Rig {
  std::unique_ptr<SpillFile> file;
  std::unique_ptr<CpuMachine> machine;

  std::byte* block(std::uint32_t index) { return machine->range().block(index); }
  template <class C>
  void ask(C command) {
    const Command commands[] = {command};
    machine->submit(commands);
    machine->check_invariants();
  }
  Event next() {
    auto event = machine->wait();
    if (!event) ADD_FAILURE() << event.error().message;
    CHECK(event.has_value());
    machine->check_invariants();
    return event->what;
  }
  // The answer to a move, passing over faults of blocks that are on their way.
  Event answer() {
    for (;;) {
      const Event event = next();
      if (!std::holds_alternative<Faulted>(event)) return event;
    }
  }
  // A tensor is born in block 0 and filled by a thread that faults; the executor knows of both.
  void tensor_in_block_0(std::uint64_t seed) {
    machine->inbox().allocated({0}, {{0}, 1});
    std::thread script([&] { fill(block(0), kBlock, seed); });
    EXPECT_TRUE(std::holds_alternative<Allocated>(next()));
    EXPECT_TRUE(std::holds_alternative<Faulted>(next()));
    ask(Populate{{{0}, 1}});
    script.join();
  }
  // A fork of which only the moment is here.
  struct Forked {
    std::optional<std::uint32_t> could_want;
    UniqueFd childs;  // its end of the socket
  };
  Forked fork() {
    int sockets[2];
    CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
    Forked forked{.could_want = {}, .childs = UniqueFd(sockets[1])};
    std::thread script([&] {
      forked.could_want = machine->children().begin_fork(UniqueFd(sockets[0]));
      machine->children().fork_is_over();
      machine->inbox().kernel_done({{0}}, true);
    });
    EXPECT_TRUE(std::holds_alternative<KernelDone>(next()));
    script.join();
    return forked;
  }
  bool move(std::uint32_t id, BlockRange blocks, Tier from, Tier to, bool clean = false) {
    ask(Move{.id = {id}, .blocks = blocks, .from = from, .to = to, .urgency = Urgency::need, .clean = clean});
    return std::holds_alternative<MoveDone>(answer());
  }
};

class CpuMachineTest : public testing::TestWithParam<EvictionMethod> {
 protected:
  void SetUp() override {
    REQUIRE_PAGE_FAULTS();
    if (auto chosen = choose(GetParam()); !chosen) GTEST_SKIP() << chosen.error().message;
  }
  static Rig rig(CpuMachineOptions options, std::uint32_t slots = 64) {
    auto file = SpillFile::open(spill_directory(), kBlockBytes * slots);
    if (!file) ADD_FAILURE() << file.error().message;
    auto owned = std::make_unique<SpillFile>(std::move(*file));
    CHECK(owned->reserve(slots).has_value());
    if (options.device_frames == 0) options.device_frames = 10;
    options.range_blocks = 64;
    options.method = GetParam();
    auto machine = CpuMachine::make(options, *owned);
    if (!machine) ADD_FAILURE() << machine.error().message;
    return {std::move(owned), std::move(*machine)};
  }
  static bool moves() { return GetParam() == EvictionMethod::move; }
};

}  // namespace spillway
