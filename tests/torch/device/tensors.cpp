// Making tensors of the device, and views of them.

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "device_memory.h"
#include "streams.h"

namespace spillway {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

void must_be_dense(std::optional<at::Layout> layout, std::optional<bool> pinned) {
  TORCH_CHECK(c10::layout_or_default(layout) == at::kStrided && !c10::pinned_memory_or_default(pinned),
              "the strict device has dense tensors only");
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                 std::optional<at::Device>, std::optional<bool> pinned, std::optional<at::MemoryFormat> format) {
  must_be_dense(layout, pinned);
  return at::Tensor(at::detail::empty_generic(sizes, &device_allocator(), kKeys, c10::dtype_or_default(type), format));
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout> layout, std::optional<at::Device>, std::optional<bool> pinned) {
  must_be_dense(layout, pinned);
  return at::Tensor(
      at::detail::empty_strided_generic(sizes, strides, &device_allocator(), kKeys, c10::dtype_or_default(type)));
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef sizes) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(sizes));
}

at::Tensor reshape_alias(const at::Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides));
}

at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                      std::optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(
      self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides),
      offset ? std::optional(offset->guard_int(__FILE__, __LINE__)) : std::nullopt);
}

at::Tensor& set_to_part(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef sizes,
                        at::IntArrayRef strides) {
  c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  TORCH_CHECK(source.device().is_privateuseone(), "sets a tensor of the strict device to the storage of another");
  impl.set_storage_keep_dtype(std::move(source));
  impl.set_storage_offset(offset);
  if (strides.data() == nullptr) {
    impl.set_sizes_contiguous(sizes);
  } else {
    impl.set_sizes_and_strides(sizes, strides);
  }
  return self;
}

at::Tensor& set_to_storage(at::Tensor& self, at::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_to_part(self, std::move(source), 0, elements, {});
}

at::Tensor& set_to_nothing(at::Tensor& self) {
  return set_to_storage(self, c10::Storage(c10::Storage::use_byte_size_t(), 0, &device_allocator(), true));
}

void record_stream_of(at::Tensor& self, c10::Stream stream) {
  record_stream(self.storage().data_ptr().get(), handle_of(stream.id()));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("view", view);
  library.impl("_reshape_alias", reshape_alias);
  library.impl("as_strided", as_strided);
  library.impl("unfold", at::native::unfold);
  library.impl("view_as_real", at::native::view_as_real);
  library.impl("view_as_complex", at::native::view_as_complex);
  library.impl("set_.source_Storage_storage_offset", set_to_part);
  library.impl("set_.source_Storage", set_to_storage);
  library.impl("set_.source_Tensor", at::native::set_tensor_);
  library.impl("set_", set_to_nothing);
  library.impl("is_set_to", at::native::is_set_to);
  library.impl("record_stream", record_stream_of);
}

}  // namespace
}  // namespace spillway
