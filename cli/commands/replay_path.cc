#include "cli/commands/replay_path.h"

#include <unordered_map>

#include "models/workload/lift_operands.h"

namespace rehearse::cli {
namespace {

using graph::Category;
using program::PartKind;
using replay::Origin;
using workload::lifting::Role;

/// Empty where the name of an operator tells nothing.
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

/// What launched a kernel says what it is for.
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
    for (const replay::RankGraph& rank : run.graph.ranks) {
      auto& known = collectives_.emplace_back();
      for (const replay::CommunicationOp& op : rank.communication)
        if (op.what) known.emplace(op.op, op.what->kind);
    }
  }

  std::vector<program::PathShare> shares(OpId op) const override {
    const Origin& origin = run_.graph.origins[op.index()];
    program::PathShare share{.kind = PartKind::kIdle,
                             .part = "not explained by any rule",
                             .op = std::string(run_.graph.graph.name(op)),
                             .low = low_,
                             .high = high_,
                             .provenance = provenance_of(op, origin)};
    name_part(share, run_.graph.graph.category(op), origin);
    return {share};
  }

 private:
  void name_part(program::PathShare& share, Category category, const Origin& origin) const {
    const auto is = [&](PartKind kind, std::string_view part) {
      share.kind = kind;
      share.part = part;
    };
    switch (category) {
      case Category::kCompute:
        return is(PartKind::kCompute,
                  origin.kind == Origin::Kind::kDevice && origin.row
                      ? kind_of_kernel(job_.recordings[origin.rank], *origin.row)
                      : "other kernels");
      case Category::kCommunication:
        return is(PartKind::kCommunication, collective_of(origin));
      case Category::kMemory:
        return is(PartKind::kMemory, "copies");
      case Category::kHost:
        // Without a device the host is what computes.
        return run_.graph.ranks[origin.rank].device_first.empty()
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
        if (origin.kind == Origin::Kind::kUnexplained) share.part = "unexplained waits";
        return;
    }
  }

  std::string_view collective_of(const Origin& origin) const {
    if (origin.row && origin.rank < collectives_.size())
      if (const auto known = collectives_[origin.rank].find(*origin.row);
          known != collectives_[origin.rank].end())
        return to_string(known->second);
    return "communication";
  }

  Provenance provenance_of(OpId op, const Origin& origin) const {
    const graph::Graph& recorded = job_.recorded.graph.graph;
    if (origin.kind == Origin::Kind::kAdded || op.index() >= recorded.size() ||
        run_.graph.graph.duration(op) != recorded.duration(op))
      return Provenance::kExtrapolated;
    switch (origin.kind) {
      case Origin::Kind::kLaunch:
      case Origin::Kind::kWake:
      case Origin::Kind::kHandOff:
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
