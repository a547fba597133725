// Measured times of single operations, as benchmarks time them.
#include <map>

#include "cli/calibrate/device_names.h"
#include "cli/validation/judge.h"
#include "models/compute/op_cost.h"

namespace rehearse::cli {
namespace {

constexpr std::string_view kNoYes[] = {"no", "yes"};
constexpr std::string_view kKernels[] = {"any", "flash_attention_2", "tensorrt", "asynchronous"};
static_assert(std::size(kKernels) == compute::kAttentionFamilies + 1);

workload::Op op_of(Cells& cells) {
  workload::Op op{
      .name = "",
      .kind = static_cast<workload::OpKind>(cells.choice("kind", workload::kOpKindNames)),
      .dtype = static_cast<workload::Dtype>(cells.choice("dtype", workload::kDtypeNames)),
      .batch = cells.positive("batch", 1),
      .bytes = Bytes::b(cells.positive("bytes", 0)),
      .width = cells.positive("width", 0),
      .causal = cells.choice("causal", kNoYes, 0) == 1,
      .kernels = cells.positive("kernels", 1)};
  const bool product = op.kind == workload::OpKind::kGemm ||
                       op.kind == workload::OpKind::kConvolution ||
                       op.kind == workload::OpKind::kAttention;
  const std::optional<double> otherwise = product ? std::optional<double>() : 0;
  op.m = cells.positive("m", otherwise);
  op.n = cells.positive("n", otherwise);
  op.k = cells.positive("k", otherwise);
  if (!product) cells.positive("bytes");
  return op;
}

PredictRow operations_predictor(const CsvTable&, std::vector<std::string>&) {
  return [costs = std::map<std::pair<std::string, std::size_t>, compute::OpCost>()](
             Cells& cells) mutable -> Result<Verdict> {
    const workload::Op op = op_of(cells);
    const double measured = cells.positive("time_us");
    TRY(cells.status());
    if (op.communicates()) return fail("kind: collectives and copies belong to other schemas");
    const std::string device = cells.text("device");
    const std::size_t kernels = cells.choice("attention_kernels", kKernels, 0);
    TRY(cells.status());
    auto cost = costs.find({device, kernels});
    if (cost == costs.end()) {
      const cluster::Gpu& gpu = *TRY(device_named(device));
      compute::Sustained sustained;
      if (kernels > 0)
        sustained.attention_kernels = static_cast<compute::AttentionKernels>(kernels - 1);
      compute::OpCost made = TRY(compute::OpCost::on(gpu.name, sustained));
      cost = costs.emplace(std::pair(device, kernels), std::move(made)).first;
    }
    const Estimate<Seconds> time = cost->second.predicted(op);
    return Verdict{measured, in_unit(time, &Seconds::us)};
  };
}

}  // namespace

const MeasurementKind kMeasuredOperations = {.name = "operations",
                                             .method = Method::kOperations,
                                             .unit = "us",
                                             .required = {"device", "kind", "dtype", "time_us"},
                                             .optional = {"batch", "m", "n", "k", "bytes", "width",
                                                          "causal", "kernels", "attention_kernels"},
                                             .predictor = operations_predictor};

}  // namespace rehearse::cli
