// rehearse simulate: predict a job on a cluster.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/commands/describe_job.h"
#include "cli/commands/options.h"
#include "cli/commands/simulate_options.h"
#include "cli/commands/simulate_serving.h"
#include "cli/config/fidelity_names.h"
#include "cli/config/serve_file.h"
#include "cli/output/attribution.h"
#include "cli/output/document.h"
#include "models/dataflow/read_dataflow.h"
#include "models/job/lower.h"
#include "models/job/program_ops.h"
#include "models/job/roofline.h"
#include "profiler/ingest/astra_system.h"
#include "profiler/ingest/chakra_job.h"
#include "profiler/ingest/chakra_writer.h"
#include "sim/base/estimate.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/warning.h"
#include "sim/base/watch.h"
#include "sim/cluster/astra_network.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "sim/engine/simgrid.h"
#include "sim/graph/timeline.h"
#include "sim/program/lower.h"
#include "strategies/step/run_program.h"

namespace rehearse::cli {
namespace {

/// A job that has been run.
struct Simulation {
  program::Program job;
  std::string input;         ///< "job.et" or "job.0.et … job.7.et"
  std::string cluster = {};  ///< "32 × h100_sxm5_80"; empty: ops take the durations of their traces
  step::Fidelity fidelity;
  job::Rules rules;
  job::LoweredJob lowered = {};
  graph::Timeline timeline = {};
  std::vector<job::RankRange> occupancy = {};
  Estimate<Seconds> step;
  std::vector<Warning> warnings = {};
  double by_roofline = 0;  ///< share of the op time that is estimated by a roofline
};

std::string ranks_text(const job::RankRange& range) {
  if (range.count == 1) return std::to_string(range.first);
  return fmt::format("{}–{}", range.first, range.first + range.count - 1);
}

/// Collectives of one name, size and number of ranks.
struct CollectiveSum {
  std::string name;
  CollectiveKind kind;
  Bytes bytes;
  std::size_t ranks;
  std::size_t count = 0;
  Seconds total = Seconds::s(0);
  Seconds slowest = Seconds::s(0);
};

std::vector<CollectiveSum> slowest_collectives(const Simulation& s, std::size_t most) {
  std::map<std::tuple<std::string_view, CollectiveKind, double, std::size_t>, CollectiveSum> sums;
  for (const job::Collective& c : s.lowered.collectives) {
    const std::string_view name = s.lowered.graph.name(c.members.front());
    const std::size_t ranks = s.job.groups[c.group].members.size();
    CollectiveSum& sum = sums.try_emplace({name, c.kind, c.bytes.b(), ranks},
                                          CollectiveSum{std::string(name), c.kind, c.bytes, ranks})
                             .first->second;
    const Seconds time = job::time_of(c, s.timeline);
    ++sum.count;
    sum.total += time;
    sum.slowest = std::max(sum.slowest, time);
  }
  std::vector<CollectiveSum> list;
  list.reserve(sums.size());
  for (auto& [key, sum] : sums) list.push_back(std::move(sum));
  std::ranges::stable_sort(list, std::greater{}, &CollectiveSum::slowest);
  if (list.size() > most) list.erase(list.begin() + static_cast<std::ptrdiff_t>(most), list.end());
  return list;
}

Value collective_rows(const Simulation& s) {
  Value rows = Value::array();
  for (const CollectiveSum& sum : slowest_collectives(s, 20))
    rows.push_back(
        {{"name", "name", sum.name},
         {"kind", "kind", to_string(sum.kind)},
         {"ranks", "ranks", sum.ranks},
         {"bytes", "size", bare(sum.bytes), in::kMb},
         {"count", "count", sum.count},
         {"mean_s", "mean", bare(sum.total * (1 / static_cast<double>(sum.count))), in::kUs},
         {"slowest_s", "slowest", bare(sum.slowest), in::kUs}});
  return rows;
}

/// How the collectives were simulated, for people.
std::string carried_by(const Simulation& s) {
  if (s.cluster.empty()) return "at the durations of the traces";
  switch (s.fidelity) {
    case step::Fidelity::kClosed: return "by closed form";
    case step::Fidelity::kMessage:
      return "message by message: " + counted(s.lowered.messages, "message");
    case step::Fidelity::kSimgrid:
      return "message by message through SimGrid: " + counted(s.lowered.messages, "message");
  }
  return "";
}

/// The basis of the closed forms; nothing if none was used.
std::vector<std::string> pricing_lines(const Simulation& s) {
  std::vector<std::string> lines;
  for (const job::Pricing& p : s.lowered.pricings)
    lines.push_back(fmt::format("{} among {}: {}{}{}", to_string(p.kind), counted(p.ranks, "rank"),
                                p.calibrated ? "calibrated, " : "links of the cluster",
                                !p.calibrated && !p.why.empty() ? ", as " : "", p.why));
  return lines;
}

/// A row per range of ranks; people see the parts that occur.
Value occupancy_rows(const Simulation& s) {
  Value rows = Value::array();
  const Value mean = occupancy_fields(job::mean(s.occupancy));
  for (const job::RankRange& range : s.occupancy) {
    Value row = {{"", "ranks", ranks_text(range)}, {"rank", range.first}, {"count", range.count}};
    const Value parts = occupancy_fields(range.occupancy, s.step);
    for (std::size_t i = 0; i < parts.fields().size(); ++i) {
      const Entry& part = parts.fields()[i];
      const bool occurs = std::get<Quantity>(mean.fields()[i].value.content()).value > 0;
      row.show(part.key, occurs ? part.label : "", part.value, in::kUs);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Document simulation_document(const Simulation& s) {
  Document d{.command = "simulate", .rows = "ranks", .rows_title = "Ranks"};
  const program::Occupancy mean = job::mean(s.occupancy);
  d.answer = sentence_of(fmt::format("{}, {}{}", s.input, counted(s.job.ranks(), "rank"),
                                     s.cluster.empty() ? "" : " on " + s.cluster),
                         {range_words(s.step, s.cluster.empty() ? "" : " per step"),
                          largest_part(occupancy_fields(mean))});
  d.line(fmt::format(
      "{}; {}, collectives {}", counted(s.job.ops(), "op"),
      !s.lowered.folded ? "every rank was simulated"
      : s.lowered.ranks.size() == 1
          ? "all ranks are equivalent: one was simulated"
          : fmt::format("one rank of each of {} classes was simulated", s.lowered.ranks.size()),
      carried_by(s)));
  d["job"] = {{"input", s.input}, {"ranks", s.job.ranks()}, {"ops", s.job.ops()}};
  d.methods = {Method::kRecordedTimes};
  if (!s.cluster.empty()) {
    d.methods.push_back(method_of(s.fidelity));
    d["cluster"] = s.cluster;
    d["fidelity"] = cli::name_of(s.fidelity);
  }
  d["folded"] = s.lowered.folded;
  d.show("step_time", "step time", s.step);
  if (s.step.low > Seconds::s(0))
    d["throughput"] =
        Quantity(mapped(s.step, [](Seconds time) { return 1 / time.s(); }), unit::kRate);
  const program::Interval interval =
      s.step.value > Seconds::s(0)
          ? program::Interval{s.step.low / s.step.value, s.step.high / s.step.value}
          : program::Interval{};
  add_attribution(
      {mean, program::path_times(s.lowered.graph, job::critical_path(s.job, s.lowered, s.timeline)),
       job::path_parts(s.job, s.lowered, s.timeline, interval, interval)},
      s.step, d);
  d.show("ranks", "Ranks", occupancy_rows(s), {}, first(20));
  d.show("collectives", "Slowest collectives", collective_rows(s), {}, first(5));
  Value costs = Value::array();
  for (const job::Pricing& p : s.lowered.pricings)
    costs.push_back({{"kind", to_string(p.kind)},
                     {"ranks", p.ranks},
                     {"from", p.calibrated ? "calibration" : "links"},
                     {"why", p.why}});
  d["collective_costs"] = std::move(costs);
  d.show("", "Cost of collectives", pricing_lines(s));
  if (!s.lowered.folded) {
    d["messages"] = s.lowered.messages;
    d["bytes_sent"] = s.lowered.bytes_sent;
  }
  d.add_warnings(s.warnings);
  return d;
}

struct ChakraNetwork {
  cluster::Cluster cluster;
  /// The dimensions that involved_dim of a collective refers to, fastest first: those of
  /// ASTRA-sim's network, or else the devices of a node and the nodes. Empty if nodes differ.
  std::vector<std::uint32_t> dimensions;
};

/// Levels of a cluster: the devices of a node, and the nodes.
std::vector<std::uint32_t> levels_of(const cluster::Cluster& cluster) {
  const std::size_t each = cluster.nodes().front().devices.size(), nodes = cluster.nodes().size();
  std::vector<std::uint32_t> levels;
  for (const std::size_t size : {each, nodes})
    if (size > 1) levels.push_back(static_cast<std::uint32_t>(size));
  const bool even = std::ranges::all_of(
      cluster.nodes(), [&](const cluster::Node& node) { return node.devices.size() == each; });
  return even ? levels : std::vector<std::uint32_t>{};
}

/// Takes a cluster file or an ASTRA-sim network file: one of the two.
Result<ChakraNetwork> load_network(const std::filesystem::path& cluster,
                                   const std::filesystem::path& astra_network) {
  if (astra_network.empty()) {
    cluster::Cluster read = TRY(cluster::load_cluster(cluster));
    std::vector<std::uint32_t> levels = levels_of(read);
    return ChakraNetwork{std::move(read), std::move(levels)};
  }
  cluster::AstraNetwork read = TRY(cluster::load_astra_network(astra_network));
  return ChakraNetwork{std::move(read.cluster), std::move(read.dimensions)};
}

/// Sets the rules for collectives from the system file, for a network with this number of
/// dimensions. The chunks and phases of a collective are part of the program
/// (profiler/ingest/chakra_job.h).
void set_astra_rules(const ingest::AstraSystem& system, std::size_t dimensions, job::Rules& rules,
                     std::vector<Warning>& warnings) {
  const auto named = [](std::string_view name) {
    return static_cast<Algorithm>(index_of(kAlgorithmNames, name));
  };
  rules.algorithms = job::wherever_possible(named(system.reduction));
  rules.algorithms[CollectiveKind::kAllToAll] = named(system.exchange);
  rules.message_overhead = system.endpoint_delay;
  rules.calibrated = false;
  // A rank has one communication op in flight. If parts of a collective overlap on different
  // dimensions, each dimension needs a stream instead.
  rules.one_stream = dimensions < 2 || system.collectives.one_ring;
  if (system.last_first)
    warnings.push_back(
        {"scheduling-policy LIFO is not supported: collectives waiting for a dimension run in "
         "order of issue",
         "scheduling-policy FIFO"});
}

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
  const std::string model = TRY(model_of(cluster, job.ranks()));
  const cluster::Gpu& g = *TRY(cluster::find_gpu(model));
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
  const step::PriceEnds ends = TRY(s.fidelity == step::Fidelity::kClosed
                                       ? step::ends_of_prices(s.lowered, s.timeline.makespan())
                                       : step::ends_of_prices(s.job, cluster, s.rules, !unfold));
  const step::PriceReach reach = ends.reach();
  estimate.low = step - reach.down;
  estimate.high = step + reach.up;
  estimate.provenance = std::max(estimate.provenance, reach.provenance);
  return estimate;
}

const program::Occupancy& last_occupancy(const Simulation& s) {
  std::size_t last = 0;
  Picoseconds end(0);
  for (std::size_t r = 0; r + 1 < s.lowered.first_op.size(); ++r)
    for (std::uint32_t i = s.lowered.first_op[r]; i < s.lowered.first_op[r + 1]; ++i)
      if (s.timeline[OpId(i)].end > end) {
        end = s.timeline[OpId(i)].end;
        last = r;
      }
  const auto range = std::ranges::find_if(s.occupancy, [&](const job::RankRange& of) {
    return s.lowered.ranks[last].index() < std::size_t{of.first} + of.count;
  });
  return range->occupancy;
}

/// The process groups of the request, or those that lie next to the traces.
std::filesystem::path groups_of(const SimulateOptions& options) {
  if (!options.groups.empty()) return options.groups;
  const std::filesystem::path adjacent = ingest::chakra_groups(options.chakra);
  std::error_code ignored;
  return std::filesystem::is_regular_file(adjacent, ignored) ? adjacent : std::filesystem::path();
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
  if (const std::filesystem::path groups_file = groups_of(options); !groups_file.empty())
    files.groups = TRY(ingest::load_comm_groups(groups_file));
  ingest::ChakraJob read = TRY(ingest::read_chakra_job(files, globals.progress_of("reading")));
  Simulation s{.job = std::move(read.job),
               .input = read.files.front(),
               .fidelity = options.fidelity,
               .rules = rules_of(options),
               .step = {Seconds::s(0), Seconds::s(0), Seconds::s(0), Provenance::kExtrapolated}};
  if (read.files.size() > 1) s.input += " … " + read.files.back();
  if (system) set_astra_rules(*system, network->dimensions.size(), s.rules, s.warnings);
  if (read.without_length > 0)
    s.warnings.push_back(
        {fmt::format("{} with neither duration_micros nor num_ops: counted as 0",
                     counted(read.without_length, "compute op")),
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
  Simulation read = TRY(read_job(options, nullptr, {}, globals));
  Simulation& s = read;
  program::Lowered lowered = TRY(program::lower(s.job));
  static_cast<program::Lowered&>(s.lowered) = std::move(lowered);
  s.timeline = TRY(engine::run(s.lowered.graph));
  s.occupancy = job::occupancy(s.job, s.lowered, s.timeline);
  const Seconds step = s.timeline.makespan().seconds();
  s.step = {step, step, step, Provenance::kRecorded};
  return read;
}

Result<Simulation> simulate(const SimulateOptions& options, const Globals& globals) {
  if (!options.on_network()) return simulate_timed(options, globals);
  if (options.fidelity == step::Fidelity::kSimgrid) TRY(engine::check_simgrid());
  const ChakraNetwork runs_on = TRY(load_network(options.cluster, options.astra_network));
  const cluster::Cluster* cluster = &runs_on.cluster;
  std::optional<ingest::AstraSystem> system;
  if (!options.astra_system.empty()) system = TRY(ingest::load_astra_system(options.astra_system));
  Simulation read = TRY(read_job(options, &runs_on, system, globals));
  Simulation& s = read;
  s.cluster = describe(*cluster);
  const bool closed = options.fidelity == step::Fidelity::kClosed;
  if (closed && std::ranges::any_of(cluster->links(), [](const cluster::Link& link) {
        return !link.changes.empty();
      }))
    s.warnings.push_back(
        {"closed forms use the initial rates of links: `changes` of the cluster are ignored",
         "run with --fidelity message"});
  const double by_roofline = TRY(price_compute(s.job, *cluster, system, s.warnings));
  step::ProgramRun run = TRY(step::run_program(
      s.job, *cluster, s.rules,
      {.fidelity = options.fidelity,
       .fold = closed && !options.unfold,
       .engine = {.division = options.division.value_or(engine::Division::kFair),
                  .on_failure = options.on_failure.value_or(engine::OnFailure::kStall)}}));
  s.lowered = std::move(run.lowered);
  s.timeline = std::move(run.timeline);
  s.occupancy = job::occupancy(s.job, s.lowered, s.timeline);
  s.by_roofline = by_roofline;
  const Estimate<Seconds> network = TRY(between_bounds(s, *cluster, options.unfold));
  s.step = job::with_slow_kernels(network, last_occupancy(s), by_roofline);
  return read;
}

Result<Exit> run(const SimulateOptions& options, const Globals& globals) {
  if (!options.job_file.empty()) {
    const bool dataflow = dataflow::is_dataflow_file(options.job_file);
    if (!dataflow && !is_serve_file(options.job_file)) return simulate_job_file(options, globals);
    if (options.changes.any())
      return fail_in(options.job_file, "--scale and --network change jobs of training",
                     "a file with `training`");
    return dataflow ? simulate_dataflow(options, globals) : simulate_serving(options, globals);
  }
  TRY(check_writable({options.files.perfetto}));
  std::optional<Watch> watch(std::in_place, globals.progress_of("simulating"));
  const Simulation s = TRY(simulate(options, globals));
  watch.reset();
  for (const Warning& warning : s.warnings) globals.warn(to_string(warning));
  return answer_run(
      globals, options.files, simulation_document(s), view_of(s.job, s.lowered, s.timeline), [&] {
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
    action = [options](const Globals& globals) {
      return on_described_job(options->described, JobUse::kOnePlan, options->job_file,
                              [&] { return run(*options, globals); });
    };
  });
}

}  // namespace rehearse::cli
