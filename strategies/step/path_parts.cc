#include "strategies/step/path_parts.h"

#include <algorithm>

#include <fmt/core.h>

#include "models/job/path_parts.h"
#include "strategies/job_of_layout.h"
#include "strategies/step/devices.h"

namespace rehearse::step {
namespace {

using program::PartKind;
using program::PathShare;
using strategies::LayerPhase;
using workload::Op;
using workload::OpKind;

std::string_view words_for(OpKind kind) {
  switch (kind) {
    case OpKind::kGemm:
      return "matrix products";
    case OpKind::kConvolution:
      return "convolutions";
    case OpKind::kAttention:
      return "attention";
    case OpKind::kElementwise:
      return "elementwise";
    case OpKind::kNorm:
      return "norms";
    case OpKind::kSoftmax:
      return "softmax";
    case OpKind::kGather:
      return "table look-ups";
    case OpKind::kCollective:
    case OpKind::kCopy:
      break;
  }
  return to_string(kind);
}

class StepOrigins : public job::OpOrigins {
 public:
  StepOrigins(const Step& step, const Devices& devices,
              const std::vector<strategies::ProgramOrigin>& origins)
      : step_(step), devices_(devices), origins_(origins) {}

  std::uint32_t alike(std::uint32_t program, std::uint32_t op) const override {
    if (program >= origins_.size()) return op;
    const strategies::Makeup& makeup = origins_[program].makeup;
    const std::uint32_t mixture = makeup.mixture_of[op];
    return mixture != strategies::kComputesNothing
               ? mixture
               : static_cast<std::uint32_t>(makeup.mixtures.size()) + op;
  }

  std::vector<PathShare> shares(std::uint32_t program, std::uint32_t op) const override {
    const program::ProgramOp& made = step_.job.programs[program].ops[op];
    const std::string name(step_.job.names[made.name]);
    if (program >= origins_.size()) return of_server(made, name);
    const strategies::ProgramOrigin& origin = origins_[program];
    switch (made.task) {
      case program::Task::kCollective:
        return {communication(
            fmt::format(
                "{}-parallel {}",
                strategies::kGroupKindNames[static_cast<std::size_t>(origin.groups[made.group])],
                to_string(made.collective)),
            name, provenance_of(made, origin))};
      case program::Task::kMemory:
        // The rate of copies is that of published lanes.
        return {{.kind = PartKind::kMemory,
                 .part = "copies to and from the host",
                 .op = name,
                 .low = step_.links.low,
                 .high = step_.links.high,
                 .provenance = Provenance::kDatasheet}};
      case program::Task::kCompute:
      case program::Task::kHost:
        if (origin.makeup.mixture_of[op] != strategies::kComputesNothing)
          return computed(origin, made, origin.makeup.mixture_of[op]);
        return {once(origin, PartKind::kIdle, "once a step", "what no op stands for")};
      case program::Task::kSend:
      case program::Task::kReceive:
      case program::Task::kMark:
        break;
    }
    return {message(name)};
  }

  PathShare message(std::string_view name) const override {
    return communication("sends between ranks", std::string(name), Provenance::kExtrapolated);
  }

 private:
  PathShare communication(std::string part, std::string op, Provenance provenance) const {
    return {.kind = PartKind::kCommunication,
            .part = std::move(part),
            .op = std::move(op),
            .low = step_.links.low,
            .high = step_.links.high,
            .provenance = provenance};
  }

  PathShare once(const strategies::ProgramOrigin& origin, PartKind kind, std::string part,
                 std::string op) const {
    return {.kind = kind,
            .part = std::move(part),
            .op = std::move(op),
            .low = step_.computing.low,
            .high = step_.computing.high,
            .provenance = devices_.kinds()[origin.kind].conditions.provenance};
  }

  /// Of a closed form that was measured; messages know the links of the cluster alone.
  Provenance provenance_of(const program::ProgramOp& op,
                           const strategies::ProgramOrigin& origin) const {
    const workload::Stage& stage = step_.layout.stages[origin.stage];
    Op like{.name = "", .kind = OpKind::kCollective};
    const strategies::GroupKind group = origin.groups[op.group];
    like.expert = group == strategies::GroupKind::kExpertData;
    constexpr workload::Axis kAxes[] = {workload::Axis::kTensor, workload::Axis::kContext,
                                        workload::Axis::kExpert, workload::Axis::kData,
                                        workload::Axis::kData};
    like.axis = kAxes[static_cast<std::size_t>(group)];
    const std::uint32_t ranks = workload::group_size(like, stage.degrees);
    const auto& pricings = step_.lowered.pricings;
    const auto known = std::find_if(pricings.begin(), pricings.end(), [&](const job::Pricing& p) {
      return p.kind == op.collective && p.ranks == ranks;
    });
    return known != pricings.end() && known->calibrated ? Provenance::kInterpolated
                                                        : Provenance::kExtrapolated;
  }

  std::vector<PathShare> of_server(const program::ProgramOp& made, const std::string& name) const {
    if (made.task != program::Task::kCompute && made.task != program::Task::kHost)
      return {message(name)};
    return {{.kind = PartKind::kOptimizer,
             .part = "optimizer",
             .op = name + ", on a server",
             .low = step_.computing.low,
             .high = step_.computing.high,
             .provenance = Provenance::kDatasheet}};
  }

  /// The kernels of an op, and what launching them takes beside.
  std::vector<PathShare> computed(const strategies::ProgramOrigin& origin,
                                  const program::ProgramOp& made, std::uint32_t mixture) const {
    const workload::Stage& stage = step_.layout.stages[origin.stage];
    const OpPrice& price = devices_.kinds()[origin.kind].price;
    std::vector<PathShare> shares;
    double busy = 0;
    for (const strategies::ComputedPiece& piece : origin.makeup.mixtures[mixture]) {
      const workload::Layer& layer = stage.chunks[piece.chunk].layers[piece.layer];
      for (const Op* op : strategies::ops_of(layer, piece.ops)) {
        const Estimate<Seconds> time = price.estimate(*op);
        if (!(time.value > Seconds::s(0))) continue;
        PathShare share{
            .kind = PartKind::kCompute,
            .part = std::string(words_for(op->kind)),
            .op = fmt::format(
                "{}, {}", op->name,
                strategies::kLayerPhaseNames[static_cast<std::size_t>(piece.ops.phase)]),
            .weight = time.value.s() * piece.times,
            .low = time.low / time.value,
            .high = time.high / time.value,
            .provenance = time.provenance};
        if (piece.ops.phase == LayerPhase::kRecompute) {
          share.kind = PartKind::kRecompute;
          share.part = "recomputation";
        } else if (piece.ops.phase == LayerPhase::kOptimizer) {
          share.kind = PartKind::kOptimizer;
          share.part = "optimizer";
        }
        busy += share.weight;
        shares.push_back(std::move(share));
      }
    }
    // Rounding of each piece to a picosecond is no launch.
    const double launch = made.duration ? made.duration->seconds().s() - busy : 0;
    if (launch > busy * 1e-6 || shares.empty()) {
      shares.push_back(
          once(origin, PartKind::kLaunch, "launch gaps",
               fmt::format("{}: launches take longer than kernels", step_.job.names[made.name])));
      shares.back().weight = shares.size() == 1 ? 1 : launch;
    }
    return shares;
  }

  const Step& step_;
  const Devices& devices_;
  const std::vector<strategies::ProgramOrigin>& origins_;
};

}  // namespace

Result<program::PathParts> path_parts(const Spec& spec, const cluster::Cluster& cluster,
                                      const Step& step) {
  const Result<Devices> devices = Devices::of(step.layout, cluster, spec);
  if (!devices) return forward(devices);
  const strategies::Prices prices = devices->prices();
  const Result<strategies::ExplainedJob> explained = strategies::explained_job_of(
      step.layout, prices,
      {.host_per_kernel = spec.conditions.host_per_kernel, .fixed = spec.conditions.fixed});
  if (!explained) return forward(explained);
  const StepOrigins origins(step, *devices, explained->origins);
  program::PathParts result = job::path_parts(step.job, step.lowered, step.timeline, origins);
  // Waiting for samples is on top of what was run.
  if (step.breakdown.input > Seconds::s(0)) {
    program::PathSum input;
    input.add(Picoseconds::from(step.time.value) - result.total(),
              PathShare{.kind = PartKind::kInput,
                        .part = "input stall",
                        .op = "waiting for samples",
                        .provenance = Provenance::kExtrapolated});
    const std::vector<program::PathPart> stall = input.parts();
    const auto behind =
        std::find_if(result.parts.begin(), result.parts.end(),
                     [](const program::PathPart& part) { return part.kind > PartKind::kInput; });
    result.parts.insert(behind, stall.begin(), stall.end());
  }
  return result;
}

}  // namespace rehearse::step
