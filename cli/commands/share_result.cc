#include "cli/commands/share_result.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "cli/commands/share_policy.h"
#include "cli/output/result.h"
#include "cli/report/report.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using sharing::Loss;

struct Part {
  const char* name;  ///< for people
  const char* key;
  Seconds Loss::*time;
};
constexpr std::array<Part, 5> kParts = {
    {{"fewer multiprocessors", "compute", &Loss::compute},
     {"memory bandwidth", "memory_bandwidth", &Loss::memory_bandwidth},
     {"waiting for its turn", "waiting", &Loss::waiting},
     {"changes of turns", "changes", &Loss::changes},
     {"links and copies", "communication", &Loss::communication}}};

Estimate<double> slowdown(const SharedJobs& shared, const SharedJob& job) {
  const sharing::Policy policy = shared.sharing.policy;
  Estimate<double> slower = sharing::slowdown_of(job.step, policy);
  if (policy != sharing::Policy::kCrossover && policy != sharing::Policy::kExclusive) return slower;
  // It waits for steps of the other, as long as these may be.
  const Estimate<Seconds>& other = shared.jobs[&job == &shared.jobs[0] ? 1 : 0].alone;
  slower.low = std::min(slower.value, 1 + (slower.low - 1) * (other.low / other.value));
  slower.high = std::max(slower.value, 1 + (slower.high - 1) * (other.high / other.value));
  return slower;
}

/// How long a step is beside the other: uncertain as it is alone, and as its slowdown is.
Estimate<Seconds> beside(const SharedJobs& shared, const SharedJob& job) {
  const Estimate<double> slower = slowdown(shared, job);
  return {job.alone.value * slower.value, job.alone.low * slower.low, job.alone.high * slower.high,
          std::max(job.alone.provenance, slower.provenance)};
}

/// What is lost, and with `part` a part of it: in proportion, as far as the whole is uncertain and
/// no further. Where next to nothing is lost, what a part is of it says nothing, and each that
/// there is may be all of it.
Estimate<Seconds> lost(const SharedJobs& shared, const SharedJob& job,
                       std::optional<Seconds> part = {}) {
  constexpr double kNextToNothing = 0.01;
  const Estimate<double> slower = slowdown(shared, job);
  const Seconds total = job.alone.value * (slower.value - 1);
  // The graph that ran is as long as the prediction but for rounding.
  const Seconds value = part ? *part * (job.alone.value / job.step.alone) : total;
  double share = 1;
  if (value == Seconds::s(0) && part)
    share = 0;
  else if (part && std::abs(slower.value - 1) > kNextToNothing)
    share = std::clamp(value / total, -1.0, 1.0);
  const auto at = [&](double other) {
    return value + job.alone.value * (share * (other - slower.value));
  };
  // What one loses can also help it, where it then meets the other less.
  const auto [least, most] = std::minmax({value, at(slower.low), at(slower.high)});
  return {value, least, most, slower.provenance};
}

/// Work done together, against one job after the other.
double gain(const SharedJobs& shared) {
  double sum = 0;
  for (const SharedJob& job : shared.jobs) sum += 1 / job.step.slowdown();
  return sum;
}

Json sharing_json(const sharing::Sharing& sharing) {
  Json json = {{"policy", sharing::kPolicyNames[static_cast<int>(sharing.policy)]}};
  const auto time = [](Seconds t) { return Json{{"value", t.s()}, {"unit", "s"}}; };
  if (sharing.policy == sharing::Policy::kTimeSlice) {
    json["quantum"] = time(sharing.quantum);
    json["change"] = time(sharing.change);
  }
  if (!sharing.caps.empty()) json["caps"] = sharing.caps;
  return json;
}

Json to_json(std::string_view command, const SharedJobs& shared) {
  Json json = json_root(command);
  json["share"] = sharing_json(shared.sharing);
  json["tenants"] = Json::array();
  for (const SharedJob& job : shared.jobs) {
    Json loss = {{"total", json_predicted(lost(shared, job))}};
    for (const Part& part : kParts)
      loss[part.key] = json_predicted(lost(shared, job, job.step.loss.*part.time));
    Json tenant = {{"name", job.name},
                   {"alone", json_predicted(job.alone)},
                   {"beside", json_predicted(beside(shared, job))},
                   {"slowdown", json_predicted(slowdown(shared, job), "1")},
                   {"loss", std::move(loss)},
                   {"periods", job.step.periods}};
    if (const auto& memory = job.memory)
      tenant["memory"] = json_predicted(Estimate<double>{memory->value.b(), memory->low.b(),
                                                         memory->high.b(), memory->provenance},
                                        "B");
    json["tenants"].push_back(std::move(tenant));
  }
  json["gain"] = gain(shared);
  if (shared.usable) json["usable_memory"] = {{"value", shared.usable->b()}, {"unit", "B"}};
  json["notes"] = shared.notes;
  json["notes"].push_back(sharing::why_that_wide(shared.sharing.policy));
  return json;
}

Table to_table(const SharedJobs& shared) {
  Table table({{"job", Align::kLeft},
               {"alone (ms)"},
               {"beside (ms)"},
               {"low (ms)"},
               {"high (ms)"},
               {"slowdown"},
               {"slowdown low"},
               {"slowdown high"}});
  const auto ms = [](Seconds s) { return significant(s.ms(), 4); };
  for (const SharedJob& job : shared.jobs) {
    const Estimate<Seconds> there = beside(shared, job);
    const Estimate<double> slower = slowdown(shared, job);
    table.add({job.name, ms(job.alone.value), ms(there.value), ms(there.low), ms(there.high),
               significant(slower.value), significant(slower.low), significant(slower.high)});
  }
  return table;
}

std::string memory_text(const SharedJobs& shared) {
  if (!shared.usable) return "";
  Bytes sum = Bytes::b(0);
  std::string text;
  for (const SharedJob& job : shared.jobs) {
    text += fmt::format("{}{}", text.empty() ? "" : " + ", to_string(job.memory->value));
    sum += job.memory->value;
  }
  return fmt::format("memory       {} = {} of {}\n", text, to_string(sum),
                     to_string(*shared.usable));
}

/// A second job of the same name is told apart.
SharedJobs named(SharedJobs shared) {
  if (shared.jobs[0].name == shared.jobs[1].name) shared.jobs[1].name += " (the other)";
  return shared;
}

std::string to_text(const SharedJobs& shared) {
  std::string text =
      fmt::format("{} beside {} on {}: {}\n\n", shortened(shared.jobs[0].name, 40),
                  shortened(shared.jobs[1].name, 40), shared.devices, describe(shared.sharing));
  text += to_table(shared).text() + "\n";
  text += fmt::format("together     {:.2f} of what they do one after the other\n", gain(shared));
  text += memory_text(shared);
  for (const SharedJob& job : shared.jobs) {
    text += fmt::format("\nWhat a step of {} loses\n", shortened(job.name, 40));
    bool any = false;
    for (const Part& part : kParts) {
      const Estimate<Seconds> time = lost(shared, job, job.step.loss.*part.time);
      const double share = time.value / beside(shared, job).value;
      if (share < 0.0005) continue;
      any = true;
      text += fmt::format("  {:<22} {} {:>10} ({} – {})\n", part.name, bar(share, 24),
                          to_string(time.value), to_string(time.low), to_string(time.high));
    }
    if (!any) text += "  nothing that shows\n";
  }
  text += "\n";
  for (const std::string& note : shared.notes) text += note + "\n";
  return text + std::string(sharing::why_that_wide(shared.sharing.policy)) + "\n";
}

}  // namespace

Status write_shared(const Globals& globals, std::string_view command, SharedJobs jobs,
                    const std::filesystem::path& report,
                    std::vector<std::filesystem::path> inputs) {
  const SharedJobs shared = named(std::move(jobs));
  if (!report.empty())
    if (Status ok = write_report(report, to_json(command, shared), {.inputs = std::move(inputs)});
        !ok)
      return ok;
  return write_result(globals, {.text = [&] { return to_text(shared); },
                                .json = [&] { return to_json(command, shared); },
                                .table = [&] { return to_table(shared); }});
}

}  // namespace rehearse::cli
