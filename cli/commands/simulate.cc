// rehearse simulate: predict a job on a cluster.
#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/chakra_network.h"
#include "cli/commands/commands.h"
#include "cli/commands/describe_job.h"
#include "cli/commands/simulate_job_file.h"
#include "cli/commands/simulate_result.h"
#include "models/job/interval.h"
#include "models/job/program_ops.h"
#include "models/job/roofline.h"
#include "profiler/ingest/astra_system.h"
#include "profiler/ingest/chakra_job.h"
#include "profiler/ingest/chakra_writer.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/cluster/astra_network.h"
#include "sim/cluster/catalog.h"
#include "sim/engine/engine.h"
#include "sim/engine/simgrid.h"
#include "sim/program/lower.h"
#include "strategies/step/run_program.h"

namespace rehearse::cli {
namespace {

/// The device model that all ranks run on; fails if they differ.
Result<std::string> model_of(const cluster::Cluster& cluster, std::uint32_t ranks) {
  const std::string& model = cluster.devices().front().model;
  for (std::uint32_t r = 0; r < ranks; ++r)
    if (cluster.devices()[r].model != model)
      return fail(fmt::format("ops without a duration run on both {} and {}", model,
                              cluster.devices()[r].model),
                  "durations in the trace, or one kind of device");
  return model;
}

/// Sets the durations of ops that are given by their work. Returns their share of the compute time.
Result<double> price_compute(program::Program& job, const cluster::Cluster& cluster,
                             const std::optional<ingest::AstraSystem>& system,
                             std::vector<Warning>& warnings) {
  if (!job::lacks_durations(job)) return 0.0;
  if (system && system->peak)
    return job::set_durations(job, job::Device{.peak = *system->peak, .memory = *system->memory});
  if (cluster.devices().front().model == cluster::kNpu)
    return fail("ops without a duration, and the network file does not describe the compute device",
                "--astra-system FILE with roofline-enabled 1, peak-perf and local-mem-bw");
  const Result<std::string> model = model_of(cluster, job.ranks());
  if (!model) return forward(model);
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu(*model);
  if (!gpu) return forward(gpu);
  const cluster::Gpu& g = **gpu;
  const FlopRate peak = g.bf16_tensor ? *g.bf16_tensor : g.fp16_tensor ? *g.fp16_tensor : g.fp32;
  const double share = job::set_durations(job, job::Device{.peak = peak, .memory = g.memory_rate});
  warnings.push_back(
      {fmt::format("{:.0f} % of the compute time comes from the roofline of {} ({}, {}); real "
                   "kernels take longer",
                   share * 100, g.name, to_string(peak), to_string(g.memory_rate)),
       "record durations on that device: a trace with duration_micros for each compute op"});
  return share;
}

std::string describe(const cluster::Cluster& cluster) {
  std::map<std::string_view, std::size_t> models;
  for (const cluster::Device& device : cluster.devices()) ++models[device.model];
  std::string text;
  for (const auto& [model, count] : models)
    text += fmt::format("{}{} × {}", text.empty() ? "" : ", ", count, model);
  return text;
}

/// The step time, with the range that the prices of its communication allow.
Result<Estimate<Seconds>> between_bounds(const Simulation& s, const cluster::Cluster& cluster,
                                         bool unfold) {
  const Seconds step = s.timeline.makespan().seconds();
  Estimate<Seconds> estimate{step, step, step,
                             std::max(Provenance::kExtrapolated, s.lowered.provenance)};
  if (s.lowered.pricings.empty() && s.lowered.messages == 0) return estimate;
  const bool closed = s.fidelity == step::Fidelity::kClosed;
  const Result<step::PriceReach> reach = step::reach_of_prices(
      s.job, cluster, s.rules, !unfold, closed ? std::optional(step) : std::nullopt);
  if (!reach) return forward(reach);
  estimate.low = step - reach->down;
  estimate.high = step + reach->up;
  estimate.provenance = std::max(estimate.provenance, reach->provenance);
  return estimate;
}

/// The occupancy of the rank that ends last.
const program::Occupancy& last_occupancy(const Simulation& s) {
  std::size_t last = 0;
  Picoseconds end(0);
  for (std::size_t r = 0; r + 1 < s.lowered.first_op.size(); ++r)
    for (std::uint32_t i = s.lowered.first_op[r]; i < s.lowered.first_op[r + 1]; ++i)
      if (s.timeline[OpId(i)].end > end) {
        end = s.timeline[OpId(i)].end;
        last = r;
      }
  const auto range =
      std::find_if(s.occupancy.begin(), s.occupancy.end(), [&](const job::RankRange& of) {
        return s.lowered.ranks[last].index() < std::size_t{of.first} + of.count;
      });
  return range->occupancy;
}

/// The process groups of the request, or those that lie next to the traces.
std::filesystem::path groups_of(const SimulateOptions& options) {
  if (!options.groups.empty()) return options.groups;
  const std::filesystem::path beside = ingest::chakra_groups(options.chakra);
  std::error_code ignored;
  return std::filesystem::is_regular_file(beside, ignored) ? beside : std::filesystem::path();
}

/// Without a network, collectives keep the durations of the traces.
Result<Simulation> read_job(const SimulateOptions& options, const ChakraNetwork* network,
                            const std::optional<ingest::AstraSystem>& system,
                            const Globals& globals) {
  ingest::ChakraFiles files{.prefix = options.chakra, .timed = !network};
  if (network) files.dimensions = network->dimensions;
  if (options.ranks > 0) files.ranks = options.ranks;
  if (!options.astra_network.empty() && !files.ranks)
    files.ranks = static_cast<std::uint32_t>(network->cluster.devices().size());
  if (system) files.astra = system->collectives;
  if (const std::filesystem::path beside = groups_of(options); !beside.empty()) {
    Result<ingest::CommGroups> groups = ingest::load_comm_groups(beside);
    if (!groups) return forward(groups);
    files.groups = std::move(*groups);
  }
  Result<ingest::ChakraJob> read = ingest::read_chakra_job(files, globals.progress_of("reading"));
  if (!read) return forward(read);
  Simulation s{.job = std::move(read->job),
               .input = read->files.front(),
               .cluster = {},
               .fidelity = options.fidelity,
               .rules = rules_of(options),
               .lowered = {},
               .timeline = {},
               .occupancy = {},
               .step = {Seconds::s(0), Seconds::s(0), Seconds::s(0), Provenance::kExtrapolated},
               .warnings = {}};
  if (read->files.size() > 1) s.input += " … " + read->files.back();
  if (system) set_astra_rules(*system, network->dimensions.size(), s.rules, s.warnings);
  if (read->without_length > 0)
    s.warnings.push_back(
        {fmt::format("{} with neither duration_micros nor num_ops: counted as 0",
                     counted(read->without_length, "compute op")),
         "record the trace with the profiler's timings, which give duration_micros"});
  if (const auto algorithm = algorithm_of(options))
    for (const CollectiveKind kind : job::not_done_by(s.job, *algorithm))
      s.warnings.push_back(
          {fmt::format("'{}' does not support {}, which uses its default algorithm",
                       options.algorithm, to_string(kind)),
           "omit --algorithm to use the default of each collective"});
  return s;
}

/// The traces at their own durations.
Result<Simulation> simulate_timed(const SimulateOptions& options, const Globals& globals) {
  Result<Simulation> read = read_job(options, nullptr, {}, globals);
  if (!read) return forward(read);
  Simulation& s = *read;
  Result<program::Lowered> lowered = program::lower(s.job);
  if (!lowered) return forward(lowered);
  static_cast<program::Lowered&>(s.lowered) = std::move(*lowered);
  Result<graph::Timeline> timeline = engine::run(s.lowered.graph);
  if (!timeline) return forward(timeline);
  s.timeline = std::move(*timeline);
  s.occupancy = job::occupancy(s.job, s.lowered, s.timeline);
  const Seconds step = s.timeline.makespan().seconds();
  s.step = {step, step, step, Provenance::kRecorded};
  return read;
}

Result<Simulation> simulate(const SimulateOptions& options, const Globals& globals) {
  if (!options.on_network()) return simulate_timed(options, globals);
  if (options.fidelity == step::Fidelity::kSimgrid)
    if (Status ok = engine::check_simgrid(); !ok) return forward(ok);
  const Result<ChakraNetwork> runs_on = load_network(options.cluster, options.astra_network);
  if (!runs_on) return forward(runs_on);
  const cluster::Cluster* cluster = &runs_on->cluster;
  std::optional<ingest::AstraSystem> system;
  if (!options.astra_system.empty()) {
    Result<ingest::AstraSystem> file = ingest::load_astra_system(options.astra_system);
    if (!file) return forward(file);
    system = std::move(*file);
  }
  Result<Simulation> read = read_job(options, &*runs_on, system, globals);
  if (!read) return forward(read);
  Simulation& s = *read;
  s.cluster = describe(*cluster);
  const bool closed = options.fidelity == step::Fidelity::kClosed;
  if (closed && std::any_of(cluster->links().begin(), cluster->links().end(),
                            [](const cluster::Link& link) { return !link.changes.empty(); }))
    s.warnings.push_back(
        {"closed forms use the initial rates of links: `changes` of the cluster are ignored",
         "run with --fidelity message"});
  const Result<double> by_roofline = price_compute(s.job, *cluster, system, s.warnings);
  if (!by_roofline) return forward(by_roofline);
  Result<step::ProgramRun> run = step::run_program(
      s.job, *cluster, s.rules,
      {.fidelity = options.fidelity,
       .fold = closed && !options.unfold,
       .engine = {.division = options.division.value_or(engine::Division::kFair),
                  .on_failure = options.on_failure.value_or(engine::OnFailure::kStall)}});
  if (!run) return forward(run);
  s.lowered = std::move(run->lowered);
  s.timeline = std::move(run->timeline);
  s.occupancy = job::occupancy(s.job, s.lowered, s.timeline);
  s.by_roofline = *by_roofline;
  const Result<Estimate<Seconds>> network = between_bounds(s, *cluster, options.unfold);
  if (!network) return forward(network);
  s.step = job::with_slow_kernels(*network, last_occupancy(s), *by_roofline);
  return read;
}

Result<Exit> run(const SimulateOptions& options, const Globals& globals) {
  if (!options.job_file.empty()) return simulate_job_file(options, globals);
  if (Status ok = check_writable({options.files.perfetto, options.files.report}); !ok)
    return forward(ok);
  const Result<Simulation> s = simulate(options, globals);
  if (!s) return forward(s);
  for (const Warning& warning : s->warnings) globals.warn(to_string(warning));
  return answer_run(
      globals, options.files, simulation_document(*s), view_of(s->job, s->lowered, s->timeline),
      [&] {
        ReportDetails details{.suites = {"collectives/several nodes", "collectives/one node"}};
        if (options.on_network())
          details.inputs = {options.astra_network.empty() ? options.cluster
                                                          : options.astra_network};
        return details;
      });
}

}  // namespace

void add_simulate(CLI::App& app, Action& action) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand(
      "simulate", "Predict the time, memory, energy and cost of one step of a job");
  add_simulate_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  rehearse simulate job.yaml --fidelity closed --report step.html\n"
      "  rehearse simulate --model llama3_70b --gpus 64 --device h100_sxm5_80 --plan tp8,pp4 "
      "--batch 512\n"
      "  rehearse simulate --chakra job --cluster cluster.yaml --ranks 16\n"
      "  rehearse simulate --chakra job --astra-network network.yml --astra-system system.json");
  command->callback([options, &action] {
    check_simulate_options(*options);
    action = [options](const Globals& globals) -> Result<Exit> {
      if (Status ok = use_described_job(options->described, JobUse::kOnePlan, options->job_file);
          !ok)
        return forward(ok);
      return run(*options, globals);
    };
  });
}

}  // namespace rehearse::cli
