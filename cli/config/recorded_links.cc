#include "cli/config/recorded_links.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "models/job/group_network.h"
#include "profiler/replay/collectives.h"
#include "profiler/replay/transfers.h"
#include "sim/base/statistics.h"
#include "sim/base/text.h"
#include "strategies/step/conditions.h"

namespace rehearse::cli {
namespace {

/// The times and prices of collectives within a node, or between nodes.
struct Compared {
  std::size_t count = 0;
  Seconds time = Seconds::s(0), price = Seconds::s(0);
  double least = 0, most = 0;  ///< ratio of one kind, size and group

  void add(const RecordedCollective& collective, Seconds priced) {
    const double ratio = collective.time / priced, times = static_cast<double>(collective.count);
    least = count == 0 ? ratio : std::min(least, ratio);
    most = std::max(most, ratio);
    count += collective.count;
    time += collective.time * times;
    price += priced * times;
  }

  double scale(std::string_view where, std::vector<std::string>& notes) const {
    if (count == 0) return 1;
    const double ratio = time / price;
    const bool used = ratio >= step::kLeastPart && ratio <= step::kMostPart;
    notes.push_back(fmt::format(
        "{} {}: {} without waiting for others, priced at {} (ratios {:.2f} to {:.2f}); {}",
        counted(count, "recorded collective"), where, to_string(time), to_string(price), least,
        most,
        used ? fmt::format("all collectives there are scaled by {:.3g}", ratio)
             : "not used, because links do not explain it"));
    return used ? ratio : 1;
  }
};

}  // namespace

std::vector<RecordedCollective> recorded_collectives(const trace::Trace& trace) {
  std::vector<replay::Recording> recordings;
  std::vector<std::vector<replay::CommunicationOp>> communication;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    recordings.emplace_back(trace, r);
    communication.push_back(replay::find_communication(recordings.back()));
  }
  std::map<std::tuple<CollectiveKind, double, std::vector<std::uint32_t>>, std::vector<Seconds>>
      times;
  for (const auto& match : replay::match_collectives(recordings, communication).matched) {
    const auto& lead = match.members.front();
    const auto op = std::ranges::find_if(communication[lead.rank],
                                         [&](const auto& other) { return other.op == lead.op; });
    const auto size = replay::size_of(recordings[lead.rank], *op);
    if (!size || size->ranks != match.members.size()) continue;
    std::vector<std::uint32_t> ranks;
    Nanoseconds shortest(INT64_MAX);
    for (const auto& member : match.members) {
      ranks.push_back(
          trace.ranks[member.rank].info.rank.value_or(static_cast<std::uint32_t>(member.rank)));
      shortest = std::min(shortest, member.transfer);
    }
    std::ranges::sort(ranks);
    times[{op->what->kind, size->bytes.b(), std::move(ranks)}].push_back(shortest.seconds());
  }
  const auto host_of = [&](std::uint32_t rank) -> std::string_view {
    for (std::size_t r = 0; r < trace.ranks.size(); ++r)
      if (trace.ranks[r].info.rank.value_or(static_cast<std::uint32_t>(r)) == rank)
        return trace.ranks[r].info.host;
    return "";
  };
  std::vector<RecordedCollective> collectives;
  for (const auto& [what, all] : times) {
    const std::vector<std::uint32_t>& ranks = std::get<2>(what);
    const bool one_host = std::ranges::all_of(
        ranks, [&](std::uint32_t rank) { return host_of(rank) == host_of(ranks.front()); });
    collectives.push_back(
        {std::get<0>(what), Bytes::b(std::get<1>(what)), ranks, one_host, median(all), all.size()});
  }
  return collectives;
}

comm::LinkScales scales_of(std::span<const RecordedCollective> collectives,
                           const std::string& device, const cluster::Cluster& cluster,
                           std::vector<std::string>& notes) {
  const job::Rules rules{.calibrated = true};
  job::Schedules schedules(cluster, rules);
  Compared within, between;
  for (const RecordedCollective& collective : collectives) {
    if (collective.ranks.size() < 2 || collective.ranks.back() >= cluster.devices().size() ||
        !(collective.time > Seconds::s(0)))
      continue;
    std::vector<DeviceId> devices;
    for (const std::uint32_t rank : collective.ranks) devices.emplace_back(rank);
    const auto of = [&](DeviceId id) -> const cluster::Device& {
      return cluster.devices()[id.index()];
    };
    const bool one_node = std::ranges::all_of(
        devices, [&](DeviceId id) { return of(id).node == of(devices.front()).node; });
    if (one_node != collective.one_host ||
        std::ranges::any_of(devices, [&](DeviceId id) { return of(id).model != device; }))
      continue;
    const auto schedule = schedules.alike(collective.kind, devices);
    if (!schedule) continue;
    const Seconds price = (*schedule)->price(collective.bytes).value;
    if (price > Seconds::s(0)) (one_node ? within : between).add(collective, price);
  }
  return {within.scale("within a node", notes), between.scale("between nodes", notes)};
}

}  // namespace rehearse::cli
