#include "strategies/step/conditions.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/comm/reach.h"
#include "models/compute/transfer.h"
#include "strategies/stage_groups.h"

namespace rehearse::step {

namespace {

struct Row {
  std::string_view architecture;  ///< the beginning of the catalog's
  double gemm;
  program::Interval kernels = kKernelBound;
};

// Fitted on part of the rows of whole jobs; docs/accuracy.md has the errors on all. Benchmarks run
// at clocks that a step of seconds does not sustain: A100 at 400 W loses less than H100 at 700 W.
// Nothing was fitted on Blackwell: the value for all other devices predicts its published jobs,
// which are in FP8 or mixtures.
constexpr double kOthers = 1.2;
constexpr Row kRows[] = {{"ampere_ga100", 1.16},
                         {"hopper", 1.30},
                         {"blackwell_gb100", kOthers, kOtherKernelBound},
                         {"blackwell_ultra", kOthers, kOtherKernelBound}};
/// From 320 steps on four architectures, each predicted by what jobs on the others say
/// (docs/concepts/intervals.md).
constexpr program::Interval kOtherArchitecture{0.72, 1.44};
/// The share of the peak memory rate: kernels fused by hand or by a compiler (Megatron-LM on A100),
/// and unfused PyTorch kernels (MPT on A100 and H100).
constexpr double kFusedShare = 0.76, kEagerShare = 0.52;

/// With blocking launches (CUDA_LAUNCH_BLOCKING) the device idles before each kernel until its host
/// wakes up. A launch and a wake-up take 10 to 15 us in recordings, and the launch's 4 us are in the
/// host's time too.
constexpr Seconds kWakeUp = Seconds::us(8.5);

/// Reads the value at a key, if it is in range, into each of the conditions.
class Reader {
 public:
  Reader(const YamlMap& map, std::span<Conditions> all) : map_(map), all_(all) {}

  template <class Member>
  void factor(std::string_view key, double least, double most, Member member) const {
    if (const std::optional<double> given = map_.within(key, least, most))
      for (Conditions& conditions : all_) member(conditions) = *given;
  }
  void time(std::string_view key, Seconds Conditions::*member) const {
    const std::optional<Seconds> given = map_.optional<Seconds>(key);
    if (!given) return;
    if (*given < Seconds::s(0))
      map_.report(key, "a time is not negative");
    else
      for (Conditions& conditions : all_) conditions.*member = *given;
  }

 private:
  const YamlMap& map_;
  std::span<Conditions> all_;
};

/// What measured steps determine, as `calibrate job` writes it.
std::optional<Known> read_known(const YamlMap& map) {
  const std::optional<YamlMap> intervals = map.map("interval");
  std::vector<std::string> regimes = map.list<std::string>("regimes");
  if (!intervals) return std::nullopt;
  const auto read = [&](std::string_view key) -> program::Interval {
    const std::vector<double> ends = intervals->list<double>(key);
    if (ends.size() == 2 && ends[0] > 0 && ends[0] <= 1 && ends[1] >= 1 && ends[1] <= 1000)
      return {ends[0], ends[1]};
    intervals->report(key, "is not an interval", "two factors such as [0.9, 1.2], around 1");
    return {};
  };
  Known known{.step = read("step"), .regimes = std::move(regimes)};
  for (std::size_t k = 0; k < kFactors; ++k) known.factors[k] = read(kFactorNames[k]);
  intervals->no_other_keys();
  return known;
}

/// The host's times: an implementation of the catalog, or the time of each block.
void read_host(const YamlMap& map, std::span<Conditions> all) {
  std::vector<std::string_view> names;
  for (const host::Implementation& each : host::implementations()) names.emplace_back(each.name);
  if (const std::optional<std::size_t> i = map.choice("implementation", names))
    for (Conditions& conditions : all) {
      conditions.host = host::implementations()[*i];
      // A fitted scale contains it.
      if (!map.has("scale") && !conditions.known) conditions.scale *= conditions.host.computing;
    }
  if (const std::optional<Seconds> block = map.optional<Seconds>("host_per_layer")) {
    if (*block < Seconds::s(0)) map.report("host_per_layer", "a time is not negative");
    for (Conditions& conditions : all)
      conditions.host = {.name = "given",
                         .layer = *block,
                         .layer_tensor = *block,
                         .layer_pipeline = *block,
                         .source = "given in the job"};
  }
  if (const std::optional<double> cores = map.within("cores_per_rank", 0.01, 1024.0))
    for (Conditions& conditions : all)
      conditions.host = host::scaled(conditions.host, std::max(1.0, 1 / *cores));
  if (map.optional<bool>("launch_blocking").value_or(false))
    for (Conditions& conditions : all) {
      conditions.blocking = true;
      conditions.idle_per_kernel += kWakeUp;
    }
}

}  // namespace

Estimate<Seconds> interval_of(const Estimate<Seconds>& step, const ByFactor<double>& shares,
                              const Known& known) {
  double down = std::log(known.step.low), up = std::log(known.step.high);
  for (std::size_t k = 0; k < kFactors; ++k) {
    down = std::hypot(down, shares[k] * std::log(known.factors[k].low));
    up = std::hypot(up, shares[k] * std::log(known.factors[k].high));
  }
  return {step.value, step.value * std::exp(-down), step.value * std::exp(up), step.provenance};
}

Conditions conditions_for(const cluster::Gpu& device, workload::Elementwise elementwise) {
  const compute::DeviceFacts facts = compute::facts_of(device);
  const double memory = elementwise == workload::Elementwise::kUnfused ? kEagerShare : kFusedShare;
  const bool compiled = elementwise == workload::Elementwise::kCompiled;
  const host::Implementation& host = host::implementation_named(compiled ? "compiled" : "eager");
  for (const Row& row : kRows)
    if (device.architecture.starts_with(row.architecture))
      return {.sustained = {.gemm = row.gemm, .memory = memory},
              .host = host,
              .fastest = row.kernels.low,
              .slowest = row.kernels.high,
              .source = fmt::format("sustained as in published jobs on {}", row.architecture)};
  return {
      .sustained = {.gemm = std::max(1.0, kOthers / compute::spare_share(facts)), .memory = memory},
      .host = host,
      .fastest = kOtherArchitecture.low,
      .slowest = kOtherArchitecture.high,
      .provenance = Provenance::kDatasheet,
      .source = "sustained as in published jobs on other architectures"};
}

void take_plain_loop(Conditions& conditions) {
  conditions.fixed = Seconds::ms(3);
  conditions.least_fixed = Seconds::ms(0.5);
  conditions.most_fixed = Seconds::ms(30);
}

void set_fixed(Conditions& conditions, Seconds fixed) {
  conditions.fixed = conditions.least_fixed = conditions.most_fixed = fixed;
}

void widen_kernels(Conditions& conditions) {
  conditions.fastest = std::min(conditions.fastest, kOtherKernelBound.low);
  conditions.slowest = std::max(conditions.slowest, kOtherKernelBound.high);
}

host::Implementation host_of(const Conditions& conditions) {
  return host::scaled(conditions.host, conditions.host_scale);
}

strategies::JobOptions job_options(const Conditions& conditions) {
  return {.host_per_kernel = conditions.host_per_kernel,
          .host = host_of(conditions),
          .blocking = conditions.blocking,
          .fixed = conditions.fixed};
}

namespace {

/// The steps of rings that gather or scatter among the tensor ranks of a dense block.
double ring_steps_of_block(const workload::Layout& layout) {
  const workload::Stage& stage = layout.stages.front();
  for (const workload::Layer& layer : stage.chunks.front().layers) {
    if (layer.host_work == 0) continue;
    double rings = 0;
    for (const std::vector<workload::Op>* ops : {&layer.forward, &layer.backward})
      rings += static_cast<double>(std::ranges::count_if(*ops, [](const workload::Op& op) {
        return op.communicates() && strategies::group_kind(op) == strategies::GroupKind::kTensor &&
               (op.collective == CollectiveKind::kAllGather ||
                op.collective == CollectiveKind::kReduceScatter);
      }));
    return rings * (stage.degrees.tensor - 1) / layer.host_work;
  }
  return 0;
}

}  // namespace

strategies::JobOptions job_options(const Conditions& conditions, const Situation& situation,
                                   const workload::Layout& layout) {
  strategies::JobOptions options = job_options(conditions);
  options.over_efa = situation.pipeline_over_nodes && situation.network == comm::NetworkKind::kEfa;
  // What holds up the ranks of a tensor group one after the other also delays the steps of its rings:
  // their waits for the network follow the host's, where a group spans nodes.
  if (options.over_efa && situation.tensor_nodes > 1 && options.host.knows_efa()) {
    const comm::Network efa{comm::NetworkKind::kEfa, ByteRate::bytes_per_s(0), Seconds::s(0)};
    options.host.rank_over_efa += comm::reach_of(efa).step * (ring_steps_of_block(layout) /
                                                              layout.stages.front().degrees.tensor);
  }
  if (!conditions.measured)
    options.fixed +=
        median_stall(regime_of(situation), layout, conditions.host, situation.whole_gradients);
  if (situation.divided_update) options.fixed_of_block = conditions.host.divided_update;
  return options;
}

void read_conditions(const YamlMap& map, std::span<Conditions> all) {
  const Reader read(map, all);
  using C = Conditions;
  read.factor(
      "gemm", 0.8, 2, [](C & c) -> auto& { return c.sustained.gemm; });
  read.factor(
      "memory", 0.1, 1, [](C & c) -> auto& { return c.sustained.memory; });
  read.factor(
      "attention", 0.02, 1, [](C & c) -> auto& { return c.sustained.attention; });
  if (const auto kernels = map.choice("attention_kernels", compute::kAttentionFamilyNames))
    for (Conditions& conditions : all)
      conditions.sustained.attention_kernels = static_cast<compute::AttentionKernels>(*kernels);
  read.factor(
      "scale", kLeastScale, kMostScale, [](C & c) -> auto& { return c.scale; });
  read.factor(
      "host_scale", kLeastPart, kMostPart, [](C & c) -> auto& { return c.host_scale; });
  read.factor(
      "network_scale", kLeastPart, kMostPart, [](C & c) -> auto& { return c.network_scale; });
  read.factor(
      "fp8", 0.4, 1, [](C & c) -> auto& { return c.fp8; });
  read.factor(
      "overlap_penalty", 0, 1, [](C & c) -> auto& { return c.overlap_penalty; });
  read.time("host_per_kernel", &C::host_per_kernel);
  read_host(map, all);
  read.time("fixed", &C::fixed);
  if (map.has("fixed"))
    for (Conditions& conditions : all) set_fixed(conditions, conditions.fixed);
  read.factor(
      "fastest", 0.3, 1, [](C & c) -> auto& { return c.fastest; });
  read.factor(
      "slowest", 1, 5, [](C & c) -> auto& { return c.slowest; });
  if (map.has("fastest") || map.has("slowest"))
    for (Conditions& conditions : all) conditions.measured = true;
  if (const std::optional<Known> known = read_known(map))
    for (Conditions& conditions : all) conditions.known = known;
  const std::string source = map.optional<std::string>("source").value_or("given in the job");
  for (Conditions& conditions : all) conditions.source = source;
  map.no_other_keys();
}

}  // namespace rehearse::step
