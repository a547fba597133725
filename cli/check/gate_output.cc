#include "cli/check/gate_output.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <boost/property_tree/xml_parser.hpp>
#include <fmt/core.h>

#include "cli/output/json.h"
#include "cli/output/table.h"
#include "sim/base/text.h"
#include "sim/base/utf8.h"

namespace rehearse::cli {

namespace {

using compare::Verdict;

/// Text of an element or an attribute, which the writer escapes. Characters that XML cannot
/// represent become spaces.
std::string writable(std::string_view given) {
  std::string text = printable(given);
  for (const std::string_view none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})  // U+FFFE, U+FFFF
    for (std::size_t at = 0; (at = text.find(none, at)) != std::string::npos;)
      text.replace(at, none.size(), " ");
  return text;
}

/// The value of a workflow command, or of one of its properties.
std::string command_text(std::string_view text, bool property) {
  std::string safe;
  for (const char c : text)
    if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ',')))
      safe += fmt::format("%{:02X}", static_cast<unsigned>(c));
    else
      safe += c;
  return safe;
}

/// A path as a URI reference: relative where it is.
std::string uri(std::string_view path) {
  constexpr std::string_view kPlain = "-._~/";
  std::string safe;
  for (const char c : path)
    if (std::isalnum(static_cast<unsigned char>(c)) || kPlain.find(c) != std::string_view::npos)
      safe += c;
    else
      safe += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return safe;
}

std::size_t count(const CheckFindings& findings, Verdict verdict) {
  std::size_t n = 0;
  for (const CheckFinding& f : findings.judged) n += f.verdict == verdict;
  return n;
}

struct Rule {
  const char *id, *level, *about;
};
constexpr Rule kFailed{"rehearse/fail", "error", "A measured quantity is above its limit."};
constexpr Rule kUnsure{"rehearse/inconclusive", "warning",
                       "Too few steps to distinguish a change as large as the limit from noise."};
constexpr Rule kChanged{"rehearse/changed", "note",
                        "A quantity without a limit changed significantly."};

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

std::string junit_xml(const CheckFindings& findings) {
  namespace tree = boost::property_tree;
  tree::ptree suite, suites, document;
  suite.put("<xmlattr>.name", "rehearse check");
  for (tree::ptree* counted : {&suites, &suite}) {
    counted->put("<xmlattr>.tests", findings.judged.size());
    counted->put("<xmlattr>.failures", count(findings, Verdict::kFail));
    counted->put("<xmlattr>.errors", 0);
    counted->put("<xmlattr>.skipped", count(findings, Verdict::kInconclusive));
  }
  for (const CheckFinding& f : findings.judged) {
    tree::ptree& test = suite.add("testcase", "");
    test.put("<xmlattr>.classname", "rehearse.check");
    test.put("<xmlattr>.name", writable(f.name));
    if (f.verdict == Verdict::kInconclusive)
      test.put("skipped.<xmlattr>.message", writable(f.message));
    if (f.verdict != Verdict::kFail) continue;
    tree::ptree& failure = test.add("failure", writable(f.file + ": " + f.message));
    failure.put("<xmlattr>.message", writable(f.message));
    failure.put("<xmlattr>.type", "limit");
  }
  std::string notes;
  for (const CheckFinding& f : findings.notes) notes += writable(f.name + ": " + f.message) + "\n";
  if (!notes.empty()) suite.put("system-out", notes);
  suites.add_child("testsuite", suite);
  document.add_child("testsuites", suites);
  std::ostringstream out;
  tree::write_xml(out, document, tree::xml_writer_make_settings<std::string>(' ', 1, "UTF-8"));
  return out.str();
}

std::string sarif_json(const CheckFindings& findings) {
  Json rules = Json::array();
  for (const Rule& rule : {kFailed, kUnsure, kChanged})
    rules.push_back({{"id", rule.id},
                     {"shortDescription", {{"text", rule.about}}},
                     {"defaultConfiguration", {{"level", rule.level}}}});
  Json results = Json::array();
  const auto add = [&](const Rule& rule, const CheckFinding& f) {
    Json location = {
        {"physicalLocation",
         {{"artifactLocation", {{"uri", uri(f.file)}}}, {"region", {{"startLine", 1}}}}}};
    Json locations = Json::array();
    locations.push_back(std::move(location));
    results.push_back({{"ruleId", rule.id},
                       {"level", rule.level},
                       {"message", {{"text", fmt::format("{}: {}", f.name, f.message)}}},
                       {"locations", std::move(locations)}});
  };
  for (const CheckFinding& f : findings.judged)
    if (f.verdict != Verdict::kPass) add(f.verdict == Verdict::kFail ? kFailed : kUnsure, f);
  for (const CheckFinding& f : findings.notes) add(kChanged, f);
  Json run = {{"tool", {{"driver", {{"name", "rehearse check"}, {"rules", std::move(rules)}}}}},
              {"results", std::move(results)}};
  Json runs = Json::array();
  runs.push_back(std::move(run));
  return json_text({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                    {"version", "2.1.0"},
                    {"runs", std::move(runs)}});
}

std::string github_annotations(const CheckFindings& findings) {
  std::string out;
  const auto add = [&](const char* level, const CheckFinding& f) {
    out += fmt::format("::{} title={}::{}\n", level, command_text("rehearse: " + f.name, true),
                       command_text(f.message, false));
  };
  for (const CheckFinding& f : findings.judged)
    if (f.verdict != Verdict::kPass) add(f.verdict == Verdict::kFail ? "error" : "warning", f);
  // The service shows ten of a kind per step; the largest come first.
  for (std::size_t i = 0; i < std::min<std::size_t>(findings.notes.size(), 10); ++i)
    add("notice", findings.notes[i]);
  return out;
}

}  // namespace rehearse::cli
