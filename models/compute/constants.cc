#include "models/compute/constants.h"

#include <algorithm>

namespace rehearse::compute {
namespace {

/// Fitted to A100 (half) and to five devices (FP32): docs/concepts/op-cost.md.
constexpr WaveShape kHalfShape = {.tiles = {{{256, 128, 0.97, 5.8e-6},
                                             {128, 128, 0.82, 4.1e-6},
                                             {128, 64, 0.70, 3.2e-6},
                                             {64, 64, 0.52, 2.7e-6}}},
                                  .count = 4,
                                  .cap = 0.93,
                                  .memory = 0.75,
                                  .launch = 1e-6,
                                  .smooth = 5};
constexpr WaveShape kFp32Shape = {.tiles = {{{256, 128, 0.93, 2.3e-6},
                                             {128, 128, 1.00, 2.3e-6},
                                             {128, 64, 0.86, 2.3e-6},
                                             {64, 64, 0.83, 2.3e-6},
                                             {128, 32, 0.98, 2.3e-6},
                                             {32, 32, 0.51, 2.3e-6}}},
                                  .count = 6,
                                  .cap = 1,
                                  .memory = 0.63,
                                  .launch = 1e-6,
                                  .smooth = 5};

/// J per FP32 FLOP at full power, by process.
double energy_per_flop(std::string_view architecture) {
  const auto is = [&](std::string_view prefix) { return architecture.starts_with(prefix); };
  if (is("ampere_ga100") || is("ampere") || is("cdna")) return 9e-12;
  if (is("ada") || is("hopper") || is("blackwell")) return 5.5e-12;
  return 18e-12;
}

/// The power rule: what a device sustains in FP32.
double fp32_factor(const DeviceFacts& facts) {
  constexpr double kTypical = 0.82;
  if (!facts.power_limit) return kTypical;
  const double peak = facts.peak(Arithmetic::kFp32).flop_per_s();
  return std::min(kTypical, facts.power_limit->w() / (peak * energy_per_flop(facts.architecture)));
}

}  // namespace

Constants datasheet_constants(const DeviceFacts& facts) {
  const double fp32 = fp32_factor(facts);
  const double half = facts.vendor == "amd" ? 0.6 : 0.95;
  Constants c{.waves = {kFp32Shape, kHalfShape, kHalfShape, kHalfShape},
              .factors = {fp32, half, facts.half_in_matrix_units ? half : fp32, half},
              .origins = {},
              .memory = {},
              .memory_origin = Provenance::kDatasheet,
              .attention = facts.vendor == "amd" ? 0.3 : 0.45,
              .widths = {}};
  c.origins.fill(Provenance::kDatasheet);
  if (!facts.half_in_matrix_units) c.waves[2] = kFp32Shape;
  c.widths.fill({0.7, 1.5});
  return c;
}

}  // namespace rehearse::compute
