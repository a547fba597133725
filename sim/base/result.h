// Result<T>: the return type of every function that input can make fail.
//
// An Error is one or more Diagnostics: a reader of a file reports all errors of the file at
// once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace rehearse {

/// One thing wrong with the input, in the parts of the message
/// `file:line:column: key: problem; expected; nearest`. Absent parts are left out.
struct Diagnostic {
  std::string file = {};
  std::optional<std::uint32_t> line = {};    ///< from 1
  std::optional<std::uint32_t> column = {};  ///< from 1
  std::string key = {};                      ///< path of the key, e.g. "fabric.links[0].rate"
  std::string problem = {};
  std::string expected = {};  ///< the expected value
  std::string nearest = {};   ///< the nearest valid name, or another way out
};

/// One line, without a newline at its end.
std::string to_string(const Diagnostic&);

struct Error {
  std::vector<Diagnostic> diagnostics;
};

/// One line per diagnostic, separated by newlines.
std::string to_string(const Error&);

template <class T>
using Result = tl::expected<T, Error>;

/// The success value of a Result<void> function.
using Status = tl::expected<void, Error>;

inline tl::unexpected<Error> fail(Diagnostic diagnostic) {
  Error error;
  error.diagnostics.push_back(std::move(diagnostic));
  return tl::unexpected(std::move(error));
}

/// An error that belongs to no place in a file.
inline tl::unexpected<Error> fail(std::string problem, std::string expected = {},
                                  std::string nearest = {}) {
  return fail(Diagnostic{.problem = std::move(problem),
                         .expected = std::move(expected),
                         .nearest = std::move(nearest)});
}

/// An error in a file.
inline tl::unexpected<Error> fail_in(const std::filesystem::path& file, std::string problem,
                                     std::string expected = {}, std::string nearest = {}) {
  return fail(Diagnostic{.file = file.string(),
                         .problem = std::move(problem),
                         .expected = std::move(expected),
                         .nearest = std::move(nearest)});
}

/// Passes the error of `result` on: `if (!r) return forward(r);`
template <class T>
tl::unexpected<Error> forward(const tl::expected<T, Error>& result) {
  return tl::unexpected(result.error());
}
template <class T>
tl::unexpected<Error> forward(tl::expected<T, Error>&& result) {
  return tl::unexpected(std::move(result).error());
}

/// The value of a result that has one.
template <class T>
T value_of(const tl::expected<T, Error>& result) {
  if constexpr (!std::is_void_v<T>) return *result;
}
template <class T>
T value_of(tl::expected<T, Error>&& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace rehearse

/// The value of a Result or a Status; an error ends the function that has the TRY, with that error:
///
///   const JobFile job = TRY(load_job(path));
///   TRY(check_writable(output));
///
/// A call or a braced list has a TRY first or not at all: an error would not destroy the arguments before it.
#define TRY(...) REHEARSE_TRY(REHEARSE_TRY_NAME(__COUNTER__), __VA_ARGS__)
#define REHEARSE_TRY_NAME(number) REHEARSE_TRY_JOIN(tried_, number)
#define REHEARSE_TRY_JOIN(a, b) a##b
#define REHEARSE_TRY(tried, ...)                                                  \
  __extension__({                                                                 \
    auto&& tried = __VA_ARGS__;                                                   \
    if (!tried) return ::rehearse::forward(std::forward<decltype(tried)>(tried)); \
    ::rehearse::value_of(std::forward<decltype(tried)>(tried));                   \
  })
