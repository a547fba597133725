// One function per subcommand: it adds the subcommand's options to the application and sets the
// function to run.
#pragma once

#include <functional>

#include "cli/globals.h"
#include "sim/base/result.h"

namespace CLI {
class App;
}

namespace rehearse::cli {

/// The action that a parsed command line requests; the callback of the chosen subcommand sets it.
using Action = std::function<Result<Exit>(const Globals&)>;

void add_catalog(CLI::App& app, Action& action);
void add_bench_gpu(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_calibrate_job(CLI::App& calibrate, Action& action);
void add_check(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_fleet(CLI::App& app, Action& action);
void add_help(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);
void add_init(CLI::App& app, Action& action);
void add_input(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_live(CLI::App& app, Action& action);
void add_mig(CLI::App& app, Action& action);
void add_network(CLI::App& app, Action& action);
void add_pack(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_profile(CLI::App& app, Action& action);
void add_prove(CLI::App& app, Action& action);
void add_recommend(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_simulate(CLI::App& app, Action& action);
void add_study(CLI::App& app, Action& action);
void add_validate(CLI::App& app, Action& action);
void add_whatif(CLI::App& app, Action& action);

}  // namespace rehearse::cli
