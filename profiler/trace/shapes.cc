#include "profiler/trace/shapes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "sim/base/number.h"
#include "sim/base/text.h"

namespace rehearse::trace {
namespace {

/// The part of an array, "[[2, 3], [], [[4], [5]]]", that is its next element at or after `at`.
std::optional<std::string_view> take_element(std::string_view array, std::size_t& at) {
  const std::size_t open = array.find('[', at);
  if (open == std::string_view::npos) return std::nullopt;
  std::size_t depth = 0;
  for (std::size_t i = open; i < array.size(); ++i) {
    if (array[i] == '[') ++depth;
    if (array[i] == ']' && --depth == 0) {
      at = i + 1;
      return array.substr(open, at - open);
    }
  }
  return std::nullopt;
}

/// The next innermost list of a shape, "[4]" of "[[4], [5]]", at or after `at`.
std::optional<std::string_view> take_innermost(std::string_view shape, std::size_t& at) {
  const std::size_t close = shape.find(']', at);
  const std::size_t open = close == std::string_view::npos ? close : shape.rfind('[', close);
  if (open == std::string_view::npos || open < at) return std::nullopt;
  at = close + 1;
  return shape.substr(open, close - open + 1);
}

}  // namespace

std::optional<std::uint64_t> product(std::optional<std::uint64_t> a,
                                     std::optional<std::uint64_t> b) {
  std::uint64_t result = 0;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &result)) return std::nullopt;
  return result;
}

std::optional<std::uint64_t> element_bytes(std::string_view dtype) {
  if (const std::size_t scope = dtype.rfind(':'); scope != std::string_view::npos)
    dtype.remove_prefix(scope + 1);
  constexpr std::string_view kTensor = "Tensor(";
  if (dtype.starts_with(kTensor)) dtype.remove_prefix(kTensor.size());
  std::string word(dtype);
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  struct Width {
    std::string_view prefix;
    std::uint64_t bytes;
  };
  // Longer names first where one begins another.
  constexpr auto kWidths = std::to_array<Width>(
      {{"float8", 1},   {"float16", 2},       {"float32", 4},    {"float64", 8}, {"float", 4},
       {"bfloat16", 2}, {"half", 2},          {"double", 8},     {"int8", 1},    {"int16", 2},
       {"int32", 4},    {"int64", 8},         {"uint8", 1},      {"uint32", 4},  {"uint64", 8},
       {"int", 4},      {"long", 8},          {"short", 2},      {"char", 1},    {"byte", 1},
       {"bool", 1},     {"unsigned char", 1}, {"signed char", 1}});
  for (const Width& width : kWidths)
    if (word.starts_with(width.prefix)) return width.bytes;
  return std::nullopt;
}

std::optional<std::uint64_t> shape_elements(std::string_view shape) {
  shape = trim(shape);
  if (shape.size() < 2 || shape.front() != '[' || shape.back() != ']') return std::nullopt;
  shape = trim(shape.substr(1, shape.size() - 2));
  std::uint64_t product = 1;
  if (shape.empty()) return product;
  for (const std::string_view extent : split(shape, ',')) {
    const std::optional<std::int64_t> value = parse_number<std::int64_t>(trim(extent));
    if (!value || *value < 0) return std::nullopt;
    if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(*value), &product))
      return std::nullopt;
  }
  return product;
}

std::optional<std::uint64_t> tensor_bytes(std::string_view shapes, std::string_view types) {
  constexpr std::string_view kTensor = "Tensor(";
  std::uint64_t total = 0;
  bool any = false;
  const auto count = [&](std::optional<std::string_view> extents, std::string_view type) {
    const auto bytes =
        extents ? product(shape_elements(*extents), element_bytes(type)) : std::nullopt;
    if (!bytes || __builtin_add_overflow(total, *bytes, &total)) return false;
    return any = true;
  };
  std::size_t shape_at = 1;
  for (std::size_t open = types.find('"'); open != std::string_view::npos;) {
    const std::size_t close = types.find('"', open + 1);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view type = types.substr(open + 1, close - open - 1);
    open = types.find('"', close + 1);
    const auto shape = take_element(shapes, shape_at);
    if (!shape) return std::nullopt;
    if (type.find(kTensor) == std::string_view::npos) {
      // C++ names its element types in lower case; "Int" and "Double" are numbers, not tensors.
      const bool is_tensor = !type.empty() && std::islower(static_cast<unsigned char>(type[0]));
      if (is_tensor && !count(*shape, type)) return std::nullopt;
      continue;
    }
    std::size_t extents_at = 0;
    for (std::size_t at = type.find(kTensor); at != std::string_view::npos;
         at = type.find(kTensor, at + 1))
      if (!count(take_innermost(*shape, extents_at), type.substr(at))) return std::nullopt;
  }
  return any ? std::optional(total) : std::nullopt;
}

std::string evenly_spaced(std::string_view shapes) {
  const auto separates = [](char c) { return c == '[' || c == ']' || c == ','; };
  std::string even;
  bool gap = false;
  for (const char c : shapes) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      gap = true;
      continue;
    }
    // A space between two numbers is no punctuation: "1 2" stays apart from "12".
    const bool in_text = !even.empty() && !separates(even.back()) && !separates(c);
    if (!even.empty() && (even.back() == ',' || (gap && in_text))) even += ' ';
    even += c;
    gap = false;
  }
  return even;
}

}  // namespace rehearse::trace
