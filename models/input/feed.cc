#include "models/input/feed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/core.h>

#include "models/input/limits.h"
#include "models/input/run.h"
#include "models/input/stage_lowering.h"
#include "sim/base/check.h"

namespace rehearse::input {
namespace {

/// The number of units taken at once. More of them make runs longer, and change what shorter queues
/// let through.
constexpr double kMostUnits = 256;
/// Times are whole picoseconds in the graph: a smaller share of the work is rounding.
constexpr double kRounding = 1e-6;
/// Multiples of the least time of units by the laws. Work that lasts longer is first evaluated as
/// if it lasted no longer than that.
constexpr double kWithinReach[] = {1.25, 2.5};

/// The latest end of each op with which the ops that wait for it are still ready when they were,
/// given their other dependencies. Ops that continue when some of many have ended are not
/// considered.
std::vector<Picoseconds> latest_ends(const Run& run, const std::vector<Held>& ops) {
  const graph::Graph& graph = run.graph;
  std::vector<char> is_one(graph.size(), 0), waits(graph.size(), 0);
  for (const Held& held : ops) {
    is_one[held.op] = 1;
    for (const OpId next : graph.successors(OpId(held.op))) waits[next.index()] = 1;
  }
  struct Before {
    std::uint32_t count = 0;
    Picoseconds others{0};
  };
  std::vector<Before> before(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i)
    for (const OpId next : graph.successors(OpId(static_cast<std::uint32_t>(i))))
      if (waits[next.index()]) {
        Before& b = before[next.index()];
        ++b.count;
        if (!is_one[i]) b.others = std::max(b.others, run.timeline.ops[i].end);
      }
  std::vector<Picoseconds> latest;
  for (const Held& held : ops) {
    latest.emplace_back(std::numeric_limits<std::int64_t>::max());
    for (const OpId next : graph.successors(OpId(held.op))) {
      const Before& b = before[next.index()];
      latest.back() =
          std::min(latest.back(), graph.need(next) < b.count ? Picoseconds(0) : b.others);
    }
  }
  return latest;
}

}  // namespace

Status gives_all_samples(const Pipeline& pipeline) {
  if (!pipeline.loop || !pipeline.loop->rounds()) return {};
  return fail(fmt::format("samples that are {} cannot feed a job, which needs all samples",
                          kLateNames[static_cast<int>(pipeline.loop->late)]),
              "late: kept");
}

Feed::Feed(Pipeline pipeline) : pipeline_(std::move(pipeline)) {}

Result<Seconds> Feed::time_of(const Work& work) const {
  REHEARSE_CHECK(work.units > 0 && work.time > Seconds::s(0));
  Pipeline loading = pipeline_;
  loading.step.reset();
  const std::vector<Limit> limits = limits_of(loading);
  if (limits.empty()) return work.time;
  TRY(gives_all_samples(pipeline_));
  const double taken = std::ceil(work.units / std::ceil(work.units / kMostUnits) - 1e-9);
  const Seconds hold = work.time * (taken / work.units);
  const auto units = static_cast<std::uint32_t>(taken);
  for (const double reach : kWithinReach) {
    const Seconds shorter = Seconds::s(reach * taken / limits.front().units_per_s);
    if (shorter <= hold && !waits(units, shorter)) return work.time;
  }
  Result<Seconds> fed = Seconds::s(0);
  if (const std::optional<Seconds> unheld = rhythm_unheld(units, hold))
    fed = *unheld;
  else
    fed = rhythm(units, hold);
  if (!fed) return forward(fed);
  if (*fed < hold * (1 + kRounding)) return work.time;
  return *fed * (work.units / taken);
}

/// The accelerator reads from its own source, and the read takes the time of its work: it uses no
/// core and no link that others share.
Pipeline Feed::with_accelerator(std::uint32_t units, Seconds hold) const {
  Pipeline fed = pipeline_;
  fed.step.reset();
  fed.samples.reset();  // no epoch is asked for
  fed.sources.push_back({.name = "accelerator", .latency = {.mean = hold}});
  fed.stages.push_back(
      {.name = "accelerator", .source = fed.sources.size() - 1, .batch = units, .queue = 0});
  return fed;
}

const Result<Seconds>& Feed::rhythm(std::uint32_t units, Seconds hold) const {
  const auto run = [&]() -> Result<Seconds> {
    const Settled settled = TRY(run_settled(with_accelerator(units, hold)));
    return time_per_unit(settled.run.ends, settled.first, settled.last);
  };
  return kept_->rhythms.of({units, whole(hold)}, run);
}

bool Feed::waits(std::uint32_t units, Seconds hold) const {
  const Result<Seconds>& fed = rhythm(units, hold);
  return !fed || !(*fed < hold * (1 + kRounding));
}

Result<Feed::Unheld> Feed::run_unheld(std::uint32_t units) const {
  const Settled settled = TRY(run_settled(with_accelerator(units, Seconds::s(0))));
  const Run& run = settled.run;
  const std::vector<Held>& takes = run.lowered.work.back();
  Unheld unheld{{}, latest_ends(run, takes), settled.first, settled.last};
  for (const Held& take : takes) unheld.there.push_back(run.timeline[OpId(take.op)].start);
  return unheld;
}

/// Nothing if such an accelerator holds the pipeline up.
std::optional<Seconds> Feed::rhythm_unheld(std::uint32_t units, Seconds hold) const {
  const Result<Unheld>& unheld = kept_->unheld.of(units, [&] { return run_unheld(units); });
  if (!unheld) return std::nullopt;
  const Picoseconds time = whole(hold);
  std::vector<Seconds> ends;
  Picoseconds end(0);
  for (std::size_t i = 0; i < unheld->there.size(); ++i) {
    end = std::max(end, unheld->there[i]) + time;
    if (!(end < unheld->latest[i])) return std::nullopt;
    ends.push_back(end.seconds());
  }
  return time_per_unit(ends, unheld->first, unheld->last);
}

Pipeline with_free_storage(Pipeline pipeline) {
  for (Stage& stage : pipeline.stages) {
    stage.source.reset();
    stage.bytes = Bytes::b(0);
    stage.reads.clear();
  }
  return pipeline;
}

}  // namespace rehearse::input
