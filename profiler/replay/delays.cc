#include "profiler/replay/delays.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

namespace rehearse::replay {
namespace {

/// The index of the step in which a call was made; nothing before the first one.
std::optional<std::size_t> step_at(const Steps& steps, Nanoseconds time) {
  if (steps.source == StepSource::kSpan) return 0;
  const auto after =
      std::upper_bound(steps.steps.begin(), steps.steps.end(), time,
                       [](Nanoseconds at, const Step& step) { return at < step.start; });
  if (after == steps.steps.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - steps.steps.begin()) - 1;
}

}  // namespace

std::vector<DelayedOp> find_delayed(const Recording& r, const Steps& steps,
                                    const std::vector<Nanoseconds>& late) {
  const auto whole = static_cast<std::size_t>(
      std::ranges::count_if(steps.steps, [](const Step& s) { return !s.partial; }));
  struct Occurrences {
    DelayedOp op;
    std::vector<Nanoseconds> in_whole_steps;
  };
  using Place = std::tuple<std::size_t, NameId, std::size_t>;  // stream, name, number in the step
  std::map<Place, Occurrences> places;
  for (std::size_t s = 0; s < r.streams().size(); ++s) {
    std::map<std::pair<std::size_t, NameId>, std::size_t> seen;  // by step
    for (const GpuIndex i : r.streams()[s].ops) {
      const auto call = r.launcher(i);
      const auto step = call ? step_at(steps, r.host(*call).start) : std::nullopt;
      if (!step) continue;
      Occurrences& at = places[{s, r.gpu(i).name, seen[{*step, r.gpu(i).name}]++}];
      at.op.ops.push_back(i);
      at.op.total += late[i];
      at.op.times += late[i] > kLate ? 1 : 0;
      if (!steps.steps[*step].partial) at.in_whole_steps.push_back(late[i]);
    }
  }
  std::vector<DelayedOp> delayed;
  for (auto& [place, at] : places) {
    if (at.op.times == 0) continue;
    // Steps without the op count as steps without a delay.
    at.in_whole_steps.resize(std::max(whole, at.in_whole_steps.size()), Nanoseconds(0));
    if (whole >= 2) {
      const auto median = at.in_whole_steps.begin() +
                          static_cast<std::ptrdiff_t>((at.in_whole_steps.size() - 1) / 2);
      std::nth_element(at.in_whole_steps.begin(), median, at.in_whole_steps.end());
      if (*median > kLate) at.op.recurring = *median;
    }
    delayed.push_back(std::move(at.op));
  }
  std::ranges::stable_sort(delayed, std::greater{}, &DelayedOp::total);
  return delayed;
}

Nanoseconds covered_by(Spans spans) {
  std::ranges::sort(spans);
  Nanoseconds covered(0), until(INT64_MIN);
  for (const auto& [from, to] : spans) {
    if (to <= until) continue;
    covered += to - std::max(from, until);
    until = to;
  }
  return covered;
}

Nanoseconds time_late(const Recording& r, const std::vector<Nanoseconds>& late) {
  Spans spans;
  for (GpuIndex i = 0; i < late.size(); ++i)
    if (late[i] > Nanoseconds(0)) spans.emplace_back(r.gpu(i).start - late[i], r.gpu(i).start);
  return covered_by(std::move(spans));
}

}  // namespace rehearse::replay
