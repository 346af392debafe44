#pragma once

#include <cuda.h>

#include <cstdint>

#include "hook/cuda/launch_scanner.h"

namespace spillway {

// Rows of `width` bytes, `rows` of them a slice, `slices` slices.
struct Box {
  std::uint64_t width = 0, rows = 1, slices = 1;
};

// A side that starts at row y of slice z of memory with this pitch and height; 0: rows (slices) follow each other at
// once.
struct Corner {
  std::uint64_t address = 0, x = 0, y = 0, z = 0, pitch = 0, height = 0;
};

// The bytes from the first to the last that it reaches; none where it is an array.
constexpr CudaBytes side_of(const Corner& corner, const Box& box) {
  if (corner.address == 0 || box.width == 0 || box.rows == 0 || box.slices == 0) return {};
  const std::uint64_t pitch = corner.pitch != 0 ? corner.pitch : corner.x + box.width;
  const std::uint64_t slice = pitch * (corner.height != 0 ? corner.height : corner.y + box.rows);
  return {.address = corner.address + corner.z * slice + corner.y * pitch + corner.x,
          .bytes = (box.slices - 1) * slice + (box.rows - 1) * pitch + box.width};
}

// Host memory is looked up, too: the addresses of host and device do not overlap.
inline std::uint64_t address_of(CUmemorytype type, const void* host, CUdeviceptr device) {
  if (type == CU_MEMORYTYPE_ARRAY) return 0;
  return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(host) : device;
}

struct CopySides {
  CudaBytes from, to;
};

inline CopySides sides_of(const CUDA_MEMCPY2D& copy) {
  const Box box{.width = copy.WidthInBytes, .rows = copy.Height};
  const std::uint64_t from = address_of(copy.srcMemoryType, copy.srcHost, copy.srcDevice);
  const std::uint64_t to = address_of(copy.dstMemoryType, copy.dstHost, copy.dstDevice);
  return {.from = side_of({.address = from, .x = copy.srcXInBytes, .y = copy.srcY, .pitch = copy.srcPitch}, box),
          .to = side_of({.address = to, .x = copy.dstXInBytes, .y = copy.dstY, .pitch = copy.dstPitch}, box)};
}

// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER.
template <class Copy>
CopySides sides_of_3d(const Copy& copy) {
  const Box box{.width = copy.WidthInBytes, .rows = copy.Height, .slices = copy.Depth};
  return {.from = side_of({.address = address_of(copy.srcMemoryType, copy.srcHost, copy.srcDevice),
                           .x = copy.srcXInBytes,
                           .y = copy.srcY,
                           .z = copy.srcZ,
                           .pitch = copy.srcPitch,
                           .height = copy.srcHeight},
                          box),
          .to = side_of({.address = address_of(copy.dstMemoryType, copy.dstHost, copy.dstDevice),
                         .x = copy.dstXInBytes,
                         .y = copy.dstY,
                         .z = copy.dstZ,
                         .pitch = copy.dstPitch,
                         .height = copy.dstHeight},
                        box)};
}

// One side of an operation of cuMemcpy3DBatchAsync. Extents are in elements where the other side is an array, whose
// element has 16 bytes at most; rowLength and layerHeight are in elements, too.
inline CudaBytes side_of(const CUmemcpy3DOperand& operand, const CUextent3D& extent, std::uint64_t element_bytes) {
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return {};
  return side_of({.address = operand.op.ptr.ptr,
                  .pitch = operand.op.ptr.rowLength * element_bytes,
                  .height = operand.op.ptr.layerHeight},
                 {.width = extent.width * element_bytes, .rows = extent.height, .slices = extent.depth});
}

inline CopySides sides_of(const CUDA_MEMCPY3D_BATCH_OP& copy) {
  const bool with_array =
      copy.src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY || copy.dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
  const std::uint64_t element_bytes = with_array ? 16 : 1;
  return {.from = side_of(copy.src, copy.extent, element_bytes), .to = side_of(copy.dst, copy.extent, element_bytes)};
}

}  // namespace spillway
