#include "strategies/layout_transform.h"

namespace rehearse::strategies {
namespace {

using workload::Axis, workload::Layer, workload::Op;

/// Elements of the rows that one rank looks up in the tables of a layer, per microbatch.
double looked_up(const workload::Layer& layer) {
  double elements = 0;
  if (parameters_of(layer).sparse > 0)
    for (const Op& op : layer.backward)
      if (op.kind == workload::OpKind::kGather) elements += output_elements(op);
  return elements;
}

}  // namespace

Layer& alone_at_front(std::vector<Layer>& layers) {
  if (layers.front().count > 1) {
    --layers.front().count;
    layers.insert(layers.begin(), Layer(layers.front()));
    layers.front().count = 1;
  }
  return layers.front();
}

Layer& alone_at_back(std::vector<Layer>& layers) {
  if (layers.back().count > 1) {
    --layers.back().count;
    layers.push_back(Layer(layers.back()));
    layers.back().count = 1;
  }
  return layers.back();
}

void add_update(workload::Layer& layer, double held, std::uint32_t microbatches,
                const JobSetting& setting) {
  bool recorded = false;
  for (Op& op : layer.step) {
    if (!op.measured) continue;
    recorded = true;
    op.name = kUpdateName;
    const double all = layer.parameters();
    if (held > 0 && held < all) workload::divide(op, workload::Extent::kBytes, all / held);
  }
  if (recorded) return;
  const double visited = held + microbatches * looked_up(layer);
  if (visited > 0)
    layer.step.push_back(
        traffic(kUpdateName, visited * update_bytes(*setting.training, *setting.plan)));
}

void add_collectives(std::vector<Op>& ops, std::string_view name, CollectiveKind kind,
                     const Parameters& parameters, double bytes_each,
                     const workload::Degrees& degrees, workload::Issue issue) {
  for (const bool expert : {false, true}) {
    const double count = expert ? parameters.expert : parameters.dense;
    if (count == 0 || degrees.sharers(expert) <= 1) continue;
    ops.push_back(collective(name, kind, Axis::kData, count * bytes_each, issue));
    ops.back().expert = expert;
  }
}

void add_row_gradients(workload::Layer& layer, double bytes_each, std::uint32_t microbatches,
                       const workload::Degrees& degrees, workload::Issue issue) {
  const double elements = looked_up(layer), holders = degrees.sharers(true);
  if (elements == 0 || holders <= 1) return;
  Op gather = collective("gather gradients of rows", CollectiveKind::kAllGather, Axis::kData,
                         microbatches * elements * holders * bytes_each, issue);
  gather.expert = true;
  layer.step.insert(layer.step.begin(), gather);
}

}  // namespace rehearse::strategies
