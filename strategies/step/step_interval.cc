#include "strategies/step/step_interval.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/comm/scope_of_cluster.h"
#include "models/job/roofline.h"
#include "strategies/step/predict.h"

namespace rehearse::step {
namespace {

/// The error of communication that a measurement covers.
constexpr double kFastestCalibrated = 0.9, kSlowestCalibrated = 1.25;

/// Factors on the interval of conditions for less well-known cases.
struct Spread {
  double fastest = 1, slowest = 1;
};

/// Mixtures of experts differ with their software: one published job took from 0.6 to 1.8 times as
/// long with another release of it. Recipes of FP8 are among the sources of the range of kernels.
Spread spread_of(const Spec& spec) {
  return spec.workload.experts_per_token > 0 ? Spread{0.8, 1.25} : Spread{};
}

program::Interval computing_of(const Spec& spec, const Work& work) {
  const Spread spread = spread_of(spec);
  return {work.fastest * spread.fastest, work.slowest * spread.slowest};
}

/// Errors of compute, of communication and of the fixed time per step are taken as independent. The
/// fixed time may overlap communication if it is the host's or the input's.
Estimate<Seconds> interval(const Step& step, program::Interval computing, const RunErrors& errors,
                           const Conditions& conditions) {
  const PriceReach& network = errors.prices;
  Provenance provenance = errors.provenance;
  const Seconds exposed = step.communication;
  const Seconds rest = step.time.value - exposed;
  const double down = std::hypot(
      rest.s() * (1 - computing.low), std::max(exposed * (1 - step.links.low), network.down).s(),
      std::max(std::min(step.fixed, exposed), conditions.fixed - conditions.least_fixed).s());
  const double up = std::hypot(rest.s() * (computing.high - 1),
                               std::max(exposed * (step.links.high - 1), network.up).s(),
                               std::max(Seconds::s(0), conditions.most_fixed - step.fixed).s());
  // As for ops: the provenance of 1 % of the time does not determine that of the whole.
  if (exposed > step.time.value * 0.01)
    provenance = std::max(
        provenance, errors.calibrated ? Provenance::kInterpolated : Provenance::kExtrapolated);
  const double value = step.time.value.s();
  return {step.time.value, Seconds::s(std::max(0.0, value - down)), Seconds::s(value + up),
          provenance};
}

void warn_of_regime(Step& step) {
  const Regime& regime = step.regime;
  if (!regime.known())
    step.warnings.push_back(
        {fmt::format("no measured job is like this one ({}): the interval is that of the widest "
                     "known regime",
                     regime.name),
         "measure a few steps of the job, and fit the prediction to them: rehearse calibrate job"});
  else if (step.stall > Seconds::s(0))
    step.warnings.push_back(
        {fmt::format("{:.0f} % of the measured runs like this one ({}) stalled, for up to {} per "
                     "microbatch and further stage",
                     regime.stalled * 100, regime.name, to_string(regime.stall)),
         "measure a few steps of this plan and of one outside this regime"});
}

/// Whether the ranks of the first node reach each other over PCIe and the host.
bool through_host(const workload::Layout& layout, const cluster::Cluster& cluster) {
  std::vector<DeviceId> of_node;
  for (std::uint32_t rank = 0; rank < layout.ranks(); ++rank)
    if (cluster.devices()[rank].node == cluster.devices().front().node) of_node.emplace_back(rank);
  const Result<comm::ClusterScope> scope = comm::scope_of(cluster, of_node);
  return scope && scope->fabric == comm::Fabric::kHostStaged;
}

}  // namespace

program::Interval computing_of_step(const Spec& spec, const Work& work) {
  const std::optional<Known>& known = spec.conditions.known;
  return known && !spec.conditions.measured ? known->factors[0] : computing_of(spec, work);
}

program::Interval links_of(bool calibrated) {
  return calibrated ? program::Interval{kFastestCalibrated, kSlowestCalibrated}
                    : program::Interval{job::kFastestNetwork, job::kSlowestNetwork};
}

void set_errors(Step& step, const Spec& spec, const Work& work, bool calibrated) {
  step.computing = computing_of_step(spec, work);
  step.links = links_of(calibrated);
}

void set_interval(Step& step, const Spec& spec, const Work& work, Situation situation,
                  const RunErrors& errors) {
  const Seconds all = step.time.value;
  step.time = interval(step, computing_of(spec, work), errors, spec.conditions);
  if (spec.conditions.measured) return;
  const std::optional<Known>& known = spec.conditions.known;
  situation.host_share = step.host_share;
  step.regime = regime_of(situation);
  step.stall = stall_of(step.regime, step.layout);
  const Estimate<Seconds> unmeasured =
      with_host(widened(step.time, step.regime.factors), step.host_share, spec.conditions.host);
  const bool seen = known && std::find(known->regimes.begin(), known->regimes.end(),
                                       step.regime.name) != known->regimes.end();
  step.time = unmeasured;
  if (known) {
    step.time =
        interval_of(step.time, shares_of(step, spec.conditions, situation.nodes > 1), *known);
    if (!seen) step.time = widened(step.time, beyond_factors(step.regime));
    // Measured steps do not make any step less certain.
    step.time.low = std::max(step.time.low, unmeasured.low);
    step.time.high = std::min(step.time.high, unmeasured.high);
  }
  const Seconds median =
      median_stall(step.regime, step.layout, spec.conditions.host, situation.whole_gradients);
  // A run that does not stall, and one that stalls for longer than the median.
  if ((!known || median > Seconds::s(0)) && !step.regime.nearly_all_stall())
    step.time.low = std::min(step.time.low, (all - median) * step.regime.factors.low);
  step.time.high += std::max(Seconds::s(0), step.stall - median);
  if (!seen || step.stall > Seconds::s(0)) warn_of_regime(step);
}

void add_warnings(Step& step, const Spec& spec, const cluster::Cluster& cluster, bool calibrated) {
  if (calibrated && through_host(step.layout, cluster))
    step.warnings.push_back(
        {fmt::format(
             "collectives of {} over PCIe: the board and settings of a machine decide their times, "
             "and few machines were measured",
             cluster.devices().front().model),
         "state the rate that nccl-tests reach on this machine: intra_node: {kind: pcie, rate: "
         "…}"});
  if (spec.workload.experts_per_token > 0)
    step.warnings.push_back(
        {"mixture of experts: its speed depends on the software release; published jobs took from "
         "0.8 to 1.4 times as long as predicted, and four of 51 about twice as long",
         "measure a few steps of the job on the smallest number of devices that holds it, and fit "
         "the prediction to them: rehearse calibrate job"});
  if (const memory::StageMemory& most = memory::fullest(step.memory);
      most.fit != memory::Fit::kFits)
    step.warnings.push_back(
        {fmt::format("memory: {} of {} on {}: {}", to_string(most.peak.value),
                     to_string(most.device.usable), most.device.name,
                     memory::kFitNames[static_cast<int>(most.fit)]),
         most.fit == memory::Fit::kDoesNotFit
             ? "change the plan as in `remedies`, or search one that fits with rehearse plan"
             : "measure the peak of a step on the device, as counted by its allocator"});
  if (const auto too_much = step.host_memory ? step.host_memory->too_much() : std::nullopt)
    step.warnings.push_back(
        {fmt::format("memory: {} of {}: does not fit", *too_much, step.host_memory->node),
         "keep less state off the devices, or take nodes with more"});
}

}  // namespace rehearse::step
