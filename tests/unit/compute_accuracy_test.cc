// The shipped constants against measured rows that no fit saw, if these are next to the source
// tree. Large rows only: what a benchmark adds to each call does not count there.
#include <cmath>

#include <catch2/catch.hpp>

#include "cli/calibrate/device_names.h"
#include "models/compute/transfer.h"
#include "tests/support/data.h"
#include "tests/validation/studies/operation_fits.h"

namespace rehearse::cli {
namespace {

TEST_CASE("benchmark tables' names of devices are understood") {
  const std::pair<const char*, const char*> names[] = {{"Tesla V100-PCIE-32GB", "v100_pcie_32"},
                                                       {"NVIDIA A100-PCIE-40GB", "a100_pcie_40"},
                                                       {"NVIDIA A100 80GB PCIe", "a100_pcie_80"},
                                                       {"NVIDIA A100-SXM4-80GB", "a100_sxm4_80"},
                                                       {"NVIDIA H100 80GB HBM3", "h100_sxm5_80"},
                                                       {"H100 80GB PCIe Gen5", "h100_pcie_80"},
                                                       {"NVIDIA L4", "l4"},
                                                       {"NVIDIA L40S", "l40s"},
                                                       {"NV 1080Ti", "gtx1080ti"},
                                                       {"AMD Instinct MI250", "mi250_gcd"},
                                                       {"LambdaCloud 8xV100 16GB", "v100_pcie_16"}};
  for (const auto& [name, id] : names) {
    const auto gpu = device_named(name);
    REQUIRE(gpu);
    if (std::string_view(id) == "v100_pcie_16")
      CHECK((*gpu)->name.starts_with("v100_"));
    else
      CHECK((*gpu)->name == id);
  }
  CHECK_FALSE(device_named("Intel Gaudi 2"));
}

/// Mean |predicted / measured - 1| of rows that were left out and take from 1 ms on.
double mean_error(const DealtOperations& d) {
  compute::Constants constants =
      compute::constants_for(d.table.measured.facts, compute::shipped_calibrations()).constants;
  constants.attention_kernels = d.table.kernels;
  double sum = 0, rows = 0;
  for (const compute::MeasuredOp& r : d.blind) {
    if (r.time < Seconds::ms(1)) continue;
    const double p = compute::predict(d.table.measured.facts, constants, r.op).seconds;
    sum += std::abs(p / r.time.s() - 1);
    ++rows;
  }
  return rows > 0 ? sum / rows : 0;
}

TEST_CASE("large operations on known devices, shapes outside the fit") {
  const auto data = test::shared_data("neusight-models");
  SKIP_WITHOUT_DATA(data);
  const Result<std::vector<DealtOperations>> dealt = deal_operations(data->parent_path());
  REQUIRE(dealt);
  std::size_t checked = 0;
  const auto check = [&](const char* device, const char* kind, double most) {
    for (const DealtOperations& d : *dealt) {
      if (d.device() != device || d.table.kind != kind) continue;
      INFO(device << " " << kind);
      CHECK(mean_error(d) < most);
      ++checked;
    }
  };
  check("v100_pcie_32", "linear", 0.05);
  check("a100_pcie_40", "linear", 0.06);
  check("h100_sxm5_80", "linear", 0.07);
  check("a100_sxm4_80", "bf16", 0.06);
  for (const char* device : {"v100_pcie_32", "a100_pcie_40", "p100_pcie_16", "t4"}) {
    check(device, "elementwise", 0.03);
    check(device, "norm", 0.06);
    check(device, "softmax", 0.09);
  }
  check("a100_sxm4_80", "attention, vllm_flash_attn", 0.15);
  check("h100_sxm5_80", "attention, vllm_flash_attn", 0.1);
  check("h100_sxm5_80", "attention, torch_flow", 0.12);
  CHECK(checked == 19);
}

}  // namespace
}  // namespace rehearse::cli
