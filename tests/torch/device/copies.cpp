#include "copies.h"

#include <ATen/EmptyTensor.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "cpu_views.h"
#include "device_memory.h"
#include "driver.h"
#include "launches.h"
#include "streams.h"

namespace spillway {
namespace {

constexpr std::size_t kPiece = std::size_t{8} << 20;

struct Sides {
  std::byte* host = nullptr;
  CUdeviceptr device = 0;
};

// Through pinned memory, which the driver asks for.
class Staging {
 public:
  void to_device(Sides sides, std::size_t bytes) {
    in_pieces(sides, bytes, [](std::byte* pinned, const Sides& at, std::size_t size) {
      std::memcpy(pinned, at.host, size);
      check(device_driver().cuMemcpyHtoDAsync(at.device, pinned, size, current_stream()), "copy to the device");
      synchronize(current_stream());
    });
  }
  void to_host(Sides sides, std::size_t bytes) {
    in_pieces(sides, bytes, [](std::byte* pinned, const Sides& at, std::size_t size) {
      check(device_driver().cuMemcpyDtoHAsync(pinned, at.device, size, current_stream()), "copy from the device");
      synchronize(current_stream());
      std::memcpy(at.host, pinned, size);
    });
  }

 private:
  template <class F>
  void in_pieces(Sides sides, std::size_t bytes, F copy_piece) {
    const std::lock_guard lock(mutex_);
    if (pinned_ == nullptr) check(device_driver().cuMemAllocHost(&pinned_, kPiece), "allocate pinned memory");
    for (std::size_t done = 0; done < bytes; done += kPiece)
      copy_piece(static_cast<std::byte*>(pinned_), Sides{.host = sides.host + done, .device = sides.device + done},
                 std::min(kPiece, bytes - done));
  }

  std::mutex mutex_;
  void* pinned_ = nullptr;
} staging;

bool has_plain_bytes(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense() && !tensor.is_conj() && !tensor.is_neg();
}

bool has_same_bytes(const at::Tensor& one, const at::Tensor& other) {
  return has_plain_bytes(one) && has_plain_bytes(other) && one.scalar_type() == other.scalar_type() &&
         one.sizes() == other.sizes() && one.strides() == other.strides();
}

at::Tensor empty_on_host(const at::Tensor& like) {
  return at::Tensor(at::detail::empty_strided_cpu(like.sizes(), like.strides(), like.scalar_type()));
}

at::Tensor contiguous_on_device(const at::Tensor& like) {
  return at::Tensor(at::detail::empty_generic(like.sizes(), &device_allocator(),
                                              c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), like.scalar_type(),
                                              std::nullopt));
}

Sides sides_of(const at::Tensor& host, const at::Tensor& device) {
  return {.host = static_cast<std::byte*>(const_cast<void*>(host.const_data_ptr())),
          .device = memory_of(device).address};
}

void copy_on_device(const at::Tensor& from, const at::Tensor& to) {
  CpuViews views;
  launch({.name = "aten::copy_",
          .memory = (views.of(to), views.of(from), views.memory()),
          .run = [to = views.of(to), from = views.of(from)] { to.copy_(from); }});
}

void copy_to_device(const at::Tensor& from, const at::Tensor& to) {
  if (!has_plain_bytes(to)) {
    const at::Tensor between = contiguous_on_device(to);
    copy_to_device(from, between);
    return copy_on_device(between, to);
  }
  at::Tensor host = from;
  if (!has_same_bytes(from, to)) {
    host = empty_on_host(to);
    host.copy_(from);
  }
  staging.to_device(sides_of(host, to), to.nbytes());
}

void copy_to_host(const at::Tensor& from, const at::Tensor& to) {
  if (!has_plain_bytes(from)) {
    const at::Tensor between = contiguous_on_device(from);
    copy_on_device(from, between);
    return copy_to_host(between, to);
  }
  const at::Tensor host = has_same_bytes(from, to) ? to : empty_on_host(from);
  staging.to_host(sides_of(host, from), from.nbytes());
  if (!host.is_same(to)) to.copy_(host);
}

}  // namespace

void copy(const at::Tensor& from, const at::Tensor& to) {
  if (from.numel() == 0 || to.numel() == 0) {
    TORCH_CHECK(to.numel() == 0, "copies nothing to something");
  } else if (is_on_device(from) && is_on_device(to)) {
    copy_on_device(from, to);
  } else if (is_on_device(to)) {
    copy_to_device(from, to);
  } else {
    copy_to_host(from, to);
  }
}

void resize_storage(c10::StorageImpl& storage, std::size_t bytes) {
  c10::DataPtr memory = device_allocator().allocate(bytes);
  const std::size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) {
    const void* const from = storage.data();
    void* const to = memory.get();
    const auto address = [](const void* at) { return reinterpret_cast<CUdeviceptr>(at); };
    launch({.name = "a storage's move",
            .memory = {{.address = address(from), .bytes = kept}, {.address = address(to), .bytes = kept}},
            .run = [=] { std::memcpy(to, from, kept); }});
  }
  storage.set_data_ptr_noswap(std::move(memory));
  storage.set_nbytes(bytes);
}

void resize(const at::Tensor& tensor, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.sizes() == sizes && !format) return;
  impl.set_sizes_contiguous(sizes);
  if (format && *format != at::MemoryFormat::Preserve) impl.empty_tensor_restride(*format);
  const std::size_t bytes = at::detail::computeStorageNbytes(impl.sizes(), impl.strides(), tensor.itemsize(),
                                                             static_cast<std::size_t>(impl.storage_offset()));
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  if (impl.numel() > 0 && storage.nbytes() < bytes) resize_storage(storage, bytes);
}

namespace {

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  copy(from, to);
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (is_on_device(to)) {
    resize(to, from.sizes());
  } else {
    to.resize_(from.sizes());
  }
  copy(from, to);
  return to;
}

at::Scalar first_element(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.numel() == 1, "only a tensor with one element has a value");
  const at::Tensor host(at::detail::empty_cpu(tensor.sizes(), tensor.scalar_type()));
  copy(tensor, host);
  return host.item();
}

const at::Tensor& resize_symbolic(const at::Tensor& tensor, c10::SymIntArrayRef sizes,
                                  std::optional<at::MemoryFormat> format) {
  resize(tensor, C10_AS_INTARRAYREF_SLOW(sizes), format);
  return tensor;  // NOLINT(bugprone-return-const-ref-from-parameter): as resize_ does.
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("_local_scalar_dense", first_element);
  library.impl("resize_", resize_symbolic);
}

// Copies heed these bits themselves.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  for (const char* const name : {"_copy_from", "_copy_from_and_resize", "_local_scalar_dense"})
    library.impl(name, torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library) {
  for (const char* const name : {"_copy_from", "_copy_from_and_resize", "_local_scalar_dense"})
    library.impl(name, torch::CppFunction::makeFallthrough());
}

}  // namespace
}  // namespace spillway
