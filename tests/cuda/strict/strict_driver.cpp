#include <cstdio>
#include <cstring>
#include <utility>

#include "strict_device.h"

// NOLINTBEGIN(readability-identifier-naming): the driver's own names.
namespace spillway::strict {
namespace {

Driver& driver() { return Driver::get(); }
Event& event_of(CUevent event) { return *reinterpret_cast<Event*>(event); }

std::shared_ptr<Node> node_of(StrictKernel& kernel, void** parameters) {
  auto node = std::make_shared<Node>();
  node->kernel = &kernel;
  for (std::size_t at = 0; at < kernel.parameters.size(); ++at) {
    const auto* bytes = static_cast<const std::byte*>(parameters[at]);
    node->values.emplace_back(bytes, bytes + kernel.parameters[at]);
  }
  for (auto& value : node->values) node->parameters.push_back(value.data());
  return node;
}
Graph& graph_of(CUgraph graph) { return *reinterpret_cast<Graph*>(graph); }
Graph& graph_of(CUgraphExec graph) { return *reinterpret_cast<Graph*>(graph); }

}  // namespace
}  // namespace spillway::strict

using namespace spillway::strict;

#define COUNTED(name) \
  if (const CUresult failed = driver().call(#name); failed != CUDA_SUCCESS) return failed

extern "C" {

spillway::StrictCuda* strict_cuda() { return &driver().knobs; }

CUresult cuInit(unsigned) {
  COUNTED(cuInit);
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == CUDA_ERROR_UNKNOWN         ? "CUDA_ERROR_UNKNOWN"
                                                : nullptr;
  return *name != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char** words) {
  *words = error == CUDA_ERROR_OUT_OF_MEMORY     ? "out of memory"
           : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
                                                 : "unknown error";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  COUNTED(cuDeviceGet);
  if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "a strict device without a GPU");
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = driver().knobs.device_bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo(size_t* free, size_t* total) {
  COUNTED(cuMemGetInfo);
  const std::lock_guard lock(driver().knobs.mutex);
  *total = driver().knobs.device_bytes;
  *free = *total - driver().knobs.created;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  COUNTED(cuDevicePrimaryCtxRetain);
  *context = reinterpret_cast<CUcontext>(&driver());
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(&driver());
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuModuleLoadData(CUmodule*, const void*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuMemAlloc(CUdeviceptr* at, size_t bytes) {
  COUNTED(cuMemAlloc);
  return driver().allocate(at, bytes);
}
CUresult cuMemFree(CUdeviceptr at) {
  COUNTED(cuMemFree);
  return driver().free(at);
}
CUresult cuMemHostRegister(void*, size_t, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuMemHostUnregister(void*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuMemcpyDtoDAsync(CUdeviceptr, CUdeviceptr, size_t, CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* at, size_t bytes, size_t alignment, CUdeviceptr, unsigned long long) {
  COUNTED(cuMemAddressReserve);
  return driver().reserve(at, bytes, alignment);
}
CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes) {
  COUNTED(cuMemAddressFree);
  return driver().free_addresses(at, bytes);
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                     unsigned long long) {
  COUNTED(cuMemCreate);
  return driver().create(handle, bytes);
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  COUNTED(cuMemRelease);
  return driver().release(handle);
}
CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t, CUmemGenericAllocationHandle handle, unsigned long long) {
  COUNTED(cuMemMap);
  return driver().map(at, bytes, handle);
}
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes) {
  COUNTED(cuMemUnmap);
  return driver().unmap(at, bytes);
}
CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc* access, size_t) {
  COUNTED(cuMemSetAccess);
  return driver().set_access(at, bytes, access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}
CUresult cuMemAllocHost(void** memory, size_t bytes) {
  COUNTED(cuMemAllocHost);
  return driver().pin(memory, bytes);
}
CUresult cuMemFreeHost(void* memory) {
  COUNTED(cuMemFreeHost);
  return driver().unpin(memory);
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  COUNTED(cuStreamCreate);
  *stream = reinterpret_cast<CUstream>(&driver().make_stream());
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  COUNTED(cuStreamDestroy);
  driver().end_stream(driver().stream_of(stream));
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  COUNTED(cuStreamSynchronize);
  driver().wait_until_idle(driver().stream_of(stream));
  return CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream stream) {
  COUNTED(cuStreamQuery);
  return driver().is_idle(driver().stream_of(stream)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  COUNTED(cuStreamWaitEvent);
  const auto mark = event_of(event).get();
  driver().enqueue(driver().stream_of(stream), {.name = "a wait for an event", .after = mark});
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  COUNTED(cuEventCreate);
  *event = reinterpret_cast<CUevent>(new Event);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  COUNTED(cuEventDestroy);
  delete &event_of(event);
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  COUNTED(cuEventRecord);
  const auto mark = event_of(event).record();
  driver().enqueue(driver().stream_of(stream), {.name = "an event", .marks = mark});
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent event) {
  COUNTED(cuEventQuery);
  return driver().is_done(event_of(event).get()) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  *mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  COUNTED(cuEventElapsedTime);
  const auto begin = event_of(from).get(), end = event_of(to).get();
  if (begin == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!driver().is_done(begin) || !driver().is_done(end)) return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(end->at - begin->at).count();
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent event) {
  COUNTED(cuEventSynchronize);
  if (const auto mark = event_of(event).get()) driver().wait_until(mark);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  COUNTED(cuMemcpyHtoDAsync);
  driver().must_be_pinned(from, bytes);
  driver().enqueue(driver().stream_of(stream), {.name = "a copy to the device",
                                                .device = {Range{to, bytes}},
                                                .run = [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); }});
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  COUNTED(cuMemcpyDtoHAsync);
  driver().must_be_pinned(to, bytes);
  driver().enqueue(driver().stream_of(stream),
                   {.name = "a copy from the device", .device = {Range{from, bytes}}, .run = [=] {
                      std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
                    }});
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  COUNTED(cuMemsetD8Async);
  driver().enqueue(driver().stream_of(stream), {.name = "a set", .device = {Range{to, bytes}}, .run = [=] {
                                                  std::memset(reinterpret_cast<void*>(to), value, bytes);
                                                }});
  return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  const auto& all = reinterpret_cast<const spillway::StrictKernel*>(function)->parameters;
  if (index >= all.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;
  for (size_t before = 0; before < index; ++before) *offset += all[before];
  *bytes = all[index];
  return CUDA_SUCCESS;
}
CUresult cuFuncGetName(const char** name, CUfunction function) {
  *name = reinterpret_cast<const spillway::StrictKernel*>(function)->name.c_str();
  return CUDA_SUCCESS;
}
CUresult cuKernelGetParamInfo(CUkernel, size_t, size_t*, size_t*) { return CUDA_ERROR_INVALID_HANDLE; }
CUresult cuKernelGetName(const char**, CUkernel) { return CUDA_ERROR_INVALID_HANDLE; }
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  *status = driver().is_captured(driver().stream_of(stream)) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                             : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
// Graphs of kernels alone, which run one after the other.
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  COUNTED(cuStreamBeginCapture);
  driver().begin_capture(driver().stream_of(stream));
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  COUNTED(cuStreamEndCapture);
  *graph = reinterpret_cast<CUgraph>(driver().end_capture(driver().stream_of(stream)));
  return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  const auto& all = graph_of(graph);
  for (size_t at = 0; nodes != nullptr && at < all.size(); ++at)
    nodes[at] = reinterpret_cast<CUgraphNode>(all[at].get());
  *count = all.size();
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetType(CUgraphNode, CUgraphNodeType* type) {
  *type = CU_GRAPH_NODE_TYPE_KERNEL;
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters) {
  auto& one = *reinterpret_cast<Node*>(node);
  *parameters = {};
  parameters->func = one.kernel->function();
  parameters->gridDimX = 1;
  parameters->kernelParams = one.parameters.data();
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  COUNTED(cuGraphInstantiate);
  *executable = reinterpret_cast<CUgraphExec>(new Graph(graph_of(graph)));
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  COUNTED(cuGraphLaunch);
  std::vector<Range> touched;
  for (const auto& node : graph_of(graph))
    for (const Range& range : node->touched()) touched.push_back(range);
  const auto run = [nodes = graph_of(graph)] {
    for (const auto& node : nodes) node->kernel->run(node->parameters.data());
  };
  driver().enqueue(driver().stream_of(stream), {.name = "a graph", .device = std::move(touched), .run = run});
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec graph) {
  COUNTED(cuGraphExecDestroy);
  delete &graph_of(graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  COUNTED(cuGraphDestroy);
  delete &graph_of(graph);
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream stream, void** parameters, void**) {
  COUNTED(cuLaunchKernel);
  const auto node = node_of(*reinterpret_cast<spillway::StrictKernel*>(function), parameters);
  Stream& on = driver().stream_of(stream);
  if (driver().capture(on, node)) return CUDA_SUCCESS;
  driver().enqueue(on, {.name = node->kernel->name, .device = node->touched(), .run = [node] {
                          node->kernel->run(node->parameters.data());
                        }});
  return CUDA_SUCCESS;
}
}
// NOLINTEND(readability-identifier-naming)
