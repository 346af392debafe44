// Without an include guard, like <cassert>: who includes headers that bring a CHECK of their own (PyTorch's do)
// includes this after them and has ours.

namespace spillway {

// Writes what failed and where to stderr with plain write(2) and aborts; safe in any thread of any process.
[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;

// Called once, on the thread of the first CHECK that fails, before the process ends; null: nothing is. For what would
// otherwise be lost, such as the record of what led there. It must not wait for long, nor for that thread.
void set_last_words(void (*call)() noexcept) noexcept;

}  // namespace spillway

// For our own bugs only, always on: going on with a broken page table is worse than stopping. What depends on the
// world (files, system calls, foreign input) returns a Result instead. An expression, so that every compiler sees at
// every level of optimisation that CHECK(false) does not return.
#undef CHECK
#define CHECK(condition) \
  (static_cast<bool>(condition) ? void() : ::spillway::check_failed(#condition, __FILE__, __LINE__))
