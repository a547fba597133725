#include "strategies/step/path_parts.h"

#include <algorithm>

#include "models/job/program_ops.h"

namespace rehearse::step {
namespace {

using program::PathOp, program::PathPart, program::PathParts;

constexpr Estimate<Seconds> kNothing = {Seconds::s(0), Seconds::s(0), Seconds::s(0),
                                        Provenance::kRecorded};

/// A path whose alternatives are equally long may change between the runs, and no part of it takes
/// less than nothing.
Seconds at_end(Seconds few, Seconds more, double further) {
  return std::max(Seconds::s(0), more + (more - few) * further);
}
Estimate<Seconds> at_end(const Estimate<Seconds>& few, const Estimate<Seconds>& more,
                         double further) {
  return {at_end(few.value, more.value, further), at_end(few.low, more.low, further),
          at_end(few.high, more.high, further), more.provenance};
}

}  // namespace

PathParts path_of_whole(const PathParts& few, PathParts more, double further) {
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
      part.from[p] =
          Picoseconds::from(at_end(before.from[p].seconds(), part.from[p].seconds(), further));
      part.time += part.from[p];
    }
    part.estimate = at_end(before.estimate, part.estimate, further);
    for (PathOp& op : part.ops) {
      const auto found = std::ranges::find(before.ops, op.name, &PathOp::name);
      op.time = at_end(found == before.ops.end() ? kNothing : found->time, op.time, further);
    }
  }
  std::ranges::stable_sort(more.parts, [](const PathPart& a, const PathPart& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.time > b.time;
  });
  return more;
}

StepPath path_of(const Step& step) {
  if (!step.has_run()) return {step.path.value(), {}};
  return {job::path_parts(step.job, step.lowered, step.timeline, step.computing, step.links),
          program::path_times(step.lowered.graph,
                              job::critical_path(step.job, step.lowered, step.timeline))};
}

void add_input(const Step& step, StepPath& path) {
  if (step.occupancy.input == Seconds::s(0)) return;
  program::PathSum input;
  input.add(std::max(Picoseconds(0), Picoseconds::from(step.time.value) - path.parts.total()),
            program::PathShare{.kind = program::PartKind::kInput,
                               .part = "input stall",
                               .op = "waiting for samples",
                               .provenance = Provenance::kExtrapolated});
  const std::vector<program::PathPart> stall = input.parts();
  std::vector<program::PathPart>& parts = path.parts.parts;
  const auto after = std::ranges::find_if(
      parts, [](const program::PathPart& part) { return part.kind > program::PartKind::kInput; });
  parts.insert(after, stall.begin(), stall.end());
}

}  // namespace rehearse::step
