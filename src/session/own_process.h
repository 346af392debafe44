#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"
#include "base/units.h"

namespace spillway {

// What is asked of a disk in a process of its own: one that does not answer may stop for ever whoever asks it.
struct AskedOfDisk {
  std::string_view disk;
  Nanos limit;               // zero: none
  std::string_view if_late;  // what the error says besides: what was asked, and what to do
};

// What `body` returns there, at most 4000 bytes. Ours must be the only thread.
Result<std::string> bytes_from_own_process(const AskedOfDisk& asked, const std::function<Result<std::string>()>& body);

template <class T, class F>
  requires std::is_trivially_copyable_v<T>
Result<T> in_own_process(const AskedOfDisk& asked, F&& body) {
  TRY(const std::string bytes, bytes_from_own_process(asked, [&]() -> Result<std::string> {
        TRY(const T value, body());
        return std::string(reinterpret_cast<const char*>(&value), sizeof value);
      }));
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace spillway
