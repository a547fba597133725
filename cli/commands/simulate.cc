// rehearse simulate: predict a job on a cluster.
#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/commands/simulate_result.h"
#include "cli/output/result.h"
#include "models/job/roofline.h"
#include "profiler/ingest/chakra_job.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"

namespace rehearse::cli {
namespace {

struct Options {
  std::filesystem::path chakra;
  std::filesystem::path cluster;
  std::uint32_t ranks = 0;  ///< 0: as many as there are files
  std::filesystem::path groups;
  job::Fidelity fidelity = job::Fidelity::kMessage;
  std::string algorithm;
  bool astra_sim = false;
  std::optional<std::uint32_t> splits;
  std::string endpoint_delay;
  bool unfold = false;
  std::filesystem::path perfetto;
};

// As the system files that ASTRA-sim comes with: preferred-dataset-splits and endpoint-delay.
constexpr std::uint32_t kAstraSplits = 4;
constexpr Seconds kAstraEndpointDelay = Seconds::ns(10);

std::optional<comm::Algorithm> algorithm_from(const std::string& name) {
  for (std::size_t i = 0; i < comm::kAlgorithmNames.size(); ++i)
    if (comm::kAlgorithmNames[i] == name) return static_cast<comm::Algorithm>(i);
  return std::nullopt;
}

job::Rules rules_of(const Options& options) {
  job::Rules rules{.fidelity = options.fidelity};
  if (!options.algorithm.empty()) rules.algorithm = algorithm_from(options.algorithm);
  if (!options.astra_sim) return rules;
  rules.one_stream = true;
  rules.parts = options.splits.value_or(kAstraSplits);
  rules.message_overhead = options.endpoint_delay.empty()
                               ? kAstraEndpointDelay
                               : *parse_quantity<Seconds>(options.endpoint_delay);
  return rules;
}

/// The device that all ranks run on; an error where they differ.
Result<std::string> model_of(const cluster::Cluster& cluster, std::uint32_t ranks) {
  const std::string& model = cluster.devices().front().model;
  for (std::uint32_t r = 0; r < ranks; ++r)
    if (cluster.devices()[r].model != model)
      return fail(fmt::format("ops without a duration on both {} and {}", model,
                              cluster.devices()[r].model),
                  "durations in the trace, or ranks on one kind of device");
  return model;
}

/// Lengths for ops that come with their work. Returns the share of compute time that these are.
Result<double> price_compute(graph::Job& job, const cluster::Cluster& cluster,
                             std::vector<std::string>& warnings) {
  if (!job::lacks_durations(job)) return 0.0;
  const Result<std::string> model = model_of(cluster, job.ranks());
  if (!model) return forward(model);
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu(*model);
  if (!gpu) return forward(gpu);
  const cluster::Gpu& g = **gpu;
  const FlopRate peak = g.bf16_tensor ? *g.bf16_tensor : g.fp16_tensor ? *g.fp16_tensor : g.fp32;
  const double share = job::set_durations(job, job::Device{.peak = peak, .memory = g.memory_rate});
  warnings.push_back(fmt::format(
      "{:.0f} % of the compute time is the roofline of {} ({}, {}): real kernels take longer; "
      "record their durations to know",
      share * 100, g.name, to_string(peak), to_string(g.memory_rate)));
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

/// One rank for all where that is the same, else all.
Result<job::LoweredJob> lower(const graph::Job& job, const cluster::Cluster& cluster,
                              const job::Rules& rules, bool unfold) {
  if (rules.fidelity == job::Fidelity::kClosed && !unfold) {
    Result<std::optional<job::LoweredJob>> folded = job::fold(job, cluster, rules);
    if (!folded) return forward(folded);
    if (*folded) return std::move(**folded);
  }
  return job::lower(job, cluster, rules);
}

Result<Simulation> simulate(const Options& options, const Globals& globals) {
  const Result<cluster::Cluster> cluster = cluster::load_cluster(options.cluster);
  if (!cluster) return forward(cluster);
  ingest::ChakraFiles files{.prefix = options.chakra};
  if (options.ranks > 0) files.ranks = options.ranks;
  if (!options.groups.empty()) {
    Result<ingest::CommGroups> groups = ingest::load_comm_groups(options.groups);
    if (!groups) return forward(groups);
    files.groups = std::move(*groups);
  }
  Result<ingest::ChakraJob> read = ingest::read_chakra_job(files, globals.progress_of("reading"));
  if (!read) return forward(read);
  Simulation s{.job = std::move(read->job),
               .input = read->files.front(),
               .cluster = describe(*cluster),
               .rules = rules_of(options),
               .lowered = {},
               .timeline = {},
               .usage = {},
               .step = {Seconds::s(0), Seconds::s(0), Seconds::s(0), Provenance::kExtrapolated},
               .warnings = {}};
  if (read->files.size() > 1) s.input += " … " + read->files.back();
  if (read->without_length > 0)
    s.warnings.push_back(fmt::format("{} with neither duration_micros nor num_ops: taken as 0",
                                     counted(read->without_length, "compute op")));
  if (s.rules.algorithm)
    for (const CollectiveKind kind : job::not_done_by(s.job, *s.rules.algorithm))
      s.warnings.push_back(fmt::format("'{}' does no {}, which takes its usual algorithm",
                                       options.algorithm, to_string(kind)));
  const Result<double> by_roofline = price_compute(s.job, *cluster, s.warnings);
  if (!by_roofline) return forward(by_roofline);
  Result<job::LoweredJob> lowered = lower(s.job, *cluster, s.rules, options.unfold);
  if (!lowered) return forward(lowered);
  s.lowered = std::move(*lowered);
  constexpr std::uint64_t kMostMessages = 2'000'000'000;
  if (s.rules.fidelity == job::Fidelity::kMessage && s.lowered.messages > kMostMessages)
    return fail(
        fmt::format("{} messages are too many to carry one by one", grouped(s.lowered.messages)),
        "--fidelity closed");
  Result<graph::Timeline> timeline = engine::run(s.lowered.graph);
  if (!timeline) return forward(timeline);
  s.timeline = std::move(*timeline);
  s.usage = job::usage(s.job, s.lowered, s.timeline);
  std::size_t last = 0;
  Picoseconds end(0);
  for (std::size_t r = 0; r + 1 < s.lowered.first_op.size(); ++r)
    for (std::uint32_t i = s.lowered.first_op[r]; i < s.lowered.first_op[r + 1]; ++i)
      if (s.timeline[OpId(i)].end > end) {
        end = s.timeline[OpId(i)].end;
        last = r;
      }
  s.step = job::estimate_step(end.seconds(), s.usage[last], *by_roofline);
  return s;
}

Result<Exit> run(const Options& options, const Globals& globals) {
  if (!options.perfetto.empty())  // before long work: can it be written?
    if (const Result<PendingFile> file = PendingFile::create(options.perfetto); !file)
      return forward(file);
  const Result<Simulation> simulation = simulate(options, globals);
  if (!simulation) return forward(simulation);
  for (const std::string& warning : simulation->warnings) globals.warn(warning);
  if (!options.perfetto.empty())
    if (Status ok = draw_simulation(options.perfetto, *simulation); !ok) return forward(ok);
  const Formats formats = {.text = [&] { return simulation_text(*simulation); },
                           .json = [&] { return simulation_json(*simulation); },
                           .table = [&] { return rank_table(*simulation); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

std::string check_algorithm(const std::string& name) {
  if (algorithm_from(name)) return "";
  return fmt::format("unknown algorithm '{}'; {}", name, suggest(name, comm::kAlgorithmNames));
}

std::string check_duration(const std::string& text) {
  const Result<Seconds> delay = parse_quantity<Seconds>(text);
  if (!delay) return to_string(delay.error());
  return *delay >= Seconds::s(0) ? "" : "a delay is not negative";
}

}  // namespace

void add_simulate(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "simulate", "Predict a job, given as Chakra execution traces, on a cluster");
  command
      ->add_option("--chakra", options->chakra,
                   "PREFIX.<rank>.et of each rank, or PREFIX.et for all of them; may be gzip")
      ->type_name("PREFIX");
  command->add_option("--cluster", options->cluster, "what it runs on: a file with `cluster:`")
      ->type_name("FILE");
  command
      ->add_option("--ranks", options->ranks,
                   "how many ranks; rank r runs on device r (default: one per file)")
      ->check(CLI::Range(1U, 1U << 20).description(""))
      ->type_name("N");
  command
      ->add_option("--comm-groups", options->groups,
                   "process groups: {\"name\": [ranks]} or {\"name\": [[ranks], [ranks]]} as JSON")
      ->type_name("FILE");
  const std::map<std::string, job::Fidelity> fidelities = {{"closed", job::Fidelity::kClosed},
                                                           {"message", job::Fidelity::kMessage}};
  command
      ->add_option("--fidelity", options->fidelity,
                   "message (default): collectives as messages that share links; closed: by "
                   "closed form")
      ->transform(CLI::CheckedTransformer(fidelities).description(""))
      ->type_name("NAME");
  command
      ->add_option("--algorithm", options->algorithm,
                   "of collectives that it can do: ring (default), tree, halving_doubling, "
                   "hierarchical, ...; all_to_all: pairwise (default), linear, two_dimensional")
      ->type_name("NAME")
      ->check(CLI::Validator(check_algorithm, "", ""));
  const std::map<std::string, bool> semantics = {{"nccl", false}, {"astra-sim", true}};
  command
      ->add_option("--semantics", options->astra_sim,
                   "nccl (default): a stream per process group; astra-sim: one collective or send "
                   "of a rank at a time, in splits, with an endpoint delay")
      ->transform(CLI::CheckedTransformer(semantics).description(""))
      ->type_name("NAME");
  command
      ->add_option("--splits", options->splits,
                   "astra-sim: parts of a collective, one after the other (default 4)")
      ->check(CLI::Range(1U, 1024U).description(""))
      ->type_name("N");
  command
      ->add_option("--endpoint-delay", options->endpoint_delay,
                   "astra-sim: time added to every message of a collective (default 10 ns)")
      ->type_name("TIME")
      ->check(CLI::Validator(check_duration, "", ""));
  command->add_flag("--unfold", options->unfold,
                    "run every rank also where all do the same (closed)");
  command->add_option("--perfetto", options->perfetto, "write the timeline for ui.perfetto.dev")
      ->type_name("FILE");
  command->footer(
      "Example: rehearse simulate --chakra job --cluster cluster.yaml --ranks 16 --fidelity "
      "closed");
  command->callback([options, &action] {
    if (options->chakra.empty() || options->cluster.empty())
      throw CLI::ValidationError("simulate needs --chakra PREFIX and --cluster FILE");
    if (!options->astra_sim && (options->splits || !options->endpoint_delay.empty()))
      throw CLI::ValidationError("--splits and --endpoint-delay need --semantics astra-sim");
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
