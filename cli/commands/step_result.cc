#include "cli/commands/step_result.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/output/color.h"
#include "cli/output/critical_path.h"
#include "cli/output/warnings.h"
#include "cli/output/waterfall.h"
#include "cli/planning/plan_json.h"
#include "cli/report/answer.h"
#include "sim/base/text.h"
#include "strategies/layer_split.h"

namespace rehearse::cli {
namespace {

using step::Breakdown;

struct Part {
  const char* name;
  graph::Category category;
  Seconds Breakdown::*time;
};
constexpr std::array<Part, 8> kParts = {
    {{"compute", graph::Category::kCompute, &Breakdown::compute},
     {"recompute", graph::Category::kCompute, &Breakdown::recompute},
     {"optimizer", graph::Category::kCompute, &Breakdown::optimizer},
     {"exposed communication", graph::Category::kCommunication, &Breakdown::exposed_communication},
     {"bubble", graph::Category::kDelay, &Breakdown::bubble},
     {"input", graph::Category::kInput, &Breakdown::input},
     {"launch", graph::Category::kLaunch, &Breakdown::launch},
     {"idle", graph::Category::kDelay, &Breakdown::fixed}}};

constexpr std::string_view name_of(step::Fidelity fidelity) {
  constexpr std::string_view kNames[] = {"closed", "message", "simgrid"};
  return kNames[static_cast<int>(fidelity)];
}

Estimate<double> scaled(const Estimate<double>& e, double by) {
  return {e.value * by, e.low * by, e.high * by, e.provenance};
}

/// A share of what the hardware could do; the interval is that of the step.
Estimate<double> utilization(const Estimate<Seconds>& step, double at_value) {
  return {at_value, at_value * (step.value / step.high), at_value * (step.value / step.low),
          step.provenance};
}

/// A part of the step, with the interval of the whole in proportion.
Estimate<Seconds> part_of(const Estimate<Seconds>& step, Seconds part) {
  return {part, part * (step.low / step.value), part * (step.high / step.value), step.provenance};
}

std::string degrees_text(const PredictedJob& job) {
  const workload::Layout& layout = job.step.layout;
  const workload::Degrees& d = layout.stages.front().degrees;
  std::string text = fmt::format("data {}", d.data);
  if (d.tensor > 1) text += fmt::format(" × tensor {}", d.tensor);
  if (d.context > 1) text += fmt::format(" × context {}", d.context);
  if (layout.stages.size() > 1) text += fmt::format(" × {} stages", layout.stages.size());
  if (d.expert > 1) text += fmt::format(", expert {}", d.expert);
  return text;
}

/// Of what conditions on the kinds of devices rest on, each once.
std::string conditions_text(const step::Spec& spec) {
  std::vector<std::string> sources = {spec.conditions.source};
  for (const auto& [device, conditions] : spec.conditions_on)
    if (std::find(sources.begin(), sources.end(), conditions.source) == sources.end())
      sources.push_back(conditions.source);
  return fmt::format("{}", fmt::join(sources, "; "));
}

std::string range_text(const Estimate<Seconds>& e) {
  return fmt::format("{} ({} – {}, {})", to_string(e.value, 4), to_string(e.low, 4),
                     to_string(e.high, 4), to_string(e.provenance));
}

std::string memory_text(const PredictedJob& job) {
  if (job.step.memory.empty()) return "";
  const memory::StageMemory& most = memory::fullest(job.step.memory);
  const auto stage = &most - job.step.memory.data();
  return fmt::format("memory       {} of {} ({} – {}) on {}: {}\n", to_string(most.peak.value),
                     to_string(most.device.usable), to_string(most.peak.low),
                     to_string(most.peak.high),
                     job.step.layout.stages[static_cast<std::size_t>(stage)].name,
                     most.fit == memory::Fit::kFits
                         ? std::string(memory::kFitNames[0])
                         : painted(memory::kFitNames[static_cast<int>(most.fit)], Paint::kBad));
}

std::string remedies_text(const PredictedJob& job) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, job.remedies.size()); ++i)
    text += fmt::format("  {}\n", job.remedies[i]);
  return text.empty() ? text : "\nWhat would make it fit\n" + text;
}

/// "devices 71 %, hosts 16 %, network 1 %, cooling 12 %".
std::string energy_parts_text(const cost::StepAccount& account) {
  const cost::EnergyParts& parts = account.energy_parts;
  if (parts.devices == account.energy->value) return "devices alone";
  std::string text;
  const auto add = [&](const char* name, Joules part) {
    if (part.j() > 0)
      text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", name,
                          part / account.energy->value * 100);
  };
  add("devices", parts.devices);
  add("hosts", parts.hosts);
  add("network", parts.network);
  add("cooling", parts.cooling);
  return text;
}

std::string account_text(const cost::StepAccount& account) {
  std::string text;
  if (account.energy)
    text += fmt::format("energy       {} a step ({} – {}), {}\n", to_string(account.energy->value),
                        to_string(account.energy->low), to_string(account.energy->high),
                        energy_parts_text(account));
  if (account.money)
    text += fmt::format("cost         {} a step ({} – {})\n", to_string(account.money->value),
                        to_string(account.money->low), to_string(account.money->high));
  if (account.carbon)
    text += fmt::format("carbon       {:.3g} gCO2e a step ({:.3g} – {:.3g})\n",
                        account.carbon->value, account.carbon->low, account.carbon->high);
  return text;
}

std::string target_text(const PredictedJob& job) {
  if (!job.steps_to_target) return "";
  const double n = *job.steps_to_target;
  const Estimate<Seconds>& step = job.step.time;
  std::string text =
      fmt::format("to target    {} steps, {} ({} – {})", significant(n, 4),
                  to_string(step.value * n), to_string(step.low * n), to_string(step.high * n));
  if (const auto& money = job.account.money)
    text += fmt::format(", {} ({} – {})", to_string(money->value * n), to_string(money->low * n),
                        to_string(money->high * n));
  return text + "\n";
}

std::string provenance_text(const std::array<double, 4>& shares) {
  std::string text;
  for (std::size_t p = 0; p < shares.size(); ++p)
    if (shares[p] > 0.005)
      text += fmt::format("{}{:.0f} % {}", text.empty() ? "" : ", ", shares[p] * 100,
                          to_string(static_cast<Provenance>(p)));
  return text;
}

std::string breakdown_text(const step::Step& step) {
  std::vector<WaterfallPart> parts;
  parts.reserve(kParts.size());
  for (const Part& part : kParts)
    parts.push_back({part.name, step.breakdown.*part.time, part.category});
  return "Breakdown of the step, mean over ranks\n" + waterfall_text(parts, step.time.value);
}

std::string changes_text(const step::Step& step) {
  std::string text;
  std::size_t shown = 0;
  for (const step::Counterfactual& c : step.counterfactuals) {
    const double gain = 1 - c.step / step.time.value;
    if (gain < 0.002 || shown++ == 3) break;
    text += fmt::format("  {:<40} {:>10} {:>6.1f} %\n", c.change, to_string(c.step), -gain * 100);
  }
  return text.empty() ? text : "\nWhat would help most\n" + text;
}

}  // namespace

Json memory_json(const memory::StageMemory& most) {
  const auto bytes = [](Bytes b) { return Json{{"value", b.b()}, {"unit", "B"}}; };
  const memory::Parts& p = most.parts;
  Json json = json_predicted(Estimate<double>{most.peak.value.b(), most.peak.low.b(),
                                              most.peak.high.b(), most.peak.provenance},
                             "B");
  json["fits"] = most.fit != memory::Fit::kDoesNotFit;
  json["verdict"] = memory::kFitNames[static_cast<int>(most.fit)];
  json["usable"] = bytes(most.device.usable);
  json["parts"] = {{"weights", bytes(p.weights)},     {"gradients", bytes(p.gradients)},
                   {"optimizer", bytes(p.optimizer)}, {"activations", bytes(p.activations)},
                   {"loss", bytes(p.loss)},           {"gathered", bytes(p.gathered)},
                   {"transient", bytes(p.transient)}, {"context", bytes(p.context)},
                   {"reserve", bytes(p.reserve)}};
  return json;
}

namespace {

/// Of so many steps; null where it is not known.
Json money_json(const cost::StepAccount& account, double steps) {
  if (!account.money) return {};
  const Estimate<Usd>& e = *account.money;
  return json_predicted(scaled({e.value.usd(), e.low.usd(), e.high.usd(), e.provenance}, steps),
                        "USD");
}

Json energy_parts_json(const cost::EnergyParts& parts) {
  const auto joules = [](Joules e) { return Json{{"value", e.j()}, {"unit", "J"}}; };
  return {{"devices", joules(parts.devices)},
          {"hosts", joules(parts.hosts)},
          {"network", joules(parts.network)},
          {"cooling", joules(parts.cooling)}};
}

Json energy_json(const cost::StepAccount& account, double steps) {
  if (!account.energy) return {};
  const Estimate<Joules>& e = *account.energy;
  return json_predicted(scaled({e.value.j(), e.low.j(), e.high.j(), e.provenance}, steps), "J");
}

Json carbon_json(const cost::StepAccount& account, double steps) {
  if (!account.carbon) return {};
  return json_predicted(scaled(*account.carbon, steps), "gCO2e");
}

Json breakdown_json(const step::Step& step) {
  const auto part = [&](Seconds time) { return json_predicted(part_of(step.time, time)); };
  const Breakdown& b = step.breakdown;
  return {{"compute", part(b.compute + b.recompute + b.optimizer)},
          {"exposed_communication", part(b.exposed_communication)},
          {"bubble", part(b.bubble)},
          {"input", part(b.input)},
          {"launch", part(b.launch)},
          {"idle", part(b.fixed)}};
}

}  // namespace

Table stage_table(const PredictedJob& job) {
  Table table({{"stage", Align::kLeft},
               {"ranks"},
               {"layers"},
               {"parameters (M)"},
               {"peak memory (GiB)"},
               {"device", Align::kLeft},
               {"fits", Align::kLeft}});
  for (std::size_t s = 0; s < job.step.layout.stages.size(); ++s) {
    const workload::Stage& stage = job.step.layout.stages[s];
    std::uint32_t layers = 0;
    for (const workload::Chunk& chunk : stage.chunks)
      for (const workload::Layer& layer : chunk.layers) layers += layer.count;
    const memory::StageMemory& memory = job.step.memory[s];
    table.add({stage.name, grouped(stage.degrees.ranks()), grouped(layers),
               significant(stage.parameters() * 1e-6),
               fmt::format("{:.1f}", memory.peak.value.gib()), memory.device.name,
               std::string(memory::kFitNames[static_cast<int>(memory.fit)])});
  }
  return table;
}

std::string step_text(const PredictedJob& job) {
  const step::Step& step = job.step;
  const workload::Layout& layout = step.layout;
  const Estimate<double> samples = step.samples_per_s();
  std::string text = painted(answer_of(step_json(job)), Paint::kStrong);
  text += fmt::format("\n{}, {} × {:g} samples a step\n\n", degrees_text(job),
                      grouped(layout.microbatches), job.file.spec.training.microbatch);
  text += fmt::format("step time    {}\n", range_text(step.time));
  text += fmt::format("throughput   {} samples/s", significant(samples.value));
  if (layout.tokens_per_sample > 0)
    text += fmt::format(", {} tokens/s, {} tokens/s per device",
                        significant(samples.value * layout.tokens_per_sample),
                        significant(samples.value * layout.tokens_per_sample / layout.ranks()));
  text += fmt::format("\nutilisation  MFU {:.1f} %, HFU {:.1f} %\n", step.model_utilization() * 100,
                      step.hardware_utilization() * 100);
  text += memory_text(job) + account_text(job.account) + target_text(job) + "\n";
  text += breakdown_text(step) + changes_text(step) + remedies_text(job);
  text +=
      fmt::format("\nthe step is from {}; {}\n", provenance_text(job.path.shares_by_provenance()),
                  conditions_text(job.file.spec));
  for (const std::string& line : job.file.assumed) text += "assumed " + line + "\n";
  for (const std::string& line : job.file.notes) text += line + "\n";
  for (const std::string& line : job.account.notes) text += line + "\n";
  return text;
}

Json step_json(const PredictedJob& job) {
  const step::Step& step = job.step;
  const workload::Layout& layout = step.layout;
  const Estimate<double> samples = step.samples_per_s();
  Json json = json_root("simulate");
  json["job"] = {{"workload", job.file.name},
                 {"parameters", job.file.spec.workload.parameters()},
                 {"ranks", layout.ranks()},
                 {"device", step.devices.front().name},
                 {"devices", Json::array()}};
  for (const step::DeviceUse& use : step.devices)
    json["job"]["devices"].push_back({{"device", use.name}, {"ranks", use.ranks}});
  json["plan"] = plan_json(job.file.spec);
  json["fidelity"] = name_of(job.fidelity);
  json["folded"] = step.lowered.folded;
  json["step_time"] = json_predicted(step.time);
  json["throughput"] = json_predicted(samples, "1/s");
  if (layout.tokens_per_sample > 0)
    json["tokens_per_s"] = json_predicted(scaled(samples, layout.tokens_per_sample), "1/s");
  json["mfu"] = json_predicted(utilization(step.time, step.model_utilization()), "1");
  json["hfu"] = json_predicted(utilization(step.time, step.hardware_utilization()), "1");
  json["memory_per_device"] = memory_json(memory::fullest(job.step.memory));
  json["breakdown"] = breakdown_json(step);
  json["compute_parts"] = {
      {"forward_backward", json_predicted(part_of(step.time, step.breakdown.compute))},
      {"recompute", json_predicted(part_of(step.time, step.breakdown.recompute))},
      {"optimizer", json_predicted(part_of(step.time, step.breakdown.optimizer))}};
  json["critical_path"] = json_critical_path(
      program::path_times(step.lowered.graph, graph::critical_path(step.timeline)), step.time);
  json["path"] = json_path(job.path);
  json["path_parts"] = json_path_parts(job.path);
  json["what_would_help"] = Json::array();
  for (const step::Counterfactual& c : step.counterfactuals)
    json["what_would_help"].push_back(
        {{"change", c.change}, {"step_time", json_predicted(part_of(step.time, c.step))}});
  const cost::StepAccount& account = job.account;
  json["cost_per_step"] = money_json(account, 1);
  json["energy_per_step"] = energy_json(account, 1);
  if (account.energy) json["energy_parts"] = energy_parts_json(account.energy_parts);
  json["carbon_per_step"] = carbon_json(account, 1);
  if (job.steps_to_target) {
    const double n = *job.steps_to_target;
    const Estimate<Seconds>& t = step.time;
    json["to_target"] = {{"steps", n},
                         {"time", json_predicted(Estimate<Seconds>{t.value * n, t.low * n,
                                                                   t.high * n, t.provenance})},
                         {"cost", money_json(account, n)},
                         {"energy", energy_json(account, n)},
                         {"carbon", carbon_json(account, n)}};
  }
  json["stages"] = Json::array();
  for (std::size_t s = 0; s < layout.stages.size(); ++s) {
    const memory::StageMemory& m = step.memory[s];
    json["stages"].push_back(
        {{"name", layout.stages[s].name},
         {"ranks", layout.stages[s].degrees.ranks()},
         {"memory", json_predicted(Estimate<double>{m.peak.value.b(), m.peak.low.b(),
                                                    m.peak.high.b(), m.peak.provenance},
                                   "B")},
         {"device", m.device.name},
         {"fits", memory::kFitNames[static_cast<int>(m.fit)]}});
  }
  json["compute_from"] = json_provenance(step.share_by_provenance);
  json["step_from"] = json_provenance(job.path.shares_by_provenance());
  json["conditions"] = {{"source", conditions_text(job.file.spec)}};
  json["applied"] = layout.applied;
  Json notes = Json::array();
  for (const std::string& line : job.file.assumed) notes.push_back("assumed " + line);
  for (const std::string& line : job.file.notes) notes.push_back(line);
  for (const std::string& line : account.notes) notes.push_back(line);
  json["notes"] = std::move(notes);
  json["remedies"] = job.remedies;
  put_warnings(json, step.warnings);
  return json;
}

}  // namespace rehearse::cli
