#include "cli/commands/share_result.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "cli/commands/share_policy.h"
#include "cli/output/run_events.h"
#include "cli/output/table.h"
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
     {"switching", "changes", &Loss::changes},
     {"links and copies", "communication", &Loss::communication}}};

Estimate<double> slowdown(const SharedJobs& shared, const SharedJob& job) {
  const sharing::Policy policy = shared.sharing.policy;
  Estimate<double> slower = sharing::slowdown_of(job.step, policy);
  if (policy != sharing::Policy::kCrossover && policy != sharing::Policy::kExclusive) return slower;
  // The job waits for steps of the other, whose length has an interval.
  const Estimate<Seconds>& other = shared.jobs[&job == &shared.jobs[0] ? 1 : 0].alone;
  slower.low = std::min(slower.value, 1 + (slower.low - 1) * (other.low / other.value));
  slower.high = std::max(slower.value, 1 + (slower.high - 1) * (other.high / other.value));
  return slower;
}

/// The step time when run with the other job: the uncertainty is that of the step alone and that of
/// the slowdown.
Estimate<Seconds> together(const SharedJobs& shared, const SharedJob& job) {
  const Estimate<double> slower = slowdown(shared, job);
  return {job.alone.value * slower.value, job.alone.low * slower.low, job.alone.high * slower.high,
          std::max(job.alone.provenance, slower.provenance)};
}

/// The lost time, and with `part` a part of it, whose relative uncertainty is that of the whole. If
/// next to nothing is lost, the shares of the parts mean nothing, and each part that occurs may be
/// all of the loss.
Estimate<Seconds> lost(const SharedJobs& shared, const SharedJob& job,
                       std::optional<Seconds> part = {}) {
  constexpr double kNextToNothing = 0.01;
  const Estimate<double> slower = slowdown(shared, job);
  const Seconds total = job.alone.value * (slower.value - 1);
  // The graph that ran is as long as the prediction, except for rounding.
  const Seconds value = part ? *part * (job.alone.value / job.step.alone) : total;
  double share = 1;
  if (value == Seconds::s(0) && part)
    share = 0;
  else if (part && std::abs(slower.value - 1) > kNextToNothing)
    share = std::clamp(value / total, -1.0, 1.0);
  const auto at = [&](double other) {
    return value + job.alone.value * (share * (other - slower.value));
  };
  // A slower kernel can also help the job, if it then overlaps less with the other.
  const auto [least, most] = std::minmax({value, at(slower.low), at(slower.high)});
  return {value, least, most, slower.provenance};
}

/// Work done together, relative to one job after the other.
double gain(const SharedJobs& shared) {
  double sum = 0;
  for (const SharedJob& job : shared.jobs) sum += 1 / job.step.slowdown();
  return sum;
}

Json sharing_json(const sharing::Sharing& sharing) {
  Json json = {{"policy", sharing::kPolicyNames[static_cast<int>(sharing.policy)]}};
  if (sharing.policy == sharing::Policy::kTimeSlice) {
    json["quantum"] = sharing.quantum;
    json["change"] = sharing.change;
  }
  if (!sharing.caps.empty()) json["caps"] = sharing.caps;
  return json;
}

/// Renames the second job if both have the same name.
SharedJobs named(SharedJobs shared) {
  if (shared.jobs[0].name == shared.jobs[1].name) shared.jobs[1].name += " (the other)";
  return shared;
}

/// The time that a step of the job loses, in parts that add up to it.
Value loss_fields(const SharedJobs& shared, const SharedJob& job, bool labelled) {
  Value loss = {{"total", lost(shared, job)}};
  for (const Part& part : kParts)
    loss.show(part.key, labelled ? part.name : "", lost(shared, job, job.step.loss.*part.time));
  return loss;
}

/// "1.10 GiB + 2.00 GiB = 3.10 GiB of 40.0 GiB"
std::string memory_text(const SharedJobs& shared) {
  Bytes sum = Bytes::b(0);
  std::string text;
  for (const SharedJob& job : shared.jobs) {
    text += (text.empty() ? "" : " + ") + to_string(job.memory->value);
    sum += job.memory->value;
  }
  return fmt::format("{} = {} of {}", text, to_string(sum), to_string(*shared.usable));
}

Document document_of(std::string_view command, const SharedJobs& shared) {
  Document d{.command = std::string(command),
             .rows = "tenants",
             .rows_title = "Jobs",
             .methods = {Method::kTenants}};
  d.line(fmt::format("{} alongside {} on {}: {}", shortened(shared.jobs[0].name, 40),
                     shortened(shared.jobs[1].name, 40), shared.devices, describe(shared.sharing)));
  d["share"] = sharing_json(shared.sharing);
  std::vector<std::string> answers;
  Value tenants = Value::array();
  for (const SharedJob& job : shared.jobs) {
    const Quantity slower(slowdown(shared, job), unit::kFactor);
    const Estimate<Seconds> there = together(shared, job);
    answers.push_back(fmt::format("{} takes {} times as long as alone, {} per step", job.name,
                                  significant(slower.value), range_words(there)));
    tenants.push_back({{"name", "job", job.name},
                       {"alone", "alone", job.alone, in::kMs},
                       {"shared", "together", there, in::kMs},
                       {"slowdown", "slowdown", slower, in::kTimes},
                       {"loss", loss_fields(shared, job, false)},
                       {"periods", job.step.periods},
                       {"memory", maybe(job.memory)}});
  }
  d.answer = sentence_of("Together", answers);
  d["tenants"] = std::move(tenants);
  d.show("gain", "combined throughput", factor(gain(shared)));
  if (shared.usable) {
    d["usable_memory"] = *shared.usable;
    d.show("", "memory", memory_text(shared));
  }
  for (const SharedJob& job : shared.jobs)
    d.show("", fmt::format("Slowdown of a step of {} by cause", shortened(job.name, 40)),
           loss_fields(shared, job, true), {}, kBars);
  std::vector<std::string> notes = shared.notes;
  notes.emplace_back(sharing::why_that_wide(shared.sharing.policy));
  d.show("notes", "Notes", notes);
  return d;
}

}  // namespace

Result<Exit> answer_shared(const Globals& globals, std::string_view command, const RunFiles& files,
                           std::vector<std::filesystem::path> inputs, SharedJobs jobs,
                           const std::vector<sharing::Tenant>& tenants,
                           const std::function<void(const graph::Timeline&, TimelineSink&)>& show,
                           const sharing::StepOf& step_of) {
  std::vector<sharing::TenantStep> steps =
      TRY(step_of ? sharing::share_devices(tenants, jobs.sharing, step_of)
                  : sharing::share_devices(tenants, jobs.sharing));
  for (std::size_t j = 0; j < jobs.jobs.size(); ++j) jobs.jobs[j].step = std::move(steps[j]);
  const auto draw = [&](TimelineSink& sink) { show(jobs.jobs.front().step.last, sink); };
  TRY(write_timeline(files.perfetto, draw));
  const Document document = document_of(command, named(std::move(jobs)));
  return answer_with(globals, document, Exit::kSuccess, {.inputs = std::move(inputs)});
}

}  // namespace rehearse::cli
