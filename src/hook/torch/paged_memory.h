#pragma once

#include <memory>

#include "hook/torch/tensor_memory.h"
#include "runtime/pager.h"
#include "runtime/planning.h"
#include "session/session.h"

namespace spillway {

// Memory whose resident part is bounded by the session's budget. Keeps the session's counters up to date.
Result<std::unique_ptr<TensorMemory>> start_paged_memory(Session& session);

// ---- What paged memory of any device shares.

class PagedMemory : public TensorMemory {
 public:
  PagedMemory(std::unique_ptr<Pager> pager, std::unique_ptr<Planning> planning)
      : pager_(std::move(pager)), planning_(std::move(planning)) {}

  Result<void*> allocate(const Newborn& tensor) override {
    return pager_->allocate(tensor.bytes, tensor.place, tensor.label);
  }
  void free(void* memory) override { pager_->free(memory); }
  bool contains(const void* memory) const override { return pager_->contains(memory); }
  std::span<std::byte> range() const override { return pager_->range(); }
  bool is_short() const override { return pager_->is_short(); }
  std::uint32_t most_blocks() const override { return pager_->most_blocks(); }
  bool is_served() const override { return pager_->is_served(); }
  void kernel_ready(const NextKernel& kernel, std::span<const ByteExtent> extents) override {
    pager_->kernel_ready(pager_->this_stream(), kernel, extents);
  }
  MovedBytes moved(const void* memory, Bytes bytes) const override { return pager_->moved(memory, bytes); }
  void iteration_ended(const IterationEnded& ended) override { pager_->iteration_ended(ended); }
  void script_ends() override { pager_->script_ends(); }
  Planning* planning() override { return planning_.get(); }
  std::optional<std::uint32_t> kernel_done() override {
    pager_->kernel_done(pager_->this_stream());
    return std::nullopt;
  }
  Nanos stalled(Nanos now) const override { return pager_->stall(now); }
  std::uint64_t splits() const override { return pager_->splits(); }
  MemoryFigures figures() const override { return pager_->stats(); }

 protected:
  Pager& pager() { return *pager_; }

 private:
  std::unique_ptr<Pager> pager_;
  std::unique_ptr<Planning> planning_;
};

// With all that the session wants to be told.
Result<PagerConfig> session_config(Session& session);
// Null: nothing is planned.
Result<std::unique_ptr<Planning>> session_planning(Session& session, Pager& pager);

}  // namespace spillway
