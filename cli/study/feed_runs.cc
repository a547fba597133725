#include "cli/study/feed_runs.h"

#include "models/dataflow/read_dataflow.h"
#include "models/dataflow/run.h"
#include "models/flow/flow.h"
#include "models/input/limits.h"
#include "models/input/read_pipeline.h"
#include "models/input/simulate.h"
#include "models/input/tiles.h"
#include "models/input/tune.h"
#include "models/store/read_cache.h"

namespace rehearse::cli {

Result<FeedRun> run_pipeline(const YamlMap& map, const FeedContext& context) {
  const input::Pipeline pipeline = input::read_pipeline(map, context.folder());
  map.no_other_keys();
  TRY(map.status());
  const input::Flow flow = TRY(input::simulate(pipeline));
  const double samples = input::counts_of(pipeline).samples;
  // A pipeline with the advised settings; tuning takes long, and is only done if asked for.
  const auto tuned = std::make_shared<std::optional<input::Tuned>>();
  return [=](std::string_view name) -> Result<Term> {
    if (name == "rate") return Term{flow.units_per_s * (samples * flow.filled)};
    if (name == "batch_time")
      return Term{mapped(flow.units_per_s, [](double rate) { return 1 / rate; })};
    if (name == "filled") return exact(flow.filled);
    if (name == "arrivals") {
      std::vector<double> times;
      for (const Seconds end : TRY(input::arrivals(pipeline))) times.push_back(end.s());
      return exact_list(times);
    }
    if (name == "allowed_rate")
      return exact(input::limits_of(pipeline).front().units_per_s * samples);
    if (name == "epoch_time") {
      if (!flow.epoch) return fail("its epoch has no length", "samples: 50000");
      return exact(flow.epoch->s());
    }
    if (!*tuned) *tuned = TRY(input::tune(pipeline));
    const input::Flow with = TRY((*tuned)->flow);
    // The bound is what the program predicts.
    return name == "tuned_bound" ? exact((*tuned)->units_per_s * samples)
                                 : Term{with.units_per_s * (samples * with.filled)};
  };
}

Result<FeedRun> run_cache(const YamlMap& map, const FeedContext& context) {
  const store::CacheRun run = store::read_cache(map, context.folder());
  TRY(map.status());
  const store::Traffic traffic = TRY(store::run(run.stream, run.cache));
  return [first = run.first, drive = run.drive, prefetch = run.prefetch,
          traffic](std::string_view name) -> Result<Term> {
    if (name == "hit_ratio") return exact(traffic.hit_ratio(first));
    if (name == "misses") return exact(static_cast<double>(traffic.misses(first)));
    if (name == "reads") return exact(static_cast<double>(traffic.reads(first)));
    if (name == "accesses") return exact(static_cast<double>(traffic.accesses(first)));
    if (name == "peak") return exact(traffic.peak);
    if (first >= traffic.batches.size()) return fail("the stream has no batch");
    if (name == "read_time") {
      if (!drive) return fail("it has no drive", "drive: {latency: …, rate: …}");
      return exact(store::read_time(traffic, *drive, first).s());
    }
    if (!prefetch) return fail("its batches take no time", "prefetch: {ahead: …, step: …, …}");
    return exact(store::time_per_batch(store::times_of(traffic, *prefetch), first).s());
  };
}

Result<FeedRun> run_dataflow(const YamlMap& map, const FeedContext& context) {
  const dataflow::DataflowJob job = TRY(dataflow::read_dataflow(map, context.folder()));
  const dataflow::Run run = TRY(dataflow::run(job.flow, job.device, job.host));
  return [run](std::string_view name) -> Result<Term> {
    if (name == "run_time") return Term{mapped(run.time, [](Seconds end) { return end.s(); })};
    if (name == "kernels") return exact(run.kernel_count());
    if (name == "flops") return exact(run.flops().flop());
    const Estimate<double> peak = mapped(run.peak, [](Bytes end) { return end.b(); });
    return Term{name == "peak_memory" ? peak : peak * (1 / run.usable.b())};
  };
}

Result<FeedRun> run_accelerator(const YamlMap& map, const FeedContext&) {
  const input::Accelerator accelerator = input::read_accelerator(map);
  TRY(map.status());
  const double cycles = TRY(input::cycles_of(accelerator));
  return [=](std::string_view name) -> Result<Term> {
    return exact(name == "cycles" ? cycles
                 : name == "area" ? accelerator.area()
                                  : cycles * accelerator.cycle.s());
  };
}

Result<FeedRun> run_flow(const YamlMap& map, const FeedContext&) {
  const flow::Flow flow = flow::read_flow(map);
  TRY(map.status());
  const flow::Outcome outcome = TRY(flow::run(flow));
  return [outcome](std::string_view name) -> Result<Term> {
    if (name == "makespans") return exact_list(outcome.makespans);
    if (name != "makespan") return exact(name == "tries" ? outcome.tries : outcome.completed);
    constexpr double kErrors = 2;  // of the mean: 95 %
    const double mean = outcome.makespan, off = kErrors * outcome.standard_error;
    return Term{{mean, mean - off, mean + off, Provenance::kDatasheet}};
  };
}

}  // namespace rehearse::cli
