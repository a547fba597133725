#include "strategies/search/space.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "strategies/check_plan.h"
#include "strategies/layer_split.h"
#include "strategies/search/nothing_divides.h"

namespace rehearse::strategies {

/// The values of a plan's fields that make a difference for a workload.
struct UsefulAxes {
  bool weight_gradients = false;   ///< some ops are marked, so zero_bubble can defer them
  bool unfused_attention = false;  ///< its keys and values cannot be sent around a ring
  std::vector<Recompute> recompute = {Recompute::kNone};
};

namespace {

UsefulAxes useful_axes(const workload::Workload& workload, const Axes& axes) {
  UsefulAxes useful;
  bool core = false, input = false;
  for (const workload::Layer& layer : workload.layers) {
    for (const workload::Op& op : layer.backward) useful.weight_gradients |= op.weight_gradient;
    for (const workload::Op& op : layer.forward)
      useful.unfused_attention |= op.core && op.kind == workload::OpKind::kGemm;
    for (const workload::SavedActivation& saved : layer.saved) {
      core |= saved.core && !saved.transient;
      input |= saved.input;
    }
  }
  if (core) useful.recompute.push_back(Recompute::kSelective);
  if (input) useful.recompute.push_back(Recompute::kFull);
  // Only on request: launch files cannot express it.
  if (input && !axes.recompute.empty()) useful.recompute.push_back(Recompute::kAsNeeded);
  return useful;
}

using workload::Workload;

template <class T>
bool allows(const std::vector<T>& values, T value) {
  return values.empty() || std::ranges::find(values, value) != values.end();
}

std::vector<std::uint32_t> divisors(std::uint32_t of) {
  std::vector<std::uint32_t> low, high;
  for (std::uint32_t d = 1; d <= of / d; ++d)
    if (of % d == 0) {
      low.push_back(d);
      if (d != of / d) high.push_back(of / d);
    }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

}  // namespace

/// One pass over all combinations. Combinations that a simple division can refuse are refused
/// before check_plan, which takes its time to give the reason.
class Space::Enumeration {
 public:
  Enumeration(const Workload& workload, const Axes& axes, Space& space)
      : workload_(workload), axes_(axes), space_(space), useful_(useful_axes(workload, axes)) {}

  void of(std::uint32_t ranks) {
    if (!space_.plan_.stages.empty()) {
      Shape shape = base();
      batches(shape, space_.plan_.stages.front().data);
      return;
    }
    for (const std::uint32_t tensor : divisors(ranks)) {
      if (!allows(axes_.tensor, tensor) || !suits_tensor(tensor)) continue;
      for (const std::uint32_t pipeline : divisors(ranks / tensor)) {
        if (!allows(axes_.pipeline, pipeline) || pipeline > workload_.layer_count()) continue;
        for (const std::uint32_t context : divisors(ranks / tensor / pipeline)) {
          if (!allows(axes_.context, context) || !suits_context(context)) continue;
          const std::uint32_t data = ranks / tensor / pipeline / context;
          if (!allows(axes_.data, data)) continue;
          Shape shape = base();
          shape.data = data;
          shape.tensor = tensor;
          shape.pipeline = pipeline;
          shape.context = context;
          shape.sequence_parallel = axes_.sequence_parallel.value_or(
              tensor > 1 && divides(tensor * context, workload_.tokens_per_sample));
          experts(shape);
        }
      }
    }
  }

  std::optional<Error> why_not() && { return std::move(why_not_); }

 private:
  Shape base() const {
    const Plan& p = space_.plan_;
    return {.microbatch = space_.training_.microbatch,
            .data = p.data,
            .tensor = p.tensor,
            .pipeline = stages_of(p),
            .context = p.context,
            .expert = p.expert,
            .interleave = 1,
            .schedule = p.schedule,
            .zero = static_cast<std::uint8_t>(p.zero),
            .recompute = space_.training_.recompute,
            .offload = {},
            .placement = p.placement,
            .sequence_parallel = p.sequence_parallel,
            .all_to_all = p.collectives[CollectiveKind::kAllToAll]};
  }

  bool suits_tensor(std::uint32_t tensor) const {
    return std::ranges::all_of(workload_.divided_by_tensor, [&](const Workload::Divisor& d) {
      return divides(tensor, d.count);
    });
  }
  bool suits_context(std::uint32_t context) const {
    if (context == 1) return true;
    const bool ring = space_.plan_.context_exchange == ContextExchange::kRing;
    return divides(context, workload_.tokens_per_sample) && !(ring && useful_.unfused_attention);
  }

  void experts(Shape shape) {
    const std::uint32_t over =
        space_.plan_.expert_tensor == 1U ? shape.data * shape.context * shape.tensor : shape.data;
    for (const std::uint32_t expert : divisors(over)) {
      if (!allows(axes_.expert, expert)) continue;
      if (expert > 1 && (workload_.experts == 0 || workload_.experts % expert != 0)) continue;
      shape.expert = expert;
      batches(shape, shape.data);
    }
  }

  void batches(Shape shape, std::uint32_t data) {
    const double each = space_.training_.global_batch / data;
    const auto with = [&](double microbatch) {
      if (!divides(microbatch, each)) return;
      shape.microbatch = microbatch;
      schedules(shape, static_cast<std::uint32_t>(std::lround(each / microbatch)));
    };
    if (!axes_.microbatch.empty())
      for (const double microbatch : axes_.microbatch) with(microbatch);
    else
      for (double microbatch = 1; microbatch <= std::max(1.0, each); microbatch *= 2)
        with(microbatch);
  }

  void schedules(Shape shape, std::uint32_t microbatches) {
    shape.interleave = 1;
    if (shape.pipeline == 1) {
      shape.schedule = axes_.schedule.empty() ? Schedule::k1f1b : axes_.schedule.front();
      if (allows(axes_.interleave, 1U)) sharing(shape);
      return;
    }
    constexpr std::array kPlain = {Schedule::kGpipe, Schedule::k1f1b, Schedule::kZeroBubble,
                                   Schedule::kShifted};
    for (const Schedule schedule : kPlain) {
      if (!allows(axes_.schedule, schedule) || !allows(axes_.interleave, 1U)) continue;
      if (schedule == Schedule::kZeroBubble && !useful_.weight_gradients) continue;
      shape.schedule = schedule;
      sharing(shape);
    }
    if (!allows(axes_.schedule, Schedule::kInterleaved) || microbatches % shape.pipeline != 0 ||
        !space_.plan_.stages.empty())
      return;
    shape.schedule = Schedule::kInterleaved;
    for (std::uint32_t v = 2; v <= workload_.layer_count() / shape.pipeline; ++v) {
      if (!allows(axes_.interleave, v) || !suits_chunks(shape.pipeline * v)) continue;
      shape.interleave = v;
      sharing(shape);
    }
  }

  bool suits_chunks(std::uint32_t chunks) const {
    const auto split = space_.plan_.split;
    if (split && *split != LayerSplit::kBlocks) return chunks <= workload_.layer_count();
    return shared_layers(workload_, LayerSplit::kBlocks) % chunks == 0 ||
           (!split && workload_.layer_count() % chunks == 0);
  }

  void sharing(Shape shape) {
    const Plan& plan = space_.plan_;
    const bool shares = plan.synchronization == Synchronization::kAllReduce &&
                        (shape.data * shape.context > 1 || !plan.stages.empty());
    bool first = true;
    for (std::uint8_t zero = 0; zero <= 3; ++zero) {
      if (!allows(axes_.zero, static_cast<std::uint32_t>(zero))) continue;
      // Without other ranks to share with, all values are equivalent, except for the formats of
      // ZeRO-3.
      if (!shares && !std::exchange(first, false)) continue;
      shape.zero = zero;
      savers(shape);
    }
  }

  void savers(Shape shape) {
    // Nothing else must divide, so one check is enough.
    if (const Status ok = checked(shape); !ok) {
      if (!why_not_) why_not_ = ok.error();
      return;
    }
    for (const Recompute recompute : useful_.recompute) {
      if (!allows(axes_.recompute, recompute)) continue;
      // Nothing to do ahead of time.
      if (shape.schedule == Schedule::kShifted && recompute == Recompute::kNone) continue;
      shape.recompute = recompute;
      for (const std::optional<Offload> offload : offloads(shape)) {
        shape.offload = offload;
        for (const Placement placement :
             {Placement::kTensorDataPipeline, Placement::kTensorPipelineData}) {
          if (!allows(axes_.placement, placement)) continue;
          // With one stage, or one rank along data, both orders are the same.
          if (placement == Placement::kTensorPipelineData &&
              (shape.pipeline == 1 || shape.data == 1 || !space_.plan_.stages.empty()))
            continue;
          shape.placement = placement;
          exchanges(shape);
        }
      }
    }
  }

  std::vector<std::optional<Offload>> offloads(const Shape& shape) const {
    if (axes_.tiers_given) return {std::nullopt};
    if (space_.plan_.synchronization == Synchronization::kParameterServer) return {Offload::kNone};
    std::vector<std::optional<Offload>> offloads;
    for (const Offload offload :
         {Offload::kNone, Offload::kOptimizer, Offload::kWeights, Offload::kActivations})
      if (allows(axes_.offload, offload)) offloads.emplace_back(offload);
    // Only on request: it moves the same bytes as the optimizer, or more.
    if (!axes_.offload.empty() && allows(axes_.offload, Offload::kGradients) &&
        (shape.zero >= 2 || shape.data * shape.context == 1))
      offloads.emplace_back(Offload::kGradients);
    return offloads;
  }

  void exchanges(Shape shape) {
    if (axes_.all_to_all.empty()) {
      shape.all_to_all = {};
      space_.shapes_.push_back(shape);
      if (!has_two_levels(shape)) return;
      shape.all_to_all = Algorithm::kTwoDimensional;
      space_.shapes_.push_back(shape);
      return;
    }
    for (const std::optional<Algorithm> algorithm : axes_.all_to_all) {
      shape.all_to_all = algorithm;
      space_.shapes_.push_back(shape);
    }
  }

  /// Whether a group that exchanges tokens has several ranks on each of several nodes.
  bool has_two_levels(const Shape& shape) const {
    if (shape.expert == 1 || axes_.ranks_per_node == 0 || !space_.plan_.stages.empty())
      return false;
    const bool whole = space_.plan_.expert_tensor == 1U;
    const std::uint32_t block = shape.tensor * shape.context,
                        stages =
                            shape.placement == Placement::kTensorPipelineData ? shape.pipeline : 1;
    const std::uint32_t apart = whole ? (block > 1 ? 1 : stages) : block * stages;
    const std::uint32_t extent = shape.expert * stages * (whole ? 1 : block);
    return apart * 2 <= axes_.ranks_per_node && extent > axes_.ranks_per_node;
  }

  Status checked(const Shape& shape) const {
    const Candidate c = candidate(space_.training_, space_.plan_, shape);
    return check_plan(workload_, c.training, c.plan);
  }

  const Workload& workload_;
  const Axes& axes_;
  Space& space_;
  const UsefulAxes useful_;
  std::optional<Error> why_not_;
};

Candidate Space::candidate(const Training& training, const Plan& plan, const Shape& shape) {
  Candidate c{training, plan};
  c.training.microbatch = shape.microbatch;
  c.training.recompute = shape.recompute;
  if (plan.stages.empty()) {
    c.plan.data = shape.data;
    c.plan.tensor = shape.tensor;
    c.plan.pipeline = shape.pipeline;
  }
  c.plan.context = shape.context;
  c.plan.expert = shape.expert;
  c.plan.interleave = shape.interleave;
  c.plan.schedule = shape.schedule;
  c.plan.zero = shape.zero;
  if (shape.offload) c.plan.tiers = tiers_of(*shape.offload);
  c.plan.placement = shape.placement;
  c.plan.sequence_parallel = shape.sequence_parallel;
  c.plan.collectives[CollectiveKind::kAllToAll] = shape.all_to_all;
  return c;
}

Candidate Space::at(std::uint64_t index) const {
  return candidate(training_, plan_, shapes_[index]);
}

Result<Space> Space::of(const Workload& workload, const Training& training, const Plan& plan,
                        std::uint32_t ranks, const Axes& axes) {
  Space space(training, plan);
  std::optional<Error> why_not;
  const std::uint32_t servers =
      plan.synchronization == Synchronization::kParameterServer ? plan.parameter_server.servers : 0;
  if (ranks > servers) {
    Enumeration all(workload, axes, space);
    all.of(ranks - servers);
    why_not = std::move(all).why_not();
    space.shapes_.shrink_to_fit();
  }
  if (space.size() > 0) return space;
  constexpr std::uint32_t kLookedAt = 64;  // counts below
  const std::uint32_t least = std::max(servers, ranks > kLookedAt ? ranks - kLookedAt : 0);
  std::uint32_t fewer = ranks;
  while (space.size() == 0 && --fewer > least)
    Enumeration(workload, axes, space).of(fewer - servers);
  return nothing_divides({workload, training, plan, ranks, axes}, why_not,
                         space.size() > 0 ? fewer : 0);
}

}  // namespace rehearse::strategies
