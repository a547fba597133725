#include "profiler/ingest/torch_ranges.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "profiler/ingest/kineto_event.h"
#include "profiler/ingest/numbers.h"

namespace rehearse::ingest {
namespace {

constexpr std::array<std::string_view, 4> kKeys = {
    "seq = ", "op_id = ", "sizes = ", "input_op_ids = "};

/// How long the value at the begin of `text` is: up to the next comma outside of brackets. The end
/// of a text that was cut ends it too.
std::size_t value_length(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[' || c == '(') ++depth;
    if ((c == ']' || c == ')') && depth > 0) --depth;
    if (c == ',' && depth == 0) return i;
  }
  return text.size();
}

bool closed(std::string_view array) {
  return array.size() >= 2 && array.front() == '[' && array.back() == ']' &&
         std::ranges::count(array, '[') == std::ranges::count(array, ']');
}

/// Reads the fields after a name, which have a fixed order; false if the text is anything else.
bool parse_fields(std::string_view rest, TorchRange& range) {
  std::size_t key = 0;
  while (true) {
    while (key < kKeys.size() && !rest.starts_with(kKeys[key])) ++key;
    if (key == kKeys.size()) return false;
    rest.remove_prefix(kKeys[key].size());
    const std::string_view value = rest.substr(0, value_length(rest));
    const bool is_number =
        !value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos;
    if (key < 2 ? !is_number : !value.starts_with('[')) return false;
    if (key == 0) range.sequence = parse_id(value);
    if (key == 1) range.op_id = parse_id(value);
    if (key == 2 && closed(value)) range.shapes = value;
    rest.remove_prefix(value.size());
    if (rest.empty()) return true;
    if (!rest.starts_with(", ")) return false;
    rest.remove_prefix(2);
    ++key;
  }
}

/// Without any field only the name is left to tell: the namespaces of PyTorch's own operators.
bool is_known_operator(std::string_view name) {
  for (const std::string_view space :
       {"aten::", "autograd::engine::", "torch::autograd::", "c10d::", "prim::"})
    if (name.starts_with(space))
      return name.find(' ') == std::string_view::npos || space == "autograd::engine::";
  return false;
}

}  // namespace

std::optional<TorchRange> parse_torch_range(std::string_view text) {
  if (text.find(" = ") != std::string_view::npos) {
    // A name may hold a comma itself.
    for (std::size_t comma = text.find(", "); comma != std::string_view::npos;
         comma = text.find(", ", comma + 1)) {
      TorchRange range{.name = text.substr(0, comma), .is_operator = false};
      if (comma == 0 || !parse_fields(text.substr(comma + 2), range)) continue;
      const bool has_inputs = text.find(", sizes = [", comma) != std::string_view::npos;
      range.is_operator =
          !kineto::names_a_range(range.name) &&
          (range.sequence || has_inputs || range.name.find("::") != std::string_view::npos ||
           names_backward_node(range.name));
      return range;
    }
  }
  if (is_known_operator(text)) return TorchRange{.name = text, .is_operator = true};
  return std::nullopt;
}

bool names_backward_node(std::string_view name) {
  if (name.find("torch::autograd::") != std::string_view::npos) return true;
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())))
    name.remove_suffix(1);
  return name.ends_with("Backward");
}

}  // namespace rehearse::ingest
