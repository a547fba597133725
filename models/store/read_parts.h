// Shared by the readers of this module. Errors are recorded in the file of the map.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "models/store/zipf.h"
#include "sim/base/yaml.h"

namespace rehearse::store {

/// A whole number from `least` to `most`, or `absent`; without `absent`, the key is required.
inline std::uint32_t count_in(const YamlMap& map, std::string_view key, std::int64_t most,
                              std::optional<std::uint32_t> absent = {}, std::int64_t least = 1) {
  if (!absent && !map.has(key)) map.report(key, "is missing", "a whole number");
  return static_cast<std::uint32_t>(
      map.within(key, least, most).value_or(std::int64_t{absent.value_or(1)}));
}

/// The result; an error is recorded as a mistake of the key.
template <class T>
T taken(const YamlMap& map, std::string_view key, Result<T> result, T otherwise) {
  if (result) return std::move(*result);
  const Diagnostic& d = result.error().diagnostics.front();
  map.report(key, d.line ? fmt::format("line {}: {}", *d.line, d.problem) : d.problem, d.expected,
             d.nearest);
  return otherwise;
}

/// The given exponent, or the one for "the share `top` of the keys takes the share `takes` of the
/// accesses".
inline double exponent_of(const YamlMap& map, std::uint32_t keys) {
  if (map.has("exponent") == map.has("top"))
    map.report("exponent", "exactly one of the two is required",
               "exponent: 0.8, or top: 0.01 and takes: 0.92");
  if (map.has("top")) {
    const auto top = map.required<double>("top"), takes = map.required<double>("takes");
    return top && takes ? taken(map, "takes", zipf_exponent(keys, *top, *takes), 1.0) : 1;
  }
  return map.within("exponent", 0.0, 10.0).value_or(1);
}

}  // namespace rehearse::store
