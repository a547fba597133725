// rehearse doctor: what this machine can do, and what to install for what it cannot.
#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/doctor/checks.h"
#include "cli/output/result.h"

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

Table check_table(const std::vector<Check>& checks) {
  Table table({{"check", Align::kLeft},
               {"ok", Align::kLeft},
               {"detail", Align::kLeft},
               {"remedy", Align::kLeft}});
  for (const Check& c : checks) table.add({c.name, c.ok ? "yes" : "no", c.detail, c.remedy});
  return table;
}

Json to_json(const std::vector<Check>& checks) {
  Json json = json_root("doctor");
  for (const Check& c : checks)
    json["checks"].push_back(
        {{"name", c.name}, {"ok", c.ok}, {"detail", c.detail}, {"remedy", c.remedy}});
  return json;
}

Result<Exit> run(const Globals& globals) {
  const std::vector<Check> checks = all_checks();
  const Formats formats = {.text = [&] { return check_table(checks).text(90); },
                           .json = [&] { return to_json(checks); },
                           .table = [&] { return check_table(checks); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("doctor", "What this machine can record and run");
  command->callback([&action] { action = run; });
}

}  // namespace rehearse::cli
