// What strict_device.py asks for, as operators: torch.ops.strict_device.

#include <ATen/core/Generator.h>
#include <torch/library.h>

#include "device_memory.h"
#include "generator.h"

namespace spillway {
namespace {

void seed(int64_t seed) {
  const_cast<at::Generator&>(default_generator()).set_current_seed(static_cast<uint64_t>(seed));
}
at::Tensor random_state() { return default_generator().get_state(); }
void set_random_state(const at::Tensor& state) { const_cast<at::Generator&>(default_generator()).set_state(state); }

TORCH_LIBRARY(strict_device, library) {
  library.def("seed(int seed) -> ()", seed);
  library.def("random_state() -> Tensor", random_state);
  library.def("set_random_state(Tensor state) -> ()", set_random_state);
  library.def("allocated_bytes() -> int", [] { return static_cast<int64_t>(allocated_bytes().now); });
  library.def("most_allocated_bytes() -> int", [] { return static_cast<int64_t>(allocated_bytes().most); });
  library.def("forget_most_allocated() -> ()", [] { forget_most_allocated(); });
}

}  // namespace
}  // namespace spillway
