#include "generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "copies.h"
#include "driver.h"
#include "streams.h"

namespace spillway {
namespace {

// NOLINTBEGIN(readability-identifier-naming): PyTorch's names.

// One of the CPU. Kernels draw from it in the order in which they run, so who looks at it waits for them.
class StrictGenerator final : public c10::GeneratorImpl {
 public:
  explicit StrictGenerator(at::Generator cpu)
      : c10::GeneratorImpl(strict_device(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), cpu_(std::move(cpu)) {}

  void set_current_seed(uint64_t seed) override { settled().set_current_seed(seed); }
  void set_offset(uint64_t offset) override { settled().set_offset(offset); }
  uint64_t get_offset() const override { return settled().get_offset(); }
  uint64_t current_seed() const override { return settled().current_seed(); }
  uint64_t seed() override { return settled().seed(); }
  void set_state(const c10::TensorImpl& state) override {
    settled().set_state(at::Tensor::wrap_tensor_impl(
        c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(const_cast<c10::TensorImpl*>(&state))));
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return settled().get_state().getIntrusivePtr(); }

  const at::Generator& cpu() const { return cpu_; }

 private:
  StrictGenerator* clone_impl() const override { return new StrictGenerator(settled().clone()); }
  at::Generator& settled() const {
    synchronize_device();
    return cpu_;
  }

  mutable at::Generator cpu_;
};

struct StrictHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  at::Device getDeviceFromPtr(void*) const override { return strict_device(); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return default_generator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::make_generator<StrictGenerator>(at::detail::createCPUGenerator());
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    resize_storage(*storage.unsafeGetStorageImpl(), bytes);
  }
};
// NOLINTEND(readability-identifier-naming)

[[maybe_unused]] const bool has_hooks = (at::RegisterPrivateUse1HooksInterface(new StrictHooks), true);

}  // namespace

const at::Generator& default_generator() {
  static const auto& generator =
      *new at::Generator(at::make_generator<StrictGenerator>(at::detail::createCPUGenerator()));
  return generator;
}

at::Generator cpu_generator_of(const at::Generator& generator) {
  const auto* const strict = dynamic_cast<const StrictGenerator*>(generator.unsafeGetGeneratorImpl());
  return strict != nullptr ? strict->cpu() : generator;
}

}  // namespace spillway
