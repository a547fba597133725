#include "cli/calibrate/op_timings.h"

#include <fmt/core.h>

#include "cli/calibrate/device_names.h"
#include "models/compute/device_facts.h"
#include "profiler/trace/store.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using bench::Shape, workload::Dtype, workload::Op, workload::OpKind;

Dtype dtype_of(std::string_view name) {
  for (std::size_t i = 0; i < std::size(workload::kDtypeNames); ++i)
    if (workload::kDtypeNames[i] == name) return static_cast<Dtype>(i);
  return Dtype::kBf16;
}

Op convolution_of(const Shape& s, Op op) {
  const bench::ConvResult out = bench::conv_result(s);
  const auto groups = static_cast<double>(s["groups"]);
  const double positions =
      static_cast<double>(s["images"]) * static_cast<double>(out.height * out.width);
  const double filters = static_cast<double>(s["filters"]) / groups;
  const double summed = static_cast<double>(s["channels"]) / groups *
                        static_cast<double>(s["filter_height"] * s["filter_width"]);
  op.kind = OpKind::kConvolution;
  op.batch = groups;
  op.m = s.op == "conv_weight" ? filters : positions;
  op.n = s.op == "conv" ? filters : summed;
  op.k = s.op == "conv" ? summed : s.op == "conv_input" ? filters : positions;
  op.bytes = bench::bytes_of(s);  // everything, as it names no extent that samples stretch
  return op;
}

}  // namespace

std::optional<Op> op_of(const Shape& s) {
  Op op{.name = "", .kind = OpKind::kGemm, .dtype = dtype_of(s.dtype)};
  const auto at = [&](std::string_view extent) { return static_cast<double>(s[extent]); };
  switch (s.rule().family) {
    case bench::Family::kGemm:
      if (s.epilogue != "none") return std::nullopt;
      op.batch = at("batch");
      op.m = at("m");
      op.n = at("n");
      op.k = at("k");
      return op;
    case bench::Family::kConv: return convolution_of(s, op);
    case bench::Family::kAttention:
      op.kind = OpKind::kAttention;
      op.batch = at("batch") * at("heads");
      op.m = at("queries");
      op.n = at("keys");
      op.k = at("head_size");
      op.causal = s.layout == "causal";
      return op;
    case bench::Family::kElementwise:
      if (s.op == "reduction") return std::nullopt;
      op.kind = s.op == "norm"      ? OpKind::kNorm
                : s.op == "softmax" ? OpKind::kSoftmax
                                    : OpKind::kElementwise;
      op.bytes = bench::bytes_of(s);
      if (s.op != "elementwise") op.width = at("width");
      return op;
    case bench::Family::kCopy:
    case bench::Family::kCollective: break;
  }
  return std::nullopt;
}

MeasuredByDevice measured_ops_of(std::span<const trace::OpTiming> timings,
                                 std::vector<std::string>& notes) {
  MeasuredByDevice measured;
  std::size_t unknown = 0, partitions = 0, damaged = 0;
  for (const trace::OpTiming& timing : timings) {
    const Result<const cluster::Gpu*> gpu = device_named(timing.device);
    if (!gpu || !timing.partition.empty()) {
      ++(gpu ? partitions : unknown);
      continue;
    }
    const Result<Shape> shape =
        bench::parse_shape(timing.op, timing.shape, timing.dtype, timing.layout, timing.epilogue);
    if (!shape) {
      ++damaged;
      continue;
    }
    const std::optional<Op> op = op_of(*shape);
    if (!op) continue;
    const auto device =
        measured.try_emplace((*gpu)->name, compute::MeasuredOps(compute::facts_of(**gpu).l2)).first;
    device->second.add(*op, {timing.median, timing.p10, timing.p90, timing.cold});
  }
  const auto note = [&](std::size_t count, std::string_view why) {
    if (count > 0) notes.push_back(fmt::format("op costs: {} {}", grouped(count), why));
  };
  note(unknown, "of devices that are not in the catalog are left out");
  note(partitions, "of MIG partitions are left out: jobs run on whole devices");
  note(damaged, "with unknown shapes are left out");
  return measured;
}

Result<std::vector<trace::OpTiming>> read_op_costs(const std::filesystem::path& store) {
  if (std::error_code none; std::filesystem::exists(store, none) && !trace::is_store(store))
    return fail_in(store, "is not a trace store", "a file written by rehearse bench-gpu -o");
  trace::Trace trace = TRY(trace::read_store(store));
  if (trace.timings.empty())
    return fail_in(store, "has no op costs", "a file written by rehearse bench-gpu -o");
  return std::move(trace.timings);
}

}  // namespace rehearse::cli
