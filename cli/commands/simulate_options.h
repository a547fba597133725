// The options of `rehearse simulate`, and what it does with each kind of input.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/commands/job_changes.h"
#include "cli/commands/run_answer.h"
#include "cli/commands/share_policy.h"
#include "cli/config/described_job.h"
#include "cli/globals.h"
#include "models/job/lower.h"
#include "sim/engine/engine.h"
#include "strategies/step/fidelity.h"

namespace CLI {
class App;
}

namespace rehearse::cli {

struct SimulateOptions {
  std::filesystem::path job_file;
  DescribedJob described;
  std::filesystem::path chakra;
  std::filesystem::path cluster;
  ShareRequest sharing;
  std::uint32_t ranks = 0;  ///< 0: as many as there are files
  std::filesystem::path groups;
  step::Fidelity fidelity = step::Fidelity::kMessage;
  JobChanges changes;
  std::string algorithm;
  std::filesystem::path astra_network, astra_system;
  bool astra_sim = false;
  std::optional<std::uint32_t> splits;
  std::optional<Seconds> endpoint_delay;
  std::optional<engine::Division> division;
  std::optional<engine::OnFailure> on_failure;
  double slowdown = 1;
  bool unfold = false;
  RunFiles files;

  bool on_network() const { return !cluster.empty() || !astra_network.empty(); }
};

void add_simulate_options(CLI::App& command, SimulateOptions& options);
/// Throws CLI::ValidationError on options that exclude each other.
void check_simulate_options(const SimulateOptions& options);

/// The algorithm that is named for all kinds of collectives that it can do.
std::optional<Algorithm> algorithm_of(const SimulateOptions& options);
job::Rules rules_of(const SimulateOptions& options);

/// Predicts one step of a job file.
Result<Exit> simulate_job_file(const SimulateOptions& options, const Globals& globals);

/// Predicts one run of a dataflow file. Fails with the mistakes of the file, and with options that it
/// does not have.
Result<Exit> simulate_dataflow(const SimulateOptions& options, const Globals& globals);

}  // namespace rehearse::cli
