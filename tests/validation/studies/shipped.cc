#include "tests/validation/studies/shipped.h"

#include <cmath>
#include <map>

#include <fmt/core.h>

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using comm::Fabric;
using comm::Generation;
using comm::MeasuredRow;

constexpr std::size_t kLeftOut = 4;
constexpr char kEveryFourth[] = "three of four sizes of each curve; every fourth is left out";
constexpr char kGrid[] = "eight sizes per doubling of each curve; the others are left out";

struct Device {
  std::string_view name;
  Fabric fabric;
  Generation generation;
  std::uint32_t links;
};
constexpr Device kDevices[] = {{"a100_sxm4_80", Fabric::kNvswitch, Generation::kAmpere, 12},
                               {"b200_sxm_180", Fabric::kNvswitch, Generation::kBlackwell, 18},
                               {"b300", Fabric::kNvswitch, Generation::kBlackwell, 18},
                               {"h100_sxm5_80", Fabric::kNvswitch, Generation::kHopper, 18},
                               {"l40s", Fabric::kHostStaged, Generation::kAmpere, 0}};

bool every_fourth(std::size_t place, std::size_t curve) { return (place + curve) % kLeftOut == 3; }

void deal_every_fourth(Dealt& dealt, const std::vector<MeasuredRow>& rows) {
  for (const MeasuredRow& r :
       sift(rows, [](auto place, auto curve) { return !every_fourth(place, curve); }))
    dealt.fitted.push_back(r);
  for (const MeasuredRow& r : sift(rows, every_fourth)) dealt.blind.push_back(r);
}

void deal_grid(Dealt& dealt, const std::vector<MeasuredRow>& rows) {
  std::map<std::pair<CollectiveKind, std::uint32_t>, double> last;
  for (const MeasuredRow& r : rows) {
    const double step = std::floor(8 * std::log2(r.size.b()));
    auto [found, first] = last.try_emplace({r.kind, r.ranks}, step);
    const bool taken = first || step > found->second;
    if (taken) found->second = step;
    (taken ? dealt.fitted : dealt.blind).push_back(r);
  }
}

comm::FitRequest request_of(const Device& device, const MeasuredTable& table, std::string used) {
  return {.device = std::string(device.name),
          .fabric = device.fabric,
          .generation = device.generation,
          .links = device.links,
          .source = table.source,
          .rows_used = std::move(used),
          .nccl_version = table.nccl_version,
          .date = table.date};
}

}  // namespace

Result<std::vector<Dealt>> deal_shipped(const fs::path& data) {
  std::vector<Dealt> all;
  const auto measured = find_data(data, "nccl_measured.csv");
  if (!measured)
    return fail(
        Diagnostic{.file = data.string(),
                   .problem = "has no nccl_measured.csv, nor has 'facts' in the same folder"});
  const std::vector<MeasuredTable> tables = TRY(read_measured_csv(*measured));
  const fs::path vidur = data / "vidur-profiles" / "network";
  for (const MeasuredTable& table : tables)
    for (const Device& device : kDevices) {
      if (device.name != table.device) continue;
      Dealt dealt{.request = request_of(device, table, kEveryFourth), .fitted = {}, .blind = {}};
      deal_every_fourth(dealt, table.rows);
      const bool a100 = table.device == "a100_sxm4_80";
      if (a100 || table.device == "h100_sxm5_80") {
        const MeasuredTable messages =
            TRY(read_worker_csv(vidur / (a100 ? "a100_dgx" : "h100_dgx") / "send_recv.csv.gz",
                                CollectiveKind::kSendRecv, table.device));
        deal_grid(dealt, messages.rows);
        dealt.request.source += "; " + messages.source;
        dealt.request.rows_used += fmt::format("; of send_recv {}", kGrid);
      }
      all.push_back(std::move(dealt));
    }
  const auto grid = [&](const Device& device, const Result<MeasuredTable>& table) -> Status {
    if (!table) return forward(table);
    Dealt dealt{.request = request_of(device, *table, kGrid), .fitted = {}, .blind = {}};
    deal_grid(dealt, table->rows);
    all.push_back(std::move(dealt));
    return {};
  };
  const fs::path vtrain = data / "vtrain-megatron-a100";
  TRY(grid({"v100_sxm2_16", Fabric::kCubeMesh, Generation::kVolta, 6},
           read_lookup_tables(vtrain / "nccl_allreduce_v100", "v100_sxm2_16")));
  for (const bool a100 : {true, false})
    TRY(grid({a100 ? "a100_pcie_80" : "h100_pcie_80", Fabric::kBridgedPairs,
              a100 ? Generation::kAmpere : Generation::kHopper, 0},
             read_worker_csv(vidur / (a100 ? "a100_pairwise_nvlink" : "h100_pairwise_nvlink") /
                                 "all_reduce.csv.gz",
                             CollectiveKind::kAllReduce, a100 ? "a100_pcie_80" : "h100_pcie_80")));
  return all;
}

}  // namespace rehearse::cli
