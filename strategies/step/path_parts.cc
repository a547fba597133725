#include "strategies/step/path_parts.h"

#include <algorithm>

#include "models/job/program_ops.h"

namespace rehearse::step {
namespace {

using program::PathOp, program::PathPart, program::PathParts;

/// An estimate of the whole step. A path whose alternatives are equally long may change between the
/// runs, and no part of it takes less than nothing.
Estimate<Seconds> whole(const FewerRun& run, const Estimate<Seconds>& few,
                        const Estimate<Seconds>& more) {
  const auto of = [&](Seconds a, Seconds b) { return std::max(Seconds::s(0), run.whole(a, b)); };
  return {of(few.value, more.value), of(few.low, more.low), of(few.high, more.high),
          more.provenance};
}

constexpr Estimate<Seconds> kNothing = {Seconds::s(0), Seconds::s(0), Seconds::s(0),
                                        Provenance::kRecorded};

/// The parts of the whole step's path.
PathParts whole(const FewerRun& run, const PathParts& few, PathParts more) {
  for (PathPart& part : more.parts) {
    PathPart none = part;
    none.from.fill(Picoseconds(0));
    none.estimate = kNothing;
    none.ops.clear();
    const auto same = std::ranges::find_if(few.parts, [&](const PathPart& other) {
      return other.kind == part.kind && other.name == part.name;
    });
    const PathPart& before = same == few.parts.end() ? none : *same;
    part.time = Picoseconds(0);
    for (std::size_t p = 0; p < part.from.size(); ++p) {
      const Seconds time = run.whole(before.from[p].seconds(), part.from[p].seconds());
      part.from[p] = std::max(Picoseconds(0), Picoseconds::from(time));
      part.time += part.from[p];
    }
    part.estimate = whole(run, before.estimate, part.estimate);
    for (PathOp& op : part.ops) {
      const auto found = std::ranges::find(before.ops, op.name, &PathOp::name);
      op.time = whole(run, found == before.ops.end() ? kNothing : found->time, op.time);
    }
  }
  std::ranges::stable_sort(more.parts, [](const PathPart& a, const PathPart& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.time > b.time;
  });
  return more;
}

}  // namespace

PathParts path_parts(const Step& step) {
  PathParts result =
      job::path_parts(step.job, step.lowered, step.timeline, step.computing, step.links);
  if (const std::optional<FewerRun>& few = step.fewer)
    result = whole(
        *few, job::path_parts(few->job, few->lowered, few->timeline, step.computing, step.links),
        std::move(result));
  // Waiting for samples is added to the time of the run.
  if (step.occupancy.input > Seconds::s(0)) {
    program::PathSum input;
    input.add(std::max(Picoseconds(0), Picoseconds::from(step.time.value) - result.total()),
              program::PathShare{.kind = program::PartKind::kInput,
                                 .part = "input stall",
                                 .op = "waiting for samples",
                                 .provenance = Provenance::kExtrapolated});
    const std::vector<program::PathPart> stall = input.parts();
    const auto after = std::find_if(
        result.parts.begin(), result.parts.end(),
        [](const program::PathPart& part) { return part.kind > program::PartKind::kInput; });
    result.parts.insert(after, stall.begin(), stall.end());
  }
  return result;
}

}  // namespace rehearse::step
