#include "profiler/trace/align.h"

#include <algorithm>
#include <optional>

namespace rehearse::trace {
namespace {

constexpr Nanoseconds kDay{86400LL * 1000000000};

std::optional<Nanoseconds> first_row(const Rank& rank) {
  std::optional<Nanoseconds> first;
  const auto consider = [&](Nanoseconds t) { first = first ? std::min(*first, t) : t; };
  for (const HostOp& op : rank.host_ops) consider(op.start);
  for (const GpuOp& op : rank.gpu_ops) consider(op.start);
  for (const Sync& sync : rank.syncs) consider(sync.start);
  return first;
}

void shift(Rank& rank, Nanoseconds by) {
  for (HostOp& op : rank.host_ops) op.start += by;
  for (GpuOp& op : rank.gpu_ops) op.start += by;
  for (Sync& sync : rank.syncs) sync.start += by;
  for (PowerReading& reading : rank.power) reading.time += by;
  rank.info.clock_base = rank.info.clock_base - by;
}

}  // namespace

void align(Trace& trace) {
  struct Timed {
    Rank* rank;
    Nanoseconds first;  // since the epoch
  };
  std::vector<Timed> timed;
  for (Rank& rank : trace.ranks)
    if (const auto first = first_row(rank); first && rank.info.timed)
      timed.push_back({&rank, rank.info.clock_base + *first});
  if (timed.empty()) return;
  const auto [earliest, latest] = std::ranges::minmax_element(
      timed, [](const Timed& a, const Timed& b) { return a.first < b.first; });
  const bool one_moment = latest->first - earliest->first < kDay;
  if (!one_moment)
    trace.problems.add(ProblemKind::kClockSkew,
                       latest->rank->info.source + ": recorded at another time");
  const Nanoseconds origin = earliest->first;
  for (const Timed& t : timed)
    shift(*t.rank, t.rank->info.clock_base - (one_moment ? origin : t.first));
  if (!one_moment || !align_hosts(trace)) return;
  // After the move, a rank may begin before time zero, or all ranks may begin after it.
  std::optional<Nanoseconds> first;
  for (const Timed& t : timed)
    if (const auto row = first_row(*t.rank)) first = first ? std::min(*first, *row) : row;
  for (const Timed& t : timed) shift(*t.rank, -*first);
}

}  // namespace rehearse::trace
