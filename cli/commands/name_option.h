// Options whose values are names: closed, message; ring, tree.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "sim/base/result.h"
#include "sim/base/text.h"

namespace rehearse::cli {

/// The index of a name; the number of names if it is unknown.
inline std::size_t index_of(std::span<const std::string_view> names, std::string_view name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// An option check that rejects anything but these names: "unknown WHAT 'x'; did you mean 'y'?".
/// The names must outlive it.
inline std::function<std::string(const std::string&)> one_of(
    std::span<const std::string_view> names, const std::string& what = "name") {
  return [names, what](const std::string& name) -> std::string {
    if (index_of(names, name) < names.size()) return "";
    return fmt::format("unknown {} '{}'; {}", what, name, suggest(name, names));
  };
}

/// An option check that rejects a text that `read` cannot parse, with its error.
template <class Read>
std::function<std::string(const std::string&)> reads_as(Read read) {
  return [read](const std::string& text) -> std::string {
    const auto value = read(text);
    return value ? "" : to_string(value.error());
  };
}

}  // namespace rehearse::cli
