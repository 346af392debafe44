#include "base/check.h"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace spillway {
namespace {

std::atomic<void (*)() noexcept> last_words{nullptr};

}  // namespace

void set_last_words(void (*call)() noexcept) noexcept { last_words.store(call); }

void check_failed(const char* condition, const char* file, int line) noexcept {
  char text[512];
  std::size_t used = 0;
  const auto append = [&](const char* part) {
    const std::size_t length = std::strlen(part);
    const std::size_t room = sizeof text - used;
    const std::size_t taken = length < room ? length : room;
    std::memcpy(text + used, part, taken);
    used += taken;
  };
  char digits[12];
  char* digit = digits + sizeof digits - 1;
  *digit = '\0';
  for (int rest = line; rest > 0; rest /= 10) *--digit = static_cast<char>('0' + rest % 10);
  append("spillway: bug: CHECK failed: ");
  append(condition);
  append(" at ");
  append(file);
  append(":");
  append(digit);
  append("\n");
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, used);
  if (const auto call = last_words.exchange(nullptr)) call();
  std::abort();
}

}  // namespace spillway
