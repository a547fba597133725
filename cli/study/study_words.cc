#include "cli/study/study_words.h"

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

std::string percent(double ratio) { return fmt::format("{} %", significant(ratio * 100)); }

}  // namespace

std::string_view text_of(StudyVerdict verdict) {
  return kStudyVerdictNames[static_cast<int>(verdict)];
}

std::string term_text(double value, std::string_view unit) {
  if (unit == "s") return to_string(Seconds::s(value));
  if (unit == "B") return to_string(Bytes::b(value));
  return significant(value) + (unit.empty() ? "" : fmt::format(" {}", unit));
}

std::string term_text(const Term& term) { return term_text(term.estimate.value, term.unit); }

std::string span_text(const Term& least, const Term& most) {
  const std::string from = term_text(least), to = term_text(most);
  return from == to ? from : fmt::format("{} – {}", from, to);
}

std::string selection_text(const Selection& selection) {
  std::string text;
  for (const auto& [name, values] : selection) {
    const std::vector<std::string_view> views(values.begin(), values.end());
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, join(views, " or "));
  }
  return text;
}

std::string expected_text(const Expectation& e, const std::string& unit) {
  if (e.is_curve())
    return fmt::format("{} over {}", counted(e.curve.published.size(), "value"), e.curve.over);
  if (e.is_value()) return term_text(e.low, unit);
  return fmt::format("{} – {}", term_text(e.low, unit), term_text(e.high, unit));
}

std::string tolerance_text(const Expectation& e) {
  if (!e.claims()) return "none";
  if (!e.mean_tolerance) return percent(*e.tolerance);
  const std::string mean = percent(*e.mean_tolerance) + " mean";
  return e.tolerance ? fmt::format("{}, {} worst", mean, percent(*e.tolerance)) : mean;
}

std::string got_text(const Expectation& e, const Compared& compared) {
  if (!e.is_curve()) return span_text(compared.least, compared.most);
  return fmt::format("mean error {}, worst {}", percent(compared.errors.mean),
                     signed_percent(compared.errors.worst));
}

std::string fit_text(const Fit& fit) {
  const std::vector<std::string_view> names(fit.constants.begin(), fit.constants.end());
  std::string text = join(names, ", ");
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

Value curve_rows(const std::string& over, const std::vector<CurvePoint>& curve) {
  Value rows = Value::array();
  for (const CurvePoint& point : curve)
    rows.push_back({{"", over, point.value},
                    {"", "published", term_text(point.published, point.least.unit)},
                    {"", "simulated", span_text(point.least, point.most)},
                    {"", "error", change(point.error)}});
  return rows;
}

}  // namespace rehearse::cli
