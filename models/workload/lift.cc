#include "models/workload/lift.h"

#include <algorithm>

#include <fmt/core.h>

#include "models/workload/host_work.h"
#include "models/workload/lift_join.h"
#include "models/workload/lift_update.h"
#include "sim/base/check.h"
#include "sim/base/text.h"

namespace rehearse::workload {
namespace {

using lifting::FoundPlan;
using lifting::LiftedRank;

void note_steps(const std::vector<LiftedRank>& ranks, std::vector<std::string>& notes) {
  const auto [least, most] = std::minmax_element(
      ranks.begin(), ranks.end(),
      [](const LiftedRank& a, const LiftedRank& b) { return a.lifted.steps < b.lifted.steps; });
  if (least->lifted.steps == most->lifted.steps) return;
  notes.push_back(
      fmt::format("{} in {} and {} in {}: each rank counts by its step of median "
                  "device time",
                  counted(least->lifted.steps, "whole step"), least->traffic.source,
                  most->lifted.steps, most->traffic.source));
}

}  // namespace

tl::unexpected<Error> needs_shapes(const std::string& source, std::string_view what_for) {
  return fail_in(source, fmt::format("has no operator shapes, which {} needs", what_for),
                 "a recording with record_shapes=True, or the execution trace "
                 "of the same run in addition");
}

Result<Lifted> lift(const trace::Trace& trace, const LiftOptions& options) {
  REHEARSE_CHECK(!trace.ranks.empty());
  if (const std::optional<trace::Trace> on_cores = with_host_work_on_cores(trace))
    return lift(*on_cores, options);
  std::vector<LiftedRank> ranks;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r)
    ranks.push_back(TRY(lifting::lift_rank(trace, r, options)));
  std::vector<lifting::RankTraffic> traffic;
  for (const LiftedRank& rank : ranks) traffic.push_back(rank.traffic);
  const Result<FoundPlan> found = lifting::find_plan(traffic);
  for (LiftedRank& rank : ranks) divide_update(rank, found ? found->plan : RecordedPlan{});
  Lifted& lifted = ranks.front().lifted;
  if (!found) {
    lifted.plan = forward(found);
    lifted.notes.push_back(to_string(found.error()));
    lifted.notes.emplace_back("layers contain the work of the first rank, without communication");
    return std::move(lifted);
  }
  std::vector<std::string> notes = found->plan.notes;
  Workload whole = TRY(lifting::join_ranks(ranks, *found, notes));
  TRY(verify(whole));
  note_steps(ranks, notes);
  lifted.workload = std::move(whole);
  lifted.plan = found->plan;
  for (const LiftedRank& rank : ranks)
    lifted.idle_per_layer_kernel =
        std::min(lifted.idle_per_layer_kernel, rank.lifted.idle_per_layer_kernel);
  lifted.notes.insert(lifted.notes.end(), notes.begin(), notes.end());
  return std::move(lifted);
}

}  // namespace rehearse::workload
