#include "sim/program/path_parts.h"

#include <algorithm>

#include "sim/base/check.h"

namespace rehearse::program {

Picoseconds PathParts::total() const {
  Picoseconds sum(0);
  for (const PathPart& part : parts) sum += part.time;
  return sum;
}

std::array<double, 4> PathParts::shares_by_provenance() const {
  std::array<double, 4> shares = {};
  const Picoseconds all = total();
  if (all == Picoseconds(0)) return shares;
  for (const PathPart& part : parts)
    for (std::size_t p = 0; p < shares.size(); ++p) shares[p] += part.from[p] / all;
  return shares;
}

void PathSum::Sum::add(Picoseconds part, const PathShare& share) {
  time += part;
  low += part.seconds().s() * share.low;
  high += part.seconds().s() * share.high;
  from[static_cast<std::size_t>(share.provenance)] += part;
}

Estimate<Seconds> PathSum::Sum::estimate() const {
  Provenance provenance = Provenance::kRecorded;
  for (std::size_t p = 0; p < from.size(); ++p)
    if (static_cast<double>(from[p].count()) > 0.01 * static_cast<double>(time.count()))
      provenance = static_cast<Provenance>(p);
  return {time.seconds(), Seconds::s(low), Seconds::s(high), provenance};
}

void PathSum::add(Picoseconds time, const std::vector<PathShare>& shares) {
  double all = 0;
  for (const PathShare& share : shares) all += share.weight;
  REHEARSE_CHECK(all > 0, "{} shares of a path weigh {}", shares.size(), all);
  // From one rounded end to the next, so that nothing is lost between them.
  double weight = 0;
  Picoseconds given(0);
  for (const PathShare& share : shares) {
    weight += share.weight;
    const Picoseconds until =
        &share == &shares.back() ? time : std::min(time, time * (weight / all));
    const Picoseconds part = until - given;
    given = until;
    if (part == Picoseconds(0)) continue;
    Part& sum = parts_[{share.kind, share.part}];
    sum.add(part, share);
    sum.ops[share.op].add(part, share);
  }
}

std::vector<PathPart> PathSum::parts() const {
  std::vector<PathPart> list;
  for (const auto& [key, sum] : parts_) {
    PathPart part{.kind = key.first,
                  .name = key.second,
                  .time = sum.time,
                  .estimate = sum.estimate(),
                  .from = sum.from};
    for (const auto& [name, op] : sum.ops) part.ops.push_back({name, op.estimate()});
    std::ranges::stable_sort(
        part.ops, [](const PathOp& a, const PathOp& b) { return a.time.value > b.time.value; });
    list.push_back(std::move(part));
  }
  std::ranges::stable_sort(list, [](const PathPart& a, const PathPart& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.time > b.time;
  });
  return list;
}

}  // namespace rehearse::program
