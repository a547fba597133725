#include "strategies/transforms.h"

namespace rehearse::strategies {

using workload::Axis, workload::Issue, workload::Layout, workload::Op;

namespace {

/// Adds `count` recorded updates of a layer: their bytes, and the time and the bytes as recorded.
void add_recorded(std::optional<Op>& sum, const Op& update, double count) {
  const Estimate<Seconds>& time = *update.measured;
  if (!sum) {
    sum = traffic(kUpdateName, 0);
    sum->measured = time * 0;
    sum->measured_for = extents_of(*sum);
  }
  sum->bytes += update.bytes * count;
  sum->measured_for->bytes += as_measured(update).bytes * count;
  sum->measured = {sum->measured->value + time.value * count, sum->measured->low + time.low * count,
                   sum->measured->high + time.high * count,
                   std::max(sum->measured->provenance, time.provenance)};
}

}  // namespace

Result<Layout> parameter_server(Layout layout, const JobSetting& setting) {
  const Plan& plan = *setting.plan;
  const ParameterServer& server = plan.parameter_server;
  const double gradient = summed_bytes(*setting.training, plan);
  const Issue issue = plan.overlap_gradients ? Issue::kDeferred : Issue::kInline;
  const workload::StateBytes states = layout.stages[0].states;
  double parameters = 0, pushed = 0;
  std::optional<Op> recorded;  // the update of all parameters
  for (workload::Stage& stage : layout.stages) {
    const double one = stage.parameters() * stage.degrees.tensor;
    parameters += one;
    pushed += one * stage.degrees.data;
    for (workload::Chunk& chunk : stage.chunks)
      for (workload::Layer& layer : chunk.layers) {
        // A server takes the recorded time per byte.
        std::erase_if(layer.step, [&](const Op& op) {
          if (op.measured) add_recorded(recorded, op, layer.count * stage.degrees.tensor);
          return op.measured.has_value();
        });
        const double count = layer.parameters();
        if (count == 0) continue;
        layer.step.push_back(collective("push gradients", CollectiveKind::kReduce, Axis::kData,
                                        count * gradient * plan.compression, issue));
        layer.step.push_back(collective("fetch parameters", CollectiveKind::kBroadcast, Axis::kData,
                                        count * states.weights, issue));
      }
    stage.states.optimizer = 0;
  }
  const double workers = pushed / parameters;
  const double counted = (workers - server.backup_workers) / workers;
  layout.samples_per_step *= counted;
  layout.model_flops = layout.model_flops * counted;

  const bool waits = server.staleness == std::uint32_t{0};
  const double own = parameters / server.servers;
  // A push is read and added to the server's sum.
  const double sums = waits ? (workers - server.backup_workers) * (gradient + 8) : 0;
  Op update = traffic(kUpdateName, own * (update_bytes(*setting.training, plan) + sums));
  if (recorded) {
    recorded->bytes = recorded->bytes / server.servers + Bytes::b(own * sums);
    update = *recorded;
  }
  layout.servers =
      workload::Servers{.count = server.servers,
                        .first_rank = layout.ranks(),
                        .staleness = server.staleness,
                        .backup_workers = server.backup_workers,
                        .parameters = own,
                        .states = states,
                        .update = update,
                        .updates_per_step = waits ? 1 : static_cast<std::uint32_t>(workers)};
  return layout;
}

}  // namespace rehearse::strategies
