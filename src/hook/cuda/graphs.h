#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "hook/cuda/launch_scanner.h"
#include "hook/cuda/real_driver.h"

namespace spillway {

// What the kernels, copies and sets of a graph were given. Addresses and not ranges: tensors that a graph uses may be
// born and die between its launches.
struct GraphUse {
  struct Extent {
    CudaBytes bytes;
    CudaAccess access{};
  };
  std::vector<std::uint64_t> words;  // of kernels' parameters
  std::vector<Extent> extents;       // of copies and sets
  bool is_complete = true;           // false: there are nodes that nobody could read
};

void add_kernel(GraphUse& use, const CUDA_KERNEL_NODE_PARAMS_v2& node, LaunchScanner& scanner);
void add_copy(GraphUse& use, const CUDA_MEMCPY3D& node);
void add_set(GraphUse& use, const CUDA_MEMSET_NODE_PARAMS& node);
// All nodes, and those of graphs within it.
void add_graph(GraphUse& use, CUgraph graph, const RealDriver& driver, LaunchScanner& scanner);

// What graphs that can be launched use. For any number of threads.
class GraphTable {
 public:
  void put(CUgraphExec graph, GraphUse use);
  // What one of its nodes uses from now on. What the node used when the graph was made stays.
  void set_node(CUgraphExec graph, CUgraphNode node, GraphUse use);
  void forget(CUgraphExec graph);
  // Appends the ranges that the graph touches. False: there may be more.
  bool scan(CUgraphExec graph, const LaunchScanner& scanner, LaunchScanner::Touches& touches) const;

 private:
  mutable Mutex mutex_;
  struct Graph {
    GraphUse made;
    std::unordered_map<CUgraphNode, GraphUse> set;  // nodes that were changed since
  };
  std::unordered_map<CUgraphExec, Graph> graphs_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway
