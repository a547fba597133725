#include "cli/study/study_result.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "cli/output/rows.h"
#include "cli/output/value.h"
#include "cli/study/run_study.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

std::string percent(double ratio) { return fmt::format("{} %", significant(ratio * 100)); }

std::string_view text_of(StudyVerdict verdict) {
  return kStudyVerdictNames[static_cast<int>(verdict)];
}

/// "3.2", "412 ms", "4.1 GiB"
std::string term_text(double value, std::string_view unit) {
  if (unit == "s") return to_string(Seconds::s(value));
  if (unit == "B") return to_string(Bytes::b(value));
  return significant(value) + (unit.empty() ? "" : fmt::format(" {}", unit));
}

std::string term_text(const Term& term) { return term_text(term.estimate.value, term.unit); }

/// "1.5 – 8.7"; a single value if both are the same.
std::string span_text(const Term& least, const Term& most) {
  const std::string from = term_text(least), to = term_text(most);
  return from == to ? from : fmt::format("{} – {}", from, to);
}

/// "model vgg16, workers 4 or 8"
std::string selection_text(const Selection& selection) {
  return join(selection, ", ",
              [](const auto& each) { return each.first + " " + join(each.second, " or "); });
}

/// "1.34 – 13.9", "13 values"
std::string expected_text(const Expectation& e, const std::string& unit) {
  if (e.is_curve())
    return fmt::format("{} over {}", counted(e.curve.published.size(), "value"), e.curve.over);
  if (e.is_value()) return term_text(e.low, unit);
  return fmt::format("{} – {}", term_text(e.low, unit), term_text(e.high, unit));
}

/// "10 %", "5 % mean, 8 % worst", "none" where the sweep is to cover a range
std::string tolerance_text(const Expectation& e) {
  if (!e.mean_tolerance) return e.tolerance ? percent(*e.tolerance) : "none";
  const std::string mean = percent(*e.mean_tolerance) + " mean";
  return e.tolerance ? fmt::format("{}, {} worst", mean, percent(*e.tolerance)) : mean;
}

/// "1.5 – 40.1", "2.6 % off, worst +7.6 %"
std::string got_text(const Expectation& e, const Compared& compared) {
  if (!e.is_curve()) return span_text(compared.least, compared.most);
  return fmt::format("mean error {}, worst {}", percent(compared.errors.mean),
                     signed_percent(compared.errors.worst));
}

/// "least squares, on 3 values of seconds": the data of a fit.
std::string fit_text(const Fit& fit) {
  std::string text = join(fit.constants, ", ");
  if (!fit.curve.published.empty()) {
    text += fmt::format(" on {} of {}", counted(fit.curve.published.size(), "published value"),
                        fit.measure.value_or("all measures"));
    const std::string at = selection_text(fit.curve.at);
    if (!at.empty()) text += fmt::format(" at {}", at);
    text += fmt::format(" ({}", fit.curve.over);
    for (const auto& [value, number] : fit.curve.published) text += " " + value;
    text += ")";
  }
  if (!fit.source.empty()) text += (fit.curve.published.empty() ? " on " : ", ") + fit.source;
  return text;
}

/// "exponent 1.1 – 1.3, reading ahead or in turn": the settings that no publication states.
std::string free_text(const StudyResult& result, const Expectation& e) {
  std::vector<Setting> points;
  for (const StudyPoint& point : result.points) points.push_back(point.parameters);
  return join(free_parameters(e, points), ", ", [](const auto& free) {
    const auto& [name, values] = free;
    std::vector<std::pair<double, std::string>> numbers;  // with their units
    for (const std::string& value : values)
      if (const Result<Term> number = parameter_value(name, {{name, value}}))
        numbers.emplace_back(
            number->estimate.value,
            number->unit.empty() ? fmt::format("{:g}", number->estimate.value) : value);
    if (numbers.size() < values.size()) return name + " " + join(values, " or ");
    const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
    return fmt::format("{} {} – {}", name, least->second, most->second);
  });
}

/// "speed_up at servers 5"
std::string measure_text(const Expectation& e) {
  const std::string at = selection_text(e.curve.at);
  return at.empty() ? e.measure : fmt::format("{} at {}", e.measure, at);
}

/// "gain at ahead 200: exponent 1.1 – 1.3", for each prediction with such settings.
std::vector<std::string> free_lines(const StudyResult& result) {
  std::vector<std::string> lines;
  for (const Expectation& e : result.study.expectations) {
    const std::string free = e.kind == ClaimKind::kPrediction ? free_text(result, e) : "";
    if (!free.empty()) lines.push_back(fmt::format("{}: {}", measure_text(e), free));
  }
  return lines;
}

/// A published curve compared with the simulated one.
Value curve_rows(const std::string& over, const std::vector<CurvePoint>& curve) {
  Value rows = Value::array();
  for (const CurvePoint& point : curve)
    rows.push_back({{"", over, point.value},
                    {"", "published", term_text(point.published, point.least.unit)},
                    {"", "simulated", span_text(point.least, point.most)},
                    {"", "error", change(point.error)}});
  return rows;
}

/// The columns of a study: parameters, then measures, then the step times that they come from.
Value point_rows(const StudyResult& result) {
  Value rows = Value::array();
  for (const StudyPoint& point : result.points) {
    Value row;
    for (const auto& [name, value] : point.parameters) row.show("", name, value);
    for (std::size_t m = 0; m < point.measured.size(); ++m)
      row.show("", result.study.measures[m].name, term_text(point.measured[m]));
    if (point.on_front) row.show("", "front", "yes");
    std::string unfit;
    for (std::size_t j = 0; j < point.jobs.size(); ++j) {
      const StudyJob& job = point.jobs[j];
      row.show("", job.name, job.step_time.value, in::kMs);
      row.show("", job.name + " ranks", job.ranks);
      if (!job.fits) unfit += (unfit.empty() ? "" : ", ") + job.name;
    }
    row.show("", "does not fit", unfit);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string unit_of(const Term& term) { return term.unit.empty() ? "1" : term.unit; }

Json term_json(const Term& term) {
  const Estimate<double>& e = term.estimate;
  return {{"value", e.value},
          {"low", e.low},
          {"high", e.high},
          {"unit", unit_of(term)},
          {"provenance", to_string(e.provenance)}};
}

Json span_json(const Term& least, const Term& most) {
  return {{"least", term_json(least)}, {"most", term_json(most)}};
}

Json selection_json(const Selection& selection) {
  Json list = Json::array();
  for (const auto& [name, values] : selection)
    list.push_back({{"name", name}, {"settings", values}});
  return list;
}

Json curve_json(const std::vector<CurvePoint>& curve) {
  Json list = Json::array();
  for (const CurvePoint& point : curve)
    list.push_back({{"setting", point.value},
                    {"published", {{"value", point.published}, {"unit", unit_of(point.least)}}},
                    {"got", span_json(point.least, point.most)},
                    {"error", point.error}});
  return list;
}

/// The ends of the published range.
std::pair<double, double> ends_of(const Expectation& e) {
  if (!e.is_curve()) return {e.low, e.high};
  const auto by_number = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] =
      std::minmax_element(e.curve.published.begin(), e.curve.published.end(), by_number);
  return {least->second, most->second};
}

Json expected_json(const Expectation& e, const Compared& compared) {
  const auto [low, high] = ends_of(e);
  return {
      {"measure", e.measure},
      {"low", low},
      {"high", high},
      {"unit", unit_of(compared.least)},
      {"comparison", e.is_curve() ? "curve" : kComparisonNames[static_cast<int>(e.comparison)]}};
}

Json expectation_json(const Study& study, const Expectation& e, const Compared& compared) {
  Json json = {{"expected", expected_json(e, compared)},
               {"source", e.source.empty() ? study.source : e.source},
               {"at", selection_json(e.curve.at)},
               {"got", span_json(compared.least, compared.most)},
               {"span", span_json(compared.least_of_all, compared.most_of_all)},
               {"tolerance", e.tolerance},
               {"kind", kClaimKindNames[static_cast<int>(e.kind)]},
               {"verdict", text_of(compared.verdict)}};
  if (e.source_kind) json["source_kind"] = kSourceKindNames[static_cast<int>(*e.source_kind)];
  if (!e.reason.empty()) json["reason"] = e.reason;
  if (!e.configuration.empty()) json["configuration"] = e.configuration;
  if (!e.is_curve()) return json;
  if (e.mean_tolerance) json["mean_tolerance"] = *e.mean_tolerance;
  json["mean_error"] = compared.errors.mean;
  json["worst_error"] = compared.errors.worst;
  json["over"] = e.curve.over;
  json["curve"] = curve_json(compared.curve);
  return json;
}

Json fit_json(const StudyResult& result, std::size_t f) {
  const Fit& fit = result.study.fits[f];
  Json json = {{"constants", fit.constants}};
  if (fit.measure) json["measure"] = *fit.measure;
  if (!fit.source.empty()) json["source"] = fit.source;
  if (fit.curve.published.empty()) return json;
  json["at"] = selection_json(fit.curve.at);
  json["over"] = fit.curve.over;
  json["on"] = Json::array();
  for (const auto& [value, number] : fit.curve.published) json["on"].push_back(value);
  for (const Fitted& fitted : result.fitted)
    if (fitted.fit == f) json["curve"] = curve_json(fitted.curve);
  return json;
}

/// The published range of a measure at a point, from the first expectation that has one.
std::optional<std::pair<double, double>> expected_at(const StudyResult& result,
                                                     const StudyPoint& point, std::size_t measure) {
  for (std::size_t i = 0; i < result.compared.size(); ++i) {
    const Expectation& e = result.study.expectations[i];
    if (result.compared[i].measure != measure || !is_selected(e.curve.at, point.parameters))
      continue;
    if (!e.is_curve()) return std::pair(e.low, e.high);
    for (const auto& [value, number] : e.curve.published)
      if (is_selected(e.curve.points_of(value), point.parameters)) return std::pair(number, number);
  }
  return std::nullopt;
}

std::string source_kind_text(const Expectation& e) {
  if (!e.source_kind) return "not stated";
  return std::string(kSourceKindNames[static_cast<int>(*e.source_kind)]);
}

/// The range of the errors of a curve; without a curve, the range of all points.
std::string whole_span_text(const Expectation& e, const Compared& compared) {
  if (!e.is_curve()) return span_text(compared.least_of_all, compared.most_of_all);
  const auto [least, most] = std::minmax_element(
      compared.curve.begin(), compared.curve.end(),
      [](const CurvePoint& a, const CurvePoint& b) { return a.error < b.error; });
  return fmt::format("{} – {}", signed_percent(least->error), signed_percent(most->error));
}

std::string study_section(const StudyResult& result) {
  const Study& study = result.study;
  std::string text = fmt::format("\n## {}\n\n{}\n", study.name, study.source);
  if (!study.about.empty()) text += fmt::format("\n{}\n", trim(study.about));
  std::string list;
  for (const Expectation& e : study.expectations)
    if (!e.source.empty() || !e.configuration.empty())
      list += fmt::format("- {}: {}{}{}\n", measure_text(e), e.source,
                          e.source.empty() || e.configuration.empty() ? "" : "; ", e.configuration);
  for (const Expectation& e : study.expectations)
    if (!e.reason.empty())
      list += fmt::format("- {}: tolerance {}: {}\n", measure_text(e), tolerance_text(e), e.reason);
  for (const std::string& line : free_lines(result)) list += fmt::format("- free: {}\n", line);
  for (const Fit& fit : study.fits) list += fmt::format("- fitted: {}\n", fit_text(fit));
  for (const std::string& line : study.assumed) list += fmt::format("- assumed: {}\n", line);
  if (!list.empty()) text += "\n" + list;
  for (std::size_t i = 0; i < result.compared.size(); ++i) {
    const Expectation& e = study.expectations[i];
    if (e.is_curve())
      text +=
          fmt::format("\n{}:\n\n{}", measure_text(e),
                      rows_of(curve_rows(e.curve.over, result.compared[i].curve), "", For::kComment)
                          .markdown());
  }
  for (const Fitted& fitted : result.fitted) {
    const Fit& fit = study.fits[fitted.fit];
    text += fmt::format(
        "\n{}, fitted there:\n\n{}", *fit.measure,
        rows_of(curve_rows(fit.curve.over, fitted.curve), "", For::kComment).markdown());
  }
  return text;
}

}  // namespace

namespace {

/// A study on the screen.
void add_study(const StudyResult& result, Document& d) {
  const Study& study = result.study;
  d.line(fmt::format("{}: {}", study.name, study.source));
  if (!study.about.empty()) d.line(std::string(trim(study.about)));
  d.show("", "Points", point_rows(result));
  Value rows = Value::array();
  for (std::size_t i = 0; i < result.compared.size(); ++i) {
    const Expectation& e = study.expectations[i];
    const Compared& compared = result.compared[i];
    if (e.is_curve())
      d.show("", measure_text(e) + " over " + e.curve.over,
             curve_rows(e.curve.over, compared.curve));
    rows.push_back({{"", "measure", measure_text(e)},
                    {"", "published", expected_text(e, compared.least.unit)},
                    {"", "simulated", got_text(e, compared)},
                    {"", "tolerance", tolerance_text(e)},
                    {"", "verdict", text_of(compared.verdict)}});
  }
  d.show("", "Published and simulated", std::move(rows));
  std::vector<std::string> notes;
  for (const std::string& line : free_lines(result)) notes.push_back("free " + line);
  for (const Fit& fit : study.fits) notes.push_back("fitted " + fit_text(fit));
  for (const std::string& line : study.assumed) notes.push_back("assumed " + line);
  d.show("", "Notes", notes);
}

Json study_json(const StudyResult& result) {
  const Study& study = result.study;
  const Compared& first = result.compared.front();
  Json json = {{"name", study.name},
               {"system", study.system},
               {"expected", expected_json(study.expectations.front(), first)},
               {"source", study.source},
               {"got", span_json(first.least, first.most)},
               {"tolerance", study.expectations.front().tolerance},
               {"verdict", text_of(result.verdict)},
               {"assumed", study.assumed}};
  json["expectations"] = Json::array();
  for (std::size_t i = 0; i < result.compared.size(); ++i)
    json["expectations"].push_back(
        expectation_json(study, study.expectations[i], result.compared[i]));
  json["fitted"] = Json::array();
  for (std::size_t f = 0; f < study.fits.size(); ++f) json["fitted"].push_back(fit_json(result, f));
  json["points"] = Json::array();
  for (const StudyPoint& point : result.points) {
    Json one = Json::object();
    if (!study.front.empty()) one["on_front"] = point.on_front;
    one["parameters"] = Json::array();
    for (const auto& [name, value] : point.parameters)
      one["parameters"].push_back({{"name", name}, {"setting", value}});
    one["measured"] = Json::array();
    for (std::size_t m = 0; m < point.measured.size(); ++m)
      one["measured"].push_back(
          {{"name", study.measures[m].name}, {"got", term_json(point.measured[m])}});
    one["jobs"] = Json::array();
    for (const StudyJob& job : point.jobs)
      one["jobs"].push_back({{"name", job.name},
                             {"step_time", job.step_time},
                             {"ranks", job.ranks},
                             {"fits", job.fits}});
    json["points"].push_back(std::move(one));
  }
  return json;
}

Value measure_rows(const StudyResult& result) {
  Value rows = Value::array();
  for (const StudyPoint& point : result.points)
    for (std::size_t m = 0; m < point.measured.size(); ++m) {
      const std::string where = join(
          point.parameters, " ", [](const auto& each) { return each.first + "=" + each.second; });
      const auto expected = expected_at(result, point, m);
      const Term& term = point.measured[m];
      Value row = {{"", "study", result.study.name},
                   {"", "point", where},
                   {"", "measure", result.study.measures[m].name},
                   {"", "got", term.estimate.value},
                   {"", "low", term.estimate.low},
                   {"", "high", term.estimate.high},
                   {"", "unit", term.unit},
                   {"", "expected low", expected ? Value(expected->first) : Value("")},
                   {"", "expected high", expected ? Value(expected->second) : Value("")},
                   {"", "verdict of the study", expected ? text_of(result.verdict) : ""}};
      rows.push_back(std::move(row));
    }
  return rows;
}

}  // namespace

Document studies_document(const std::vector<StudyResult>& results) {
  Document d{.command = "study", .rows = "points of studies"};
  Value rows = Value::array();
  d["studies"] = Value::array();
  for (const StudyResult& result : results) {
    add_study(result, d);
    d["studies"].push_back(study_json(result));
    const Value of_study = measure_rows(result);
    for (const Value& row : of_study.list()) rows.push_back(row);
  }
  for (const StudyResult& result : results)
    if (const Method method = method_of(result.study.fidelity);
        std::ranges::find(d.methods, method) == d.methods.end())
      d.methods.push_back(method);
  d.show("", "points of studies", std::move(rows), {}, kInTables);
  return d;
}

namespace {

/// The best verdict on each system, and the number of its expectations with each verdict.
Table table_of_systems(const std::vector<StudyResult>& results) {
  constexpr std::size_t kVerdicts = std::size(kStudyVerdictNames);
  using Counts = std::array<std::size_t, kVerdicts>;
  std::map<std::string, Counts> systems;
  Counts total{}, best_of{};
  for (const StudyResult& result : results)
    for (const Compared& compared : result.compared)
      ++systems[result.study.system][static_cast<std::size_t>(compared.verdict)];
  std::vector<Column> columns = {{"system", Align::kLeft}, {"best verdict", Align::kLeft}};
  for (const std::string_view name : kStudyVerdictNames) columns.push_back({std::string(name)});
  Table table(columns);
  const auto add = [&](const std::string& name, std::string best, const Counts& counts) {
    std::vector<std::string> row = {name, std::move(best)};
    for (const std::size_t count : counts) row.push_back(std::to_string(count));
    table.add(row);
  };
  for (const auto& [name, counts] : systems) {
    const auto is_any = [](std::size_t count) { return count > 0; };
    const auto best =
        static_cast<std::size_t>(std::ranges::find_if(counts, is_any) - counts.begin());
    ++best_of[best];
    add(name, std::string(kStudyVerdictNames[best]), counts);
    for (std::size_t v = 0; v < kVerdicts; ++v) total[v] += counts[v];
  }
  add("all expectations", "", total);
  add(fmt::format("best of {}", counted(systems.size(), "system")), "", best_of);
  return table;
}

}  // namespace

std::string study_page(const std::vector<StudyResult>& results) {
  std::string text =
      "# Studies\n\nGenerated by `rehearse study studies --format markdown -o docs/studies.md`; "
      "not edited by hand. The [verdicts](concepts/study.md) follow from source, fitted points, "
      "tolerance and result by rule; misses are kept.\n\n" +
      table_of_systems(results).markdown() +
      "\n## Expectations\n\nEach row compares a published number or range with the result of a "
      "study. *Source*: where the number was read; *none*: no publication states it. "
      "*Simulated*: central values at the compared settings. *Span*: over all settings of the "
      "study; for a curve, its errors.\n\n";
  Table table({{"study", Align::kLeft},
               {"measure", Align::kLeft},
               {"published"},
               {"source", Align::kLeft},
               {"simulated"},
               {"span"},
               {"tolerance"},
               {"verdict", Align::kLeft}});
  for (const StudyResult& result : results)
    for (std::size_t i = 0; i < result.compared.size(); ++i) {
      const Expectation& e = result.study.expectations[i];
      const Compared& compared = result.compared[i];
      table.add({fmt::format("[{0}](#{0})", result.study.name), measure_text(e),
                 expected_text(e, compared.least.unit), source_kind_text(e), got_text(e, compared),
                 whole_span_text(e, compared), tolerance_text(e),
                 std::string(text_of(compared.verdict))});
    }
  text += table.markdown();
  for (const StudyResult& result : results) text += study_section(result);
  return text;
}

}  // namespace rehearse::cli
