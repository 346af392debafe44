// Where the preloaded library enters, and where PyTorch calls us: its allocator and its operators' callbacks.
#include <pthread.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "hook/torch/hook.h"
#include "hook/torch/paged_memory.h"
#include "hook/torch/plain_memory.h"
#include "hook/torch/pytorch.h"
#include "session/hook_side.h"

namespace spillway {
namespace {

Hook* hook = nullptr;  // the process's one session; never destroyed, since tensors die after everything else

void free_tensor(void* memory) {
  c10::profiledCPUMemoryReporter().Delete(memory);
  hook->free(memory);
}

// A DataPtr's context must be its data, and there must be a raw deleter: oneDNN relies on both.
class TensorAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* memory = bytes == 0 ? nullptr : hook->allocate(bytes);
    c10::profiledCPUMemoryReporter().New(memory, bytes);
    return {memory, memory, &free_tensor, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_tensor; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

struct OptimizerStep final : at::ObserverContext {};

// A thread runs one at a time, and there are very many: they all lie in the same place.
struct OutermostOperator final : at::ObserverContext {
  bool hides_inner = false;  // what it calls is told to nobody

  static void* operator new(std::size_t) noexcept { return &place; }
  static void operator delete(void*) noexcept {}

 private:
  struct alignas(at::ObserverContext) Place {
    std::byte bytes[2 * sizeof(at::ObserverContext)];
  };
  static thread_local Place place;
};
thread_local OutermostOperator::Place OutermostOperator::place;
static_assert(sizeof(OutermostOperator) <= 2 * sizeof(at::ObserverContext));

// Nobody else (a profiler) is told of operators.
bool are_alone() {
  const auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
  return callbacks && callbacks->callbacks_.size() == 1;
}

bool starts_with(const char* text, const char* prefix) { return std::strncmp(text, prefix, std::strlen(prefix)) == 0; }

// One for each node of a backward pass, around the operators that it calls.
bool is_autograds_own(const char* name) { return starts_with(name, "autograd::engine::"); }

// What torch.compile's own calls are named.
bool is_compiled(const char* name) {
  return starts_with(name, "Torch-Compiled Region") || starts_with(name, "## Call CompiledFxGraph");
}

std::unique_ptr<at::ObserverContext> on_user_scope(const at::RecordFunction& call) {
  if (hook->in_child() || hook->runs_kernel()) return nullptr;
  if (starts_with(call.name(), "Optimizer.step#")) {
    hook->optimizer_step_starts(call.name());
    return std::make_unique<OptimizerStep>();
  }
  if (is_compiled(call.name())) hook->compiled_code_seen();
  return nullptr;
}

void on_user_scope_end(const at::RecordFunction&, at::ObserverContext* context) {
  if (context != nullptr && !hook->in_child()) hook->optimizer_step_ends();
}

std::unique_ptr<at::ObserverContext> on_operator(const at::RecordFunction& call) {
  if (hook->in_child()) {
    hook->child_runs(call.inputs());
    return nullptr;
  }
  if (hook->runs_kernel()) {
    hook->kernel_calls_another();
    return nullptr;
  }
  if (is_autograds_own(call.name())) return nullptr;
  if (const Operator* op = hook->operators().find(call)) {
    if (!hook->kernel_starts(*op, call.inputs())) return nullptr;
    auto outermost = std::make_unique<OutermostOperator>();
    // To hide what it calls costs as much as being told of two calls.
    outermost->hides_inner = std::atomic_ref(op->calls_others).load(std::memory_order_relaxed) && are_alone();
    if (outermost->hides_inner) at::enableRecordFunction(false);
    return outermost;
  }
  if (is_compiled(call.name())) hook->compiled_code_seen();
  return nullptr;
}

void on_operator_end(const at::RecordFunction&, at::ObserverContext* context) {
  if (context == nullptr) return;
  if (static_cast<OutermostOperator*>(context)->hides_inner) at::enableRecordFunction(true);
  if (!hook->in_child()) hook->kernel_ends();
}

Result<std::unique_ptr<TensorMemory>> memory_for(Session& session) {
  if (session.config.mode == SessionMode::trace) return std::make_unique<PlainMemory>();
  return start_paged_memory(session);
}

}  // namespace
}  // namespace spillway

// Called once, by the preloaded library, in the process that owns the budget. Null: the session has the reason.
extern "C" __attribute__((visibility("default"))) c10::Allocator* spillway_torch_start(
    spillway::Session* session, spillway::ManagedRange* managed) noexcept {
  using namespace spillway;
  for (auto& slot : session->state.disk_waits) slot = 0;  // An earlier program of this process waits for nothing.
  auto memory = memory_for(*session);
  if (!memory) {
    session->state.error.set(memory.error().message);
    return nullptr;
  }
  *managed = {(*memory)->range().data(), (*memory)->range().size()};
  hook = new Hook(*session, *std::move(memory));
  ::pthread_atfork(nullptr, nullptr, [] { hook->enter_child(); });  // before another thread can fork with tensors
  auto* allocator = new TensorAllocator;
  constexpr std::uint8_t kAboveAll = 255;
  c10::SetCPUAllocator(allocator, kAboveAll);
  at::addGlobalCallback(
      at::RecordFunctionCallback(on_user_scope, on_user_scope_end).scopes({at::RecordScope::USER_SCOPE}));
  const at::CallbackHandle operators = at::addGlobalCallback(
      at::RecordFunctionCallback(on_operator, on_operator_end).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  hook->operators_are_watched_by(
      [operators](bool on) { on ? at::reenableCallback(operators) : at::disableCallback(operators); });
  std::atexit([] { hook->finish(); });
  return allocator;
}
