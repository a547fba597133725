// Converts measurements of `bench-gpu` for the cost model, and recordings to shapes for
// `bench-gpu`.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/compute/measured_ops.h"
#include "models/workload/workload.h"
#include "profiler/bench/shape.h"
#include "profiler/trace/op_timing.h"
#include "sim/base/result.h"

namespace rehearse::cli {

using MeasuredByDevice = std::map<std::string, compute::MeasuredOps, std::less<>>;

/// Returns the timings that the cost model uses, by catalog device. Other timings are skipped
/// (copies, collectives, products with an epilogue, devices that are partitions or are not in the
/// catalog); `notes` says how many.
MeasuredByDevice measured_ops_of(std::span<const trace::OpTiming> timings,
                                 std::vector<std::string>& notes);

/// Reads the timings of a trace store. Fails if the file is not a store, or has no timings.
Result<std::vector<trace::OpTiming>> read_op_costs(const std::filesystem::path& store);

/// Returns the workload operation that a shape represents; nothing for copies, collectives and
/// reductions.
std::optional<workload::Op> op_of(const bench::Shape& shape);

/// Returns the shape of a workload op; nothing if it has none (a gather, or bytes that do not make
/// whole rows). `samples` of the workload gives the number of images of a convolution.
std::optional<bench::Shape> shape_of(const workload::Op& op, double samples);

struct Replan {
  std::vector<bench::Shape> shapes;
  std::size_t without_shape = 0;  ///< operations without a benchmark
};

/// Returns the operations that other plans of a recorded job compute: the recorded operations
/// divided by tensor parallelism of 2, 4 and 8, in microbatches of half, twice and four times as
/// many samples; and the collectives that sum its gradients and activations.
Replan replan_shapes(const workload::Workload& recorded);

}  // namespace rehearse::cli
