#include "models/workload/lift_operands.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>

#include "profiler/trace/shapes.h"

namespace rehearse::workload::lifting {
namespace {

std::optional<Dtype> dtype_of(std::string_view type) {
  struct Known {
    std::string_view part;
    Dtype dtype;
  };
  // "Scalar" and "double" are no operands of matrix operations.
  constexpr auto kKnown = std::to_array<Known>({{"bfloat16", Dtype::kBf16},
                                                {"float8", Dtype::kFp8},
                                                {"half", Dtype::kFp16},
                                                {"float16", Dtype::kFp16},
                                                {"float", Dtype::kFp32}});
  std::string lower(type);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Known& known : kKnown)
    if (lower.find(known.part) != std::string::npos) return known.dtype;
  return std::nullopt;
}

bool is_tensor_type(std::string_view type) {
  if (type.find("Tensor(") != std::string_view::npos) return true;
  // C++ names its element types in lower case; "Int" and "Scalar" are numbers.
  return !type.empty() &&
         (std::islower(static_cast<unsigned char>(type[0])) || type.starts_with("c10::"));
}

/// The texts between quotes, in order.
std::vector<std::string_view> quoted(std::string_view types) {
  std::vector<std::string_view> found;
  for (std::size_t open = types.find('"'); open != std::string_view::npos;) {
    const std::size_t close = types.find('"', open + 1);
    if (close == std::string_view::npos) break;
    found.push_back(types.substr(open + 1, close - open - 1));
    open = types.find('"', close + 1);
  }
  return found;
}

/// The elements of an array, each with its brackets: "[[2, 3], [], [[4], [5]]]".
std::vector<std::string_view> elements(std::string_view array) {
  std::vector<std::string_view> found;
  std::size_t depth = 0, open = 0;
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (array[i] == '[' && ++depth == 2) open = i;
    if (array[i] == ']' && depth-- == 2) found.push_back(array.substr(open, i - open + 1));
    if (depth == 0 && array[i] == ']') break;
  }
  return found;
}

std::vector<double> numbers(std::string_view shape) {
  std::vector<double> found;
  for (std::size_t i = 0; i < shape.size();) {
    if (!std::isdigit(static_cast<unsigned char>(shape[i]))) {
      ++i;
      continue;
    }
    std::uint64_t value = 0;
    const auto [rest, error] = std::from_chars(&shape[i], shape.data() + shape.size(), value);
    if (error != std::errc{}) return {};
    found.push_back(static_cast<double>(value));
    i = static_cast<std::size_t>(rest - shape.data());
  }
  return found;
}

Operand operand(std::string_view shape, std::string_view type) {
  if (!is_tensor_type(type)) return {};
  const double element = static_cast<double>(trace::element_bytes(type).value_or(0));
  return {.extents = element > 0 ? numbers(shape) : std::vector<double>{},
          .element = element,
          .dtype = dtype_of(type)};
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

template <std::size_t n>
bool is_one_of(std::string_view text, const std::array<std::string_view, n>& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

double Operand::elements() const {
  double product = extents.empty() ? 0 : 1;
  for (const double extent : extents) product *= extent;
  return product;
}

std::vector<Operand> parse_operands(std::string_view shapes, std::string_view types) {
  const std::vector<std::string_view> shape_list = elements(shapes);
  const std::vector<std::string_view> type_list = quoted(types);
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < shape_list.size(); ++i) {
    // Recorders that record only shapes record none for operands that are not tensors.
    if (types.empty()) {
      operands.push_back({.extents = numbers(shape_list[i])});
      continue;
    }
    const std::string_view type = i < type_list.size() ? type_list[i] : std::string_view();
    const std::vector<std::string_view> list = elements(shape_list[i]);
    if (list.empty()) {
      operands.push_back(operand(shape_list[i], type));
    } else {
      for (const std::string_view shape : list)
        operands.push_back(has(type, "Tensor(") ? operand(shape, type)
                                                : Operand{.extents = numbers(shape)});
    }
  }
  return operands;
}

std::optional<Operand> type_of_kernel(std::string_view kernel) {
  struct Known {
    std::string_view part;
    Dtype dtype;
    double element;
  };
  // In this order: kernels that compute in a wider type name both.
  constexpr auto kKnown = std::to_array<Known>({{"e4m3", Dtype::kFp8, 1},
                                                {"bf16", Dtype::kBf16, 2},
                                                {"BFloat16", Dtype::kBf16, 2},
                                                {"bfloat16", Dtype::kBf16, 2},
                                                {"c10::Half", Dtype::kFp16, 2},
                                                {"half", Dtype::kFp16, 2},
                                                {"f16f16", Dtype::kFp16, 2},
                                                {"fp16", Dtype::kFp16, 2},
                                                {"hgemm", Dtype::kFp16, 2},
                                                {"f32f32", Dtype::kFp32, 4},
                                                {"sgemm", Dtype::kFp32, 4},
                                                {"float", Dtype::kFp32, 4}});
  for (const Known& known : kKnown)
    if (has(kernel, known.part))
      return Operand{.extents = {}, .element = known.element, .dtype = known.dtype};
  return std::nullopt;
}

std::string_view short_name(std::string_view name) {
  const std::size_t scope = name.rfind("::");
  return scope == std::string_view::npos ? name : name.substr(scope + 2);
}

Role role_of(std::string_view name) {
  std::string lower(short_name(name));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr auto kMatrix = std::to_array<std::string_view>(
      {"mm", "addmm", "addmm_", "bmm", "baddbmm", "matmul", "_scaled_mm", "_addmm_activation"});
  if (is_one_of(lower, kMatrix)) return Role::kMatrix;
  if (has(lower, "convolution") || has(lower, "conv1d") || has(lower, "conv2d") ||
      has(lower, "conv3d"))
    return Role::kConvolution;
  if (has(lower, "scaled_dot_product") || has(lower, "flash_att") || has(lower, "flashatt") ||
      has(lower, "efficient_attention") || has(lower, "fmha"))
    return Role::kAttention;
  if (has(lower, "softmax")) return Role::kSoftmax;
  for (const std::string_view kind : {"batch", "layer", "group", "instance", "rms"})
    if (has(lower, std::string(kind) + "_norm") || has(lower, std::string(kind) + "norm"))
      return Role::kNorm;
  if (has(lower, "embedding")) return Role::kGather;
  if (has(lower, "pool")) return Role::kPool;
  if (has(lower, "linear") && !has(lower, "bilinear") && !has(lower, "upsample"))
    return Role::kLinear;
  return Role::kPlain;
}

std::optional<Factors> factors_of(std::string_view name, const std::vector<Operand>& operands) {
  // In addmm and baddbmm the added operand comes first.
  const std::size_t first = has(short_name(name), "add") ? 1 : 0;
  if (operands.size() < first + 2) return std::nullopt;
  Factors factors{operands[first], operands[first + 1]};
  if (factors.a.extents.size() < 2 || factors.b.extents.size() < 2) return std::nullopt;
  if (role_of(name) == Role::kLinear)
    std::swap(factors.b.extents.back(), factors.b.extents[factors.b.extents.size() - 2]);
  if (factors.a.last() != factors.b.last(1)) return std::nullopt;
  return factors;
}

bool keeps_nothing(std::string_view name) {
  constexpr auto kNothing = std::to_array<std::string_view>({"add",        "add_",
                                                             "sub",        "sub_",
                                                             "neg",        "copy_",
                                                             "_to_copy",   "to",
                                                             "clone",      "contiguous",
                                                             "cat",        "stack",
                                                             "mean",       "sum",
                                                             "reshape",    "expand",
                                                             "empty_like", "fill_",
                                                             "zero_",      "repeat",
                                                             "pad",        "constant_pad_nd",
                                                             "div",        "rsub"});
  return is_one_of(short_name(name), kNothing);
}

bool in_place(std::string_view name) {
  name = short_name(name);
  return name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_';
}

}  // namespace rehearse::workload::lifting
