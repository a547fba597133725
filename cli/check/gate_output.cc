#include "cli/check/gate_output.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/output/table.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using compare::Effect, compare::OpChange;
using GateQuantity = compare::Quantity;
using compare::Segment;

constexpr std::size_t kOpsShown = 10;

/// The change with its 90 % interval; without an interval if the effect has no error.
Quantity change_of(const Effect& e) {
  Quantity change(e.change, unit::kChange);
  if (e.error > 0) change.interval = {e.low(0.05), e.high(0.05)};
  return change;
}

const Unit& unit_of(std::string_view si) {
  return si == "J" ? unit::kEnergy : si == "B" ? unit::kSize : unit::kTime;
}

const Judged* limit_on(const Gate& gate, std::string_view name) {
  for (const Judged& judged : gate.limits)
    if (judged.limit.of == Limit::Of::kQuantity && judged.limit.name == name) return &judged;
  return nullptr;
}

/// A quantity or an op in both runs. Numbers of CSV are in `unit`.
Value effect_fields(std::string_view kind, std::string_view name, const Effect& e,
                    std::string_view si) {
  const Unit& unit = unit_of(si);
  Value row = {{"", "kind", kind},
               {"", "name", name, {}, kInTables},
               {"", "name", shortened(name, 48), {}, kOnScreen},
               {"", "baseline", Quantity(e.baseline, unit), {}, kOnScreen},
               {"",
                "candidate",
                e.candidate > 0 ? Value(Quantity(e.candidate, unit)) : Value("gone"),
                {},
                kOnScreen},
               {"", "baseline", e.baseline, {}, kInTables},
               {"", "candidate", e.candidate, {}, kInTables},
               {"", "unit", si, {}, kInTables}};
  if (e.baseline > 0) row.show("", "change", change_of(e));
  return row;
}

Value quantity_rows(const Gate& gate) {
  Value rows = Value::array();
  for (const GateQuantity& q : gate.comparison.quantities) {
    const Judged* judged = limit_on(gate, q.name);
    Value row = effect_fields("quantity", q.name, q.effect, q.unit);
    row.show("", "significant", q.significant);
    row.show("", "allowed", judged ? allowed(judged->limit) : "");
    row.show("", "verdict", judged ? to_string(judged->verdict) : "");
    rows.push_back(std::move(row));
  }
  return rows;
}

/// What adds the most to the step first; the screen has changes that are more than chance.
Value op_rows(const Gate& gate, bool all) {
  const double step = gate.comparison.quantities.front().effect.baseline;
  Value rows = Value::array();
  for (const OpChange& op : gate.comparison.ops) {
    if (!all && !op.significant) continue;
    Value row = effect_fields(to_string(op.kind), op.name, op.effect, "s");
    if (all) row.show("", "significant", op.significant);
    const double more = op.effect.candidate - op.effect.baseline;
    row.show("", "adds to the step",
             fmt::format("{}{} ({})", more < 0 ? "" : "+", to_string(Seconds::s(more)),
                         signed_percent(more / step)),
             {}, kOnScreen);
    const std::string now = op.renamed.empty() ? "" : op.renamed.front();
    row.show("", "now called", now, {}, kInTables);
    row.show("", "now called", shortened(now, 32), {}, kOnScreen);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string run_line(const char* what, const compare::Run& run) {
  std::string devices;
  for (const std::string& name : run.devices) devices += ", " + name;
  return printable(fmt::format("{:<9} {}{}: {}, {} (from {}){}", what, run.source,
                               run.commit.empty() ? "" : " of commit " + run.commit.substr(0, 12),
                               counted(run.ranks, "rank"), counted(run.steps(), "whole step"),
                               run.steps_from, devices));
}

/// "1.20 USD per epoch, candidate 1.26 USD (+5.0 %)"
std::vector<std::string> cost_lines(const Gate& gate) {
  std::vector<std::string> lines;
  const double steps = gate.input.place.steps_per_epoch.value_or(1);
  const std::string per = gate.input.place.steps_per_epoch ? "per epoch" : "per step";
  if (gate.cost) {
    const Usd before = gate.cost->baseline.value * steps,
              after = gate.cost->candidate.value * steps;
    const double more = (after - before).usd();
    lines.push_back(fmt::format("cost: {} {}, candidate {} ({}{}, {}); {}", to_string(before), per,
                                to_string(after), more < 0 ? "" : "+", to_string(Usd::usd(more)),
                                signed_percent(after / before - 1), gate.cost->price));
  }
  for (const GateQuantity& q : gate.comparison.quantities) {
    if (q.name != "energy") continue;
    lines.push_back(fmt::format(
        "energy: {} {}, candidate {} ({})", to_string(Joules::j(q.effect.baseline * steps)), per,
        to_string(Joules::j(q.effect.candidate * steps)), signed_percent(q.effect.change)));
  }
  return lines;
}

std::size_t significant_ops(const Gate& gate) {
  const auto& ops = gate.comparison.ops;
  return static_cast<std::size_t>(
      std::ranges::count_if(ops, [](const OpChange& op) { return op.significant; }));
}

Json effect_json(const Effect& e, std::string_view si, bool significant) {
  const Unit& unit = unit_of(si);
  Json json = {{"baseline", Quantity(e.baseline, unit)},
               {"candidate", Quantity(e.candidate, unit)},
               {"change", e.baseline > 0 ? Json(e.change) : Json()}};
  if (e.error > 0 && e.baseline > 0) {
    json["change_low"] = e.low(0.05);
    json["change_high"] = e.high(0.05);
  }
  json["significant"] = significant;
  return json;
}

Json run_json(const compare::Run& run) {
  return {{"source", run.source},         {"commit", maybe(run.commit)},
          {"ranks", run.ranks},           {"devices", run.devices},
          {"steps", run.steps()},         {"steps_from", run.steps_from},
          {"step_times_s", run.step_time}};
}

Quantity ranged(const compare::Ranged& r, const Unit& unit) {
  return {Estimate<double>{r.value, r.low, r.high, Provenance::kRecorded}, unit};
}

std::string segment_text(const Segment& s) {
  if (s.drifts) return fmt::format("drifts {} per run", signed_percent(s.slope));
  return "flat";
}

}  // namespace

std::string gate_words(const Gate& gate) {
  const Effect& step = gate.comparison.quantities.front().effect;
  return fmt::format("step time {}; {} changed significantly", signed_percent(step.change),
                     counted(significant_ops(gate), "op"));
}

std::string history_words(const History& history) {
  return fmt::format("{} in {}", counted(history.runs.size(), "run"),
                     counted(history.changes.segments.size(), "segment"));
}

void add_findings(const CheckFindings& findings, Document& document) {
  Value list = Value::array();
  for (const CheckFinding& f : findings.judged)
    list.push_back({{"verdict", "verdict", to_string(f.verdict)},
                    {"name", "what", f.name},
                    {"message", "why", f.message, {}, kProse},
                    {"file", f.file}});
  document.show("findings", "Findings", std::move(list));
}

void add_gate(const Gate& gate, Document& d) {
  d.rows = "quantities and ops";
  d.rows_title = "Quantities and ops";
  d.line(run_line("baseline", gate.input.baseline));
  d.line(run_line("candidate", gate.input.candidate));
  d.line(fmt::format("{:.0f} % of all op time matched", gate.comparison.matched_share * 100));
  d["baseline"] = run_json(gate.input.baseline);
  d["candidate"] = run_json(gate.input.candidate);
  d["matched_share"] = gate.comparison.matched_share;
  for (const GateQuantity& q : gate.comparison.quantities) {
    Json& to = q.name == "step_time" ? d["step_time"] : d["quantities"][q.name];
    to = effect_json(q.effect, q.unit, q.significant);
  }
  d.show("", "Quantities per step", quantity_rows(gate));
  if (gate.cost) {
    d["cost"] = {{"baseline_per_step", gate.cost->baseline},
                 {"candidate_per_step", gate.cost->candidate},
                 {"price", gate.cost->price}};
    if (const auto steps = gate.input.place.steps_per_epoch) d["cost"]["steps_per_epoch"] = *steps;
  }
  d.show("", "Cost and energy", cost_lines(gate));
  Value limits = Value::array(), ops = Value::array();
  for (std::size_t i = 0; i < gate.limits.size(); ++i) {
    const Judged& judged = gate.limits[i];
    limits.push_back({{"name", describe(judged.limit)},
                      {"verdict", to_string(judged.verdict)},
                      {"allowed", allowed(judged.limit)},
                      {"message", gate.findings.judged[i].message},
                      {"steps_needed", maybe(judged.steps_needed)}});
  }
  for (const OpChange& op : gate.comparison.ops) {
    Json one = {{"name", op.name}, {"kind", to_string(op.kind)}};
    one.add(effect_json(op.effect, "s", op.significant));
    one["calls"] = {{"baseline", op.calls_before}, {"candidate", op.calls_after}};
    if (!op.renamed.empty()) one["renamed"] = op.renamed;
    ops.push_back(std::move(one));
  }
  d["limits"] = std::move(limits);
  d["ops"] = std::move(ops);
  const std::size_t changed = significant_ops(gate);
  if (changed == 0)
    d.line(
        fmt::format("none of {} changed significantly", counted(gate.comparison.ops.size(), "op")));
  else
    d.show("", fmt::format("{} of {} changed", changed, counted(gate.comparison.ops.size(), "op")),
           op_rows(gate, false), {}, first(kOpsShown));
  Value all = quantity_rows(gate);
  const Value of_ops = op_rows(gate, true);
  for (const Value& op : of_ops.list()) all.push_back(op);
  d.show("", "quantities and ops", std::move(all), {}, kInTables);
  d.add_warnings(gate.warnings);
}

void add_history(const History& history, Document& d) {
  if (d.rows.empty()) {
    d.rows = "history.runs";
    d.rows_title = "Runs";
  }
  const compare::Belief& belief = history.changes.belief;
  const auto& all = history.changes.segments;
  Value runs = Value::array(), segments = Value::array();
  std::size_t s = 0;
  for (std::size_t i = 0; i < history.runs.size(); ++i) {
    while (s + 1 < all.size() && all[s + 1].first <= i) ++s;
    const bool first = all[s].first == i;
    Value run = {{"source", "run", history.runs[i].source},
                 {"step_time", "step time", Seconds::s(history.runs[i].level), in::kMs},
                 {"", "segment", s + 1},
                 {"", "shape", first ? segment_text(all[s]) : ""},
                 {"began", "P(new here)", share(history.changes.began[i])},
                 {"date", maybe(history.runs[i].date)}};
    if (first && all[s].jump.scale > 0) run.show("", "jump", change(all[s].jump.change));
    runs.push_back(std::move(run));
  }
  for (const Segment& segment : all) {
    Value one = {{"first", segment.first},
                 {"runs", segment.count},
                 {"shape", segment.drifts ? "drift" : "flat"},
                 {"begin", ranged(segment.begin, unit::kTime)},
                 {"end", ranged(segment.end, unit::kTime)},
                 {"slope", segment.slope},
                 {"noise", segment.noise}};
    if (segment.jump.scale > 0) one["jump"] = segment.jump.change;
    segments.push_back(std::move(one));
  }
  const Value now = {{"length", ranged(belief.length, unit::kFactor)},
                     {"level", "step time now", ranged(belief.level, unit::kTime)},
                     {"", "unchanged for",
                      fmt::format("{:.0f} runs ({:.0f} – {:.0f})", belief.length.value,
                                  belief.length.low, belief.length.high)},
                     {"drifts", "probability of a drift", share(belief.drifts)}};
  d["history"] = {{"now", now}, {"runs", "Runs", std::move(runs)}, {"segments", segments}};
}

}  // namespace rehearse::cli
