#pragma once

#include <algorithm>
#include <vector>

#include "gpu.h"

namespace spillway::probe {

// Physical memory of a GPU, or of the host, in chunks of one size; and a range of addresses to map them at.
class Chunks {
 public:
  Chunks(const Gpu& gpu, std::size_t bytes, std::size_t count, CUmemLocation where) : gpu_(gpu), bytes_(bytes) {
    CUmemAllocationProp property{};
    property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property.location = where;
    handles_.resize(count);
    for (auto& handle : handles_)
      create_.add(microseconds([&] { gpu.check(gpu->cuMemCreate(&handle, bytes, &property, 0), "create memory"); }));
    gpu.check(gpu->cuMemAddressReserve(&at_, bytes * count, std::max(bytes, 32 * kMiB), 0, 0), "reserve addresses");
  }
  ~Chunks() {
    for (auto handle : handles_) gpu_->cuMemRelease(handle);
    gpu_->cuMemAddressFree(at_, size());
  }
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  CUdeviceptr at(std::size_t index = 0) const { return at_ + index * bytes_; }
  std::size_t size() const { return bytes_ * handles_.size(); }
  std::size_t count() const { return handles_.size(); }
  CUmemGenericAllocationHandle handle(std::size_t index) const { return handles_[index]; }
  const Samples& create() const { return create_; }  // microseconds a chunk

  void map(std::size_t index) const { map_at(at(index), index); }
  void map_at(CUdeviceptr address, std::size_t index) const {
    gpu_.check(gpu_->cuMemMap(address, bytes_, 0, handles_[index], 0), "map memory");
  }
  void let_gpu_access(CUdeviceptr from, std::size_t bytes) const {
    CUmemAccessDesc access{};
    access.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu_.device()};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    gpu_.check(gpu_->cuMemSetAccess(from, bytes, &access, 1), "allow access to memory");
  }
  // Of several chunks at once, or of one; a driver may refuse the former.
  CUresult try_unmap(CUdeviceptr from, std::size_t bytes) const { return gpu_->cuMemUnmap(from, bytes); }
  void unmap(CUdeviceptr from, std::size_t bytes) const {
    if (try_unmap(from, bytes) == CUDA_SUCCESS) return;
    for (std::size_t done = 0; done < bytes; done += bytes_) gpu_.check(try_unmap(from + done, bytes_), "unmap memory");
  }

 private:
  const Gpu& gpu_;
  std::size_t bytes_;
  std::vector<CUmemGenericAllocationHandle> handles_;
  CUdeviceptr at_ = 0;
  Samples create_;
};

inline CUmemLocation on(const Gpu& gpu) { return {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu.device()}; }

}  // namespace spillway::probe
