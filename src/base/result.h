#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace spillway {

// What kind of thing went wrong; the command line maps it to an exit status.
enum class Errc : std::uint8_t {
  bad_input,      // a file or value from outside is wrong
  usage,          // the command line is wrong
  io,             // the system refused or failed an operation
  out_of_memory,  // every tier is full
  unavailable,    // this machine lacks what the operation needs
};

// What we were doing, to what, why it failed, and what to do about it.
struct Error {
  Errc code;
  std::string message;
};

template <class T = void>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Errc code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

}  // namespace spillway

// TRY(auto fd, open_store(path)); unwraps, or returns the error to our caller. A statement of its own, inside braces.
// TRY_VOID(expr); is the same for Result<void>.
#define SPILLWAY_JOIN_(a, b) a##b
#define SPILLWAY_JOIN(a, b) SPILLWAY_JOIN_(a, b)
#define SPILLWAY_TRY_AS(decl, expr, tmp)                    \
  auto tmp = (expr);                                        \
  if (!tmp) return std::unexpected(std::move(tmp).error()); \
  decl = *std::move(tmp)
#define TRY(decl, expr) SPILLWAY_TRY_AS(decl, expr, SPILLWAY_JOIN(try_result_, __LINE__))
#define TRY_VOID(expr)                                                                                \
  do {                                                                                                \
    if (auto try_result = (expr); !try_result) return std::unexpected(std::move(try_result).error()); \
  } while (false)
