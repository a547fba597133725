#include "sim/cluster/link_types.h"

#include <array>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cluster {
namespace {

struct Row {
  std::string_view name;
  double gb_per_s;
  double latency_us;
  std::string_view source;
};

// REC: recalled, to be overridden where measured. NCCL-TOPO: constants of NCCL's topology model.
// NCCL-ISS: figures reported in NCCL's issues. AIC-MEAS: nccl-tests of the AIConfigurator project.
// WEB-IB: published ib_write_bw and ib_write_lat runs.
constexpr std::array kRows = {
    Row{"ib_edr_100", 12.08, 1.0, "WEB-IB"},
    Row{"ib_fdr_56", 6.0, 1.2, "REC"},
    Row{"ib_hdr_200", 24.2, 1.0, "REC"},
    Row{"ib_ndr_400", 47, 1.0, "NCCL-ISS"},
    Row{"ib_xdr_800", 94, 1.0, "REC"},
    Row{"nvlink1_p100_pair_1link", 16, 1.8, "REC, a fourth of nvlink1_p100"},
    Row{"nvlink2_v100", 120, 1.8, "REC+NCCL-TOPO"},
    Row{"nvlink2_v100_pair_1link", 22.5, 1.8, "REC"},
    Row{"nvlink3_a100_direct_4gpu_nv4", 72, 2.0, "NCCL-ISS, latency as of nvlink3_a100_nvswitch"},
    Row{"nvlink3_a100_nvswitch", 235, 2.0, "NCCL-ISS+AIC-MEAS"},
    Row{"nvlink4_h100_nvswitch", 370, 2.0, "NCCL-ISS"},
    Row{"nvlink4_h100_pcie_bridge", 116, 2.0, "NCCL-ISS, latency as of nvlink4_h100_nvswitch"},
    Row{"nvlink5_b200_nvswitch", 700, 2.0, "AIC-MEAS"},
    Row{"pcie3_x16", 12, 1.0, "NCCL-TOPO"},
    Row{"pcie4_x16", 24.5, 1.0, "REC"},
    Row{"pcie5_x16", 52, 1.0, "REC"},
    Row{"qpi_upi_cross_socket_skl", 10, 0.5, "NCCL-TOPO, latency assumed"},
    Row{"roce_100", 11.6, 2.0, "REC"},
    Row{"roce_200", 23.0, 2.0, "REC"},
    Row{"roce_400", 46, 2.0, "REC"},
    Row{"tcp_100g", 9.5, 25, "REC"},
    Row{"tcp_10g", 1.15, 40, "REC"},
    Row{"tcp_1g", 0.117, 60, "REC"},
    Row{"tcp_25g", 2.8, 30, "REC"},
    Row{"tcp_50g", 5.3, 30, "REC"},
};

}  // namespace

Result<LinkType> link_type_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) {
    if (row.name == name)
      return LinkType{.name = std::string(row.name),
                      .rate = ByteRate::gb_per_s(row.gb_per_s),
                      .latency = Seconds::us(row.latency_us),
                      .source = std::string(row.source)};
    names.push_back(row.name);
  }
  return fail(fmt::format("unknown link '{}'", name), suggest(name, names));
}

}  // namespace rehearse::cluster
