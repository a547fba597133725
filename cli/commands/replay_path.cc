#include "cli/commands/replay_path.h"

#include <unordered_map>

#include "models/workload/lift_operands.h"

namespace rehearse::cli {
namespace {

using graph::Category;
using program::PartKind;
using replay::Recorded;
using workload::lifting::Role;

/// Empty if the operator's name says nothing about its role.
std::string_view words_for(Role role) {
  switch (role) {
    case Role::kConvolution:
      return "convolutions";
    case Role::kLinear:
    case Role::kMatrix:
      return "matrix products";
    case Role::kAttention:
      return "attention";
    case Role::kNorm:
      return "norms";
    case Role::kSoftmax:
      return "softmax";
    case Role::kGather:
      return "table look-ups";
    case Role::kPool:
      return "pooling";
    case Role::kPlain:
      break;
  }
  return "";
}

/// The role of a kernel, from the operator that launched it.
std::string_view kind_of_kernel(const replay::Recording& recording, std::uint32_t row) {
  for (auto op = recording.launcher(row); op; op = recording.parent(*op))
    if (const auto words =
            words_for(workload::lifting::role_of(recording.name(recording.host(*op))));
        !words.empty())
      return words;
  return "other kernels";
}

class ReplayPath : public program::Explanations {
 public:
  ReplayPath(const ReplayJob& job, const ReplayRun& run, const Estimate<Seconds>& step)
      : job_(job), run_(run) {
    if (step.value > Seconds::s(0)) {
      low_ = step.low / step.value;
      high_ = step.high / step.value;
    }
    for (const replay::RankReplay& rank : run.graph.program.replays) {
      auto& known = collectives_.emplace_back();
      for (const replay::CommunicationOp& op : rank.communication)
        if (op.what) known.emplace(op.op, op.what->kind);
    }
  }

  std::vector<program::PathShare> shares(OpId op) const override {
    const graph::Graph& graph = run_.graph.graph();
    program::PathShare share{.kind = PartKind::kIdle,
                             .part = "not explained by any rule",
                             .op = std::string(graph.name(op)),
                             .low = low_,
                             .high = high_,
                             .provenance = provenance_of(op)};
    name_part(share, op, graph.category(op));
    return {share};
  }

 private:
  using Place = std::optional<program::Lowered::Place>;  ///< nothing: what an input pipeline does

  std::optional<Recorded> recorded(const Place& place) const {
    if (!place) return std::nullopt;
    return run_.graph.program.programs[place->run].recorded[place->op];
  }

  void name_part(program::PathShare& share, OpId op, Category category) const {
    const Place place = run_.graph.lowered.place_of(op);
    const std::optional<Recorded> origin = recorded(place);
    const auto is = [&](PartKind kind, std::string_view part) {
      share.kind = kind;
      share.part = part;
    };
    switch (category) {
      case Category::kCompute:
        return is(PartKind::kCompute,
                  origin && origin->kind == Recorded::Kind::kDevice
                      ? kind_of_kernel(job_.recordings[place->run], *origin->row)
                      : "other kernels");
      case Category::kCommunication:
        return is(PartKind::kCommunication, collective_of(place, origin));
      case Category::kMemory:
        return is(PartKind::kMemory, "copies");
      case Category::kHost:
        // Without a device, the host's work counts as compute.
        return place && run_.graph.program.replays[place->run].device_first.empty()
                   ? is(PartKind::kCompute, "host")
                   : is(PartKind::kHost, "waiting for the host");
      case Category::kInput:
        return is(PartKind::kInput, "input stall");
      case Category::kLaunch:
        return is(PartKind::kLaunch, "launch gaps");
      case Category::kSynchronization:
        return is(PartKind::kSynchronization, "waking and hand-offs");
      case Category::kProfiler:
        return is(PartKind::kProfiler, "profiler");
      case Category::kDelay:
        if (origin && origin->kind == Recorded::Kind::kUnexplained)
          share.part = "unexplained waits";
        return;
    }
  }

  std::string_view collective_of(const Place& place, const std::optional<Recorded>& origin) const {
    if (origin && origin->row)
      if (const auto known = collectives_[place->run].find(*origin->row);
          known != collectives_[place->run].end())
        return to_string(known->second);
    return "communication";
  }

  Provenance provenance_of(OpId op) const {
    const Place place = run_.graph.lowered.place_of(op);
    if (!place) return Provenance::kExtrapolated;
    const auto& before = job_.recorded.graph.program.programs[place->run].ops;
    const program::RankProgram& now = run_.graph.program.programs[place->run];
    if (place->op >= before.size() || now.ops[place->op].duration != before[place->op].duration)
      return Provenance::kExtrapolated;
    switch (now.recorded[place->op].kind) {
      case Recorded::Kind::kLaunch:
      case Recorded::Kind::kWake:
      case Recorded::Kind::kHandOff:
        return Provenance::kInterpolated;
      default:
        return Provenance::kRecorded;
    }
  }

  const ReplayJob& job_;
  const ReplayRun& run_;
  double low_ = 1, high_ = 1;
  std::vector<std::unordered_map<std::uint32_t, CollectiveKind>> collectives_;  // by rank and row
};

}  // namespace

program::PathParts path_parts(const ReplayJob& job, const ReplayRun& run,
                              const Estimate<Seconds>& step) {
  const replay::CriticalSteps critical = replay::find_critical_steps(run.graph, run.timeline);
  program::PathParts result =
      program::path_parts(critical.path, run.timeline, replay::ReplayOps(run.graph, run.timeline),
                          ReplayPath(job, run, step));
  if (result.parts.empty()) return result;
  result.ends_on = job.recordings[result.ends_on].rank().info.rank.value_or(result.ends_on);
  result.steps = static_cast<std::uint32_t>(critical.steps);
  return result;
}

}  // namespace rehearse::cli
