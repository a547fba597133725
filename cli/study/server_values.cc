#include <algorithm>

#include "cli/commands/served_load.h"
#include "cli/study/feed_runs.h"
#include "sim/base/check.h"

namespace rehearse::cli {
namespace {

using serving::Measures;
using serving::Spread;

double Spread::*statistic(std::string_view name) {
  constexpr std::pair<std::string_view, double Spread::*> kStatistics[] = {{"_mean", &Spread::mean},
                                                                           {"_p50", &Spread::p50},
                                                                           {"_p90", &Spread::p90},
                                                                           {"_p99", &Spread::p99}};
  for (const auto& [suffix, which] : kStatistics)
    if (name.ends_with(suffix)) return which;
  REHEARSE_CHECK(false, "{} is no measure of a server", name);
}

Estimate<double> in_seconds(const Estimate<Seconds>& time) {
  return mapped(time, [](Seconds end) { return end.s(); });
}

Result<Estimate<double>> held(const ServedLoad& load) {
  const double capacity = TRY(capacity_of(load));
  const std::optional<Estimate<double>> rate = TRY(held_rate(load, capacity));
  if (!rate) return fail("all its requests arrive at the same time", "load: {rate: 2 per s, …}");
  return *rate;
}

Result<Estimate<double>> value_of(const ServedLoad& load, std::string_view name) {
  const ServeFile& file = load.file;
  const double gpus = static_cast<double>(file.devices);
  if (name == "gpus") return Estimate<double>{gpus, gpus, gpus, Provenance::kDatasheet};
  if (name == "output_rate") return load.tokens_per_s();
  if (name == "hit_share")
    return load.estimate<double>(
        [](const Measures& m) { return m.reused_tokens / m.input_tokens; });
  if (name == "goodput" || name == "held_rate") {
    if (!file.slo) return fail("it has no SLO", "slo: {ttft: 1 s, tpot: 50 ms}");
    if (name == "goodput") return load.goodput();
    if (file.closed) return fail("a closed loop has no rate", "load: {rate: 2 per s, …}");
    return held(load);
  }
  double Spread::*const which = statistic(name);
  if (name.starts_with("ttft")) return in_seconds(load.ttft(which));
  if (name.starts_with("end_to_end")) return in_seconds(load.end_to_end(which));
  const auto of = name.starts_with("tpot") ? &Measures::tpot : &Measures::itl;
  return load.estimate<double>([&](const Measures& m) { return m.*of.*which; });
}

}  // namespace

Result<FeedRun> run_server(const YamlMap& map, const FeedContext& context) {
  // The load refers to the file.
  const auto file = std::make_shared<const ServeFile>(TRY(read_serve(map, context.folder())));
  const auto load = std::make_shared<const ServedLoad>(TRY(serve(*file)));
  return [file, load](std::string_view name) -> Result<Term> {
    return Term{TRY(value_of(*load, name))};
  };
}

}  // namespace rehearse::cli
