#include "cli/study/server_values.h"

#include <algorithm>

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
  if (!rate) return fail("no two of its requests arrive apart", "load: {rate: 2 per s, …}");
  return *rate;
}

}  // namespace

Result<ServerRun> run_server(const YamlMap& job, const std::filesystem::path& folder) {
  auto file = std::make_unique<ServeFile>(TRY(read_serve(job, folder)));
  ServedLoad load = TRY(serve(*file));
  return ServerRun{std::move(file), std::move(load)};
}

Result<Estimate<double>> server_value(const ServerRun& run, std::string_view name) {
  const ServedLoad& load = run.load;
  const double gpus = static_cast<double>(run.file->devices);
  if (name == "gpus") return Estimate<double>{gpus, gpus, gpus, Provenance::kDatasheet};
  if (name == "output_rate") return load.tokens_per_s();
  if (name == "hit_share")
    return load.estimate<double>(
        [](const Measures& m) { return m.reused_tokens / m.input_tokens; });
  if (name == "goodput" || name == "held_rate") {
    if (!run.file->slo) return fail("it has no SLO", "slo: {ttft: 1 s, tpot: 50 ms}");
    if (name == "goodput") return load.goodput();
    if (run.file->closed) return fail("a closed loop has no rate", "load: {rate: 2 per s, …}");
    return held(load);
  }
  double Spread::*const which = statistic(name);
  if (name.starts_with("ttft")) return in_seconds(load.ttft(which));
  if (name.starts_with("end_to_end")) return in_seconds(load.end_to_end(which));
  const auto of = name.starts_with("tpot") ? &Measures::tpot : &Measures::itl;
  return load.estimate<double>([&](const Measures& m) { return m.*of.*which; });
}

}  // namespace rehearse::cli
