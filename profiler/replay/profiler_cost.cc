#include "profiler/replay/profiler_cost.h"

#include <cmath>

#include "sim/base/number.h"

namespace rehearse::replay {
namespace {

Nanoseconds measured(const trace::RankInfo& info, std::string_view key) {
  for (const trace::Fact& fact : info.facts) {
    if (fact.key != key) continue;
    const double ns = parse_number<double>(fact.value).value_or(0);
    if (ns > 0 && ns < 1e6) return Nanoseconds(std::llround(ns));
  }
  return Nanoseconds(0);
}

}  // namespace

Nanoseconds ProfilerCost::of(trace::HostKind kind) const {
  switch (kind) {
    case trace::HostKind::kOperator:
    case trace::HostKind::kAnnotation: return per_range;
    case trace::HostKind::kRuntime:
    case trace::HostKind::kDriver: return per_call;
    case trace::HostKind::kFrame:
    case trace::HostKind::kOverhead: break;
  }
  return Nanoseconds(0);
}

ProfilerCost profiler_cost(const trace::RankInfo& info) {
  return {.per_range = measured(info, "overhead.ns_per_range"),
          .per_call = measured(info, "overhead.ns_per_call")};
}

}  // namespace rehearse::replay
