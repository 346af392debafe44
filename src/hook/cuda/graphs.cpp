#include "hook/cuda/graphs.h"

#include <utility>

#include "hook/cuda/copies.h"
#include "hook/cuda/packed_arguments.h"

namespace spillway {

void add_kernel(GraphUse& use, const CUDA_KERNEL_NODE_PARAMS_v2& node, LaunchScanner& scanner) {
  const CUfunction function = node.func != nullptr ? node.func : reinterpret_cast<CUfunction>(node.kern);
  const KernelArguments arguments{
      .each = node.kernelParams, .packed = packed_arguments(node.extra), .grid = node.gridDimX};
  if (!scanner.copy_words(function, arguments, use.words)) use.is_complete = false;
}

void add_copy(GraphUse& use, const CUDA_MEMCPY3D& node) {
  const auto [from, to] = sides_of_3d(node);
  use.extents.push_back({.bytes = from, .access = CudaAccess::read});
  use.extents.push_back({.bytes = to, .access = CudaAccess::write});
}

void add_set(GraphUse& use, const CUDA_MEMSET_NODE_PARAMS& node) {
  const std::uint64_t width = node.width * node.elementSize;
  const CudaBytes bytes = side_of({.address = node.dst, .pitch = node.height > 1 ? node.pitch : width},
                                  {.width = width, .rows = node.height});
  use.extents.push_back({.bytes = bytes, .access = CudaAccess::write});
}

namespace {

// False where the driver does not say what the node does.
bool add_node(GraphUse& use, CUgraphNode node, const RealDriver& driver, LaunchScanner& scanner) {
  CUgraphNodeType type{};
  if (driver.cuGraphNodeGetType == nullptr || driver.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return false;
  const auto read = [&](auto function, auto& into) {
    return function != nullptr && function(node, &into) == CUDA_SUCCESS;
  };
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
      if (!read(driver.cuGraphKernelNodeGetParams_v2, kernel)) return false;
      add_kernel(use, kernel, scanner);
      return true;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CUDA_MEMCPY3D copy{};
      if (!read(driver.cuGraphMemcpyNodeGetParams, copy)) return false;
      add_copy(use, copy);
      return true;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS set{};
      if (!read(driver.cuGraphMemsetNodeGetParams, set)) return false;
      add_set(use, set);
      return true;
    }
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      CUgraph within = nullptr;
      if (!read(driver.cuGraphChildGraphNodeGetGraph, within)) return false;
      add_graph(use, within, driver, scanner);
      return true;
    }
    case CU_GRAPH_NODE_TYPE_HOST:  // may call no CUDA
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:  // the graph's own memory
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return true;
    default:
      return false;
  }
}

}  // namespace

void add_graph(GraphUse& use, CUgraph graph, const RealDriver& driver, LaunchScanner& scanner) {
  std::size_t count = 0;
  if (driver.cuGraphGetNodes == nullptr || driver.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) {
    use.is_complete = false;
    return;
  }
  std::vector<CUgraphNode> nodes(count);
  if (count > 0 && driver.cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) use.is_complete = false;
  for (const CUgraphNode node : nodes)
    if (!add_node(use, node, driver, scanner)) use.is_complete = false;
}

void GraphTable::put(CUgraphExec graph, GraphUse use) {
  const MutexLock lock(mutex_);
  graphs_.insert_or_assign(graph, Graph{.made = std::move(use), .set = {}});
}

void GraphTable::set_node(CUgraphExec graph, CUgraphNode node, GraphUse use) {
  const MutexLock lock(mutex_);
  const auto found = graphs_.find(graph);
  if (found != graphs_.end()) found->second.set.insert_or_assign(node, std::move(use));
}

void GraphTable::forget(CUgraphExec graph) {
  const MutexLock lock(mutex_);
  graphs_.erase(graph);
}

bool GraphTable::scan(CUgraphExec graph, const LaunchScanner& scanner, LaunchScanner::Touches& touches) const {
  const MutexLock lock(mutex_);
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return false;
  bool is_complete = true;
  const auto scan_use = [&](const GraphUse& use) {
    scanner.scan_words(use.words, touches);
    for (const auto& [bytes, access] : use.extents) scanner.scan_bytes(bytes, access, touches);
    is_complete = is_complete && use.is_complete;
  };
  scan_use(found->second.made);
  for (const auto& [node, use] : found->second.set) scan_use(use);
  return is_complete;
}

}  // namespace spillway
