#include "models/step/conditions.h"

#include <fmt/core.h>

namespace rehearse::step {
namespace {

struct Row {
  std::string_view architecture;  ///< the beginning of the catalog's
  double gemm;
};

// Fitted on part of the rows of whole jobs; docs/accuracy.md has the errors on all. Benchmarks run
// at clocks that a step of seconds does not keep: A100 at 400 W loses less than H100 at 700 W. Of
// Blackwell nothing was fitted: what is set for all others predicts its published jobs.
constexpr double kOthers = 1.2;
constexpr Row kRows[] = {{"ampere_ga100", 1.16},
                         {"hopper", 1.30},
                         {"blackwell_gb100", kOthers},
                         {"blackwell_ultra", kOthers}};
/// Share of the peak memory rate: kernels fused by hand or by a compiler (Megatron-LM on A100), and
/// those of PyTorch as they are (MPT on A100 and H100).
constexpr double kFusedShare = 0.76, kEagerShare = 0.52;

void read_factor(const YamlMap& map, std::string_view key, double least, double most,
                 double& value) {
  const std::optional<double> given = map.optional<double>(key);
  if (!given) return;
  if (!(*given >= least && *given <= most))
    map.report(key, fmt::format("{:g} is out of range", *given),
               fmt::format("a number from {:g} to {:g}", least, most));
  else
    value = *given;
}

void read_factor(const YamlMap& map, std::string_view key, double least, double most,
                 std::optional<double>& value) {
  double factor = value.value_or(0);
  if (!map.has(key)) return;
  read_factor(map, key, least, most, factor);
  value = factor;
}

void read_time(const YamlMap& map, std::string_view key, Seconds& value) {
  const std::optional<Seconds> given = map.optional<Seconds>(key);
  if (!given) return;
  if (*given < Seconds::s(0))
    map.report(key, "a time is not negative");
  else
    value = *given;
}

}  // namespace

Conditions conditions_for(const cluster::Gpu& device, workload::Elementwise elementwise) {
  const double memory = elementwise == workload::Elementwise::kUnfused ? kEagerShare : kFusedShare;
  for (const Row& row : kRows)
    if (device.architecture.starts_with(row.architecture))
      return {.sustained = {.gemm = row.gemm, .memory = memory},
              .source = fmt::format("sustained as in published jobs on {}", row.architecture)};
  return {.sustained = {.gemm = kOthers, .memory = memory},
          .fastest = 0.8,
          .slowest = 1.5,
          .provenance = Provenance::kDatasheet,
          .source = "sustained as in published jobs on other architectures"};
}

void read_conditions(const YamlMap& map, Conditions& conditions) {
  read_factor(map, "gemm", 0.8, 2, conditions.sustained.gemm);
  read_factor(map, "memory", 0.1, 1, conditions.sustained.memory);
  read_factor(map, "attention", 0.02, 1, conditions.sustained.attention);
  read_factor(map, "scale", 0.5, 3, conditions.scale);
  read_factor(map, "fp8", 0.4, 1, conditions.fp8);
  read_factor(map, "beside", 0, 1, conditions.beside);
  read_time(map, "host_per_kernel", conditions.host_per_kernel);
  read_time(map, "fixed", conditions.fixed);
  read_factor(map, "fastest", 0.3, 1, conditions.fastest);
  read_factor(map, "slowest", 1, 5, conditions.slowest);
  if (const std::optional<std::string> source = map.optional<std::string>("source"))
    conditions.source = *source;
  else
    conditions.source = "given in the job";
  map.no_other_keys();
}

}  // namespace rehearse::step
