#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "executor/machine.h"
#include "memory/tier.h"

namespace spillway {

// Stands between an executor and any machine. Checks what both promise each other (a broken promise ends the test), and
// remembers what was asked, link by link.
class RuledMachine final : public Machine {
 public:
  struct Asked {
    PerLink<std::vector<BlockId>> moved;  // block by block, in the order of asking
    std::vector<BlockId> populated, discarded;
    std::uint32_t dropped_clean = 0;  // of those moved, how often one was clean
  };

  RuledMachine(Machine& machine, std::uint32_t blocks, std::uint64_t device_blocks)
      : machine_(machine), device_blocks_(device_blocks), where_(blocks), copy_(blocks) {}

  void submit(std::span<const Command> commands) override;
  Result<Stamped> wait() override;

  const Asked& asked() const { return asked_; }
  bool idle() const { return moves_.empty(); }

 private:
  void take_frames(std::uint64_t count);
  void set(BlockRange blocks, std::optional<Tier> tier);

  Machine& machine_;
  std::uint64_t device_blocks_, in_use_ = 0;             // frames: mapped, leaving and arriving
  std::vector<std::optional<Tier>> where_;               // the only copy; nothing: no bytes, or on their way
  std::vector<std::optional<Tier>> copy_;                // of what is on the device: where else it is
  std::map<LaunchId, std::vector<BlockRange>> written_;  // by kernels that are not done
  std::map<std::uint32_t, Move> moves_;                  // that have not been answered
  std::set<LaunchId> waiting_;                           // for their Launch
  Nanos last_;
  Asked asked_;
};

}  // namespace spillway
