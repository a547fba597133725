#include "cli/commands/served_load.h"

namespace rehearse::cli {
namespace {

using serving::Measures;
using serving::Request;
using serving::Run;
using serving::Spread;

/// Deals requests to the replicas in turn. Each replica keeps its part of those in flight.
Result<std::vector<Run>> run_replicas(const ServeFile& file, const serving::StepPrice& price,
                                      const serving::Rules& rules, double scale, bool at_once) {
  const std::size_t replicas = file.deployment.plan.data;
  std::vector<Run> runs;
  for (std::size_t r = 0; r < replicas && r < file.requests.size(); ++r) {
    std::vector<Request> own;
    for (std::size_t i = r; i < file.requests.size(); i += replicas) {
      own.push_back(file.requests[i]);
      if (at_once) own.back().planned = Picoseconds(0);
    }
    const auto parts = static_cast<std::int64_t>(replicas);
    const std::int64_t in_flight =
        at_once || file.in_flight == 0
            ? 0
            : std::max<std::int64_t>(
                  1, (file.in_flight + parts - 1 - static_cast<std::int64_t>(r)) / parts);
    Result<Run> run =
        serving::run(rules, price, own, {.most_in_flight = in_flight, .scale = scale});
    if (!run) return forward(run);
    runs.push_back(std::move(*run));
  }
  return runs;
}

}  // namespace

Estimate<Seconds> ServedLoad::ttft(double Spread::*which) const {
  const auto of = [&](const Measures& m) { return Seconds::s(m.ttft.*which); };
  Estimate<Seconds> time = estimate<Seconds>(of);
  const Estimate<double> reach = price.reach_of_first_token();
  time.low = std::min(time.low, time.value * reach.low);
  time.high = std::max(time.high, time.value * reach.high);
  return time;
}

Estimate<Seconds> ServedLoad::end_to_end(double Spread::*which) const {
  const auto of = [&](const Measures& m) { return Seconds::s(m.end_to_end.*which); };
  const auto first_of = [&](const Measures& m) { return Seconds::s(m.ttft.*which); };
  Estimate<Seconds> time = estimate<Seconds>(of);
  const Estimate<Seconds> steps = estimate<Seconds>(first_of), first = ttft(which);
  time.low = time.low - (steps.low - first.low);
  time.high = time.high + (first.high - steps.high);
  return time;
}

Result<ServedLoad> serve(const ServeFile& file) {
  Result<serving::StepPrice> price = serving::StepPrice::of(file.deployment);
  if (!price) return forward(price);
  Result<serving::CacheSpace> space =
      serving::cache_space(file.deployment, {.memory = file.memory,
                                             .block_tokens = file.rules.block_tokens,
                                             .step_tokens = file.rules.tokens_per_step,
                                             .rows = file.rules.most_rows});
  if (!space) return forward(space);
  serving::Rules rules = file.rules;
  rules.blocks = space->blocks;
  const Estimate<double> reach = price->reach();
  ServedLoad load{.file = file,
                  .price = std::move(*price),
                  .space = *space,
                  .measures = {},
                  .replicas = {},
                  .provenance = reach.provenance};
  const double scales[] = {1, reach.low, reach.high};
  for (std::size_t i = 0; i < std::size(scales); ++i) {
    Result<std::vector<Run>> runs = run_replicas(file, load.price, rules, scales[i], false);
    if (!runs) return forward(runs);
    load.measures[i] = serving::measure(*runs, rules.blocks);
    load.replicas[i] = std::move(*runs);
  }
  return load;
}

Result<double> capacity_of(const ServedLoad& load) {
  serving::Rules rules = load.file.rules;
  rules.blocks = load.space.blocks;
  const Result<std::vector<Run>> all = run_replicas(load.file, load.price, rules, 1, true);
  if (!all) return forward(all);
  const Measures at_once = serving::measure(*all, rules.blocks);
  return at_once.requests / at_once.duration;
}

}  // namespace rehearse::cli
