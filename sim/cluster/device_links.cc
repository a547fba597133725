#include "sim/cluster/device_links.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cluster {
namespace {

constexpr NodeKind kPcie = NodeKind::kPcie, kNvswitch = NodeKind::kNvswitch,
                   kCube = NodeKind::kHybridCubeMesh, kMesh = NodeKind::kMesh;
constexpr std::string_view kNvlink3 = "nvlink3_a100_nvswitch", kNvlink4 = "nvlink4_h100_nvswitch",
                           kNvlink5 = "nvlink5_b200_nvswitch";

// Device links and PCIe generations are from data sheets; NICs are those of the maker's own node:
// DGX-1 (4 EDR), DGX A100 (8 HDR), DGX H100, H200 and B200 (8 NDR). MI300X: seven links to its
// peers, whose achieved rate is missing from the table of links.
constexpr std::array kTable = {
    DeviceLinks{"a10", kPcie, "", "pcie4_x16", "tcp_100g", 0},
    DeviceLinks{"a100_pcie_40", kPcie, "", "pcie4_x16", "ib_hdr_200", 0},
    DeviceLinks{"a100_pcie_80", kPcie, "", "pcie4_x16", "ib_hdr_200", 0},
    DeviceLinks{"a100_sxm4_40", kNvswitch, kNvlink3, "pcie4_x16", "ib_hdr_200", 1},
    DeviceLinks{"a100_sxm4_80", kNvswitch, kNvlink3, "pcie4_x16", "ib_hdr_200", 1},
    DeviceLinks{"a10g", kPcie, "", "pcie4_x16", "tcp_50g", 0},
    DeviceLinks{"a30", kPcie, "", "pcie4_x16", "tcp_100g", 0},
    DeviceLinks{"a40", kPcie, "", "pcie4_x16", "tcp_100g", 0},
    DeviceLinks{"b200_sxm_180", kNvswitch, kNvlink5, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"b300", kNvswitch, kNvlink5, "pcie6_x16", "ib_xdr_800", 1},
    DeviceLinks{"gb200_186", kNvswitch, kNvlink5, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"gh200_144", kNvswitch, kNvlink4, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"gh200_96", kNvswitch, kNvlink4, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"h100_nvl_94", kPcie, "", "pcie5_x16", "ib_ndr_400", 0},
    DeviceLinks{"h100_pcie_80", kPcie, "", "pcie5_x16", "ib_ndr_400", 0},
    DeviceLinks{"h100_sxm5_80", kNvswitch, kNvlink4, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"h100_sxm5_96", kNvswitch, kNvlink4, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"h100_sxm5_96_500w", kNvswitch, kNvlink4, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"h200_nvl_141", kPcie, "", "pcie5_x16", "ib_ndr_400", 0},
    DeviceLinks{"h200_sxm_141", kNvswitch, kNvlink4, "pcie5_x16", "ib_ndr_400", 1},
    DeviceLinks{"k80", kPcie, "", "pcie3_x16", "tcp_10g", 0},
    DeviceLinks{"l4", kPcie, "", "pcie4_x16", "tcp_50g", 0},
    DeviceLinks{"l40s", kPcie, "", "pcie4_x16", "tcp_100g", 0},
    DeviceLinks{"mi250x", kMesh, "", "pcie4_x16", "ib_hdr_200", 1},
    DeviceLinks{"mi300x", kMesh, "", "pcie5_x16", "roce_400", 1},
    DeviceLinks{"p100_pcie_16", kPcie, "", "pcie3_x16", "tcp_10g", 0},
    DeviceLinks{"p100_sxm2_16", kCube, "nvlink1_p100_pair_1link", "pcie3_x16", "ib_edr_100", 2},
    DeviceLinks{"quadro_rtx6000", kPcie, "", "pcie3_x16", "tcp_10g", 0},
    DeviceLinks{"rtx2080ti", kPcie, "", "pcie3_x16", "tcp_10g", 0},
    DeviceLinks{"rtx3090", kPcie, "", "pcie4_x16", "tcp_10g", 0},
    DeviceLinks{"rtx4090", kPcie, "", "pcie4_x16", "tcp_10g", 0},
    DeviceLinks{"rtx_a6000", kPcie, "", "pcie4_x16", "tcp_10g", 0},
    DeviceLinks{"rtx_pro_6000_server", kPcie, "", "pcie5_x16", "tcp_100g", 0},
    DeviceLinks{"t4", kPcie, "", "pcie3_x16", "tcp_50g", 0},
    DeviceLinks{"v100_pcie_16", kPcie, "", "pcie3_x16", "tcp_10g", 0},
    DeviceLinks{"v100_pcie_32", kPcie, "", "pcie3_x16", "tcp_10g", 0},
    DeviceLinks{"v100_sxm2_16", kCube, "nvlink2_v100_pair_1link", "pcie3_x16", "ib_edr_100", 2},
    DeviceLinks{"v100_sxm2_32", kCube, "nvlink2_v100_pair_1link", "pcie3_x16", "ib_edr_100", 2},
};

DeviceLinks card(const Gpu& gpu) {
  const std::uint32_t generation = gpu.pcie ? gpu.pcie->generation : 3;
  const std::string_view host = generation >= 5   ? "pcie5_x16"
                                : generation == 4 ? "pcie4_x16"
                                                  : "pcie3_x16";
  return {gpu.name, kPcie, "", host, "tcp_10g", 0};
}

}  // namespace

Result<DeviceLinks> links_of_device(std::string_view model) {
  const std::size_t colon = model.find(':');
  const std::string_view name = model.substr(0, colon);
  if (model == kCpu) return DeviceLinks{kCpu, kPcie, "", "pcie4_x16", "tcp_100g", 0};
  const Result<const Gpu*> gpu = find_gpu(name);
  if (!gpu) {
    std::vector<std::string_view> names;
    for (const Gpu& each : gpus()) names.push_back(each.name);
    return fail(fmt::format("unknown device '{}'", name), suggest(name, names));
  }
  const auto row = std::find_if(kTable.begin(), kTable.end(),
                                [&](const DeviceLinks& each) { return each.model == name; });
  // Cards without further data are on PCIe.
  DeviceLinks links = row != kTable.end() ? *row : card(**gpu);
  if (colon != std::string_view::npos) {
    links.joined = NodeKind::kPcie;
    links.link = {};
  }
  return links;
}

std::string_view link_of_device(const DeviceLinks& device, NodeKind kind) {
  if (kind == device.joined) return device.link;
  if (kind == NodeKind::kNvswitch && has_double_links(device)) return "nvlink2_v100";  // DGX-2
  if (kind == NodeKind::kMesh && device.link == kNvlink3) return "nvlink3_a100_direct_4gpu_nv4";
  if (kind == NodeKind::kNvlinkPairs && device.model == "h100_pcie_80")
    return "nvlink4_h100_pcie_bridge";
  return {};
}

bool has_double_links(const DeviceLinks& device) {
  return device.link == "nvlink2_v100_pair_1link";
}

}  // namespace rehearse::cluster
