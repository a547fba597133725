#include "cli/study/feeds.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/study/study.h"
#include "models/dataflow/read_dataflow.h"
#include "models/input/read_pipeline.h"
#include "models/input/tune.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct Function {
  std::string_view name;
  FeedKind kind;
  std::string_view unit;
};
constexpr Function kFunctions[] = {{"rate", FeedKind::kPipeline, "1/s"},
                                   {"allowed_rate", FeedKind::kPipeline, "1/s"},
                                   {"tuned_rate", FeedKind::kPipeline, "1/s"},
                                   {"tuned_bound", FeedKind::kPipeline, "1/s"},
                                   {"epoch_time", FeedKind::kPipeline, "s"},
                                   {"batch_time", FeedKind::kPipeline, "s"},
                                   {"filled", FeedKind::kPipeline, ""},
                                   {"hit_ratio", FeedKind::kCache, ""},
                                   {"misses", FeedKind::kCache, ""},
                                   {"reads", FeedKind::kCache, ""},
                                   {"accesses", FeedKind::kCache, ""},
                                   {"peak", FeedKind::kCache, ""},
                                   {"read_time", FeedKind::kCache, "s"},
                                   {"batch_time", FeedKind::kCache, "s"},
                                   {"cut", FeedKind::kGraph, ""},
                                   {"halo", FeedKind::kGraph, ""},
                                   {"expected_halo", FeedKind::kGraph, ""},
                                   {"fullest", FeedKind::kGraph, ""},
                                   {"exchanged", FeedKind::kGraph, "B"},
                                   {"epoch_time", FeedKind::kGraph, "s"},
                                   {"run_time", FeedKind::kDataflow, "s"},
                                   {"peak_memory", FeedKind::kDataflow, "B"},
                                   {"memory_share", FeedKind::kDataflow, ""},
                                   {"kernels", FeedKind::kDataflow, ""},
                                   {"flops", FeedKind::kDataflow, "FLOP"},
                                   {"cycles", FeedKind::kAccelerator, ""},
                                   {"run_time", FeedKind::kAccelerator, "s"},
                                   {"area", FeedKind::kAccelerator, ""},
                                   {"controlled_price", FeedKind::kController, ""},
                                   {"known_price", FeedKind::kController, ""},
                                   {"fixed_price", FeedKind::kController, ""},
                                   {"fixed_choice", FeedKind::kController, ""},
                                   {"estimate_error", FeedKind::kController, ""},
                                   {"makespan", FeedKind::kFlow, "s"},
                                   {"completed", FeedKind::kFlow, ""},
                                   {"tries", FeedKind::kFlow, ""},
                                   {"ttft_mean", FeedKind::kServer, "s"},
                                   {"ttft_p50", FeedKind::kServer, "s"},
                                   {"ttft_p90", FeedKind::kServer, "s"},
                                   {"ttft_p99", FeedKind::kServer, "s"},
                                   {"tpot_mean", FeedKind::kServer, "s"},
                                   {"tpot_p50", FeedKind::kServer, "s"},
                                   {"tpot_p90", FeedKind::kServer, "s"},
                                   {"tpot_p99", FeedKind::kServer, "s"},
                                   {"itl_mean", FeedKind::kServer, "s"},
                                   {"itl_p50", FeedKind::kServer, "s"},
                                   {"itl_p90", FeedKind::kServer, "s"},
                                   {"itl_p99", FeedKind::kServer, "s"},
                                   {"end_to_end_mean", FeedKind::kServer, "s"},
                                   {"end_to_end_p50", FeedKind::kServer, "s"},
                                   {"end_to_end_p90", FeedKind::kServer, "s"},
                                   {"end_to_end_p99", FeedKind::kServer, "s"},
                                   {"output_rate", FeedKind::kServer, "1/s"},
                                   {"goodput", FeedKind::kServer, "1/s"},
                                   {"held_rate", FeedKind::kServer, "1/s"},
                                   {"hit_share", FeedKind::kServer, ""},
                                   {"gpus", FeedKind::kServer, ""}};

/// The feed of a function; nothing if the function does not exist. Several kinds may have a
/// function of one name.
std::optional<Result<const FeedTemplate*>> find(const std::vector<FeedTemplate>& feeds,
                                                std::string_view name, std::string_view feed,
                                                const Function*& function) {
  function = nullptr;
  std::vector<std::string_view> known;
  std::string what;
  for (const Function& one : kFunctions) {
    if (one.name != name) continue;
    function = &one;
    const std::string_view kind = kFeedNames[static_cast<int>(one.kind)];
    what += fmt::format("{}{}", what.empty() ? "" : " or ", kind);
    for (const FeedTemplate& candidate : feeds) {
      if (candidate.kind != one.kind) continue;
      if (candidate.name == feed) return &candidate;
      known.push_back(candidate.name);
    }
  }
  if (!function) return std::nullopt;
  if (known.empty() && function->kind == FeedKind::kServer)
    return fail(fmt::format("unknown server '{}'", feed), "jobs: {NAME: {serve: {…}}}");
  return fail(fmt::format("unknown {} '{}'", what, feed),
              known.empty() ? fmt::format("{}s: {{NAME: {{…}}}}",
                                          kFeedNames[static_cast<int>(function->kind)])
                            : suggest(feed, known));
}

/// The result, whose first mistake names the feed.
template <class T>
Result<T> in_feed(const FeedTemplate& feed, Result<T> result) {
  if (result) return result;
  const Diagnostic& d = result.error().diagnostics.front();
  Diagnostic in = d;
  in.key = {};
  in.problem = fmt::format("{}: {}{}{}", feed.name, d.key, d.key.empty() ? "" : ": ", d.problem);
  return fail(std::move(in));
}

Result<double> cache_value(std::string_view name, const store::CacheRun& run,
                           const store::Traffic& traffic) {
  const std::size_t first = run.first;
  if (name == "hit_ratio") return traffic.hit_ratio(first);
  if (name == "misses") return static_cast<double>(traffic.misses(first));
  if (name == "reads") return static_cast<double>(traffic.reads(first));
  if (name == "accesses") return static_cast<double>(traffic.accesses(first));
  if (name == "peak") return traffic.peak;
  if (first >= traffic.batches.size()) return fail("the stream has no batch");
  if (name == "read_time") {
    if (!run.drive) return fail("it has no drive", "drive: {latency: …, rate: …}");
    return store::read_time(traffic, *run.drive, first).s();
  }
  if (!run.prefetch) return fail("its batches take no time", "prefetch: {ahead: …, step: …, …}");
  return store::time_per_batch(store::times_of(traffic, *run.prefetch), first).s();
}

}  // namespace

std::vector<FeedTemplate> read_feeds(const YamlMap& root) {
  std::vector<FeedTemplate> feeds;
  constexpr std::pair<std::string_view, FeedKind> kSections[] = {
      {"pipelines", FeedKind::kPipeline},
      {"caches", FeedKind::kCache},
      {"graphs", FeedKind::kGraph},
      {"dataflows", FeedKind::kDataflow},
      {"accelerators", FeedKind::kAccelerator},
      {"controllers", FeedKind::kController},
      {"flows", FeedKind::kFlow}};
  for (const auto& [section, kind] : kSections) {
    const auto named = root.map(section);
    if (!named) continue;
    for (const std::string& name : named->keys()) {
      const bool taken = std::any_of(feeds.begin(), feeds.end(),
                                     [&](const FeedTemplate& feed) { return feed.name == name; });
      if (taken) named->report(name, "is defined in two sections", "a unique name");
      if (const auto map = named->map(name)) feeds.push_back({kind, name, *map});
    }
    named->no_other_keys();
  }
  return feeds;
}

template <class Run, class Make>
Result<const Run*> FeedValues::once(std::map<std::string, Run>& runs, const FeedTemplate& feed,
                                    const Make& make) const {
  if (const auto found = runs.find(feed.name); found != runs.end()) return &found->second;
  const YamlMap map = feed.sections.filled(fill_);
  return &runs.emplace(feed.name, TRY(in_feed(feed, make(map)))).first->second;
}

Result<const FeedValues::Piped*> FeedValues::piped(const FeedTemplate& feed) {
  return once(piped_, feed, [&](const YamlMap& map) -> Result<Piped> {
    input::Pipeline pipeline = input::read_pipeline(map, folder_);
    map.no_other_keys();
    TRY(map.status());
    input::Flow flow = TRY(input::simulate(pipeline));
    return Piped{std::move(pipeline), std::move(flow)};
  });
}

Result<const FeedValues::TunedPipe*> FeedValues::tuned(const FeedTemplate& feed,
                                                       const input::Pipeline& pipeline) {
  return once(tuned_, feed, [&](const YamlMap&) -> Result<TunedPipe> {
    const input::Tuned tuned = TRY(input::tune(pipeline));
    const input::Flow flow = TRY(tuned.flow);
    return TunedPipe{tuned.units_per_s, flow.units_per_s, flow.filled};
  });
}

Result<const FeedValues::Cached*> FeedValues::cached(const FeedTemplate& feed) {
  return once(cached_, feed, [&](const YamlMap& map) -> Result<Cached> {
    store::CacheRun read = store::read_cache(map, folder_);
    TRY(map.status());
    store::Traffic traffic = TRY(store::run(read.stream, read.cache));
    return Cached{std::move(read), std::move(traffic)};
  });
}

Result<const GraphRun*> FeedValues::partitioned(const FeedTemplate& feed) {
  return once(graphs_, feed, [&](const YamlMap& map) -> Result<GraphRun> {
    GraphRun run = read_graph(map, folder_);
    TRY(map.status());
    return run;
  });
}

Result<const dataflow::Run*> FeedValues::dataflow(const FeedTemplate& feed) {
  return once(dataflows_, feed, [&](const YamlMap& map) -> Result<dataflow::Run> {
    const dataflow::DataflowJob job = TRY(dataflow::read_dataflow(map, folder_));
    return dataflow::run(job.flow, job.device, job.host);
  });
}

Result<const FeedValues::Tiled*> FeedValues::tiled(const FeedTemplate& feed) {
  return once(tiled_, feed, [&](const YamlMap& map) -> Result<Tiled> {
    input::Accelerator accelerator = input::read_accelerator(map);
    TRY(map.status());
    const double cycles = TRY(input::cycles_of(accelerator));
    return Tiled{std::move(accelerator), cycles};
  });
}

Result<const FeedValues::Controlled*> FeedValues::controlled(const FeedTemplate& feed) {
  return once(controlled_, feed, [&](const YamlMap& map) -> Result<Controlled> {
    ControllerRun run = read_controller(map, point_.parameters);
    TRY(map.status());
    const control::Outcome outcome = TRY(run_controller(run, point_));
    return Controlled{std::move(run), outcome};
  });
}

Result<const flow::Outcome*> FeedValues::flowed(const FeedTemplate& feed) {
  return once(flowed_, feed, [&](const YamlMap& map) -> Result<flow::Outcome> {
    const flow::Flow flow = flow::read_flow(map);
    TRY(map.status());
    return flow::run(flow);
  });
}

Result<const ServerRun*> FeedValues::served(const FeedTemplate& feed) {
  return once(served_, feed, [&](const YamlMap& map) { return run_server(map, folder_); });
}

std::optional<Result<Term>> FeedValues::value(std::string_view name, std::string_view feed) {
  const Function* function = nullptr;
  const auto found = find(feeds_, name, feed, function);
  if (!found) return std::nullopt;
  if (!*found) return forward(*found);
  const FeedTemplate& of = ***found;
  const auto term = [&](Estimate<double> estimate, double scale = 1) {
    return Term{estimate * scale, std::string(function->unit)};
  };
  const auto exact = [&](double value) {
    return term({value, value, value, Provenance::kDatasheet});
  };
  if (of.kind == FeedKind::kPipeline) {
    const Piped& piped = *TRY(this->piped(of));
    const input::Pipeline& pipeline = piped.pipeline;
    const double samples = input::counts_of(pipeline).samples;
    if (name == "rate") return term(piped.flow.units_per_s, samples * piped.flow.filled);
    if (name == "batch_time")
      return term(mapped(piped.flow.units_per_s, [](double rate) { return 1 / rate; }));
    if (name == "filled") return exact(piped.flow.filled);
    if (name == "allowed_rate")
      return exact(input::limits_of(pipeline).front().units_per_s * samples);
    if (name == "tuned_rate" || name == "tuned_bound") {
      const TunedPipe& tuned = *TRY(this->tuned(of, pipeline));
      return name == "tuned_bound" ? exact(tuned.bound * samples)
                                   : term(tuned.rate, samples * tuned.filled);
    }
    if (!piped.flow.epoch)
      return fail(fmt::format("the epoch of '{}' has no length", of.name), "samples: 50000");
    return exact(piped.flow.epoch->s());
  }
  if (of.kind == FeedKind::kGraph) {
    const GraphRun& run = *TRY(partitioned(of));
    return in_feed(of, graph_value(run, name, fidelity_));
  }
  if (of.kind == FeedKind::kDataflow) {
    const dataflow::Run& run = *TRY(dataflow(of));
    const Estimate<double> peak = mapped(run.peak, [](Bytes end) { return end.b(); });
    if (name == "run_time") return term(mapped(run.time, [](Seconds end) { return end.s(); }));
    if (name == "peak_memory") return term(peak);
    if (name == "memory_share") return term(peak, 1 / run.usable.b());
    return exact(name == "kernels" ? run.kernel_count() : run.flops().flop());
  }
  if (of.kind == FeedKind::kAccelerator) {
    const Tiled& tiled = *TRY(this->tiled(of));
    return exact(name == "cycles" ? tiled.cycles
                 : name == "area" ? tiled.accelerator.area()
                                  : tiled.cycles * tiled.accelerator.cycle.s());
  }
  if (of.kind == FeedKind::kController) {
    const auto& [run, outcome] = *TRY(controlled(of));
    if (name == "fixed_choice")
      return in_feed(of,
                     parameter_value("choice", {{"choice", run.choices[outcome.fixed_choice]}}));
    return exact(name == "controlled_price" ? outcome.chosen
                 : name == "known_price"    ? outcome.known
                 : name == "fixed_price"    ? outcome.fixed
                                            : outcome.error);
  }
  if (of.kind == FeedKind::kFlow) {
    const flow::Outcome& outcome = *TRY(flowed(of));
    if (name != "makespan") return exact(name == "tries" ? outcome.tries : outcome.completed);
    constexpr double kErrors = 2;  // of the mean: 95 %
    const double mean = outcome.makespan, off = kErrors * outcome.standard_error;
    return term({mean, mean - off, mean + off, Provenance::kDatasheet});
  }
  if (of.kind == FeedKind::kServer)
    return term(TRY(in_feed(of, server_value(*TRY(served(of)), name))));
  const Cached& cached = *TRY(this->cached(of));
  return exact(TRY(in_feed(of, cache_value(name, cached.run, cached.traffic))));
}

std::optional<Result<Term>> feed_unit(const std::vector<FeedTemplate>& feeds, std::string_view name,
                                      std::string_view feed) {
  const Function* function = nullptr;
  const auto found = find(feeds, name, feed, function);
  if (!found) return std::nullopt;
  if (!*found) return forward(*found);
  return Term{exact_term(1).estimate, std::string(function->unit)};
}

std::vector<std::string_view> feed_functions() {
  std::vector<std::string_view> names;
  for (const Function& function : kFunctions) names.push_back(function.name);
  return names;
}

}  // namespace rehearse::cli
