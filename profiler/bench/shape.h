// Shape: one operation to measure, by the extents, format and layout that determine its time.
// docs/formats/shapes.md lists the operations with their extents.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::bench {

/// The choices of `--ops`: the operations of one library.
enum class Family : std::uint8_t { kGemm, kConv, kAttention, kElementwise, kCopy, kCollective };
inline constexpr std::string_view kFamilyNames[] = {"gemm",        "conv", "attention",
                                                    "elementwise", "copy", "collective"};
constexpr std::string_view to_string(Family f) { return kFamilyNames[static_cast<int>(f)]; }
inline constexpr std::size_t kFamilies = std::size(kFamilyNames);

struct ExtentRule {
  std::string_view name;
  std::optional<std::uint64_t> otherwise;  ///< default; absent: the shape must give it
};

struct OpRule {
  std::string_view op;
  Family family;
  std::vector<ExtentRule> extents;
  std::vector<std::string_view> dtypes;          ///< the first is the default
  std::vector<std::string_view> layouts = {};    ///< likewise; empty: none
  std::vector<std::string_view> epilogues = {};  ///< likewise
};

/// All operations that can be measured.
std::span<const OpRule> op_rules();
const OpRule* rule_of(std::string_view op);

struct Shape {
  std::string op, dtype = {}, layout = {}, epilogue = {};
  std::vector<std::uint64_t> extents = {};  ///< in the order of the rule

  bool operator==(const Shape&) const = default;
  const OpRule& rule() const { return *rule_of(op); }
  /// REQUIRES: the operation has it.
  std::uint64_t operator[](std::string_view extent) const;
  /// "m=4096 n=4096 k=1024 batch=1".
  std::string text() const;
};

using NamedExtents = std::vector<std::pair<std::string_view, std::uint64_t>>;

/// Makes a shape by its rule, with defaults. Fails, with one line, on an unknown operation, format,
/// layout or epilogue; on a missing, unknown or zero extent; and on incompatible extents.
Result<Shape> make_shape(std::string_view op, const NamedExtents& extents,
                         std::string_view dtype = {}, std::string_view layout = {},
                         std::string_view epilogue = {});

/// Parses the output of `text`.
Result<Shape> parse_shape(std::string_view op, std::string_view text, std::string_view dtype,
                          std::string_view layout, std::string_view epilogue);

/// The bytes of an operand element: 4 for fp32 and tf32, 2 for fp16 and bf16, 1 for fp8.
std::uint64_t element_bytes(std::string_view dtype);

/// FLOPs and bytes of a shape, for lower bounds of its time and to judge a measurement.
Flops flops_of(const Shape& shape);
Bytes bytes_of(const Shape& shape);

/// The extents of a convolution's result. REQUIRES: an operation of the family conv.
struct ConvResult {
  std::uint64_t height, width;
};
ConvResult conv_result(const Shape& shape);

/// The shapes without repetitions.
std::vector<Shape> without_repeats(const std::vector<Shape>& shapes);

}  // namespace rehearse::bench
