#include "tests/validation/studies/collective_nodes.h"

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "models/comm/framework_timing.h"
#include "models/comm/transfer.h"
#include "sim/base/csv.h"
#include "tests/validation/studies/measured_tables.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using comm::Calibrated;
using comm::CollectiveCost;
using comm::MeasuredRow;

/// One report; what is refused is noted.
void score(CollectiveAccuracy& accuracy, CollectiveCase& into, const std::string& device,
           const std::string& system, const comm::Group& group,
           const comm::NcclOverrides& overrides, Bytes size, Seconds time) {
  const Result<Calibrated> calibrated = comm::calibration_for(device);
  const Result<CollectiveCost> cost =
      calibrated ? CollectiveCost::resolve(*calibrated, group, overrides) : forward(calibrated);
  if (!cost) {
    accuracy.refused.push_back(
        fmt::format("{}, {}: {}", into.name, system, to_string(cost.error())));
    return;
  }
  const comm::Price p = cost->at(size);
  into.rows.push_back(
      {system, {group.kind, group.ranks, size, time}, p.time.value, p.time.low, p.time.high});
}

/// Single reports of all_reduce on one node and on several: their descriptions in words are mapped to
/// networks.
Status reports(const fs::path& data, CollectiveAccuracy& accuracy) {
  const auto path = find_data(data, "nccl_observed_multinode.csv");
  if (!path) return {};
  const CsvTable table = TRY(CsvTable::load(*path));
  TRY(table.require(
      {"gpu_id", "system", "nodes", "gpus", "op", "size_bytes", "time_us", "busbw_gbs"}));
  struct Known {
    std::string_view words;
    comm::Network network;
  };
  const Known known[] = {
      {"p4d", {comm::NetworkKind::kEfa, ByteRate::gb_per_s(50), Seconds::us(20)}},
      {"p3dn", {comm::NetworkKind::kEfa, ByteRate::gb_per_s(12.5), Seconds::us(20)}},
      {"p6-b200", {comm::NetworkKind::kEfa, ByteRate::gb_per_s(400), Seconds::us(12)}},
      {"4xHDR200", {comm::NetworkKind::kInfiniband, ByteRate::gb_per_s(100), Seconds::us(2)}},
      {"8x100G RoCE", {comm::NetworkKind::kRoce, ByteRate::gb_per_s(100), Seconds::us(4)}}};
  CollectiveCase one{
      .name = "one node, reports",
      .about = "single reports of all_reduce; that of H100 over bridges set the least width there"};
  CollectiveCase several{.name = "several nodes", .about = "single reports of all_reduce"};
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const auto number = [&](std::string_view column) {
      const auto cell = table.number(r, column);
      return cell && *cell ? **cell : 0.0;
    };
    const std::string system(table.cell(r, "system"));
    comm::Group group{.kind = CollectiveKind::kAllReduce,
                      .ranks = static_cast<std::uint32_t>(number("gpus")),
                      .nodes = static_cast<std::uint32_t>(number("nodes"))};
    for (const Known& k : known)
      if (group.nodes > 1 && system.find(k.words) != std::string::npos) group.network = k.network;
    // Without a size it is a large one.
    const double size = number("size_bytes") > 0 ? number("size_bytes") : 1073741824.0;
    const double time = number("time_us") > 0 ? number("time_us") * 1e-6
                                              : size * 2 * (group.ranks - 1) / group.ranks /
                                                    (number("busbw_gbs") * 1e9);
    const std::string gpu(table.cell(r, "gpu_id"));
    comm::NcclOverrides overrides;
    if (system.find("ring only") != std::string::npos) overrides.algorithm = Algorithm::kRing;
    score(accuracy, group.nodes > 1 ? several : one, gpu == "a100" ? "a100_sxm4_80" : gpu, system,
          group, overrides, Bytes::b(size), Seconds::s(time));
  }
  for (CollectiveCase* c : {&one, &several})
    if (!c->rows.empty()) accuracy.cases.push_back(std::move(*c));
  return {};
}

/// Vidur's two nodes. Their network is not stated; one NIC of 100 Gbit/s for each with EFA's share is
/// what they look like.
Status two_nodes(const fs::path& data, CollectiveAccuracy& accuracy) {
  const MeasuredTable table =
      TRY(read_worker_csv(data / "vidur-profiles" / "network" / "a100_dgx" / "all_reduce.csv.gz",
                          CollectiveKind::kAllReduce, "a100_sxm4_80", 2));
  CollectiveCase scored{
      .name = "a100, Vidur, two nodes",
      .about =
          "1, 2, 4 and 8 devices on each node, timed inside PyTorch; the network is not "
          "stated and was taken, with these rows in sight, as one NIC of 100 Gbit/s for each "
          "node with EFA's share",
      .blind = false};
  const Calibrated a100 = *comm::calibration_for("a100_sxm4_80");
  for (const MeasuredRow& r : table.rows) {
    const CollectiveCost cost = TRY(CollectiveCost::resolve(
        a100, {.kind = r.kind,
               .ranks = r.ranks,
               .nodes = 2,
               .network = comm::Network{comm::NetworkKind::kEfa, ByteRate::gb_per_s(12.5),
                                        Seconds::us(20)}}));
    comm::Price p = cost.at(r.size);
    p.time = comm::in_framework(p.time, comm::framework_timing());
    scored.rows.push_back({a100.calibration.device, r, p.time.value, p.time.low, p.time.high});
  }
  accuracy.cases.push_back(std::move(scored));
  return {};
}

}  // namespace

Status price_nodes(const fs::path& data, CollectiveAccuracy& accuracy) {
  TRY(reports(data, accuracy));
  return two_nodes(data, accuracy);
}

}  // namespace rehearse::cli
