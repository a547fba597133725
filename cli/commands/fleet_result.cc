#include "cli/commands/fleet_result.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/validation/suite.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

constexpr std::size_t kRowsShown = 20;

/// Means and tails over the jobs that ran.
struct Spread {
  double mean = 0, median = 0, p90 = 0, worst = 0;
};

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double v : values) sum += v;
  return {sum / static_cast<double>(values.size()), quantile(values, 0.5), quantile(values, 0.9),
          values.back()};
}

template <class Value>
Spread spread(const FleetRun& run, const Value& value) {
  std::vector<double> values;
  for (std::size_t j = 0; j < run.list.jobs.size(); ++j)
    if (run.outcome.jobs[j]) values.push_back(value(run.list.jobs[j], *run.outcome.jobs[j]));
  return spread_of(std::move(values));
}

Spread queueing(const FleetRun& run) {
  return spread(run, [](const fleet::Job& job, const fleet::JobRun& r) {
    return fleet::queued(job, r).seconds().s();
  });
}

Spread slowdowns(const FleetRun& run) { return spread(run, fleet::slowdown_of); }

std::size_t never(const FleetRun& run) {
  return static_cast<std::size_t>(
      std::count_if(run.outcome.jobs.begin(), run.outcome.jobs.end(),
                    [](const std::optional<fleet::JobRun>& r) { return !r; }));
}

std::string slice_name(const FleetRun& run, const fleet::JobRun& job) {
  return job.slice ? run.fleet.slices[*job.slice].name : "";
}

/// Divided, not scaled: whole seconds stay whole.
double seconds_of(Nanoseconds time) { return static_cast<double>(time.count()) / 1e9; }

std::string s(Nanoseconds time) { return fmt::format("{:.3f}", seconds_of(time)); }

}  // namespace

std::string fleet_text(const FleetRun& run) {
  const fleet::Outcome& o = run.outcome;
  const std::size_t left = never(run);
  std::string text = fmt::format(
      "{} on {} ({} x {}), policy {}, placement {}\n", counted(run.list.jobs.size(), "job"),
      counted(run.fleet.gpus(), "GPU"), run.fleet.nodes, run.fleet.gpus_per_node,
      fleet::kPolicyNames[static_cast<int>(run.options.policy)],
      fleet::kPlacementNames[static_cast<int>(run.options.placement)]);
  if (run.list.layout != "jobs")
    text += fmt::format("read as a trace of {}; {} left out\n", run.list.layout,
                        counted(run.list.left_out, "row"));
  if (left > 0) text += fmt::format("{} can never fit\n", counted(left, "job"));
  text += fmt::format("\nmakespan {}, utilization {:.1f} %, fragmentation {:.1f} %, {}\n",
                      to_string(o.makespan.seconds()), o.utilization * 100, o.fragmentation * 100,
                      counted(o.preemptions, "preemption"));
  if (run.on_slices)
    text += fmt::format(
        "on slices: {} by the law of a slice, {} by the share of the compute slices; makespan {} "
        "to {} as slices are as fast or as slow as they may be\n",
        counted(run.on_slices->by_law, "job"), counted(run.on_slices->by_share, "job"),
        to_string(run.on_slices->soonest.seconds()), to_string(run.on_slices->latest.seconds()));
  const auto row = [](const Spread& x, const auto& show) {
    return fmt::format("mean {}, median {}, 90 % below {}, worst {}\n", show(x.mean),
                       show(x.median), show(x.p90), show(x.worst));
  };
  text += "queued:   " + row(queueing(run), [](double v) { return to_string(Seconds::s(v)); });
  text += "slowdown: " + row(slowdowns(run), [](double v) { return significant(v); });
  return text + "\n" + fleet_table(run).text(40, kRowsShown);
}

Json fleet_json(const FleetRun& run) {
  const fleet::Outcome& o = run.outcome;
  const auto spread_json = [](const Spread& x) {
    return Json{{"mean", x.mean}, {"median", x.median}, {"p90", x.p90}, {"worst", x.worst}};
  };
  Json json = json_root("fleet");
  json["layout"] = run.list.layout;
  json["left_out"] = run.list.left_out;
  json["never_fits"] = never(run);
  json["gpus"] = run.fleet.gpus();
  json["policy"] = fleet::kPolicyNames[static_cast<int>(run.options.policy)];
  json["placement"] = fleet::kPlacementNames[static_cast<int>(run.options.placement)];
  json["makespan_s"] = seconds_of(o.makespan);
  json["utilization"] = o.utilization;
  json["fragmentation"] = o.fragmentation;
  json["preemptions"] = o.preemptions;
  json["queued_s"] = spread_json(queueing(run));
  json["slowdown"] = spread_json(slowdowns(run));
  if (run.on_slices)
    json["on_slices"] = {{"by_law", run.on_slices->by_law},
                         {"by_share", run.on_slices->by_share},
                         {"makespan_fast_s", seconds_of(run.on_slices->soonest)},
                         {"makespan_slow_s", seconds_of(run.on_slices->latest)}};
  json["jobs"] = Json::array();
  for (std::size_t j = 0; j < run.list.jobs.size(); ++j) {
    const fleet::Job& job = run.list.jobs[j];
    const std::optional<fleet::JobRun>& r = o.jobs[j];
    Json one = {{"job", job.name}, {"user", job.user}, {"ran", r.has_value()}};
    if (r) {
      one["submit_s"] = seconds_of(job.submit);
      one["start_s"] = seconds_of(r->start);
      one["end_s"] = seconds_of(r->end);
      one["held_s"] = seconds_of(r->held);
      one["wait_s"] = seconds_of(fleet::queued(job, *r));
      one["slowdown"] = fleet::slowdown_of(job, *r);
      one["preemptions"] = r->preemptions;
      one["nodes"] = r->nodes;
      one["slice"] = slice_name(run, *r);
    }
    json["jobs"].push_back(std::move(one));
  }
  return json;
}

Table fleet_table(const FleetRun& run) {
  Table table({{"job", Align::kLeft},
               {"user", Align::kLeft},
               {"GPUs"},
               {"slice", Align::kLeft},
               {"nodes"},
               {"arrives (s)"},
               {"starts (s)"},
               {"ends (s)"},
               {"queued (s)"},
               {"slowdown"},
               {"preemptions"}});
  for (std::size_t j = 0; j < run.list.jobs.size(); ++j) {
    const fleet::Job& job = run.list.jobs[j];
    const std::optional<fleet::JobRun>& r = run.outcome.jobs[j];
    if (!r) {
      table.add({job.name, job.user, fmt::format("{}", job.gpus), "never fits", "", s(job.submit),
                 "", "", "", "", ""});
      continue;
    }
    table.add({job.name, job.user, fmt::format("{}", job.gpus), slice_name(run, *r),
               fmt::format("{}", r->nodes), s(job.submit), s(r->start), s(r->end),
               s(fleet::queued(job, *r)), significant(fleet::slowdown_of(job, *r)),
               r->preemptions == 0 ? "" : fmt::format("{}", r->preemptions)});
  }
  return table;
}

}  // namespace rehearse::cli
