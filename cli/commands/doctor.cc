// rehearse doctor: what this machine supports, and what to install for the rest.
#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/doctor/checks.h"
#include "cli/output/document.h"

namespace rehearse::cli {
namespace {

using doctor::Check;

std::vector<Check> all_checks() {
  std::vector<Check> checks = {doctor::check_capture(), doctor::check_driver()};
  for (Check& check : doctor::check_devices()) checks.push_back(std::move(check));
  checks.push_back(doctor::check_cupti());
  checks.push_back(doctor::check_injection());
  checks.push_back(doctor::check_nccl());
  checks.push_back(doctor::check_permissions());
  checks.push_back(doctor::check_python());
  checks.push_back(doctor::check_disk());
  checks.push_back(doctor::check_simgrid());
  checks.push_back(doctor::check_mpi());
  return checks;
}

Result<Exit> run(const Globals& globals) {
  Document document{.command = "doctor", .rows = "checks"};
  for (const Check& c : all_checks())
    document["checks"].push_back({{"name", "check", c.name},
                                  {"ok", "ok", c.ok},
                                  {"detail", "detail", c.detail, {}, kProse},
                                  {"remedy", "remedy", c.remedy, {}, kProse}});
  return answer_with(globals, document);
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("doctor", "Check what this machine can record and run");
  command->footer("Example: rehearse doctor");
  command->callback([&action] { action = run; });
}

}  // namespace rehearse::cli
