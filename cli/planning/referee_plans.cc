#include "cli/planning/referee_plans.h"

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/engine/simgrid.h"
#include "sim/work/queue.h"

namespace rehearse::cli {
namespace {

/// The number of first plans that fit, and the size of the next one.
Confirmed affordable(const std::vector<FoundPlan>& plans, Seconds most) {
  Confirmed confirmed;
  Seconds sum = Seconds::s(0);
  for (const FoundPlan& plan : plans) {
    sum += plan.size.on_simgrid();
    if (sum > most) {
      confirmed.left_out = fmt::format(
          "{} messages among {} ranks would take about {} of processor time, more than the limit "
          "of {} for confirming; --fidelity simgrid runs it anyway",
          grouped(static_cast<std::uint64_t>(plan.size.messages)), grouped(plan.size.ranks),
          to_string(sum, 2), to_string(most, 2));
      break;
    }
    ++confirmed.plans;
  }
  return confirmed;
}

}  // namespace

Result<Confirmed> referee_plans(std::vector<FoundPlan>& plans, const step::Spec& spec,
                                const cluster::Cluster& cluster, step::Fidelity ran, Seconds most,
                                unsigned threads, const Progress& progress) {
  if (ran == step::Fidelity::kSimgrid) {
    for (FoundPlan& plan : plans) {
      const program::Program job = TRY(step::program_of(spec_of(spec, plan), cluster));
      const Seconds messages = TRY(step::time_by_messages(job, plan.plan.collectives, cluster));
      plan.times.refereed =
          step::Refereed{plan.step->time.value - plan.step->occupancy.input, messages};
    }
    return Confirmed{plans.size(), {}};
  }
  if (!engine::simgrid_available()) return Confirmed{0, "this build has no SimGrid"};
  if (const Status ok = engine::check_simgrid(); !ok)
    return Confirmed{0, ok.error().diagnostics.front().problem};
  Confirmed confirmed = affordable(plans, most);
  // Each run has a separate process: a plan that one cannot carry does not affect the others.
  std::vector<std::string> refused(confirmed.plans);
  const auto run_one = [&](std::size_t i) -> Result<std::string> {
    const program::Program job = TRY(step::program_of(spec_of(spec, plans[i]), cluster));
    const Result<step::Refereed> refereed = step::referee(job, plans[i].plan.collectives, cluster);
    if (refereed)
      plans[i].times.refereed = *refereed;
    else
      refused[i] = refereed.error().diagnostics.front().problem;
    return std::string();
  };
  TRY(work::run_all({.part = "referee", .items = confirmed.plans, .evaluate = run_one},
                    {.threads = threads, .progress = progress}));
  for (const std::string& why : refused) {
    if (why.empty()) continue;
    --confirmed.plans;
    if (confirmed.left_out.empty()) confirmed.left_out = why;
  }
  return confirmed;
}

}  // namespace rehearse::cli
