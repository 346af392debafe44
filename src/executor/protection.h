#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/ids.h"
#include "executor/machine.h"
#include "memory/page_table.h"

namespace spillway {

// Which blocks must not be chosen as victims, and which of them to give up when nothing else is left.
//
// Three kinds of protection, all as pins in the page table:
//  - A grant protects the working set of a launch until it is done. It is given whole or not at all, and all grants
//    together fit the device, so that a granted kernel can always be served.
//  - A window protects the blocks that a stream faulted in last: one instruction may need several at a time, and a
//    small budget must be slow, never a livelock.
//  - An expectation protects what the kernels to come on a stream will use, as long as it runs any.
// None can block anybody for ever: relax() takes protection away, least valuable first. Firm grants stay: a kernel that
// cannot fault needs all that it was granted, and ends without anything more.
struct ProtectionOptions {
  std::uint32_t window_blocks = 16;
  bool waits_for_all = false;  // What a stream has asked for last it needs all at once: that outlives its grant.
  bool grants_are_firm = false;
};
class Protection {
 public:
  Protection(PageTable& table, ProtectionOptions options)
      : table_(table), options_(options), grants_of_(table.block_count()) {}

  // Protects these blocks (disjoint ranges) until the launch is done; false if they do not fit beside what is granted
  // already. A block of several grants counts once.
  bool grant(LaunchId launch, const std::vector<BlockRange>& blocks);
  // It uses more than it said, and more than there is room for: what it uses leaves like anything else.
  void give_back(LaunchId launch);
  // It only reads these, and they may leave while it does.
  void give_back(LaunchId launch, BlockRange blocks);
  bool has_grants() const { return !grants_.empty(); }
  // By how much these blocks are more than the device, if nothing else is granted.
  Bytes shortfall(const std::vector<BlockRange>& blocks) const;
  // It is done: neither grant nor the stream's window is needed any more. Nor are the windows of threads that have not
  // faulted for several kernels: they are those of helpers (OpenMP's), which end no kernel of their own.
  void revoke(LaunchId launch);

  // The stream has faulted and waits: what it has faulted in before stays protected, since one instruction may need
  // all.
  void waits(StreamId stream);
  // It needs no longer what it has faulted in so far.
  void begins_anew(StreamId stream);
  // The machine has not let it leave: whoever began anew last still waits for all that it needs, and this is of that.
  // Its protection may have been taken away for somebody else.
  void refused(BlockId block);
  // The stream has faulted these in, one after the other; kNobody's blocks are not protected.
  void faulted_in(StreamId stream, BlockRange blocks);
  // There will be no such pieces any more.
  void forget(BlockRange pieces);

  // Of the stream's kernels to come, the first one starts now, or none of them will: `anew`.
  void came(StreamId stream, bool anew);
  // This is what the one after all those will use.
  void expect(StreamId stream, std::vector<BlockRange> blocks);
  // What runs now does not fit, so nothing is kept for what comes after it.
  void expect_nothing() {
    for (Expectation& expected : expectations_) forget(expected);
  }

  // Takes one protection away so that `stream` can be served; false if there is none left to take.
  bool relax(StreamId stream);

  // Every pin is somebody's, and all grants together fit the device; O(blocks). For tests.
  void check_invariants() const;

 private:
  struct Grant {
    LaunchId launch;
    std::vector<BlockRange> blocks;
  };
  struct Window {
    StreamId stream;
    std::vector<BlockRange> runs = {};  // blocks in the order in which they came; most are neighbours of each other
    std::uint32_t size = 0;             // so many blocks
    bool waits = false;
    std::uint64_t fault_at = 0;  // when its last block came, counted in revocations
  };
  struct Expectation {
    StreamId stream;
    std::deque<std::vector<BlockRange>> kernels;
    std::uint64_t came_at = 0;  // when its last kernel started, counted in revocations
  };
  Expectation& expectation(StreamId stream);
  void forget(Expectation& expected);
  void unpin(std::span<const BlockRange> blocks);
  void close_of(StreamId stream);
  void unpin_oldest(Window& window);
  static bool take_out(Window& window, BlockId block);
  std::deque<Window>::iterator close(const std::deque<Window>::iterator& window);
  void give_back(std::vector<Grant>::iterator grant);
  void take_back(std::span<const BlockRange> blocks);

  PageTable& table_;
  ProtectionOptions options_;
  Bytes granted_;
  std::vector<std::uint32_t> grants_of_;  // by block
  std::vector<Grant> grants_;
  std::vector<Expectation> expectations_;
  std::deque<Window> windows_;  // the stream that faulted least recently first
  StreamId claimer_ = kNobody;  // who began anew last
  std::uint64_t revocations_ = 0;
};

}  // namespace spillway
