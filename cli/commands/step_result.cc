#include "cli/commands/step_result.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/config/fidelity_names.h"
#include "cli/output/attribution.h"
#include "cli/planning/plan_words.h"
#include "models/job/program_ops.h"
#include "models/workload/host_work.h"
#include "sim/base/text.h"
#include "strategies/layer_split.h"

namespace rehearse::cli {
namespace {

/// A share of the hardware's peak, if that is known; its relative interval is that of the step.
Value utilization(const step::Step& step, double at_value) {
  if (!knows_peak(step)) return {};
  const Estimate<Seconds>& time = step.time;
  return Quantity(Estimate<double>{at_value, at_value * (time.value / time.high),
                                   at_value * (time.value / time.low), time.provenance},
                  unit::kShare);
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

/// The bases of the conditions on the kinds of devices, each once.
std::string conditions_text(const step::Spec& spec) {
  std::vector<std::string> sources = {spec.conditions.source};
  for (const auto& [device, conditions] : spec.conditions_on)
    if (std::ranges::find(sources, conditions.source) == sources.end())
      sources.push_back(conditions.source);
  return fmt::format("{}", fmt::join(sources, "; "));
}

/// "devices 71 %, hosts 16 %, network 1 %, cooling 12 %".
std::string energy_parts_text(const cost::StepAccount& account) {
  const cost::EnergyParts& parts = account.energy_parts;
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

std::string provenance_text(const std::array<double, 4>& shares) {
  std::string text;
  for (std::size_t p = 0; p < shares.size(); ++p)
    if (shares[p] > 0.005)
      text += fmt::format("{}{:.0f} % {}", text.empty() ? "" : ", ", shares[p] * 100,
                          to_string(static_cast<Provenance>(p)));
  return text;
}

/// The interval of a predicted amount over this many steps; null if it is unknown.
template <class Q>
Value of_steps(const std::optional<Estimate<Q>>& amount, double steps) {
  if (!amount) return {};
  return *amount * steps;
}
Value of_steps(const std::optional<Estimate<double>>& grams, double steps) {
  return grams ? Value(Quantity(scaled(*grams, steps), unit::kCarbon)) : Value();
}

Value target_fields(const PredictedJob& job) {
  const double n = *job.steps_to_target;
  return {{"steps", "steps to target", n},
          {"time", "time to target", of_steps(std::optional(job.step.time), n)},
          {"cost", "cost to target", of_steps(job.account.money, n)},
          {"energy", "energy to target", of_steps(job.account.energy, n)},
          {"carbon", "carbon to target", of_steps(job.account.carbon, n)}};
}

/// "5.30 days (5.09 – 5.56 days) and 44,012 USD (…) to the target"
std::string target_words(const PredictedJob& job) {
  if (!job.steps_to_target) return "";
  const double n = *job.steps_to_target;
  const auto words = [&](const auto& amount) {
    return range_words(std::get<Quantity>(of_steps(std::optional(amount), n).content()));
  };
  std::string text = words(job.step.time);
  if (job.account.money) text += " and " + words(*job.account.money);
  return text + " to the target";
}

/// Of the hosts if these hold too little, else of the devices.
std::string fit_words(const step::Step& step) {
  const auto too_much = step.host_memory ? step.host_memory->too_much() : std::nullopt;
  return too_much ? "does not fit: " + *too_much + " of a host"
                  : memory_words(memory::fullest(step.memory));
}

void add_host_memory(const step::Step& step, Document& d) {
  if (!step.host_memory) return;
  const step::HostMemory& m = *step.host_memory;
  const auto line = [&](const char* label, Bytes need, const std::optional<Bytes>& has) {
    if (need > Bytes::b(0))
      d.show("", label,
             fmt::format("{} of {} on {}", to_string(need),
                         has ? to_string(*has) : "an unknown size", m.node));
  };
  line("host memory", m.need.host, m.store.memory);
  line("NVMe drives", m.need.nvme, m.store.nvme);
  d["host_memory"] = {{"node", m.node},
                      {"memory", m.need.host},
                      {"memory_size", maybe(m.store.memory)},
                      {"nvme", m.need.nvme},
                      {"nvme_size", maybe(m.store.nvme)},
                      {"fits", !m.too_much()}};
}

Value stage_rows(const PredictedJob& job) {
  Value rows = Value::array();
  for (std::size_t s = 0; s < job.step.layout.stages.size(); ++s) {
    const workload::Stage& stage = job.step.layout.stages[s];
    std::uint32_t layers = 0;
    for (const workload::Chunk& chunk : stage.chunks)
      for (const workload::Layer& layer : chunk.layers) layers += layer.count;
    const memory::StageMemory& m = job.step.memory[s];
    rows.push_back({{"name", "stage", stage.name},
                    {"ranks", "ranks", stage.degrees.ranks()},
                    {"", "layers", layers},
                    {"", "parameters", stage.parameters(), in::kMillions},
                    {"memory", "peak memory", m.peak, in::kGib},
                    {"device", "device", m.device.name},
                    {"fits", "fits", memory::kFitNames[static_cast<int>(m.fit)]}});
  }
  return rows;
}

/// Ideal counterfactuals, the most effective first; the screen has the relevant ones.
Value bound_rows(const step::Step& step) {
  constexpr double kLeastGain = 0.002;
  Value rows = Value::array();
  for (const step::Counterfactual& c : step.counterfactuals) {
    const double gain = 1 - c.step / step.time.value;
    Value row = {{"change", c.change}, {"step_time", part_of(step.time, c.step)}};
    if (gain >= kLeastGain)
      row = {{"change", "if", c.change},
             {"step_time", part_of(step.time, c.step)},
             {"", "step time", c.step},
             {"", "change", change(-gain)}};
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

bool knows_peak(const step::Step& step) {
  return std::ranges::none_of(step.devices,
                              [](const auto& use) { return use.name == workload::kCore; });
}

std::string devices_words(const step::Step& step) {
  return join(step.devices, " + ", [](const step::DeviceUse& use) {
    return fmt::format("{} × {}", grouped(use.ranks), use.name);
  });
}

std::string host_words(const step::Step& step) {
  if (!step::is_host_bound(step.host_share)) return "";
  return fmt::format("host-bound: launches take {} a layer, kernels {}",
                     to_string(step.block.launches), to_string(step.block.kernels));
}

std::string regime_words(const step::Step& step) {
  if (!step.regime.known()) return fmt::format("unknown regime: {}", step.regime.name);
  if (step.stall == Seconds::s(0)) return "";
  return fmt::format("up to {} if it does not stall, as {:.0f} % of such runs did",
                     to_string(step.time.high - step.stall), step.regime.stalled * 100);
}

std::string memory_words(const memory::StageMemory& most) {
  if (most.fit == memory::Fit::kFits)
    return fmt::format("fits with {} to spare", to_string(most.device.usable - most.peak.value));
  return fmt::format("{}: {} of {}", memory::kFitNames[static_cast<int>(most.fit)],
                     to_string(most.peak.value), to_string(most.device.usable));
}

Json memory_json(const memory::StageMemory& most) {
  Json parts;
  for (const memory::NamedPart& part : memory::kParts) parts[part.name] = most.parts.*part.bytes;
  return {{"value", most.peak.value.b()},
          {"low", most.peak.low.b()},
          {"high", most.peak.high.b()},
          {"unit", "B"},
          {"provenance", to_string(most.peak.provenance)},
          {"fits", most.fit != memory::Fit::kDoesNotFit},
          {"verdict", memory::kFitNames[static_cast<int>(most.fit)]},
          {"usable", most.device.usable},
          {"parts", std::move(parts)}};
}

std::vector<std::string> notes_of(const PredictedJob& job) {
  std::vector<std::string> notes;
  for (const std::string& line : job.file.assumed) notes.push_back("assumed " + line);
  notes.insert(notes.end(), job.file.notes.begin(), job.file.notes.end());
  notes.insert(notes.end(), job.account.notes.begin(), job.account.notes.end());
  if (knows_peak(job.step) && job.step.model_utilization() > 1)
    notes.emplace_back(
        "MFU above 100 %: kernels take fewer operations than the model has (Winograd's "
        "convolutions), or a narrower format than `dtype`");
  return notes;
}

/// "32 % less than the 1.20 s without the changes"; empty without changes.
std::string change_words(const PredictedJob& job) {
  if (!job.unchanged) return "";
  const double change = job.step.time.value / *job.unchanged - 1;
  return fmt::format("{:.1f} % {} than the {} without the changes", std::abs(change) * 100,
                     change > 0 ? "more" : "less", to_string(*job.unchanged));
}

Document step_document(const PredictedJob& job) {
  const step::Step& step = job.step;
  const workload::Layout& layout = step.layout;
  const cost::StepAccount& account = job.account;
  const memory::StageMemory& most = memory::fullest(step.memory);
  const Estimate<double> samples = step.samples_per_s();
  const auto part = [&](Seconds time) { return part_of(step.time, time); };
  Document d{.command = "simulate", .rows = "stages", .rows_title = "Stages"};
  d.answer = sentence_of(fmt::format("{} on {}", job.file.name, devices_words(step)),
                         {range_words(step.time, " per step"), change_words(job),
                          regime_words(step), target_words(job), fit_words(step),
                          largest_part(occupancy_fields(step.occupancy)), host_words(step)});
  const double each = job.file.spec.training.microbatch;
  d.line(fmt::format("{}; {} microbatch{} of {:g} sample{} per data-parallel rank",
                     degrees_text(job), grouped(layout.microbatches),
                     layout.microbatches == 1 ? "" : "es", each, each == 1 ? "" : "s"));
  const workload::Workload& workload = job.file.spec.workload;
  std::optional<double> trained;
  if (workload.trained_parameters() < workload.parameters()) {
    trained = workload.trained_parameters();
    d.line(fmt::format("LoRA of rank {}: {} of {} parameters are trained{}",
                       job.file.spec.training.lora_rank,
                       grouped(static_cast<std::uint64_t>(*trained)),
                       grouped(static_cast<std::uint64_t>(workload.parameters())),
                       job.file.spec.training.frozen_weights == workload::Frozen::kNf4
                           ? "; frozen matrices have 4 bits"
                           : ""));
  }
  Value devices = Value::array();
  for (const step::DeviceUse& use : step.devices)
    devices.push_back({{"device", use.name}, {"ranks", use.ranks}});
  d["job"] = {{"workload", job.file.name},
              {"parameters", workload.parameters()},
              {"trained_parameters", maybe(trained)},
              {"ranks", layout.ranks()},
              {"device", step.devices.front().name},
              {"devices", std::move(devices)}};
  d["plan"] = plan_json(job.file.spec);
  d["fidelity"] = name_of(job.fidelity);
  d.methods = {method_of(job.fidelity)};
  d["folded"] = step.lowered.folded;
  d.show("step_time", "step time", step.time);
  if (job.unchanged) d.show("unchanged_step_time", "step time without the changes", *job.unchanged);
  d["regime"] = {{"name", step.regime.name},
                 {"known", step.regime.known()},
                 {"stalled_share", step.regime.stalled},
                 {"stall", step.stall},
                 {"source", step.regime.source}};
  d.show("throughput", "throughput", Quantity(samples, unit::kSamples));
  if (layout.tokens_per_sample > 0) {
    const Quantity tokens(scaled(samples, layout.tokens_per_sample), unit::kTokens);
    d.show("tokens_per_s", "tokens", tokens);
    d.show("", "per device", Quantity(tokens.value / layout.ranks(), unit::kTokens));
  }
  d.show("mfu", "MFU", utilization(step, step.model_utilization()));
  d.show("hfu", "HFU", utilization(step, step.hardware_utilization()));
  d["memory_per_device"] = memory_json(most);
  d.show("", "peak memory", most.peak);
  if (most.fit != memory::Fit::kFits)
    d.show("", "usable",
           fmt::format("{} on {}: {}", to_string(most.device.usable),
                       layout.stages[static_cast<std::size_t>(&most - step.memory.data())].name,
                       memory::kFitNames[static_cast<int>(most.fit)]));
  add_host_memory(step, d);
  d.show("energy_per_step", "energy", of_steps(account.energy, 1));
  if (account.energy) {
    const cost::EnergyParts& parts = account.energy_parts;
    d["energy_parts"] = {{"devices", parts.devices},
                         {"hosts", parts.hosts},
                         {"network", parts.network},
                         {"cooling", parts.cooling}};
    if (parts.devices != account.energy->value)
      d.show("", "energy parts", energy_parts_text(account));
  }
  d.show("cost_per_step", "cost", of_steps(account.money, 1));
  d.show("carbon_per_step", "carbon", of_steps(account.carbon, 1));
  if (job.steps_to_target) d["to_target"] = target_fields(job);
  d.show("", "based on",
         fmt::format("{}; {}", provenance_text(job.path.parts.shares_by_provenance()),
                     conditions_text(job.file.spec)));
  const program::Occupancy& ranks = step.occupancy;
  add_attribution({ranks, job.path.times, job.path.parts}, step.time, d);
  d["host"] = {{"share", share(step.host_share)},
               {"launches_per_layer", step.block.launches},
               {"kernels_per_layer", step.block.kernels}};
  d["compute_parts"] = {
      {"forward_backward", part(ranks.compute - ranks.recompute - ranks.optimizer)},
      {"recompute", part(ranks.recompute)},
      {"optimizer", part(ranks.optimizer)}};
  d.show("single_changes", "What would help most (each change alone, simulated)",
         change_rows(job.changes, step.time), {}, first(3));
  d.show("what_would_help", "Upper bounds: the step without one of its costs", bound_rows(step), {},
         first(3));
  d.show("remedies", "What would make it fit", job.remedies, {}, first(4));
  d.show("stages", "Stages", stage_rows(job), {}, kInTables);
  d["compute_from"] = json_provenance(step.share_by_provenance);
  d["conditions"] = {{"source", conditions_text(job.file.spec)}};
  d["applied"] = layout.applied;
  d.show("notes", "Notes", notes_of(job));
  d.add_warnings(step.warnings);
  return d;
}

}  // namespace rehearse::cli
