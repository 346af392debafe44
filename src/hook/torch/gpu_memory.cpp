#include "hook/torch/gpu_memory.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "hook/cuda/gated_launches.h"
#include "hook/torch/paged_memory.h"
#include "machines/cuda/cuda_device.h"
#include "machines/cuda/freed_memory.h"
#include "session/hook_side.h"

namespace spillway {
namespace {

// What stands between the script and the machine.
struct Watch {
  Watch(const CudaDriver& its_driver, CudaMachine& machine, Session& session)
      : driver(its_driver),
        timer(driver, machine.context(), machine.stall()),
        launches(machine, [&session](std::string_view why) { add_notice(session, why); }, &timer) {}

  CudaDriver driver;
  KernelTimer timer;
  GatedLaunches launches;
};

class GpuMemory final : public PagedMemory {
 public:
  GpuMemory(CudaShim& shim, CudaMachine& machine, std::shared_ptr<Watch> watch, std::unique_ptr<Pager> paged,
            std::unique_ptr<Planning> planning)
      : PagedMemory(std::move(paged), std::move(planning)),
        shim_(shim),
        streams_(machine.gate().streams()),
        watch_(std::move(watch)) {
    shim_.observe(&watch_->launches);
  }

  std::span<std::byte> range() const override { return {}; }  // The host touches none of it.

  Result<void*> allocate(const Newborn& tensor) override;
  void free(void* memory) override;
  void record_stream(void* memory, CUstream_st* stream) override;
  // Nothing of ours may call the driver while it ends.
  void script_ends() override {
    has_ended_ = true;
    PagedMemory::script_ends();
    pager().end();
  }
  void measure_times() override { watch_->timer.start(); }

  void kernel_ready(const NextKernel& kernel, std::span<const ByteExtent> extents) override {
    GatedLaunches::operator_begins(kernel.name);
    for (const ByteExtent& extent : extents)
      if (contains(extent.begin)) watch_->launches.operator_touches(extent.begin, Bytes{extent.bytes}, extent.writes);
    in_kernel = true;
    PagedMemory::kernel_ready(kernel, extents);
    watch_->timer.kernel_begins();
  }
  std::optional<std::uint32_t> kernel_done() override {
    in_kernel = false;
    GatedLaunches::operator_ends();
    PagedMemory::kernel_done();
    return watch_->timer.kernel_ends();
  }
  std::optional<std::vector<KernelTime>> times_on_device() override;

 private:
  struct Owned {
    Bytes bytes;
    std::vector<std::uint32_t> streams;  // by number: handles may be another stream's later
  };

  void give_back(void* memory, std::vector<StreamUse> uses);

  static thread_local bool in_kernel;

  CudaShim& shim_;
  ScriptStreams& streams_;
  std::atomic<bool> has_ended_{false};
  std::shared_ptr<Watch> watch_;
  Mutex mutex_;  // The pager's may be taken under it.
  std::unordered_map<void*, Owned> owned_ SPILLWAY_GUARDED_BY(mutex_);
  FreedMemory freed_ SPILLWAY_GUARDED_BY(mutex_);
};
thread_local bool GpuMemory::in_kernel = false;

Result<void*> GpuMemory::allocate(const Newborn& tensor) {
  TRY(const std::uint32_t stream, streams_.number_of(tensor.stream));
  std::vector<StreamUse> before;
  void* memory = nullptr;
  {
    const MutexLock lock(mutex_);
    TRY(memory, PagedMemory::allocate(tensor));
    before = freed_.taken(pager().place_of(memory), {tensor.bytes}, stream);
    owned_.emplace(memory, Owned{{tensor.bytes}, {stream}});
  }
  auto ready = streams_.let_wait(tensor.stream, before);
  if (ready && !shim_.add(watch_->launches.range_of(memory, {tensor.bytes})))
    ready = fail(Errc::unavailable, "the launch shim does not watch a tensor's memory");
  if (!ready) {
    give_back(memory, std::move(before));
    return std::unexpected(ready.error());
  }
  if (in_kernel) watch_->launches.operator_touches(memory, {tensor.bytes}, true);
  return memory;
}

void GpuMemory::free(void* memory) {
  shim_.remove(reinterpret_cast<std::uintptr_t>(memory));
  give_back(memory, {});
}

// `uses`: by streams that it has not been for; a stream at most once.
void GpuMemory::give_back(void* memory, std::vector<StreamUse> uses) {
  const MutexLock lock(mutex_);
  const auto found = owned_.find(memory);
  CHECK(found != owned_.end());
  if (in_kernel) GatedLaunches::operator_forgets(memory, found->second.bytes);
  for (const std::uint32_t stream : found->second.streams) {
    uses.push_back(streams_.all_of(stream));
    if (!has_ended_) streams_.mark(uses.back());
  }
  freed_.freed(pager().place_of(memory), found->second.bytes, std::move(uses));
  owned_.erase(found);
  PagedMemory::free(memory);
}

void GpuMemory::record_stream(void* memory, CUstream_st* stream) {
  const auto number = streams_.number_of(stream);
  if (!number) return;  // Launches there are refused, too.
  const MutexLock lock(mutex_);
  const auto found = owned_.find(memory);
  if (found == owned_.end()) return;
  auto& streams = found->second.streams;
  if (std::ranges::find(streams, *number) == streams.end()) streams.push_back(*number);
}

std::optional<std::vector<KernelTime>> GpuMemory::times_on_device() {
  std::vector<KernelTime> times;
  for (const KernelTimer::Time& one : watch_->timer.collect()) times.push_back({one.duration, one.gap});
  return times;
}

Result<CudaShim*> loaded_shim() {
  const auto shim = reinterpret_cast<CudaShim* (*)()>(::dlsym(RTLD_DEFAULT, kCudaShimSymbol));
  if (shim == nullptr)
    return fail(Errc::unavailable,
                "the script's process has not loaded libspillway_cuda.so, which shows what kernels use: LD_PRELOAD "
                "names it for all that `spillway run` starts, and somebody has changed that");
  return shim();
}

}  // namespace

Result<std::unique_ptr<TensorMemory>> start_gpu_memory(Session& session) {
  TRY(CudaShim* const shim, loaded_shim());
  TRY(const CudaDriver driver, load_cuda_driver(session.config.cuda_driver.data()));  // past the shim
  TRY(PagerConfig config, session_config(session));
  CudaDeviceConfig wanted;
  static_cast<RealDeviceConfig&>(wanted) = config;
  wanted.ordinal = session.config.gpu;
  wanted.strict = session.config.strict;
  const Bytes pinned{session.config.pinned_budget_bytes};
  wanted.staging_blocks =
      std::max(1u, static_cast<std::uint32_t>(excess(pinned, wanted.host).value / wanted.block_bytes.value));
  wanted.on_shortage = [&session](const std::string& why) {
    add_notice(session, why + "; what does not fit there goes to the SSD; give a smaller --host-memory");
  };
  wanted.teardown_path = config.teardown_path;
  wanted.around_io = config.around_io;
  TRY(std::unique_ptr<CudaDevice> device, CudaDevice::open(driver, wanted));
  CudaMachine& machine = device->machine();
  auto watch = std::make_shared<Watch>(driver, machine, session);
  config.on_progress = [&session, &machine, watch, told = std::move(config.on_progress)](const MemoryFigures& now) {
    told(now);
    const CudaMachine::Activity activity = machine.activity();
    session.state.gpu.store({.held_launches = activity.held_launches,
                             .blind_launches = watch->launches.blind_launches(),
                             .mappings = activity.mappings,
                             .mapping = activity.mapping,
                             .pinned_peak = activity.pinned,
                             .checked_launches = activity.checked_launches});
  };
  TRY(std::unique_ptr<Pager> pager, Pager::start(std::move(config), std::move(device)));
  TRY(auto planning, session_planning(session, *pager));
  return std::make_unique<GpuMemory>(*shim, machine, std::move(watch), std::move(pager), std::move(planning));
}

}  // namespace spillway
