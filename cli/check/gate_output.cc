#include "cli/check/gate_output.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/output/json.h"
#include "cli/output/warnings.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using compare::Effect;
using compare::OpChange;
using compare::Quantity;
using compare::Segment;

constexpr std::size_t kOpsShown = 10;

std::string value_text(double value, std::string_view unit) {
  if (unit == "J") return to_string(Joules::j(value));
  if (unit == "B") return to_string(Bytes::b(value));
  return to_string(Seconds::s(value), 4);
}

/// Of 90 %.
std::string interval_text(const Effect& e) {
  if (e.error <= 0) return "";
  return fmt::format("{} to {}", signed_percent(e.low(0.05)), signed_percent(e.high(0.05)));
}

std::string change_text(const Effect& e) {
  if (e.baseline > 0) return signed_percent(e.change);
  return e.candidate > 0 ? "new" : "";
}

const Judged* limit_on(const Gate& gate, std::string_view name) {
  for (const Judged& judged : gate.limits)
    if (judged.limit.of == Limit::Of::kQuantity && judged.limit.name == name) return &judged;
  return nullptr;
}

Table quantity_table(const Gate& gate) {
  Table table({{"quantity", Align::kLeft},
               {"baseline"},
               {"candidate"},
               {"change"},
               {"90 % interval", Align::kLeft},
               {"allowed"},
               {"verdict", Align::kLeft}});
  for (const Quantity& q : gate.comparison.quantities) {
    const Judged* judged = limit_on(gate, q.name);
    table.add({std::string(q.name), value_text(q.effect.baseline, q.unit),
               value_text(q.effect.candidate, q.unit), change_text(q.effect),
               interval_text(q.effect), judged ? allowed(judged->limit) : "",
               judged          ? std::string(to_string(judged->verdict))
               : q.significant ? "changed"
                               : ""});
  }
  return table;
}

/// How names of ops and runs are shown.
using Shown = std::string (*)(std::string_view name);
std::string as_it_is(std::string_view name) { return std::string(name); }

/// Those that changed, the largest first.
Table op_table(const Gate& gate, Shown shown) {
  Table table({{"kind", Align::kLeft},
               {"op", Align::kLeft},
               {"baseline"},
               {"candidate"},
               {"change"},
               {"of the step"},
               {"now called", Align::kLeft}});
  const double step = gate.comparison.quantities.front().effect.baseline;
  for (const OpChange& op : gate.comparison.ops) {
    if (!op.significant) continue;
    const Effect& e = op.effect;
    table.add({std::string(to_string(op.kind)), shown(op.name), value_text(e.baseline, "s"),
               e.candidate > 0 ? value_text(e.candidate, "s") : "gone", change_text(e),
               signed_percent((e.candidate - e.baseline) / step),
               op.renamed.empty() ? "" : shown(op.renamed.front())});
  }
  return table;
}

std::string run_line(const char* what, const compare::Run& run) {
  std::string devices;
  for (const std::string& name : run.devices) devices += ", " + name;
  return printable(fmt::format("{:<9} {}: {}, {} (from {}){}", what, run.source,
                               counted(run.ranks, "rank"), counted(run.steps(), "whole step"),
                               run.steps_from, devices)) +
         "\n";
}

/// "1.20 USD an epoch, now 1.26 USD (+5.0 %)"
std::vector<std::string> cost_lines(const Gate& gate) {
  std::vector<std::string> lines;
  const double steps = gate.input.place.steps_per_epoch.value_or(1);
  const std::string per = gate.input.place.steps_per_epoch ? "an epoch" : "a step";
  if (gate.cost) {
    const Usd before = gate.cost->baseline.value * steps,
              after = gate.cost->candidate.value * steps;
    const double more = (after - before).usd();
    lines.push_back(fmt::format("money: {} {}, now {} ({}{}, {}); {}", to_string(before), per,
                                to_string(after), more < 0 ? "" : "+", to_string(Usd::usd(more)),
                                signed_percent(after / before - 1), gate.cost->price));
  }
  for (const Quantity& q : gate.comparison.quantities) {
    if (q.name != "energy") continue;
    lines.push_back(fmt::format(
        "energy: {} {}, now {} ({})", to_string(Joules::j(q.effect.baseline * steps)), per,
        to_string(Joules::j(q.effect.candidate * steps)), signed_percent(q.effect.change)));
  }
  return lines;
}

std::size_t significant_ops(const Gate& gate) {
  const auto& ops = gate.comparison.ops;
  return static_cast<std::size_t>(
      std::count_if(ops.begin(), ops.end(), [](const OpChange& op) { return op.significant; }));
}

Json effect_json(const Effect& e, std::string_view unit, bool significant) {
  Json json = {{"baseline", {{"value", e.baseline}, {"unit", unit}}},
               {"candidate", {{"value", e.candidate}, {"unit", unit}}}};
  json["change"] = e.baseline > 0 ? Json(e.change) : Json();
  if (e.error > 0 && e.baseline > 0) {
    json["change_low"] = e.low(0.05);
    json["change_high"] = e.high(0.05);
  }
  json["significant"] = significant;
  return json;
}

Json run_json(const compare::Run& run) {
  return {{"source", run.source}, {"ranks", run.ranks},           {"devices", run.devices},
          {"steps", run.steps()}, {"steps_from", run.steps_from}, {"step_times_s", run.step_time}};
}

Json ranged_json(const compare::Ranged& r, std::string_view unit) {
  return {{"value", r.value},
          {"low", r.low},
          {"high", r.high},
          {"unit", unit},
          {"provenance", "recorded"}};
}

std::string segment_text(const Segment& s) {
  if (s.drifts) return fmt::format("drifts {} a run", signed_percent(s.slope));
  return "flat";
}

Table history_rows(const History& history, Shown shown) {
  Table table({{"run", Align::kLeft},
               {"step time (ms)"},
               {"segment"},
               {"shape", Align::kLeft},
               {"jump"},
               {"P(new here)"}});
  std::size_t s = 0;
  const auto& segments = history.changes.segments;
  for (std::size_t i = 0; i < history.runs.size(); ++i) {
    while (s + 1 < segments.size() && segments[s + 1].first <= i) ++s;
    const bool first = segments[s].first == i;
    table.add({shown(history.runs[i].source), significant(history.runs[i].level * 1e3, 5),
               fmt::format("{}", s + 1), first ? segment_text(segments[s]) : "",
               first && segments[s].jump.scale > 0 ? signed_percent(segments[s].jump.change) : "",
               fmt::format("{:.2f}", history.changes.began[i])});
  }
  return table;
}

}  // namespace

std::string findings_text(const CheckFindings& findings) {
  std::string text;
  for (const CheckFinding& f : findings.judged)
    text += fmt::format("{:<13} {}: {}\n", to_string(f.verdict), f.name, f.message);
  return text;
}

Json findings_json(const CheckFindings& findings) {
  Json list = Json::array();
  for (const CheckFinding& f : findings.judged)
    list.push_back({{"name", f.name},
                    {"verdict", to_string(f.verdict)},
                    {"message", f.message},
                    {"file", f.file}});
  return list;
}

std::string gate_text(const Gate& gate) {
  std::string text = findings_text(gate.findings) + "\n";
  text += run_line("baseline", gate.input.baseline) + run_line("candidate", gate.input.candidate);
  text += fmt::format("{:.0f} % of the time of ops has a counterpart\n\n",
                      gate.comparison.matched_share * 100);
  text += quantity_table(gate).text();
  for (const std::string& line : cost_lines(gate)) text += line + "\n";
  const std::size_t changed = significant_ops(gate);
  text += fmt::format("\n{} of {} changed{}\n", changed, counted(gate.comparison.ops.size(), "op"),
                      changed > 0 ? "" : " by more than chance");
  if (changed > 0) text += op_table(gate, as_it_is).text(60, kOpsShown);
  return text;
}

std::string markdown_text(std::string_view text) {
  constexpr std::string_view kSpace = "\u200b";  // of no width: it parts what would be a link
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else if (std::string_view("\\`*[]~").find(c) != std::string_view::npos)
      safe += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < ' ' && c != '\n')
      safe += ' ';
    else
      safe += c;
    if (c == '@' || c == '#' || text.substr(i).starts_with("://") ||
        text.substr(i).starts_with("www."))
      safe += kSpace;
  }
  return safe;
}

std::string gate_markdown(const Gate& gate) {
  std::string text = fmt::format("### Rehearse check: {}\n\n", to_string(gate.findings.verdict));
  Table judged({{"limit", Align::kLeft}, {"verdict", Align::kLeft}, {"why", Align::kLeft}});
  for (const CheckFinding& f : gate.findings.judged)
    judged.add(
        {markdown_text(f.name), std::string(to_string(f.verdict)), markdown_text(f.message)});
  text += judged.markdown() + "\n" + quantity_table(gate).markdown();
  for (const std::string& line : cost_lines(gate)) text += "\n" + line + "\n";
  if (significant_ops(gate) > 0)
    text += fmt::format("\n<details><summary>{} of {} changed</summary>\n\n{}\n</details>\n",
                        significant_ops(gate), counted(gate.comparison.ops.size(), "op"),
                        op_table(gate, markdown_text).markdown());
  text += fmt::format("\n{} against {} steps; {:.0f} % of the time of ops has a counterpart.\n",
                      counted(gate.input.candidate.steps(), "step"), gate.input.baseline.steps(),
                      gate.comparison.matched_share * 100);
  for (const Warning& warning : gate.warnings)
    text += fmt::format("\nNote: {}.\n", markdown_text(to_string(warning)));
  return text;
}

Table gate_table(const Gate& gate) {
  Table table({{"kind", Align::kLeft},
               {"name", Align::kLeft},
               {"baseline"},
               {"candidate"},
               {"unit", Align::kLeft},
               {"change"},
               {"change low"},
               {"change high"},
               {"significant", Align::kLeft},
               {"now called", Align::kLeft},
               {"verdict", Align::kLeft}});
  const auto add = [&](std::string kind, std::string name, const Effect& e, std::string_view unit,
                       bool significant, std::string renamed, std::string verdict) {
    const bool has = e.baseline > 0;
    const auto number = [](double value) { return rehearse::significant(value, 6); };
    table.add({std::move(kind), std::move(name), number(e.baseline), number(e.candidate),
               std::string(unit), has ? number(e.change) : "",
               has && e.error > 0 ? number(e.low(0.05)) : "",
               has && e.error > 0 ? number(e.high(0.05)) : "", significant ? "yes" : "no",
               std::move(renamed), std::move(verdict)});
  };
  for (const Quantity& q : gate.comparison.quantities) {
    const Judged* judged = limit_on(gate, q.name);
    add("quantity", std::string(q.name), q.effect, q.unit, q.significant, "",
        judged ? std::string(to_string(judged->verdict)) : "");
  }
  for (const OpChange& op : gate.comparison.ops)
    add(std::string(to_string(op.kind)), op.name, op.effect, "s", op.significant,
        op.renamed.empty() ? "" : op.renamed.front(), "");
  return table;
}

void add_gate(const Gate& gate, Json& json) {
  json["baseline"] = run_json(gate.input.baseline);
  json["candidate"] = run_json(gate.input.candidate);
  json["matched_share"] = gate.comparison.matched_share;
  for (const Quantity& q : gate.comparison.quantities) {
    Json one = effect_json(q.effect, q.unit, q.significant);
    if (q.name == "step_time")
      json["step_time"] = std::move(one);
    else
      json["quantities"][q.name] = std::move(one);
  }
  if (gate.cost) {
    const auto money = [](const Estimate<Usd>& e) {
      return json_predicted(
          Estimate<double>{e.value.usd(), e.low.usd(), e.high.usd(), e.provenance}, "USD");
    };
    json["cost"] = {{"baseline_per_step", money(gate.cost->baseline)},
                    {"candidate_per_step", money(gate.cost->candidate)},
                    {"price", gate.cost->price}};
    if (const auto steps = gate.input.place.steps_per_epoch)
      json["cost"]["steps_per_epoch"] = *steps;
  }
  json["limits"] = Json::array();
  for (std::size_t i = 0; i < gate.limits.size(); ++i) {
    const Judged& judged = gate.limits[i];
    Json one = {{"name", describe(judged.limit)},
                {"verdict", to_string(judged.verdict)},
                {"allowed", allowed(judged.limit)},
                {"message", gate.findings.judged[i].message}};
    if (judged.steps_needed) one["steps_needed"] = *judged.steps_needed;
    json["limits"].push_back(std::move(one));
  }
  json["ops"] = Json::array();
  for (const OpChange& op : gate.comparison.ops) {
    Json one = {{"name", op.name}, {"kind", to_string(op.kind)}};
    const Json effect = effect_json(op.effect, "s", op.significant);
    for (const auto& [key, value] : std::get<Json::Object>(effect.value())) one[key] = value;
    one["calls"] = {{"baseline", op.calls_before}, {"candidate", op.calls_after}};
    if (!op.renamed.empty()) one["renamed"] = op.renamed;
    json["ops"].push_back(std::move(one));
  }
  put_warnings(json, gate.warnings);
}

Table history_table(const History& history) { return history_rows(history, as_it_is); }

std::string history_text(const History& history) {
  const compare::Belief& belief = history.changes.belief;
  const auto ms = [](double s) { return to_string(Seconds::s(s), 4); };
  return findings_text(history.findings) +
         fmt::format(
             "\nNow: step time {} ({} to {}), since {:.0f} runs ({:.0f} to {:.0f}), drifting with "
             "a probability of {:.0f} %; intervals of 90 %\n\n",
             ms(belief.level.value), ms(belief.level.low), ms(belief.level.high),
             belief.length.value, belief.length.low, belief.length.high, belief.drifts * 100) +
         history_table(history).text(48);
}

std::string history_markdown(const History& history) {
  std::string text =
      fmt::format("### Rehearse check of a history: {}\n\n", to_string(history.findings.verdict));
  for (const CheckFinding& f : history.findings.judged)
    text += fmt::format("{}: {}\n\n", to_string(f.verdict), markdown_text(f.message));
  return text + history_rows(history, markdown_text).markdown();
}

Json history_json(const History& history) {
  Json runs = Json::array(), segments = Json::array();
  for (std::size_t i = 0; i < history.runs.size(); ++i) {
    Json one = {{"source", history.runs[i].source},
                {"step_time", json_measured(Seconds::s(history.runs[i].level))},
                {"began", history.changes.began[i]}};
    if (!history.runs[i].date.empty()) one["date"] = history.runs[i].date;
    runs.push_back(std::move(one));
  }
  for (const Segment& s : history.changes.segments) {
    Json one = {{"first", s.first},
                {"runs", s.count},
                {"shape", s.drifts ? "drift" : "flat"},
                {"begin", ranged_json(s.begin, "s")},
                {"end", ranged_json(s.end, "s")},
                {"slope", s.slope},
                {"noise", s.noise}};
    if (s.jump.scale > 0) one["jump"] = s.jump.change;
    segments.push_back(std::move(one));
  }
  const compare::Belief& belief = history.changes.belief;
  return {{"runs", std::move(runs)},
          {"segments", std::move(segments)},
          {"now",
           {{"length", ranged_json(belief.length, "1")},
            {"level", ranged_json(belief.level, "s")},
            {"drifts", belief.drifts}}}};
}

}  // namespace rehearse::cli
