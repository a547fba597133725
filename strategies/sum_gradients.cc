#include <algorithm>
#include <cmath>
#include <limits>

#include "strategies/transforms.h"

namespace rehearse::strategies {
namespace {

using workload::Chunk, workload::Issue, workload::Layer, workload::Layout, workload::Stage;

/// Finds where buckets of gradients are full, from the last layer of a stage to its first.
class Buckets {
 public:
  /// `bytes` is the size of a bucket; `each` is that of the gradient of one parameter.
  Buckets(double bytes, double each) : bytes_(bytes), each_(each) {}

  /// Calls attach(layer, parameters of the bucket) for the layers that fill one. Runs are split
  /// where only some of their layers do.
  template <class Attach>
  void walk(Stage& stage, Attach attach) {
    for (auto chunk = stage.chunks.rbegin(); chunk != stage.chunks.rend(); ++chunk) {
      std::vector<Layer> reversed;
      for (auto layer = chunk->layers.rbegin(); layer != chunk->layers.rend(); ++layer)
        run(std::move(*layer), reversed, attach);
      chunk->layers.assign(std::make_move_iterator(reversed.rbegin()),
                           std::make_move_iterator(reversed.rend()));
    }
    if (carry_.summed() == 0) return;
    attach(alone_at_front(stage.chunks.front().layers), carry_);
    carry_ = {};
  }

 private:
  template <class Attach>
  void run(Layer layer, std::vector<Layer>& reversed, Attach attach) {
    const Parameters each = parameters_of(layer);
    const double size = each.summed() * each_;
    if (size == 0) {
      reversed.push_back(std::move(layer));
      return;
    }
    std::uint32_t left = layer.count;
    while (left > 0) {
      const double room = std::max(0.0, bytes_ - carry_.summed() * each_);
      const double needed = std::max(1.0, std::ceil(room / size));
      if (needed > left) {  // not full yet
        carry_.add(each, left);
        push(layer, left, reversed);
        return;
      }
      if (needed == 1 && carry_.summed() == 0) {  // each layer fills one
        Layer& all = push(layer, left, reversed);
        attach(all, each);
        return;
      }
      if (needed > 1) push(layer, static_cast<std::uint32_t>(needed) - 1, reversed);
      carry_.add(each, needed);
      attach(push(layer, 1, reversed), carry_);
      carry_ = {};
      left -= static_cast<std::uint32_t>(needed);
    }
  }

  static Layer& push(const Layer& layer, std::uint32_t count, std::vector<Layer>& reversed) {
    Layer& pushed = reversed.emplace_back(layer);
    pushed.count = count;
    return pushed;
  }

  double bytes_;
  double each_;
  Parameters carry_;
};

}  // namespace

Result<Layout> sum_gradients(Layout layout, const JobSetting& setting) {
  const Plan& plan = *setting.plan;
  const ParameterTraffic traffic_by =
      traffic_of(*setting.training, plan, layout.stages.size(), layout.microbatches);
  const double wire = traffic_by.gradient;
  const Issue issue = plan.overlap_gradients ? Issue::kDeferred : Issue::kInline;
  const double bucket = plan.overlap_gradients ? std::max(1.0, plan.bucket.b())
                                               : std::numeric_limits<double>::infinity();
  for (Stage& stage : layout.stages) {
    const workload::Degrees degrees = stage.degrees;
    // One bucket waits to be scattered. DeepSpeed's ZeRO-1 copies 16-bit gradients into one too.
    if (plan.zero >= 2 || (plan.zero == 1 && summed_bytes(*setting.training, plan) < 4))
      stage.gathered += Bytes::b(std::min(
          plan.bucket.b(), parameters_of(stage).summed() * summed_bytes(*setting.training, plan)));
    for (Chunk& chunk : stage.chunks)
      for (Layer& layer : chunk.layers) {
        const Parameters parameters = parameters_of(layer);
        if (plan.compression < 1 && degrees.sharers(false) > 1 && parameters.summed() > 0)
          layer.step.push_back(
              traffic("compress and decompress gradients",
                      2 * parameters.summed() * (summed_bytes(*setting.training, plan) + wire)));
        add_update(layer, updated(plan, parameters, degrees), layout.microbatches, setting);
        add_row_gradients(layer, wire, layout.microbatches, degrees, issue);
      }
    if (degrees.sharers(false) <= 1) continue;
    Buckets(bucket, wire).walk(stage, [&](Layer& layer, const Parameters& parameters) {
      std::vector<workload::Op> sums;
      add_collectives(sums, plan.zero == 0 ? "sum gradients" : "sum and scatter gradients",
                      traffic_by.sum, parameters, wire, degrees, issue);
      if (traffic_by.when == ParameterTraffic::When::kEachBackward)
        layer.backward.insert(layer.backward.end(), sums.begin(), sums.end());
      else
        layer.step.insert(layer.step.begin(), sums.begin(), sums.end());
      if (traffic_by.weights > 0)
        add_collectives(layer.step, "gather weights", CollectiveKind::kAllGather, parameters,
                        traffic_by.weights, degrees, issue);
    });
  }
  return layout;
}

Result<Layout> average_parameters(Layout layout, const JobSetting& setting) {
  for (Stage& stage : layout.stages)
    for (Chunk& chunk : stage.chunks)
      for (Layer& layer : chunk.layers) {
        const Parameters parameters = parameters_of(layer);
        add_update(layer, parameters.summed(), layout.microbatches, setting);
        add_collectives(layer.step, "average parameters", CollectiveKind::kAllReduce, parameters,
                        state_bytes(*setting.training, *setting.plan).weights *
                            setting.plan->compression / setting.plan->local_steps,
                        stage.degrees, Issue::kInline);
      }
  return layout;
}

}  // namespace rehearse::strategies
