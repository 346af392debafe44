#pragma once

#include <ATen/core/Tensor.h>

namespace spillway {

// Between the device and the host, or on the device; as copy_ does it.
void copy(const at::Tensor& from, const at::Tensor& to);
// Makes the storage that large, with its first bytes as they were.
void resize_storage(c10::StorageImpl& storage, std::size_t bytes);
void resize(const at::Tensor& tensor, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format = std::nullopt);

}  // namespace spillway
