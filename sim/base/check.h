// CHECK: an invariant of this program. It stays on in release builds.
//
// A failed CHECK is a fault of ours, never of the input: wrong input returns a Result (result.h).
// It throws Fault so that the command line can name the place and exit with code 3.
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/core.h>

namespace rehearse {

class Fault : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const char* file, int line, const char* condition,
                             const std::string& values);

}  // namespace rehearse

/// CHECK(condition) or CHECK(condition, "format {}", values...).
#define REHEARSE_CHECK(condition, ...)                                                     \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::rehearse::fail_check(__FILE__, __LINE__, #condition, fmt::format("" __VA_ARGS__)); \
  } while (false)
