#include "hook/torch/accesses.h"

namespace spillway {
namespace {

// A tensor without memory that stands for others: torch.func's, and subclasses whose __torch_dispatch__ calls operators
// on the tensors that they hold (DTensor, quantized weights). Both call the inner operators through the dispatcher.
bool is_wrapper(const at::Tensor& tensor) {
  if (!tensor.defined()) return false;
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const c10::DispatchKeySet keys = impl.key_set();
  constexpr c10::DispatchKeySet kTransforms{c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper,
                                            c10::DispatchKey::Functionalize};
  if (keys.has_any(kTransforms)) return true;
  return keys.has(c10::DispatchKey::Python) &&
         (!impl.has_storage() ||
          impl.unsafe_storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get() == nullptr);
}

// A sparse tensor (COO) is its values and their indices. Asks no operator, since this runs within one. Wrappers may
// call themselves sparse, too, and have neither.
template <class F>
void for_each_part(const at::Tensor& tensor, F&& call) {
  if (is_wrapper(tensor) || !tensor.is_sparse()) return call(tensor);
  const auto* sparse = dynamic_cast<const at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
  if (sparse == nullptr) return;
  call(sparse->indices());
  call(sparse->values());
}

template <class F>
void for_each_tensor(const c10::IValue& value, F&& call) {
  if (value.isTensor()) {
    for_each_part(value.toTensor(), call);
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) for_each_part(tensor, call);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef())
      if (element.isTensor()) for_each_part(element.toTensor(), call);
  }
}

// On that device. CSR's and oneDNN's own tensors have no storage to speak of, nested ones no sizes.
bool has_bytes(const at::Tensor& tensor, c10::Device device) {
  if (!tensor.defined() || is_wrapper(tensor) || tensor.device() != device) return false;
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return impl.has_storage() && !impl.has_symbolic_sizes_strides() && tensor.layout() == c10::kStrided &&
         !tensor.is_nested();
}

c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

// `x[i] += y` ends with a copy of the sum onto itself, which PyTorch leaves out (copy_impl in ATen/native/Copy.cpp).
bool are_same_bytes(const c10::IValue& a, const c10::IValue& b, c10::Device device) {
  if (!a.isTensor() || !b.isTensor()) return false;
  const at::Tensor& one = a.toTensor();
  const at::Tensor& other = b.toTensor();
  if (!has_bytes(one, device) || !has_bytes(other, device) || storage_of(one) != storage_of(other)) return false;
  const c10::TensorImpl &first = *one.unsafeGetTensorImpl(), &second = *other.unsafeGetTensorImpl();
  return first.storage_offset() == second.storage_offset() && first.sizes() == second.sizes() &&
         first.strides() == second.strides() && first.dtype() == second.dtype() && one.is_conj() == other.is_conj() &&
         one.is_neg() == other.is_neg();
}

class Collector {
 public:
  Collector(c10::Device device, Accesses& result) : device_(device), result_(result) { uses_.clear(); }

  void add(const c10::IValue& value, Operator::Argument argument) {
    for_each_tensor(value, [&](const at::Tensor& tensor) { add(tensor, argument); });
  }

  // Under their lock no tensor is asked anything: some answer by Python, whose lock another thread may hold.
  void look_up(Storages& storages) {
    Storages::Reader reader(storages);
    for (const Use& use : uses_) look_up(use, reader);
  }

 private:
  struct Use {
    c10::StorageImpl* storage;
    const void* base;  // of the storage
    std::size_t offset, bytes;
    Operator::Argument argument;
    bool has_gaps;  // it is a view that leaves some bytes out
  };

  void mix(std::uint64_t value) {
    result_.shapes = (result_.shapes ^ value) * 0x9e3779b97f4a7c15u;
    result_.shapes ^= result_.shapes >> 29;
  }

  void add(const at::Tensor& tensor, Operator::Argument argument) {
    const bool wrapper = is_wrapper(tensor);
    result_.of_wrappers |= wrapper;
    if (!wrapper && !has_bytes(tensor, device_)) {
      result_.sees_all &= !tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number();
      return;
    }
    result_.needs_gradient |= tensor.requires_grad();
    if (wrapper) return;
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    if (argument.use != Operator::Use::reads && tensor.requires_grad() && tensor.is_leaf())
      result_.writes_parameter |= tensor.grad().defined();
    const auto sizes = impl.sizes();
    const auto strides = impl.strides();
    mix(static_cast<std::uint64_t>(tensor.scalar_type()) * 64 + sizes.size());
    result_.sizes.push_back(static_cast<std::int64_t>(sizes.size()));
    result_.sizes.insert(result_.sizes.end(), sizes.begin(), sizes.end());
    std::int64_t last = 0;  // the element farthest from the first
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      mix(static_cast<std::uint64_t>(sizes[d]));
      last += (sizes[d] - 1) * strides[d];
    }
    c10::StorageImpl* storage = storage_of(tensor);
    const void* base = storage->_mutable_data_ptr_no_checks().get();
    if (impl.numel() == 0) return;
    if (base == nullptr) {
      ++result_.resized;
      return;
    }
    const std::size_t item = impl.itemsize();
    const std::size_t offset = static_cast<std::size_t>(impl.storage_offset()) * item;
    const std::size_t bytes = (static_cast<std::size_t>(last) + 1) * item;
    uses_.push_back({.storage = storage,
                     .base = base,
                     .offset = offset,
                     .bytes = bytes,
                     .argument = argument,
                     .has_gaps = static_cast<std::size_t>(impl.numel()) * item != bytes});
  }

  void look_up(const Use& use, Storages::Reader& reader) {
    const Storages::Storage* known = reader.find(use.base);
    if (known == nullptr) {
      result_.foreign.push_back(use.storage);
      result_.sees_all = false;
      return;
    }
    const std::size_t begin = reinterpret_cast<std::uintptr_t>(use.base) - known->begin + use.offset;
    if (begin + use.bytes > known->bytes) {  // resized behind our back
      result_.sees_all = false;
      ++result_.resized;
      return;
    }
    const bool writes = use.argument.use != Operator::Use::reads;
    result_.lineage.given(known->lineage);
    result_.extents.push_back({.begin = static_cast<const std::byte*>(use.base) + use.offset,
                               .bytes = use.bytes,
                               .writes = writes,
                               .sparse = use.argument.sparse,
                               .tensor = known->lineage.label});
    // Overwriting a view with gaps keeps what lies in the gaps.
    result_.touches.push_back({.storage = known->id,
                               .begin = Bytes{begin},
                               .end = Bytes{begin + use.bytes},
                               .reads = use.argument.use != Operator::Use::writes || use.has_gaps,
                               .writes = writes,
                               .sparse = use.argument.sparse,
                               .statistic = use.argument.statistic});
  }

  static thread_local std::vector<Use> uses_;  // keeps its memory
  c10::Device device_;
  Accesses& result_;
};
thread_local std::vector<Collector::Use> Collector::uses_;

}  // namespace

bool any_tensor_lies_in(const std::function<bool(const void*)>& memory, c10::Device device,
                        c10::ArrayRef<const c10::IValue> inputs) {
  bool any = false;
  for (const c10::IValue& value : inputs)
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      any |= has_bytes(tensor, device) && memory(storage_of(tensor)->_mutable_data_ptr_no_checks().get());
    });
  return any;
}

void Accesses::begin_anew(std::string_view kernel) {
  extents.clear();
  touches.clear();
  foreign.clear();
  sizes.clear();
  shapes = resized = 0;
  lineage = KernelLineage(kernel);
  needs_gradient = of_wrappers = writes_parameter = false;
  sees_all = true;
}

void find_accesses(const Operator& op, c10::Device device, c10::ArrayRef<const c10::IValue> inputs, Storages& storages,
                   Accesses& result) {
  result.begin_anew(op.name);
  result.shapes = c10::GradMode::is_enabled() ? 1 : 0;  // An evaluation's kernels are others than the training's.
  Collector collector(device, result);
  const bool writes_statistics = op.writes_statistics_if >= 0 &&
                                 static_cast<std::size_t>(op.writes_statistics_if) < inputs.size() &&
                                 inputs[static_cast<std::size_t>(op.writes_statistics_if)].isBool() &&
                                 inputs[static_cast<std::size_t>(op.writes_statistics_if)].toBool();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Operator::Argument argument = i < op.arguments.size() ? op.arguments[i] : Operator::Argument{};
    if (writes_statistics)
      for (const int statistic : op.statistics)
        if (static_cast<std::size_t>(statistic) == i) argument = {.use = Operator::Use::updates, .statistic = true};
    collector.add(inputs[i], argument);
  }
  collector.look_up(storages);
  if (op.copies && inputs.size() >= 2 && are_same_bytes(inputs[0], inputs[1], device)) {
    result.extents.clear();
    result.touches.clear();
  }
}

}  // namespace spillway
