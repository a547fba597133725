// Shared by the readers of this module. Errors are recorded in the file of the map.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "models/store/zipf.h"
#include "sim/base/yaml.h"

namespace rehearse::store {

/// A whole number from 1 to `most`, or `absent`; without that it has to be there.
inline std::uint32_t count_in(const YamlMap& map, std::string_view key, std::int64_t most,
                              std::optional<std::uint32_t> absent = {}) {
  if (!absent && !map.has(key)) map.report(key, "is missing", "a whole number");
  const auto value = map.optional<std::int64_t>(key);
  if (!value) return absent.value_or(1);
  if (*value < 1 || *value > most) {
    map.report(key, fmt::format("{} is out of range", *value), fmt::format("1 to {}", most));
    return 1;
  }
  return static_cast<std::uint32_t>(*value);
}

/// The result; where there is none, its mistake is one of the key.
template <class T>
T taken(const YamlMap& map, std::string_view key, Result<T> result, T otherwise) {
  if (result) return std::move(*result);
  const Diagnostic& d = result.error().diagnostics.front();
  map.report(key, d.line ? fmt::format("line {}: {}", *d.line, d.problem) : d.problem, d.expected,
             d.nearest);
  return otherwise;
}

/// Given, or from "the share `top` of the keys takes the share `takes` of the accesses".
inline double exponent_of(const YamlMap& map, std::uint32_t keys) {
  if (map.has("exponent") == map.has("top"))
    map.report("exponent", "exactly one of the two is required",
               "exponent: 0.8, or top: 0.01 and takes: 0.92");
  if (map.has("top")) {
    const auto top = map.required<double>("top"), takes = map.required<double>("takes");
    return top && takes ? taken(map, "takes", zipf_exponent(keys, *top, *takes), 1.0) : 1;
  }
  const double exponent = map.optional<double>("exponent").value_or(1);
  if (exponent >= 0 && exponent <= 10) return exponent;
  map.report("exponent", fmt::format("{:g} is out of range", exponent), "0 to 10");
  return 1;
}

}  // namespace rehearse::store
