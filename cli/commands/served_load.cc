#include "cli/commands/served_load.h"

#include <cmath>

namespace rehearse::cli {
namespace {

using serving::Measures, serving::Request, serving::Run;

/// With times to the first token that are `slower` times as long. A deadline is a limit, too.
std::size_t kept_if(const ServingSlo& slo, std::span<const Run> replicas, double slower) {
  std::size_t count = 0;
  for (const Run& run : replicas)
    for (const serving::Served& r : run.served) {
      const Seconds first = (r.first - r.sent).seconds(), all = (r.last - r.sent).seconds();
      const double gaps = static_cast<double>(std::max<std::int64_t>(r.output - 1, 1));
      const Seconds later = first * (slower - 1);
      const bool late =
          r.dropped || (r.deadline > Picoseconds(0) && all + later > r.deadline.seconds());
      count += !late && !(slo.ttft && first + later > *slo.ttft) &&
               !(slo.tpot && (all - first) / gaps > *slo.tpot) &&
               !(slo.end_to_end && all + later > *slo.end_to_end);
    }
  return count;
}

}  // namespace

Result<serving::CacheSpace> space_of(const ServeFile& file) {
  return serving::cache_space(file.deployment, {.memory = file.memory,
                                                .block_tokens = file.rules.block_tokens,
                                                .step_tokens = file.rules.tokens_per_step,
                                                .rows = file.rules.most_rows,
                                                .tiers = file.tiers});
}

Result<serving::CacheSpace> prefill_space_of(const ServeFile& file) {
  const PromptPool& pool = *file.prefill;
  return serving::cache_space(prefill_deployment(file), {.memory = pool.memory,
                                                         .block_tokens = pool.rules.block_tokens,
                                                         .step_tokens = pool.rules.tokens_per_step,
                                                         .rows = pool.rules.most_rows,
                                                         .tiers = pool.tiers});
}

Servers servers_of(const ServeFile& file, const PoolPrice& pool,
                   const std::optional<PoolPrice>& prefill) {
  Servers servers{.pool = {.rules = file.rules,
                           .pricer = pool.price,
                           .replicas = file.deployment.plan.data,
                           .routing = file.routing}};
  const auto set = [](const serving::CacheSpace& space, serving::Rules& rules) {
    rules.blocks = space.blocks;
    rules.tiers = space.tiers;
  };
  set(pool.space, servers.pool.rules);
  if (!prefill) return servers;
  servers.prefill.emplace(serving::Pool{.rules = file.prefill->rules,
                                        .pricer = prefill->price,
                                        .replicas = file.prefill->plan.data,
                                        .routing = file.prefill->routing});
  set(prefill->space, servers.prefill->rules);
  servers.transfer = serving::transfer_between(prefill->price, pool.price, file.prefill->network);
  return servers;
}

Result<std::vector<Run>> run_load(const ServeFile& file, const Servers& servers, double scale,
                                  double stretch, std::size_t most) {
  std::vector<Request> requests(
      file.requests.begin(),
      file.requests.begin() + static_cast<std::ptrdiff_t>(std::min(file.requests.size(), most)));
  if (stretch != 1)
    for (Request& request : requests) {
      request.planned = Picoseconds::from(request.planned.seconds() * stretch);
      if (stretch == 0) request.think = Picoseconds(0);
    }
  serving::Pool pool = servers.pool;
  if (stretch == 0) pool.rules.drops = false;
  const serving::RunOptions options{.most_in_flight = stretch == 0 ? 0 : file.in_flight,
                                    .scale = scale};
  if (servers.prefill)
    return serving::run_pools(*servers.prefill, pool, servers.transfer, requests, options);
  return serving::run_replicas(pool, requests, options);
}

Servers ServedLoad::servers() const {
  std::optional<PoolPrice> prompts;
  if (prefill) prompts.emplace(PoolPrice{prefill->price, prefill->space});
  return servers_of(file, {price, space}, prompts);
}

serving::Scaling scaling_of(const ServeFile& file, const serving::CacheSpace& space) {
  serving::Scaling rule = file.scaling->rule;
  const auto devices = static_cast<double>(file.devices) / file.deployment.plan.data;
  if (file.scaling->rate) rule.start = rule.start + space.weights * devices / *file.scaling->rate;
  return rule;
}

double device_seconds(const ServeFile& file, const Measures& m) {
  const auto devices = static_cast<double>(file.devices);
  return file.scaling ? m.rented * devices / file.deployment.plan.data : m.duration * devices;
}

Estimate<Seconds> ServedLoad::rented() const {
  const auto most =
      static_cast<double>(file.deployment.plan.data + (file.prefill ? file.prefill->plan.data : 0));
  return estimate<Seconds>([&](const Measures& m) { return Seconds::s(m.rented / most); });
}

std::span<const Run> ServedLoad::prompt_replicas(std::size_t run) const {
  return std::span(replicas[run]).first(file.prefill ? file.prefill->plan.data : 0);
}

std::span<const Run> ServedLoad::token_replicas(std::size_t run) const {
  return std::span(replicas[run]).subspan(prompt_replicas(run).size());
}

double ServedLoad::busy() const {
  const double tokens = serving::use_of(token_replicas(0), measures[0]).busy;
  if (!file.prefill) return tokens;
  const double prompts = serving::use_of(prompt_replicas(0), measures[0]).busy;
  const double share =
      static_cast<double>(file.prefill->devices) / static_cast<double>(file.devices);
  return share * prompts + (1 - share) * tokens;
}

namespace {

Estimate<double> wider(const Estimate<double>& a, const Estimate<double>& b) {
  return {a.value, std::min(a.low, b.low), std::max(a.high, b.high),
          std::max(a.provenance, b.provenance)};
}

}  // namespace

Estimate<double> ServedLoad::reach() const {
  return prefill ? wider(price.reach(), prefill->price.reach()) : price.reach();
}

Estimate<double> ServedLoad::reach_of_first_token() const {
  const Estimate<double> own = price.reach_of_first_token();
  return prefill ? wider(own, prefill->price.reach_of_first_token()) : own;
}

Estimate<Seconds> ServedLoad::ttft(double serving::Spread::*which) const {
  return first_token(&Measures::ttft, which);
}

Estimate<Seconds> ServedLoad::ttft_at_server(double serving::Spread::*which) const {
  return first_token(&Measures::ttft_at_server, which);
}

Estimate<Seconds> ServedLoad::first_token(serving::Spread Measures::*since,
                                          double serving::Spread::*which) const {
  const auto of = [&](const Measures& m) { return Seconds::s(m.*since.*which); };
  Estimate<Seconds> time = estimate<Seconds>(of);
  const Estimate<double> reach = reach_of_first_token();
  time.low = std::min(time.low, time.value * reach.low);
  time.high = std::max(time.high, time.value * reach.high);
  return time;
}

Estimate<Seconds> ServedLoad::end_to_end(double serving::Spread::*which) const {
  const auto of = [&](const Measures& m) { return Seconds::s(m.end_to_end.*which); };
  const auto first_of = [&](const Measures& m) { return Seconds::s(m.ttft.*which); };
  Estimate<Seconds> time = estimate<Seconds>(of);
  const Estimate<Seconds> steps = estimate<Seconds>(first_of), first = ttft(which);
  time.low = time.low - (steps.low - first.low);
  time.high = time.high + (first.high - steps.high);
  return time;
}

Estimate<Seconds> ServedLoad::mean_tpot() const {
  return estimate<Seconds>([](const Measures& m) { return Seconds::s(m.tpot.mean); });
}

double ServedLoad::within(std::size_t run) const {
  return static_cast<double>(kept(file.slo.value_or(ServingSlo{}), replicas[run]));
}

Estimate<double> ServedLoad::goodput() const {
  const auto at = [&](std::size_t i) { return within(i) / measures[i].duration; };
  const auto [low, high] = std::minmax({at(0), at(1), at(2)});
  return {at(0), low, high, provenance};
}

Estimate<double> ServedLoad::goodput_per_device() const {
  const auto at = [&](std::size_t i) { return within(i) / device_seconds(file, measures[i]); };
  const auto [low, high] = std::minmax({at(0), at(1), at(2)});
  return {at(0), low, high, provenance};
}

Estimate<double> ServedLoad::tokens_per_s_per_device() const {
  return estimate<double>(
      [&](const Measures& m) { return m.output_tokens / device_seconds(file, m); });
}

Estimate<double> ServedLoad::tokens_per_s() const {
  return estimate<double>([](const Measures& m) { return m.output_tokens / m.duration; });
}

Estimate<double> ServedLoad::tokens_per_user() const {
  return estimate<double>([](const Measures& m) { return m.tpot.mean > 0 ? 1 / m.tpot.mean : 0; });
}

Result<ServedLoad> serve(const ServeFile& file) {
  if (file.scaling && !(file.scaling->rule.target > 0))
    return fail("`scaling` has no target", "target: the signal per replica; `plan` searches it");
  serving::StepPrice price = TRY(serving::StepPrice::of(file.deployment));
  serving::CacheSpace space = TRY(space_of(file));
  ServedLoad load{.file = file,
                  .price = std::move(price),
                  .space = std::move(space),
                  .prefill = {},
                  .measures = {},
                  .replicas = {},
                  .provenance = Provenance::kInterpolated};
  if (file.prefill) {
    serving::StepPrice prefill_price = TRY(serving::StepPrice::of(prefill_deployment(file)));
    serving::CacheSpace prefill_space = TRY(prefill_space_of(file));
    load.prefill.emplace(PricedPool{std::move(prefill_price), std::move(prefill_space)});
  }
  const Estimate<double> reach = load.reach();
  // No measured run has two pools, or tiers, and a known client.
  load.provenance = load.prefill || !load.space.tiers.empty()
                        ? std::max(reach.provenance, Provenance::kExtrapolated)
                        : reach.provenance;
  Servers servers = load.servers();
  if (file.scaling) servers.pool.scaling = scaling_of(file, load.space);
  const double scales[] = {1, reach.low, reach.high};
  for (std::size_t i = 0; i < std::size(scales); ++i) {
    load.replicas[i] = TRY(run_load(file, servers, scales[i]));
    load.measures[i] = serving::measure(load.replicas[i]);
    if (load.measures[i].requests == 0)
      return fail("all requests leave at their deadlines", "later deadlines, or fewer requests");
  }
  return load;
}

Result<double> capacity_of(const ServedLoad& load) {
  const Measures at_once = serving::measure(TRY(run_load(load.file, load.servers(), 1, 0)));
  return at_once.requests / at_once.duration;
}

std::size_t kept(const ServingSlo& slo, std::span<const Run> replicas) {
  return kept_if(slo, replicas, 1);
}

Result<std::optional<Estimate<double>>> held_rate(const ServedLoad& load, double capacity) {
  constexpr std::size_t kMost = 2000;
  constexpr int kHalvings = 12;  // of a range of 1,000: to 0.2 %
  const ServeFile& file = load.file;
  const Servers servers = load.servers();
  const std::size_t count = std::min(file.requests.size(), kMost);
  const double span = serving::last_planned(std::span(file.requests).first(count)).seconds().s();
  if (count < 2 || !(span > 0)) return std::nullopt;
  const double rate = static_cast<double>(count - 1) / span;
  const Estimate<double> steps = load.reach(), first = load.reach_of_first_token();
  /// `slow`: times of steps, and of first tokens, relative to the price.
  const auto highest = [&](double slow_steps, double slow_first) -> Result<double> {
    const auto holds = [&](double at) -> Result<bool> {
      const Result<std::vector<Run>> runs = run_load(file, servers, slow_steps, rate / at, kMost);
      if (!runs) return forward(runs);
      return static_cast<double>(kept_if(*file.slo, *runs, slow_first / slow_steps)) >=
             kHeldShare * static_cast<double>(count);
    };
    // Above its capacity the queue of a server grows without end, though few requests may not show
    // it.
    double high = capacity / slow_steps;
    // Runs have an end (serving::kLongest), so arrivals take half of that at most.
    double low = std::clamp(static_cast<double>(count) / (0.5 * serving::kLongest.seconds().s()),
                            high / 1000, high / 2);
    const bool most = TRY(holds(high)), least = TRY(holds(low));
    if (most) return high;
    if (!least) return 0;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = std::sqrt(low * high);
      (TRY(holds(middle)) ? low : high) = middle;
    }
    return low;
  };
  const double value = TRY(highest(1, 1)), slow = TRY(highest(steps.high, first.high)),
               quick = TRY(highest(steps.low, first.low));
  return Estimate<double>{value, std::min(value, slow), std::max(value, quick), load.provenance};
}

}  // namespace rehearse::cli
