#include "strategies/step/regimes.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "models/comm/reach.h"
#include "models/comm/scope_of_cluster.h"

namespace rehearse::step {
namespace {

enum Which : std::uint8_t {
  kKernels,
  kHost,
  kTensor,
  kTensorEfa,
  kLongTensorEfa,
  kPipelineEfa,
  kManyNodesPipelineEfa,
  kStalledPipelineEfa,
  kBothEfa,
  kManyNodesEfa,
  kManyNodes,
  kUnknown,
  kRegimes
};

constexpr std::string_view kSweep = "584 steps of a 3 B model on EFA, left out by tensor degree";

// Ranges: quantiles of measured ÷ predicted over rows that gave no constant, sources weighted
// equally (docs/decisions/0055-intervals-by-regime.md). The last is the widest of the others.
constexpr std::array<Regime, kRegimes> kAll = {{
    {"kernels", {1, 1}, 0, Seconds::s(0), "eight sources, each predicted from the others"},
    {"host-bound", {0.75, 1.45}, 0, Seconds::s(0), kSweep},
    {"tensor parallelism over nodes", {0.86, 1.6}, 0, Seconds::s(0), "8 steps of two sources"},
    {"tensor parallelism over nodes, EFA", {0.8, 1.6}, 0, Seconds::s(0), kSweep},
    {"tensor parallelism over nodes with long messages, EFA",
     {0.8, 1.6},
     0.5,
     Seconds::s(1.5),
     kSweep},
    {"pipeline over nodes, EFA", {0.75, 1.6}, 0.02, Seconds::s(1.1), kSweep},
    {"pipeline over 16 or more nodes, or without ZeRO, EFA",
     {0.75, 1.6},
     0.17,
     Seconds::s(1.1),
     kSweep},
    {"pipeline over nodes that stalls in nearly all runs, EFA",
     {0.75, 1.6},
     0.96,
     Seconds::s(1.1),
     kSweep},
    {"tensor parallelism and pipeline over nodes, EFA", {0.8, 1.6}, 0.13, Seconds::s(1.1), kSweep},
    {"above 32 nodes, EFA", {0.95, 1.9}, 0.8, Seconds::s(1.5), kSweep},
    {"above 32 nodes",
     {0.92, 1.47},
     0,
     Seconds::s(0),
     "125 steps of 14 sources, each predicted from the others"},
    {"tensor parallelism or pipeline over nodes of another network",
     {0.75, 1.9},
     0,
     Seconds::s(0),
     ""},
}};

/// The limits of the sweep's stalls (docs/decisions/0085-which-runs-stall.md).
constexpr std::uint32_t kMostNodes = 32, kNodesThatStall = 16;
constexpr std::uint32_t kNodesThatStallWhole = 4, kMicrobatchesThatStall = 16;  // without ZeRO
constexpr std::uint32_t kTensorNodesThatStall = 4, kDataThatStalls = 32;
constexpr Bytes kPassedThatStalls = Bytes::mib(64);  // 50 MB do not, 101 MB do
constexpr double kLongMessages = 128;  // sequences of 4,096 × ranks of a tensor group
/// The wait of an exchange in one direction ÷ that of one in both.
constexpr double kFillStall = 0.35;
/// Single reports differ by less; collectives between nodes in a job do not (0.8 to 1.25).
constexpr double kLeastNetworkWidth = 0.25;
constexpr double kMostStalls = 0.1;              // share of runs that a 90 % interval may leave out
constexpr double kLongStalls = kMostStalls / 2;  // of them, above its upper end
constexpr double kShortStalls = 0.95;            // of the stalled runs, up to Regime::stall

bool pipeline_stalls(const Situation& s) {
  return s.pipeline_over_nodes &&
         ((s.whole_gradients && s.nodes >= kNodesThatStallWhole &&
           s.microbatches >= kMicrobatchesThatStall) ||
          (s.divided_update && s.nodes >= kMostNodes && s.data >= kDataThatStalls) ||
          (s.stages > 2 && s.passed > kPassedThatStalls) ||
          s.tensor_nodes >= kTensorNodesThatStall);
}

Which which(const Situation& s) {
  const bool tensor_over_nodes = s.tensor_nodes > 1;
  const bool over_nodes = tensor_over_nodes || s.pipeline_over_nodes;
  if (s.network == comm::NetworkKind::kEfa && s.nodes > kMostNodes) return kManyNodesEfa;
  if (over_nodes && (!s.network || *s.network == comm::NetworkKind::kTcp)) return kUnknown;
  if (over_nodes && s.network == comm::NetworkKind::kEfa) {
    if (pipeline_stalls(s)) return kStalledPipelineEfa;
    if (tensor_over_nodes && s.pipeline_over_nodes) return kBothEfa;
    if (tensor_over_nodes)
      return s.samples_in_tensor_group >= kLongMessages ? kLongTensorEfa : kTensorEfa;
    return s.whole_gradients || s.nodes >= kNodesThatStall ? kManyNodesPipelineEfa : kPipelineEfa;
  }
  if (tensor_over_nodes) return kTensor;
  if (is_host_bound(s.host_share)) return kHost;
  return s.nodes > kMostNodes ? kManyNodes : kKernels;
}

/// Microbatches and further stages.
double slots_of(const workload::Layout& layout) {
  return static_cast<double>(layout.microbatches + layout.stages.size() - 1);
}

}  // namespace

std::span<const Regime> regimes() { return kAll; }

const Regime& regime_of(const Situation& situation) { return kAll[which(situation)]; }

Situation situation_of(const workload::Layout& layout, const cluster::Cluster& cluster,
                       double microbatch, bool zero) {
  const auto node_of = [&](std::uint32_t rank) { return cluster.devices()[rank].node; };
  const workload::Stage& first = layout.stages.front();
  const bool several = first.degrees.data > 1;
  Situation s{.whole_gradients = several && !zero,
              .divided_update = several && zero,
              .data = first.degrees.data,
              .stages = static_cast<std::uint32_t>(layout.stages.size()),
              .microbatches = layout.microbatches,
              .samples_in_tensor_group = microbatch * first.degrees.tensor};
  std::vector<bool> used(cluster.nodes().size());
  std::optional<std::uint32_t> other;  // a rank on another node than the first
  for (std::uint32_t rank = 0; rank < layout.ranks(); ++rank) {
    used[node_of(rank).index()] = true;
    if (!other && node_of(rank) != node_of(0)) other = rank;
  }
  s.nodes = static_cast<std::uint32_t>(std::ranges::count(used, true));
  if (!other) return s;
  if (s.stages > 1) s.passed = first.chunks.front().layers.back().output;
  for (const workload::Stage& stage : layout.stages) {
    std::set<NodeId> of_group;
    for (std::uint32_t t = 0; t < stage.degrees.tensor; ++t)
      of_group.insert(node_of(stage.rank(t)));
    s.tensor_nodes = std::max(s.tensor_nodes, static_cast<std::uint32_t>(of_group.size()));
    s.pipeline_over_nodes |= node_of(stage.first_rank) != node_of(first.first_rank);
  }
  const std::array<DeviceId, 2> ends = {DeviceId(0), DeviceId(*other)};
  const Result<comm::ClusterScope> scope = comm::scope_of(cluster, ends);
  if (!scope || !scope->network) return s;
  s.network = scope->network->kind;
  s.network_width = std::max(kLeastNetworkWidth, comm::reach_of(*scope->network).width);
  return s;
}

program::Interval beyond_factors(const Regime& regime) {
  return regime.name == kAll[kHost].name ? program::Interval{} : regime.factors;
}

Estimate<Seconds> widened(const Estimate<Seconds>& step, const program::Interval& factors) {
  return {step.value, std::min(step.low, step.value * factors.low),
          std::max(step.high, step.value * factors.high), step.provenance};
}

Estimate<Seconds> with_host(const Estimate<Seconds>& step, double host_share,
                            const host::Implementation& host) {
  const auto at = [&](double factor) { return step.value * (1 + host_share * (factor - 1)); };
  return {step.value, std::min(step.low, at(host.fastest)), std::max(step.high, at(host.slowest)),
          step.provenance};
}

Seconds median_stall(const Regime& regime, const workload::Layout& layout,
                     const host::Implementation& host, bool whole_gradients) {
  if (!regime.mostly_stalls()) return Seconds::s(0);
  const double neighbours = layout.stages.size() == 2 ? 1 : 2;
  const double exchanges = static_cast<double>(layout.microbatches) +
                           kFillStall * static_cast<double>(layout.stages.size() - 1);
  return host.stall * (neighbours * exchanges + (whole_gradients ? 1 : 0));
}

Seconds stall_of(const Regime& regime, const workload::Layout& layout) {
  if (regime.stalled <= kMostStalls) return Seconds::s(0);
  // Lengths of stalls are taken as uniform, since the rows are few.
  const double quantile = 1 - kLongStalls / regime.stalled;
  return regime.stall * slots_of(layout) * std::min(1.0, quantile / kShortStalls);
}

Seconds mean_stall(const Situation& situation, const workload::Layout& layout,
                   const host::Implementation& host) {
  const Regime& regime = regime_of(situation);
  if (regime.stalled <= kMostStalls) return Seconds::s(0);
  const Seconds longest = regime.stall * slots_of(layout) / kShortStalls;
  return std::max(Seconds::s(0), longest / 2 * regime.stalled -
                                     median_stall(regime, layout, host, situation.whole_gradients));
}

}  // namespace rehearse::step
