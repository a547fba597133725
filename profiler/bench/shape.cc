#include "profiler/bench/shape.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/base/number.h"
#include "sim/base/text.h"

namespace rehearse::bench {
namespace {

using Names = std::vector<std::string_view>;

std::vector<OpRule> make_rules() {
  const Names floats = {"bf16", "fp16", "fp32"};
  std::vector<OpRule> rules;
  rules.push_back({.op = "gemm",
                   .family = Family::kGemm,
                   .extents = {{"m", {}}, {"n", {}}, {"k", {}}, {"batch", 1}},
                   .dtypes = {"bf16", "fp16", "tf32", "fp32", "fp8"},
                   .layouts = {"nt", "nn", "tn", "tt"},
                   .epilogues = {"none", "bias", "relu_bias", "gelu_bias"}});
  for (const std::string_view op : {"conv", "conv_input", "conv_weight"})
    rules.push_back({.op = op,
                     .family = Family::kConv,
                     .extents = {{"images", {}},
                                 {"channels", {}},
                                 {"height", {}},
                                 {"width", {}},
                                 {"filters", {}},
                                 {"filter_height", {}},
                                 {"filter_width", {}},
                                 {"stride", 1},
                                 {"padding", 0},
                                 {"groups", 1}},
                     .dtypes = {"bf16", "fp16", "tf32", "fp32"},
                     .layouts = {"nhwc", "nchw"}});
  rules.push_back(
      {.op = "attention",
       .family = Family::kAttention,
       .extents = {{"batch", {}}, {"heads", {}}, {"queries", {}}, {"keys", {}}, {"head_size", {}}},
       .dtypes = {"bf16", "fp16"},
       .layouts = {"causal", "full"}});
  rules.push_back({.op = "elementwise",
                   .family = Family::kElementwise,
                   .extents = {{"elements", {}}, {"inputs", 2}},
                   .dtypes = floats});
  for (const std::string_view op : {"reduction", "norm", "softmax"})
    rules.push_back({.op = op,
                     .family = Family::kElementwise,
                     .extents = {{"rows", {}}, {"width", {}}},
                     .dtypes = floats});
  rules.push_back(
      {.op = "copy",
       .family = Family::kCopy,
       .extents = {{"bytes", {}}},
       .dtypes = {"bytes"},
       .layouts = {"h2d_pinned", "h2d_pageable", "d2h_pinned", "d2h_pageable", "d2d", "peer"}});
  rules.push_back(
      {.op = "set", .family = Family::kCopy, .extents = {{"bytes", {}}}, .dtypes = {"bytes"}});
  for (const std::string_view op :
       {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"})
    rules.push_back({.op = op,
                     .family = Family::kCollective,
                     .extents = {{"bytes", {}}, {"ranks", 0}},
                     .dtypes = floats});
  return rules;
}

Names op_names() {
  Names names;
  for (const OpRule& rule : op_rules()) names.push_back(rule.op);
  return names;
}

Result<std::string> chosen(std::string_view what, std::string_view op, std::string_view name,
                           const Names& among) {
  if (name.empty()) return among.empty() ? std::string() : std::string(among.front());
  if (std::ranges::find(among, name) != among.end()) return std::string(name);
  if (among.empty()) return fail(fmt::format("{}: {} has no {}", what, op, what), "nothing there");
  return fail(fmt::format("{}: '{}' is not supported for {}", what, name, op), {},
              suggest(name, among));
}

/// Checks conditions on several extents together.
Status check_together(const Shape& s) {
  const auto wrong = [](std::string problem, std::string expected) -> Status {
    return fail(std::move(problem), std::move(expected));
  };
  constexpr double kMost = 1e15;
  if (flops_of(s).flop() > kMost * 1e3 || bytes_of(s).b() > kMost)
    return wrong("is larger than the memory of any device", "extents whose operands fit a device");
  if (s.rule().family == Family::kConv) {
    const std::uint64_t padding = 2 * s["padding"];
    if (s["filter_height"] > s["height"] + padding || s["filter_width"] > s["width"] + padding)
      return wrong("the filter is larger than the padded image", "a smaller filter");
    if (s["channels"] % s["groups"] != 0 || s["filters"] % s["groups"] != 0)
      return wrong("groups do not divide channels and filters", "a divisor of both of them");
  }
  if (s.op == "elementwise" && s["inputs"] > 2)
    return wrong(fmt::format("inputs: {} are too many", s["inputs"]), "1 or 2");
  if (s.dtype == "fp8" && s.layout != "nt")
    return wrong("layout: products in fp8 are computed as 'nt' alone", "layout nt");
  return {};
}

}  // namespace

std::span<const OpRule> op_rules() {
  static const std::vector<OpRule> rules = make_rules();
  return rules;
}

const OpRule* rule_of(std::string_view op) {
  for (const OpRule& rule : op_rules())
    if (rule.op == op) return &rule;
  return nullptr;
}

std::uint64_t Shape::operator[](std::string_view extent) const {
  const std::vector<ExtentRule>& all = rule().extents;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].name == extent) return extents[i];
  REHEARSE_CHECK(false, "{} has no extent {}", op, extent);
  return 0;
}

std::string Shape::text() const {
  std::string text;
  const std::vector<ExtentRule>& all = rule().extents;
  for (std::size_t i = 0; i < all.size(); ++i)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", all[i].name, extents[i]);
  return text;
}

Result<Shape> make_shape(std::string_view op, const NamedExtents& extents, std::string_view dtype,
                         std::string_view layout, std::string_view epilogue) {
  const OpRule* rule = rule_of(op);
  if (!rule)
    return fail(fmt::format("op: '{}' is not a measured operation", op), {},
                suggest(op, op_names()));
  Shape shape{.op = std::string(op)};
  Names known;
  for (const ExtentRule& extent : rule->extents) {
    known.push_back(extent.name);
    const auto given =
        std::ranges::find_if(extents, [&](const auto& each) { return each.first == extent.name; });
    if (given == extents.end() && !extent.otherwise)
      return fail(fmt::format("{}: {} needs it", extent.name, op), "a whole number above zero");
    const std::uint64_t value = given == extents.end() ? *extent.otherwise : given->second;
    // Padding may be zero; a collective may leave the number of ranks to the machine.
    if (value == 0 && extent.otherwise != 0)
      return fail(fmt::format("{}: 0 is out of range", extent.name), "a whole number above zero");
    if (value > (std::uint64_t{1} << 44))
      return fail(
          fmt::format("{}: {} is larger than the memory of any device", extent.name, value));
    shape.extents.push_back(value);
  }
  for (const auto& [name, value] : extents)
    if (std::ranges::find(known, name) == known.end())
      return fail(fmt::format("{}: {} has no such extent", name, op), {}, suggest(name, known));
  struct Choice {
    std::string_view what, name;
    const Names& among;
    std::string& to;
  };
  for (const Choice& c : {Choice{"dtype", dtype, rule->dtypes, shape.dtype},
                          Choice{"layout", layout, rule->layouts, shape.layout},
                          Choice{"epilogue", epilogue, rule->epilogues, shape.epilogue}})
    c.to = TRY(chosen(c.what, op, c.name, c.among));
  TRY(check_together(shape));
  return shape;
}

Result<Shape> parse_shape(std::string_view op, std::string_view text, std::string_view dtype,
                          std::string_view layout, std::string_view epilogue) {
  NamedExtents extents;
  for (const std::string_view word : split(text, ' ')) {
    const std::size_t equals = word.find('=');
    const auto value = equals == std::string_view::npos
                           ? std::nullopt
                           : parse_number<std::uint64_t>(word.substr(equals + 1));
    if (!value)
      return fail(fmt::format("'{}' is not a shape", text), "such as 'm=128 n=128 k=64 batch=1'");
    extents.emplace_back(word.substr(0, equals), *value);
  }
  return make_shape(op, extents, dtype, layout, epilogue);
}

std::uint64_t element_bytes(std::string_view dtype) {
  if (dtype == "fp32" || dtype == "tf32") return 4;
  if (dtype == "fp8" || dtype == "bytes") return 1;
  return 2;
}

ConvResult conv_result(const Shape& s) {
  const std::uint64_t padding = 2 * s["padding"], stride = s["stride"];
  return {(s["height"] + padding - s["filter_height"]) / stride + 1,
          (s["width"] + padding - s["filter_width"]) / stride + 1};
}

Flops flops_of(const Shape& s) {
  const auto d = [&](std::string_view extent) { return static_cast<double>(s[extent]); };
  double flops = 0;
  switch (s.rule().family) {
    case Family::kGemm: flops = 2 * d("m") * d("n") * d("k") * d("batch"); break;
    case Family::kConv: {
      const ConvResult out = conv_result(s);
      flops = 2 * d("images") * static_cast<double>(out.height) * static_cast<double>(out.width) *
              d("filters") * d("channels") / d("groups") * d("filter_height") * d("filter_width");
      break;
    }
    case Family::kAttention:
      flops = 4 * d("batch") * d("heads") * d("queries") * d("keys") * d("head_size") *
              (s.layout == "causal" ? 0.5 : 1);
      break;
    case Family::kElementwise:
    case Family::kCopy:
    case Family::kCollective: break;
  }
  return Flops::flop(flops);
}

Bytes bytes_of(const Shape& s) {
  const auto d = [&](std::string_view extent) { return static_cast<double>(s[extent]); };
  const auto element = static_cast<double>(element_bytes(s.dtype));
  switch (s.rule().family) {
    case Family::kGemm:  // a product of FP8 gives half precision
      return Bytes::b(d("batch") * (element * (d("m") * d("k") + d("k") * d("n")) +
                                    std::max(element, 2.0) * d("m") * d("n")));
    case Family::kConv: {
      const ConvResult out = conv_result(s);
      return Bytes::b(element * (d("images") * d("channels") * d("height") * d("width") +
                                 d("filters") * d("channels") / d("groups") * d("filter_height") *
                                     d("filter_width") +
                                 d("images") * d("filters") * static_cast<double>(out.height) *
                                     static_cast<double>(out.width)));
    }
    case Family::kAttention:
      return Bytes::b(element * d("batch") * d("heads") * d("head_size") *
                      (2 * d("queries") + 2 * d("keys")));
    case Family::kElementwise:
      if (s.op == "elementwise") return Bytes::b(element * d("elements") * (d("inputs") + 1));
      return Bytes::b(element * d("rows") *
                      (s.op == "reduction" ? d("width") + 1 : 2 * d("width")));
    case Family::kCopy:  // read and written within one memory
      return Bytes::b(d("bytes") * (s.layout == "d2d" ? 2 : 1));
    case Family::kCollective: return Bytes::b(d("bytes"));
  }
  return Bytes::b(0);
}

std::vector<Shape> without_repeats(const std::vector<Shape>& shapes) {
  std::vector<Shape> kept;
  for (const Shape& shape : shapes)
    if (std::ranges::find(kept, shape) == kept.end()) kept.push_back(shape);
  return kept;
}

}  // namespace rehearse::bench
