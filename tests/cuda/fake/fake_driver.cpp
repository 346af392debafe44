#include "fake_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace spillway {
namespace {

FakeDriver& fake() {
  static auto* const driver = new FakeDriver;
  return *driver;
}

// What cuGetProcAddress hands out: the newest of these that is no newer than asked for. All others are found by their
// name.
struct Version {
  std::string_view base;
  int since;
  bool per_thread;
  const char* name;
};
constexpr Version kVersions[] = {
    {"cuLaunchKernel", 7000, true, "cuLaunchKernel_ptsz"},
    {"cuMemcpyHtoD", 2000, false, "cuMemcpyHtoD"},
    {"cuMemcpyHtoD", 3020, false, "cuMemcpyHtoD_v2"},
    {"cuMemcpyHtoD", 7000, true, "cuMemcpyHtoD_v2_ptds"},
    {"cuMemcpyBatchAsync", 12080, false, "cuMemcpyBatchAsync"},
    {"cuMemcpyBatchAsync", 13000, false, "cuMemcpyBatchAsync_v2"},
    {"cuMemcpyBatchAsync", 99000, false, "cuMemcpyBatchAsync_of_tomorrow"},
    {"cuGraphInstantiate", 10000, false, "cuGraphInstantiate"},
    {"cuGraphInstantiate", 11000, false, "cuGraphInstantiate_v2"},
    {"cuGraphInstantiate", 12000, false, "cuGraphInstantiateWithFlags"},
    {"cuGraphExecUpdate", 10020, false, "cuGraphExecUpdate"},
    {"cuGraphExecUpdate", 12000, false, "cuGraphExecUpdate_v2"},
    {"cuStreamBeginCapture", 10000, false, "cuStreamBeginCapture"},
    {"cuStreamBeginCapture", 10010, false, "cuStreamBeginCapture_v2"},
    {"cuGetProcAddress", 11030, false, "cuGetProcAddress"},
    {"cuGetProcAddress", 12000, false, "cuGetProcAddress_v2"},
};

void* find(std::string_view symbol, int version, bool per_thread) {
  const Version* best = nullptr;
  for (const Version& one : kVersions)
    if (one.base == symbol && one.since <= version && (!one.per_thread || per_thread) &&
        (best == nullptr || one.per_thread >= best->per_thread))
      best = &one;
  const std::string name = best != nullptr ? best->name : std::string(symbol);
  static void* const self = [] {
    Dl_info here{};
    ::dladdr(reinterpret_cast<void*>(&fake), &here);
    return ::dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  if (fake().missing.contains(name)) return nullptr;
  void* const other = fake().has_other_addresses ? ::dlsym(self, ("other_" + name).c_str()) : nullptr;
  return other != nullptr ? other : ::dlsym(self, name.c_str());
}

// Which of the two asks, and about what.
CUresult parameter(const void* handle, bool as_library_kernel, std::size_t index, std::size_t* offset,
                   std::size_t* bytes) {
  if (!fake().kernels.contains(handle)) return CUDA_ERROR_INVALID_HANDLE;
  const auto* kernel = static_cast<const FakeKernel*>(handle);
  if (kernel->is_library_kernel != as_library_kernel) return kernel->as_the_other;
  if (kernel->answer != CUDA_SUCCESS) return kernel->answer;
  if (index >= kernel->offsets.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel->offsets[index];
  *bytes = kernel->bytes[index];
  return CUDA_SUCCESS;
}

CUresult name_of(const void* handle, const char** name) {
  if (!fake().kernels.contains(handle)) return CUDA_ERROR_INVALID_HANDLE;
  *name = static_cast<const FakeKernel*>(handle)->name.c_str();
  return CUDA_SUCCESS;
}

const FakeNode& node_of(CUgraphNode node) { return *reinterpret_cast<const FakeNode*>(node); }

}  // namespace
}  // namespace spillway

using spillway::fake;
using spillway::node_of;

extern "C" {

spillway::FakeDriver* fake_cuda() { return &fake(); }

CUresult fake_cuda_called(const char* name, const std::uint64_t* arguments) {
  spillway::FakeDriver& driver = fake();
  if (driver.called != nullptr) driver.called(name);
  if (driver.writes_down) {
    const std::lock_guard lock(driver.mutex);
    auto& written = driver.calls.emplace_back(spillway::FakeCall{name, {}}).arguments;
    std::copy_n(arguments, 6, written.begin());          // from registers
    std::copy_n(arguments + 8, 5, written.begin() + 6);  // on the stack, above rbp and the return address
  }
  return driver.result;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  {
    const std::lock_guard lock(fake().mutex);
    fake().asked_for.push_back(std::string(symbol) + " " + std::to_string(version) + " " + std::to_string(flags));
  }
  *function = spillway::find(symbol, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  if (status != nullptr)
    *status = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}
CUresult cuMemcpyBatchAsync_of_tomorrow() { return CUDA_SUCCESS; }

// The next of asked_for, for callers from Python; null: that was all.
const char* fake_cuda_asked_for(size_t place) {
  const std::lock_guard lock(fake().mutex);
  return place < fake().asked_for.size() ? fake().asked_for[place].c_str() : nullptr;
}

// What NVIDIA's libraries find here is not documented.
CUresult cuGetExportTable(const void**, const CUuuid*) { return CUDA_ERROR_NOT_FOUND; }

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  return spillway::parameter(function, false, index, offset, bytes);
}
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  return spillway::parameter(kernel, true, index, offset, bytes);
}
CUresult cuFuncGetName(const char** name, CUfunction function) { return spillway::name_of(function, name); }
CUresult cuKernelGetName(const char** name, CUkernel kernel) { return spillway::name_of(kernel, name); }

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  *status = fake().capturing.contains(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  *executable = reinterpret_cast<CUgraphExec>(graph);  // one graph can be launched once at a time here
  return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  auto& all = reinterpret_cast<spillway::FakeGraph*>(graph)->nodes;
  *count = all.size();
  for (size_t i = 0; nodes != nullptr && i < all.size(); ++i) nodes[i] = reinterpret_cast<CUgraphNode>(&all[i]);
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  *type = node_of(node).type;
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* kernel) {
  *kernel = node_of(node).kernel;
  return CUDA_SUCCESS;
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy) {
  *copy = node_of(node).copy;
  return CUDA_SUCCESS;
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* set) {
  *set = node_of(node).set;
  return CUDA_SUCCESS;
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  *graph = node_of(node).child->graph();
  return CUDA_SUCCESS;
}
}
