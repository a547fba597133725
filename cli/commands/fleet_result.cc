#include "cli/commands/fleet_result.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/statistics.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

constexpr std::size_t kRowsShown = 20;

/// A statistic over the jobs that ran.
template <class Of>
SampleSpread spread(const FleetRun& run, const Of& value) {
  std::vector<double> values;
  for (std::size_t j = 0; j < run.list.jobs.size(); ++j)
    if (run.outcome.jobs[j]) values.push_back(value(run.list.jobs[j], *run.outcome.jobs[j]));
  return spread_of(std::move(values));
}

SampleSpread queueing(const FleetRun& run) {
  return spread(run, [](const fleet::Job& job, const fleet::JobRun& r) {
    return fleet::queued(job, r).seconds().s();
  });
}

SampleSpread slowdowns(const FleetRun& run) { return spread(run, fleet::slowdown_of); }

std::size_t never(const FleetRun& run) {
  return static_cast<std::size_t>(
      std::count_if(run.outcome.jobs.begin(), run.outcome.jobs.end(),
                    [](const std::optional<fleet::JobRun>& r) { return !r; }));
}

std::string slice_name(const FleetRun& run, const fleet::JobRun& job) {
  return job.slice ? run.fleet.slices[*job.slice].name : "";
}

/// Divided, not scaled: whole seconds stay whole.
Quantity seconds_of(Nanoseconds time) {
  return bare(Seconds::s(static_cast<double>(time.count()) / 1e9));
}

Value spread_fields(const SampleSpread& x, const Unit& unit) {
  const auto of = [&](double value) { return bare({value, unit}); };
  return {{"mean", "mean", of(x.mean)},
          {"median", "median", of(x.median)},
          {"p90", "90 % below", of(x.p90)},
          {"worst", "worst", of(x.most)}};
}

Value job_fields(const FleetRun& run, std::size_t j) {
  const fleet::Job& job = run.list.jobs[j];
  const std::optional<fleet::JobRun>& r = run.outcome.jobs[j];
  Value one = {{"job", "job", job.name},
               {"user", "user", job.user},
               {"ran", r.has_value()},
               {"", "GPUs", job.gpus}};
  if (!r) {
    one.show("", "slice", "never fits");
    one.show("", "arrives", seconds_of(job.submit), in::kSeconds);
    return one;
  }
  one.show("slice", "slice", slice_name(run, *r));
  one.show("nodes", "nodes", r->nodes);
  one.show("submit_s", "arrives", seconds_of(job.submit), in::kSeconds);
  one.show("start_s", "starts", seconds_of(r->start), in::kSeconds);
  one.show("end_s", "ends", seconds_of(r->end), in::kSeconds);
  one["held_s"] = seconds_of(r->held);
  one.show("wait_s", "queued", seconds_of(fleet::queued(job, *r)), in::kSeconds);
  one.show("slowdown", "slowdown", factor(fleet::slowdown_of(job, *r)), in::kTimes);
  one.show("preemptions", "preemptions", r->preemptions);
  return one;
}

}  // namespace

Document fleet_document(const FleetRun& run) {
  const fleet::Outcome& o = run.outcome;
  Document d{.command = "fleet", .rows = "jobs"};
  d.line(fmt::format("{} on {} ({} x {}), policy {}, placement {}",
                     counted(run.list.jobs.size(), "job"), counted(run.fleet.gpus(), "GPU"),
                     run.fleet.nodes, run.fleet.gpus_per_node,
                     fleet::kPolicyNames[static_cast<int>(run.options.policy)],
                     fleet::kPlacementNames[static_cast<int>(run.options.placement)]));
  if (const std::size_t left = never(run); left > 0)
    d.line(fmt::format("{} can never fit", counted(left, "job")));
  d["never_fits"] = never(run);
  d["gpus"] = run.fleet.gpus();
  d["policy"] = fleet::kPolicyNames[static_cast<int>(run.options.policy)];
  d["placement"] = fleet::kPlacementNames[static_cast<int>(run.options.placement)];
  d.show("makespan_s", "makespan", seconds_of(o.makespan));
  d.show("utilization", "utilization", share(o.utilization));
  d.show("fragmentation", "fragmentation", share(o.fragmentation));
  d.show("preemptions", "preemptions", o.preemptions);
  if (const auto& on = run.on_slices) {
    d["on_slices"] = {{"by_law", on->by_law},
                      {"by_share", on->by_share},
                      {"makespan_fast_s", "makespan with fast slices", seconds_of(on->soonest)},
                      {"makespan_slow_s", "makespan with slow slices", seconds_of(on->latest)}};
    d.line(fmt::format(
        "on slices: {} predicted from measured steps, {} by the share of the compute slices",
        counted(on->by_law, "job"), counted(on->by_share, "job")));
  }
  d.show("queued_s", "Queued", spread_fields(queueing(run), unit::kTime));
  d.show("slowdown", "Slowdown", spread_fields(slowdowns(run), unit::kFactor));
  Value jobs = Value::array();
  for (std::size_t j = 0; j < run.list.jobs.size(); ++j) jobs.push_back(job_fields(run, j));
  d.show("jobs", "Jobs", std::move(jobs), {}, first(kRowsShown));
  return d;
}

}  // namespace rehearse::cli
