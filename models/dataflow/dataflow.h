// Dataflow: operations on values whose extents are named symbols, such as N nodes and E edges of a
// graph (docs/concepts/symbolic-operations.md).
//
//   kind                 operands               result            rows
//   gather               x [N, F…]              [E, F…]           of `by`, an index: row e is x[by[e]]
//   scatter              x [E, F]               [N, F]            row by[e] gets x[e] added
//   segment_reduce       x [E, F]               [N, F]            sums the rows of a segment of `by`
//   segment_softmax      x [E, F]               [E, F]            over the rows of a segment of `by`
//   matmul               x [E, F], w [F, G]     [E, G]
//                        x [E, F], w [E, F, G]  [E, G]            row by row, each by its own matrix
//                        v [R, F, G], w [.., G, H]  [R, F, H]     of weights
//   segmented_product    x [E, F], w [R, F, G]  [E, G]            by the matrix of the row's type, `by`
//   elementwise          x [E, F], y [E, F], …  [E, F]            narrower operands are repeated
//   concatenate          x [E, F], y [E, G], …  [E, F + G]
//   weight_gradient      x [E, F], d [E, G]     as the weight      sum over rows of xᵀ d
//
// Rows agree by the name of their extent, not by its size. A dataflow is a value; passes
// (passes.h) map one to another.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/workload/op.h"
#include "sim/base/ids.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::dataflow {

struct Extent {
  std::string name;  ///< "E", "2 * G"
  double size;       ///< at least 1
  friend bool operator==(const Extent&, const Extent&) = default;
};
using Extents = std::vector<Extent>;  ///< rows first

using ValueId = std::size_t;  ///< in Dataflow::values
using IndexId = std::size_t;  ///< in Dataflow::indices

enum class Role : std::uint8_t {
  kInput,
  kWeight,
  kPart,  ///< rows of a weight, without memory of its own
  kComputed,
};

struct Value {
  std::string name;
  Extents extents;
  Role role = Role::kComputed;
  double elements() const;
  double row_elements() const { return elements() / extents.front().size; }
  bool is_weight() const { return role == Role::kWeight || role == Role::kPart; }
};

/// For each of its rows the number of a row of something else: the source of an edge, its type.
struct Index {
  std::string name;
  Extent rows, of;
  /// Its compositions: the row that `first` selects, then `second` of that one.
  std::vector<std::pair<IndexId, IndexId>> via = {};
  /// How many distinct pairs with the values of another index of the same rows there are.
  std::vector<std::pair<IndexId, Extent>> pairs = {};
  /// Rows of the longest segment, if it is known.
  std::optional<double> longest = {};
};

enum class Kind : std::uint8_t {
  kGather,
  kScatter,
  kReduce,
  kSoftmax,
  kMatmul,
  kSegmented,
  kElementwise,
  kConcatenate,
  kWeightGradient,
};
inline constexpr std::string_view kKindNames[] = {
    "gather",          "scatter",     "segment_reduce",
    "segment_softmax", "matmul",      "segmented_product",
    "elementwise",     "concatenate", "weight_gradient"};
constexpr std::string_view to_string(Kind k) { return kKindNames[static_cast<int>(k)]; }

struct Operand {
  ValueId value;
  std::optional<IndexId> by = {};  ///< read through an index: a gather within the kernel
  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Operation {
  Kind kind;
  std::vector<Operand> of;
  std::optional<IndexId> by = {};
  ValueId result;
  double flops = 1;        ///< elementwise: for each element of the widest operand or the result
  double fused_flops = 0;  ///< of operations that were merged into this one
  /// As written, the operation runs once for each of so many groups of rows, after copying its
  /// operands into the order of the groups.
  std::optional<Extent> groups = {};
  std::optional<Extent> columns = {};  ///< elementwise: of the result, if it sums over columns
  bool compiled = false;               ///< by the pass `compile`
};

/// How kernels are made.
enum class Gathers : std::uint8_t {
  kByResult,  ///< each row of the result reads its source
  kBySource,  ///< each row of the source is read once and written to a cleared result
};
inline constexpr std::string_view kGatherNames[] = {"by_result", "by_source"};
enum class Segments : std::uint8_t {
  kTogether,  ///< one kernel for all segments of a product
  kEach,      ///< a kernel for each, and a copy that joins the results
};
inline constexpr std::string_view kSegmentNames[] = {"together", "each"};

struct Dataflow {
  std::string name;
  workload::Dtype dtype = workload::Dtype::kFp32;
  Bytes index_entry = Bytes::b(8);
  Gathers gathers = Gathers::kByResult;
  Segments segments = Segments::kTogether;
  std::vector<Value> values = {};
  std::vector<Index> indices = {};
  std::vector<Operation> operations = {};  ///< in the order in which they run
  std::vector<ValueId> results = {};       ///< of the whole: at least one

  const Value& value(const Operand& operand) const { return values[operand.value]; }
  const Value& result(const Operation& operation) const { return values[operation.result]; }
  ValueId add_value(std::string label, Extents extents, Role role = Role::kComputed);
  /// The operation that computes a value; nothing for inputs and weights.
  std::optional<std::size_t> producer(ValueId value) const;
  /// How many operands and results of the whole it is.
  std::size_t uses(ValueId value) const;
};

/// The extents of the result of an operation. Fails with one line if the operands do not agree.
Result<Extents> extents_of(const Dataflow& flow, const Operation& operation);

/// Multiplications and additions.
Flops flops_of(const Dataflow& flow, const Operation& operation);

/// Drops what no result needs, and computes equal operations once.
void simplify(Dataflow& flow);

}  // namespace rehearse::dataflow
