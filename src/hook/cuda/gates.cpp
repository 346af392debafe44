#include "hook/cuda/gates.h"

#include <cudaTypedefs.h>

#include <array>
#include <atomic>
#include <utility>

#include "hook/cuda/described_launches.h"
#include "hook/cuda/launch_report.h"
#include "hook/cuda/shim.h"

namespace spillway {
namespace {

// Launches that an observer makes itself, or the driver within a launch, are not reported.
[[gnu::tls_model("initial-exec")]] thread_local bool is_reporting = false;

class Reporting {
 public:
  Reporting() { is_reporting = true; }
  ~Reporting() { is_reporting = false; }
  Reporting(const Reporting&) = delete;
  Reporting& operator=(const Reporting&) = delete;
};

// The driver's own function. `declared` is what we export under its name.
template <auto declared>
std::atomic<void*> real{nullptr};

template <class Function>
struct Gated;
template <class... Arguments>
struct Gated<CUresult (*)(Arguments...)> {
  template <auto declared>
  static CUresult call_real(Arguments... arguments) noexcept {
    return reinterpret_cast<decltype(declared)>(real<declared>.load(std::memory_order_relaxed))(arguments...);
  }
  // A launch: describe(report, arguments...) says what it is.
  template <auto declared, auto describe, bool per_thread>
  static CUresult launch(Arguments... arguments) noexcept {
    Shim& shim = Shim::of_this_process();
    LaunchObserver* const observer = shim.observer();
    if (observer == nullptr || is_reporting) return call_real<declared>(arguments...);
    const Reporting reporting;
    LaunchReport report(shim);
    describe(report, arguments...);
    const CudaLaunch& launch = report.finished(per_thread);
    if (!observer->before(launch)) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = call_real<declared>(arguments...);
    observer->after(launch, result);
    return result;
  }
  // before(shim, arguments...) first, then the driver.
  template <auto declared, auto before>
  static CUresult after(Arguments... arguments) noexcept {
    if (Shim& shim = Shim::of_this_process(); !shim.in_child()) before(shim, arguments...);
    return call_real<declared>(arguments...);
  }
  // The driver first, then done(shim, arguments...) if that worked.
  template <auto declared, auto done>
  static CUresult then(Arguments... arguments) noexcept {
    const CUresult result = call_real<declared>(arguments...);
    if (Shim& shim = Shim::of_this_process(); result == CUDA_SUCCESS && !shim.in_child()) done(shim, arguments...);
    return result;
  }
};

// What graphs and functions become.

constexpr auto record_graph = [](Shim& shim, CUgraphExec executable, CUgraph graph) {
  GraphUse use;
  add_graph(use, graph, shim.driver, shim.scanner);
  shim.graphs.put(executable, std::move(use));
};
constexpr auto instantiated = [](Shim& shim, CUgraphExec* executable, CUgraph graph, auto...) {
  record_graph(shim, *executable, graph);
};
constexpr auto updated = [](Shim& shim, CUgraphExec executable, CUgraph graph, auto...) {
  record_graph(shim, executable, graph);
};
constexpr auto destroyed = [](Shim& shim, CUgraphExec executable) { shim.graphs.forget(executable); };
constexpr auto kernel_node_set = [](Shim& shim, CUgraphExec executable, CUgraphNode node, const auto* params) {
  CUDA_KERNEL_NODE_PARAMS_v2 same{};
  same.func = params->func;
  if constexpr (requires { params->kern; }) same.kern = params->kern;
  same.gridDimX = params->gridDimX;
  same.kernelParams = params->kernelParams;
  same.extra = params->extra;
  GraphUse use;
  add_kernel(use, same, shim.scanner);
  shim.graphs.set_node(executable, node, std::move(use));
};
constexpr auto copy_node_set = [](Shim& shim, CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                  CUcontext) {
  GraphUse use;
  add_copy(use, *params);
  shim.graphs.set_node(executable, node, std::move(use));
};
constexpr auto set_node_set = [](Shim& shim, CUgraphExec executable, CUgraphNode node,
                                 const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  GraphUse use;
  add_set(use, *params);
  shim.graphs.set_node(executable, node, std::move(use));
};
constexpr auto graph_node_set = [](Shim& shim, CUgraphExec executable, CUgraphNode node, CUgraph child) {
  GraphUse use;
  add_graph(use, child, shim.driver, shim.scanner);
  shim.graphs.set_node(executable, node, std::move(use));
};
constexpr auto any_node_set = [](Shim& shim, CUgraphExec executable, CUgraphNode node, CUgraphNodeParams* params) {
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return kernel_node_set(shim, executable, node, &params->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return copy_node_set(shim, executable, node, &params->memcpy.copyParams, nullptr);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return graph_node_set(shim, executable, node, params->graph.graph);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& set = params->memset;
      const CUDA_MEMSET_NODE_PARAMS same{.dst = set.dst,
                                         .pitch = set.pitch,
                                         .value = set.value,
                                         .elementSize = set.elementSize,
                                         .width = set.width,
                                         .height = set.height};
      return set_node_set(shim, executable, node, &same, nullptr);
    }
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      GraphUse use;
      use.is_complete = false;
      return shim.graphs.set_node(executable, node, std::move(use));
    }
    default:
      return;
  }
};
constexpr auto unloading = [](Shim& shim, auto...) { shim.scanner.forget_layouts(); };
constexpr auto stream_ending = [](Shim& shim, CUstream stream) {
  if (LaunchObserver* const observer = shim.observer(); observer != nullptr && !is_reporting)
    observer->stream_ends(stream);
};
constexpr auto stream_waiting = [](Shim& shim, CUstream stream, auto...) {
  if (LaunchObserver* const observer = shim.observer(); observer != nullptr && !is_reporting)
    observer->stream_waits(stream);
};
constexpr auto capturing = [](Shim& shim, auto...) { shim.has_captured.store(true, std::memory_order_relaxed); };

// Note [Which version]
// cuGetProcAddress hands out the newest version of a function that is no newer than its caller asks for, and versions
// differ in what they take. The address tells which it is. Should a driver hand out other addresses than dlsym finds,
// the version does, up to the newest that this was compiled with: beyond, there may be one with other parameters than
// we know.
constexpr auto handing_out = [](Shim& shim, const char* symbol, void** function, int version, cuuint64_t flags,
                                auto...) {
  if (symbol == nullptr || function == nullptr || *function == nullptr) return;
  for (const Gate& gate : gates())
    if (gate.real->load(std::memory_order_relaxed) == *function) {
      *function = gate.function;
      return;
    }
  const Gate* gate = find_gate(symbol, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  if (gate == nullptr) return;
  if (version > CUDA_VERSION || gate->real->load(std::memory_order_relaxed) == nullptr)
    ++shim.unwatched;
  else
    *function = gate->function;
};

// `Signature` is what cudaTypedefs.h says that callers of this version call.
template <auto declared, class Signature>
Gate gate(const char* name, std::string_view base, int since, decltype(declared) function) {
  static_assert(std::is_same_v<decltype(declared), Signature>);
  return {.name = name,
          .base = base,
          .since = since,
          .function = reinterpret_cast<void*>(function),
          .real = &real<declared>};
}

// clang-format off
#define SPILLWAY_GATE(base, since, name, suffix, function) \
  gate<&::name##suffix, PFN_##base##_v##since##suffix>(#name #suffix, #base, since, Gated<decltype(&::name##suffix)>::function)
#define SPILLWAY_LAUNCH(base, since, name, describe) \
  SPILLWAY_GATE(base, since, name, , launch<&::name SPILLWAY_COMMA describe SPILLWAY_COMMA false>)
// With its other half for those who compile with a default stream a thread.
#define SPILLWAY_LAUNCHES(base, since, since_per_thread, name, suffix, describe) \
  SPILLWAY_LAUNCH(base, since, name, describe),                                  \
  SPILLWAY_GATE(base, since_per_thread, name, suffix, launch<&::name##suffix SPILLWAY_COMMA describe SPILLWAY_COMMA true>)
#define SPILLWAY_AFTER(base, since, name, suffix, before) \
  SPILLWAY_GATE(base, since, name, suffix, after<&::name##suffix SPILLWAY_COMMA before>)
#define SPILLWAY_THEN(base, since, name, suffix, done) \
  SPILLWAY_GATE(base, since, name, suffix, then<&::name##suffix SPILLWAY_COMMA done>)
#define SPILLWAY_COMMA ,
// Another name for a function that has one of its own, with that one's signature.
#define SPILLWAY_ALSO(base, since, signature, name, done) \
  gate<&::name, signature>(#name, #base, since, Gated<decltype(&::name)>::then<&::name SPILLWAY_COMMA done>)

}  // namespace

std::span<const Gate> gates() {
  // Made when asked for: somebody may call CUDA before this library's own variables are made.
  static const std::array all = {
    SPILLWAY_LAUNCHES(cuLaunchKernel, 4000, 7000, cuLaunchKernel, _ptsz, describe::kernel),
    SPILLWAY_LAUNCHES(cuLaunchKernelEx, 11060, 11060, cuLaunchKernelEx, _ptsz, describe::kernel_ex),
    SPILLWAY_LAUNCHES(cuLaunchCooperativeKernel, 9000, 9000, cuLaunchCooperativeKernel, _ptsz, describe::kernel),
    SPILLWAY_LAUNCH(cuLaunchCooperativeKernelMultiDevice, 9000, cuLaunchCooperativeKernelMultiDevice, describe::kernels),
    SPILLWAY_LAUNCH(cuLaunch, 2000, cuLaunch, describe::old_kernel),
    SPILLWAY_LAUNCH(cuLaunchGrid, 2000, cuLaunchGrid, describe::old_kernel),
    SPILLWAY_LAUNCH(cuLaunchGridAsync, 2000, cuLaunchGridAsync, describe::old_kernel),
    SPILLWAY_LAUNCHES(cuGraphLaunch, 10000, 10000, cuGraphLaunch, _ptsz, describe::graph_launch),

    SPILLWAY_LAUNCHES(cuMemcpy, 4000, 7000, cuMemcpy, _ptds, describe::copy),
    SPILLWAY_LAUNCHES(cuMemcpyAsync, 4000, 7000, cuMemcpyAsync, _ptsz, describe::copy),
    SPILLWAY_LAUNCHES(cuMemcpyPeer, 4000, 7000, cuMemcpyPeer, _ptds, describe::copy_peer),
    SPILLWAY_LAUNCHES(cuMemcpyPeerAsync, 4000, 7000, cuMemcpyPeerAsync, _ptsz, describe::copy_peer),
    SPILLWAY_LAUNCHES(cuMemcpyHtoD, 3020, 7000, cuMemcpyHtoD_v2, _ptds, describe::copy),
    SPILLWAY_LAUNCHES(cuMemcpyDtoH, 3020, 7000, cuMemcpyDtoH_v2, _ptds, describe::copy),
    SPILLWAY_LAUNCHES(cuMemcpyDtoD, 3020, 7000, cuMemcpyDtoD_v2, _ptds, describe::copy),
    SPILLWAY_LAUNCHES(cuMemcpyHtoDAsync, 3020, 7000, cuMemcpyHtoDAsync_v2, _ptsz, describe::copy),
    SPILLWAY_LAUNCHES(cuMemcpyDtoHAsync, 3020, 7000, cuMemcpyDtoHAsync_v2, _ptsz, describe::copy),
    SPILLWAY_LAUNCHES(cuMemcpyDtoDAsync, 3020, 7000, cuMemcpyDtoDAsync_v2, _ptsz, describe::copy),
    SPILLWAY_LAUNCHES(cuMemcpyDtoA, 3020, 7000, cuMemcpyDtoA_v2, _ptds, describe::copy_to_array),
    SPILLWAY_LAUNCHES(cuMemcpyHtoA, 3020, 7000, cuMemcpyHtoA_v2, _ptds, describe::copy_to_array),
    SPILLWAY_LAUNCHES(cuMemcpyHtoAAsync, 3020, 7000, cuMemcpyHtoAAsync_v2, _ptsz, describe::copy_to_array),
    SPILLWAY_LAUNCHES(cuMemcpyAtoD, 3020, 7000, cuMemcpyAtoD_v2, _ptds, describe::copy_from_array),
    SPILLWAY_LAUNCHES(cuMemcpyAtoH, 3020, 7000, cuMemcpyAtoH_v2, _ptds, describe::copy_from_array),
    SPILLWAY_LAUNCHES(cuMemcpyAtoHAsync, 3020, 7000, cuMemcpyAtoHAsync_v2, _ptsz, describe::copy_from_array),
    SPILLWAY_LAUNCHES(cuMemcpyAtoA, 3020, 7000, cuMemcpyAtoA_v2, _ptds, describe::copy_arrays),
    SPILLWAY_LAUNCHES(cuMemcpy2D, 3020, 7000, cuMemcpy2D_v2, _ptds, describe::copy_2d),
    SPILLWAY_LAUNCHES(cuMemcpy2DUnaligned, 3020, 7000, cuMemcpy2DUnaligned_v2, _ptds, describe::copy_2d),
    SPILLWAY_LAUNCHES(cuMemcpy2DAsync, 3020, 7000, cuMemcpy2DAsync_v2, _ptsz, describe::copy_2d),
    SPILLWAY_LAUNCHES(cuMemcpy3D, 3020, 7000, cuMemcpy3D_v2, _ptds, describe::copy_3d),
    SPILLWAY_LAUNCHES(cuMemcpy3DAsync, 3020, 7000, cuMemcpy3DAsync_v2, _ptsz, describe::copy_3d),
    SPILLWAY_LAUNCHES(cuMemcpy3DPeer, 4000, 7000, cuMemcpy3DPeer, _ptds, describe::copy_3d),
    SPILLWAY_LAUNCHES(cuMemcpy3DPeerAsync, 4000, 7000, cuMemcpy3DPeerAsync, _ptsz, describe::copy_3d),
    SPILLWAY_LAUNCHES(cuMemcpyBatchAsync, 12080, 12080, cuMemcpyBatchAsync, _ptsz, describe::copy_batch),
    SPILLWAY_LAUNCHES(cuMemcpy3DBatchAsync, 12080, 12080, cuMemcpy3DBatchAsync, _ptsz, describe::copy_3d_batch),
#if CUDA_VERSION >= 13000
    SPILLWAY_LAUNCHES(cuMemcpyBatchAsync, 13000, 13000, cuMemcpyBatchAsync_v2, _ptsz, describe::copy_batch),
    SPILLWAY_LAUNCHES(cuMemcpy3DBatchAsync, 13000, 13000, cuMemcpy3DBatchAsync_v2, _ptsz, describe::copy_3d_batch),
#endif

    SPILLWAY_LAUNCHES(cuMemBatchDecompressAsync, 12060, 12060, cuMemBatchDecompressAsync, _ptsz, describe::decompress),

    SPILLWAY_LAUNCHES(cuMemsetD8, 3020, 7000, cuMemsetD8_v2, _ptds, describe::set<1>),
    SPILLWAY_LAUNCHES(cuMemsetD16, 3020, 7000, cuMemsetD16_v2, _ptds, describe::set<2>),
    SPILLWAY_LAUNCHES(cuMemsetD32, 3020, 7000, cuMemsetD32_v2, _ptds, describe::set<4>),
    SPILLWAY_LAUNCHES(cuMemsetD2D8, 3020, 7000, cuMemsetD2D8_v2, _ptds, describe::set_2d<1>),
    SPILLWAY_LAUNCHES(cuMemsetD2D16, 3020, 7000, cuMemsetD2D16_v2, _ptds, describe::set_2d<2>),
    SPILLWAY_LAUNCHES(cuMemsetD2D32, 3020, 7000, cuMemsetD2D32_v2, _ptds, describe::set_2d<4>),
    SPILLWAY_LAUNCHES(cuMemsetD8Async, 3020, 7000, cuMemsetD8Async, _ptsz, describe::set<1>),
    SPILLWAY_LAUNCHES(cuMemsetD16Async, 3020, 7000, cuMemsetD16Async, _ptsz, describe::set<2>),
    SPILLWAY_LAUNCHES(cuMemsetD32Async, 3020, 7000, cuMemsetD32Async, _ptsz, describe::set<4>),
    SPILLWAY_LAUNCHES(cuMemsetD2D8Async, 3020, 7000, cuMemsetD2D8Async, _ptsz, describe::set_2d<1>),
    SPILLWAY_LAUNCHES(cuMemsetD2D16Async, 3020, 7000, cuMemsetD2D16Async, _ptsz, describe::set_2d<2>),
    SPILLWAY_LAUNCHES(cuMemsetD2D32Async, 3020, 7000, cuMemsetD2D32Async, _ptsz, describe::set_2d<4>),

    SPILLWAY_THEN(cuGraphInstantiate, 10000, cuGraphInstantiate, , instantiated),
    SPILLWAY_THEN(cuGraphInstantiate, 11000, cuGraphInstantiate_v2, , instantiated),
    SPILLWAY_ALSO(cuGraphInstantiate, 12000, PFN_cuGraphInstantiateWithFlags_v11040, cuGraphInstantiateWithFlags, instantiated),
    SPILLWAY_THEN(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags, , instantiated),
    SPILLWAY_THEN(cuGraphInstantiateWithParams, 12000, cuGraphInstantiateWithParams, , instantiated),
    SPILLWAY_THEN(cuGraphInstantiateWithParams, 12000, cuGraphInstantiateWithParams, _ptsz, instantiated),
    SPILLWAY_THEN(cuGraphExecUpdate, 10020, cuGraphExecUpdate, , updated),
    SPILLWAY_THEN(cuGraphExecUpdate, 12000, cuGraphExecUpdate_v2, , updated),
    SPILLWAY_THEN(cuGraphExecKernelNodeSetParams, 10010, cuGraphExecKernelNodeSetParams, , kernel_node_set),
    SPILLWAY_THEN(cuGraphExecKernelNodeSetParams, 12000, cuGraphExecKernelNodeSetParams_v2, , kernel_node_set),
    SPILLWAY_THEN(cuGraphExecMemcpyNodeSetParams, 10020, cuGraphExecMemcpyNodeSetParams, , copy_node_set),
    SPILLWAY_THEN(cuGraphExecMemsetNodeSetParams, 10020, cuGraphExecMemsetNodeSetParams, , set_node_set),
    SPILLWAY_THEN(cuGraphExecChildGraphNodeSetParams, 11010, cuGraphExecChildGraphNodeSetParams, , graph_node_set),
    SPILLWAY_THEN(cuGraphExecNodeSetParams, 12020, cuGraphExecNodeSetParams, , any_node_set),
    SPILLWAY_AFTER(cuGraphExecDestroy, 10000, cuGraphExecDestroy, , destroyed),

    SPILLWAY_AFTER(cuModuleUnload, 2000, cuModuleUnload, , unloading),
    SPILLWAY_AFTER(cuLibraryUnload, 12000, cuLibraryUnload, , unloading),
    SPILLWAY_AFTER(cuCtxDestroy, 2000, cuCtxDestroy, , unloading),
    SPILLWAY_AFTER(cuCtxDestroy, 4000, cuCtxDestroy_v2, , unloading),
    SPILLWAY_AFTER(cuCtxDetach, 2000, cuCtxDetach, , unloading),
    SPILLWAY_AFTER(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease, , unloading),
    SPILLWAY_AFTER(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset, , unloading),
    SPILLWAY_AFTER(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2, , unloading),
    SPILLWAY_AFTER(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2, , unloading),
    SPILLWAY_AFTER(cuStreamDestroy, 2000, cuStreamDestroy, , stream_ending),
    SPILLWAY_AFTER(cuStreamDestroy, 4000, cuStreamDestroy_v2, , stream_ending),
    SPILLWAY_AFTER(cuStreamBeginCapture, 10000, cuStreamBeginCapture, , capturing),
    SPILLWAY_AFTER(cuStreamBeginCapture, 10000, cuStreamBeginCapture, _ptsz, capturing),
    SPILLWAY_AFTER(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2, , capturing),
    SPILLWAY_AFTER(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2, _ptsz, capturing),
    SPILLWAY_AFTER(cuStreamBeginCaptureToGraph, 12030, cuStreamBeginCaptureToGraph, , capturing),
    SPILLWAY_AFTER(cuStreamBeginCaptureToGraph, 12030, cuStreamBeginCaptureToGraph, _ptsz, capturing),

    SPILLWAY_THEN(cuStreamWaitEvent, 3020, cuStreamWaitEvent, , stream_waiting),
    SPILLWAY_THEN(cuStreamWaitEvent, 7000, cuStreamWaitEvent, _ptsz, stream_waiting),

    SPILLWAY_THEN(cuGetProcAddress, 11030, cuGetProcAddress, , handing_out),
    SPILLWAY_THEN(cuGetProcAddress, 12000, cuGetProcAddress_v2, , handing_out),
  };
  return all;
}
// clang-format on

const Gate* find_gate(std::string_view base, int version, bool per_thread) {
  const auto is_per_thread = [](const Gate& gate) {
    const std::string_view name = gate.name;
    return name.ends_with("_ptds") || name.ends_with("_ptsz");
  };
  const Gate* best = nullptr;
  for (const Gate& gate : gates()) {
    if (gate.base != base || gate.since > version || (is_per_thread(gate) && !per_thread)) continue;
    const auto rank = [&](const Gate& one) { return std::pair(is_per_thread(one), one.since); };
    if (best == nullptr || rank(gate) > rank(*best)) best = &gate;
  }
  return best;
}

}  // namespace spillway
