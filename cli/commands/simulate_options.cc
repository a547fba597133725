#include "cli/commands/simulate_options.h"

#include <fmt/core.h>

#include "cli/commands/describe_job.h"
#include "cli/commands/networking.h"
#include "cli/commands/options.h"
#include "cli/commands/share_options.h"
#include "cli/config/fidelity_names.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

// As in the system files that ASTRA-sim ships: preferred-dataset-splits and endpoint-delay.
constexpr std::uint32_t kAstraSplits = 4;
constexpr Seconds kAstraEndpointDelay = Seconds::ns(10);

constexpr std::string_view kFailureNames[] = {"stall", "retry", "fail"};
constexpr std::string_view kSemanticsNames[] = {"nccl", "astra-sim"};

constexpr std::string_view kDivisionNames[] = {"fair", "coflow", "first_come"};

Result<engine::Division> read_division(const std::string& name) {
  constexpr engine::Division kDivisions[] = {engine::Division::kFair, engine::Division::kCoflow,
                                             engine::Division::kFirstCome};
  const std::size_t index = index_of(kDivisionNames, name);
  if (index == std::size(kDivisionNames))
    return fail(fmt::format("unknown name '{}'", name), suggest(name, kDivisionNames));
  return kDivisions[index];
}

Result<Seconds> read_delay(const std::string& text) {
  Result<Seconds> delay = parse_quantity<Seconds>(text);
  if (delay && !(*delay >= Seconds::s(0))) return fail("a delay must not be negative");
  return delay;
}

void add_network_options(CLI::App& command, SimulateOptions& options) {
  offer(add_read(command, "--division", "NAME", options.division, read_division,
                 "how concurrent messages share a link: fair (default); coflow: one collective "
                 "after another, shortest first; first_come: one message after another"),
        [] { return std::vector(std::begin(kDivisionNames), std::end(kDivisionNames)); });
  add_choice(command, "--on-link-failure", options.on_failure, kFailureNames,
             "messages on a link that goes down (`changes` of the cluster): stall (default) "
             "until it is up again, retry from the beginning, or fail the run");
  add_value(command, "--interference", "SLOWDOWN", options.slowdown,
            "slowdown of compute while the device runs a collective (default 1; plans have 1.1; "
            "Galvatron "
            "published 1.13)");
}

void add_astra_options(CLI::App& command, SimulateOptions& options) {
  add_value(command, "--astra-network", "FILE", options.astra_network,
            "ASTRA-sim's network file (YAML) instead of --cluster, one rank per NPU");
  add_value(command, "--astra-system", "FILE", options.astra_system,
            "ASTRA-sim's system file (JSON): algorithms, splits, delays, roofline");
  add_choice(command, "--semantics", options.astra_sim, kSemanticsNames,
             "nccl (default): a stream per process group; astra-sim: one collective or send "
             "of a rank at a time, in splits, with an endpoint delay");
  add_value(command, "--splits", "N", options.splits,
            "astra-sim: parts of a collective, one after the other (default 4)")
      ->check(CLI::Range(1U, 1024U).description(""));
  add_read(command, "--endpoint-delay", "TIME", options.endpoint_delay, read_delay,
           "astra-sim: time added to every message of a collective (default 10 ns)");
}

}  // namespace

void add_simulate_options(CLI::App& command, SimulateOptions& options) {
  add_value(command, "JOB", "FILE", options.job_file,
            "job file: workload, training, plan, cluster; or a dataflow file");
  add_described_job(command, options.described, JobUse::kOnePlan);
  add_value(command, "--chakra", "PREFIX", options.chakra,
            "instead of a job file: Chakra traces, PREFIX.<rank>.et of each rank or one PREFIX.et "
            "for all; may be gzip");
  add_value(command, "--cluster", "FILE", options.cluster,
            "cluster file, instead of the job's; with --chakra and without a cluster, collectives "
            "take their recorded time");
  add_number(command, "--ranks", options.ranks, 1U, 1U << 20,
             "number of ranks; rank r runs on device r (default: one per file)");
  add_value(command, "--comm-groups", "FILE", options.groups,
            "process groups: {\"name\": [ranks]} or {\"name\": [[ranks], [ranks]]} as JSON "
            "(default: PREFIX.groups.json, if there is one)");
  add_choice(command, "--fidelity", options.fidelity, kFidelityNames,
             "how collectives are computed: message (default) simulates messages that share links; "
             "simgrid lets SimGrid do so; closed takes calibrated times or closed forms, and is "
             "faster");
  add_value(command, "--scale", "EDIT", options.changes.scale,
            "TARGET:FACTOR, multiply times of the job by FACTOR, and show the step with and "
            "without this change; "
            "targets: kernel or kernel=PATTERN (operations by name; * matches any text), host "
            "(launches), collective (messages)")
      ->allow_extra_args(false)
      ->check(reads_as(check_scale));
  add_value(command, "--network", "LINK", options.changes.network,
            "latency=5us,rate=100GB/s, or a link file: network of a device between nodes, instead "
            "of the job's")
      ->check(reads_as(check_link));
  CLI::Option* algorithm =
      add_value(command, "--algorithm", "NAME", options.algorithm,
                "algorithm of the collectives that support it: ring, tree, nvls, halving_doubling, "
                "hierarchical, ...; all_to_all: pairwise, linear, two_dimensional (default: "
                "NCCL's choice by size where a calibration covers the devices, else ring and "
                "linear)");
  accept_names(algorithm, kAlgorithmNames, "algorithm");
  add_network_options(command, options);
  add_astra_options(command, options);
  add_share_options(command, options.sharing, "job file",
                    "run on one instance of this MIG profile of the first device, such as 2g.20gb, "
                    "instead of the cluster");
  command.add_flag("--unfold", options.unfold,
                   "simulate every rank, even if all are equivalent (closed)");
  add_run_files(command, options.files, "the timeline");
  const auto group = [&](const char* heading, std::initializer_list<const char*> names) {
    for (const char* name : names) command.get_option(name)->group(heading);
  };
  group("Options for several jobs on a GPU", {"--slice", "--share-with", "--share"});
  group("Options for Chakra traces", {"--chakra", "--ranks", "--comm-groups", "--algorithm",
                                      "--division", "--on-link-failure", "--interference"});
  group("Options for Chakra traces as ASTRA-sim runs them",
        {"--astra-network", "--astra-system", "--semantics", "--splits", "--endpoint-delay"});
}

void check_simulate_options(const SimulateOptions& options) {
  const auto refuse = [](const char* why) { throw CLI::ValidationError(why); };
  check_described_job(options.job_file, options.described, JobUse::kOnePlan);
  if (!options.job_file.empty() || !options.described.model.empty()) {
    if (!options.chakra.empty()) refuse("a job or --chakra, not both");
    if (options.ranks > 0 || !options.groups.empty() || !options.algorithm.empty() ||
        !options.astra_network.empty() || !options.astra_system.empty() || options.astra_sim ||
        options.division || options.on_failure || options.slowdown > 1)
      refuse(
          "--ranks, --comm-groups, --algorithm, --astra-network, --astra-system, --semantics, "
          "--division, --on-link-failure and --interference need --chakra");
  } else if (!options.sharing.slice.empty()) {
    refuse("--slice needs a job file");
  } else if (options.sharing.asked()) {
    refuse("--share-with needs a job file");
  } else if (options.chakra.empty()) {
    refuse("simulate needs a job file, --model NAME or --chakra PREFIX");
  } else if (!options.on_network() &&
             (!options.algorithm.empty() || !options.astra_system.empty() || options.astra_sim ||
              options.division || options.on_failure || options.slowdown > 1)) {
    refuse(
        "--algorithm, --astra-system, --semantics, --division, --on-link-failure and "
        "--interference need --cluster or --astra-network");
  }
  if (options.changes.any() && (!options.chakra.empty() || options.sharing.asked()))
    refuse("--scale and --network change a job file, without --chakra and --share-with");
  if (!options.cluster.empty() && !options.astra_network.empty())
    refuse("--cluster or --astra-network, not both");
  if (!options.astra_system.empty() && (options.astra_sim || !options.algorithm.empty()))
    refuse("--astra-system excludes --semantics and --algorithm");
  if (!options.astra_sim && (options.splits || options.endpoint_delay))
    refuse("--splits and --endpoint-delay need --semantics astra-sim");
  if ((options.division || options.on_failure) && options.fidelity != step::Fidelity::kMessage)
    refuse("--division and --on-link-failure need --fidelity message");
  if (options.sharing.asked() && options.fidelity == step::Fidelity::kSimgrid)
    refuse(
        "--share-with needs --fidelity message or closed: SimGrid does not model shared devices");
  if (!(options.slowdown >= 1 && options.slowdown <= 100))
    refuse("--interference must be from 1 (no slowdown) to 100");
  if (options.slowdown > 1 && options.fidelity == step::Fidelity::kSimgrid)
    refuse(
        "--interference needs --fidelity message or closed: SimGrid does not model shared devices");
}

std::optional<Algorithm> algorithm_of(const SimulateOptions& options) {
  const std::size_t index = index_of(kAlgorithmNames, options.algorithm);
  if (index == kAlgorithmNames.size()) return std::nullopt;
  return static_cast<Algorithm>(index);
}

job::Rules rules_of(const SimulateOptions& options) {
  const bool closed = options.fidelity == step::Fidelity::kClosed;
  job::Rules rules{.fidelity = closed ? job::Fidelity::kClosed : job::Fidelity::kMessage,
                   .grouped = options.division == engine::Division::kCoflow,
                   .slowdown = options.slowdown,
                   .calibrated = !options.astra_sim};
  if (const std::optional<Algorithm> algorithm = algorithm_of(options))
    rules.algorithms = job::wherever_possible(*algorithm);
  if (!options.astra_sim) return rules;
  rules.one_stream = true;
  rules.parts = options.splits.value_or(kAstraSplits);
  rules.message_overhead = options.endpoint_delay.value_or(kAstraEndpointDelay);
  return rules;
}

}  // namespace rehearse::cli
