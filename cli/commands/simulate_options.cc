#include "cli/commands/simulate_options.h"

#include <map>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/share_options.h"
#include "cli/config/fidelity_names.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

// As in the system files that ASTRA-sim ships: preferred-dataset-splits and endpoint-delay.
constexpr std::uint32_t kAstraSplits = 4;
constexpr Seconds kAstraEndpointDelay = Seconds::ns(10);

const std::map<std::string, step::Fidelity> kFidelities = {{"closed", step::Fidelity::kClosed},
                                                           {"message", step::Fidelity::kMessage},
                                                           {"simgrid", step::Fidelity::kSimgrid}};

std::optional<Algorithm> algorithm_from(const std::string& name) {
  for (std::size_t i = 0; i < kAlgorithmNames.size(); ++i)
    if (kAlgorithmNames[i] == name) return static_cast<Algorithm>(i);
  return std::nullopt;
}

std::string check_algorithm(const std::string& name) {
  if (algorithm_from(name)) return "";
  return fmt::format("unknown algorithm '{}'; {}", name, suggest(name, kAlgorithmNames));
}

std::string check_duration(const std::string& text) {
  const Result<Seconds> delay = parse_quantity<Seconds>(text);
  if (!delay) return to_string(delay.error());
  return *delay >= Seconds::s(0) ? "" : "a delay must not be negative";
}

/// One of these names, instead of its value.
template <class Value>
CLI::Validator choice(const std::map<std::string, Value>& values) {
  const auto look_up = [values](std::string& name) -> std::string {
    if (const auto found = values.find(name); found != values.end()) {
      name = std::to_string(static_cast<int>(found->second));
      return "";
    }
    std::vector<std::string_view> names;
    names.reserve(values.size());
    for (const auto& [each, value] : values) names.push_back(each);
    return fmt::format("unknown name '{}'; {}", name, suggest(name, names));
  };
  return CLI::Validator(look_up, "", "");
}

void add_network_options(CLI::App& command, SimulateOptions& options) {
  const std::map<std::string, engine::Division> divisions = {
      {"fair", engine::Division::kFair},
      {"coflow", engine::Division::kCoflow},
      {"first_come", engine::Division::kFirstCome}};
  command
      .add_option("--division", options.division,
                  "how concurrent messages share a link: fair (default); coflow: one collective "
                  "after another, shortest first; first_come: one message after another")
      ->transform(choice(divisions))
      ->type_name("NAME");
  const std::map<std::string, engine::OnFailure> failures = {{"stall", engine::OnFailure::kStall},
                                                             {"retry", engine::OnFailure::kRetry},
                                                             {"fail", engine::OnFailure::kFail}};
  command
      .add_option("--on-link-failure", options.on_failure,
                  "messages on a link that goes down (`changes` of the cluster): stall (default) "
                  "until it is up again, retry from the beginning, or fail the run")
      ->transform(choice(failures))
      ->type_name("NAME");
  command
      .add_option("--interference", options.slowdown,
                  "slowdown of compute while the device runs a collective (default 1; Galvatron "
                  "published 1.13)")
      ->type_name("SLOWDOWN");
}

void add_astra_options(CLI::App& command, SimulateOptions& options) {
  command
      .add_option("--astra-network", options.astra_network,
                  "ASTRA-sim's network file (YAML) instead of --cluster, one rank per NPU")
      ->type_name("FILE");
  command
      .add_option("--astra-system", options.astra_system,
                  "ASTRA-sim's system file (JSON): algorithms, splits, delays, roofline")
      ->type_name("FILE");
  const std::map<std::string, bool> semantics = {{"nccl", false}, {"astra-sim", true}};
  command
      .add_option("--semantics", options.astra_sim,
                  "nccl (default): a stream per process group; astra-sim: one collective or send "
                  "of a rank at a time, in splits, with an endpoint delay")
      ->transform(choice(semantics))
      ->type_name("NAME");
  command
      .add_option("--splits", options.splits,
                  "astra-sim: parts of a collective, one after the other (default 4)")
      ->check(CLI::Range(1U, 1024U).description(""))
      ->type_name("N");
  command
      .add_option("--endpoint-delay", options.endpoint_delay,
                  "astra-sim: time added to every message of a collective (default 10 ns)")
      ->type_name("TIME")
      ->check(CLI::Validator(check_duration, "", ""));
}

}  // namespace

void add_simulate_options(CLI::App& command, SimulateOptions& options) {
  command.add_option("JOB", options.job_file, "job file: workload, training, plan, cluster")
      ->type_name("FILE");
  command
      .add_option("--chakra", options.chakra,
                  "PREFIX.<rank>.et of each rank, or PREFIX.et for all of them; may be gzip")
      ->type_name("PREFIX");
  command.add_option("--cluster", options.cluster, "cluster file, with a section `cluster:`")
      ->type_name("FILE");
  command
      .add_option("--ranks", options.ranks,
                  "number of ranks; rank r runs on device r (default: one per file)")
      ->check(CLI::Range(1U, 1U << 20).description(""))
      ->type_name("N");
  command
      .add_option("--comm-groups", options.groups,
                  "process groups: {\"name\": [ranks]} or {\"name\": [[ranks], [ranks]]} as JSON")
      ->type_name("FILE");
  command
      .add_option("--fidelity", options.fidelity,
                  "message (default): collectives as messages that share links; simgrid: the same, "
                  "carried by SimGrid; closed: calibrated, else in closed form")
      ->transform(choice(kFidelities))
      ->type_name("NAME");
  command
      .add_option(
          "--algorithm", options.algorithm,
          "algorithm of the collectives that support it: ring, tree, nvls, halving_doubling, "
          "hierarchical, ...; all_to_all: pairwise, linear, two_dimensional (default: "
          "NCCL's choice by size where a calibration covers the devices, else ring and "
          "pairwise)")
      ->type_name("NAME")
      ->check(CLI::Validator(check_algorithm, "", ""));
  add_network_options(command, options);
  add_astra_options(command, options);
  CLI::Option* slice = command
                           .add_option("--slice", options.slice,
                                       "run on one instance of this MIG profile of the first "
                                       "device, such as 2g.20gb, instead of the cluster")
                           ->type_name("PROFILE");
  add_share_options(command, options.sharing, "job file", slice);
  command.add_flag("--unfold", options.unfold,
                   "simulate every rank, even if all are equivalent (closed)");
  add_run_files(command, options.files, "the timeline");
}

void check_simulate_options(const SimulateOptions& options) {
  const auto refuse = [](const char* why) { throw CLI::ValidationError(why); };
  if (!options.job_file.empty()) {
    if (!options.chakra.empty()) refuse("a job file or --chakra, not both");
    if (options.ranks > 0 || !options.groups.empty() || !options.algorithm.empty() ||
        !options.astra_network.empty() || !options.astra_system.empty() || options.astra_sim ||
        options.division || options.on_failure || options.slowdown > 1)
      refuse(
          "--ranks, --comm-groups, --algorithm, --astra-network, --astra-system, --semantics, "
          "--division, --on-link-failure and --interference need --chakra");
  } else if (!options.slice.empty()) {
    refuse("--slice needs a job file");
  } else if (options.sharing.asked()) {
    refuse("--beside needs a job file");
  } else if (options.chakra.empty() || (options.cluster.empty() && options.astra_network.empty())) {
    refuse(
        "simulate needs a job file, or --chakra PREFIX and --cluster FILE (or --astra-network "
        "FILE)");
  }
  if (!options.cluster.empty() && !options.astra_network.empty())
    refuse("--cluster or --astra-network, not both");
  if (!options.astra_system.empty() && (options.astra_sim || !options.algorithm.empty()))
    refuse("--astra-system excludes --semantics and --algorithm");
  if (!options.astra_sim && (options.splits || !options.endpoint_delay.empty()))
    refuse("--splits and --endpoint-delay need --semantics astra-sim");
  if ((options.division || options.on_failure) && options.fidelity != step::Fidelity::kMessage)
    refuse("--division and --on-link-failure need --fidelity message");
  if (options.sharing.asked() && options.fidelity == step::Fidelity::kSimgrid)
    refuse("--beside needs --fidelity message or closed: SimGrid does not model shared devices");
  if (!(options.slowdown >= 1 && options.slowdown <= 100))
    refuse("--interference must be from 1 (no slowdown) to 100");
  if (options.slowdown > 1 && options.fidelity == step::Fidelity::kSimgrid)
    refuse(
        "--interference needs --fidelity message or closed: SimGrid does not model shared devices");
}

std::optional<Algorithm> algorithm_of(const SimulateOptions& options) {
  return algorithm_from(options.algorithm);
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
  rules.message_overhead = options.endpoint_delay.empty()
                               ? kAstraEndpointDelay
                               : *parse_quantity<Seconds>(options.endpoint_delay);
  return rules;
}

}  // namespace rehearse::cli
