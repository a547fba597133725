#include "cli/report/markdown.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/report/answer.h"
#include "cli/report/read_json.h"
#include "sim/base/text.h"
#include "sim/base/units.h"

namespace rehearse::cli {
namespace {

std::string value_text(double value, const std::string& unit) {
  if (unit == "s") return to_string(Seconds::s(value));
  if (unit == "B") return to_string(Bytes::b(value));
  if (unit == "USD") return to_string(Usd::usd(value));
  if (unit == "J") return to_string(Joules::j(value));
  if (unit == "1") return fmt::format("{:.1f} %", value * 100);
  return significant(value) + " " + unit;
}

struct Quantity {
  std::string value, interval, provenance;
};

std::optional<Quantity> quantity_at(const Json& document, std::string_view path) {
  const Json* found = at(document, path);
  const auto value = found ? number_at(*found, "value") : std::nullopt;
  if (!value) return std::nullopt;
  const std::string unit = text_at(*found, "unit");
  const auto low = number_at(*found, "low"), high = number_at(*found, "high");
  return Quantity{value_text(*value, unit),
                  low && high ? value_text(*low, unit) + " – " + value_text(*high, unit) : "",
                  text_at(*found, "provenance")};
}

std::string figures(const Json& document) {
  struct Line {
    const char* name;
    const char* path;
  };
  constexpr std::array<Line, 17> kFigures = {
      {{"step time", "step_time"},
       {"step time, measured", "step_time.measured"},
       {"step time, simulated", "step_time.simulated"},
       {"without the change, measured", "baseline.measured"},
       {"without the change, simulated", "baseline.simulated"},
       {"throughput", "throughput"},
       {"tokens", "tokens_per_s"},
       {"MFU", "mfu"},
       {"HFU", "hfu"},
       {"peak memory per device", "memory_per_device"},
       {"cost of a step", "cost_per_step"},
       {"energy of a step", "energy_per_step"},
       {"carbon of a step", "carbon_per_step"},
       {"time to the target", "to_target.time"},
       {"cost to the target", "to_target.cost"},
       {"energy to the target", "to_target.energy"},
       {"carbon to the target", "to_target.carbon"}}};
  Table table({{"", Align::kLeft}, {"predicted"}, {"90 % interval"}, {"from", Align::kLeft}});
  for (const Line& figure : kFigures)
    if (const auto q = quantity_at(document, figure.path))
      table.add({figure.name, q->value, q->interval, q->provenance});
  return table.empty() ? "" : "\n" + table.markdown();
}

std::string breakdown(const Json& document) {
  const Json* found = at(document, "breakdown");
  const auto* parts = found ? std::get_if<Json::Object>(&found->value()) : nullptr;
  if (parts == nullptr) return "";
  double total = 0;
  for (const auto& [key, part] : *parts)
    if (key != "total") total += number_at(part, "value").value_or(0);
  const bool compared = at(document, "baseline.breakdown") != nullptr;
  std::vector<Column> columns = {{"where a step goes", Align::kLeft}, {"time"}, {"share"}};
  if (compared) columns.insert(columns.end(), {{"without the change"}, {"difference"}});
  Table table(std::move(columns));
  for (const auto& [key, part] : *parts) {
    const double time = number_at(part, "value").value_or(0);
    const double before = number_at(document, "baseline.breakdown." + key + ".value").value_or(0);
    if (key == "total" || (time == 0 && before == 0)) continue;
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', ' ');
    std::vector<std::string> row = {std::move(name), to_string(Seconds::s(time)),
                                    fmt::format("{:.1f} %", total > 0 ? time / total * 100 : 0)};
    if (compared)
      row.insert(row.end(), {to_string(Seconds::s(before)),
                             fmt::format("{}{}", time > before ? "+" : "",
                                         to_string(Seconds::s(time - before)))});
    table.add(std::move(row));
  }
  return table.empty() ? "" : "\n" + table.markdown();
}

std::string changes(const Json& document) {
  constexpr std::size_t kShown = 3;
  const auto step = number_at(document, "step_time.value");
  Table table({{"what would help most", Align::kLeft}, {"step time"}, {"change"}});
  std::size_t shown = 0;
  for (const Json& advice : list_at(document, "advice"))
    if (const auto q = quantity_at(advice, "step_time"); q && shown++ < kShown)
      table.add({text_at(advice, "meaning"), q->value,
                 signed_percent(number_at(advice, "change").value_or(0))});
  for (const Json& change : list_at(document, "what_would_help"))
    if (const auto time = number_at(change, "step_time.value"); time && step && shown++ < kShown)
      table.add({text_at(change, "change"), to_string(Seconds::s(*time)),
                 signed_percent(*time / *step - 1)});
  return table.empty() ? "" : "\n" + table.markdown();
}

/// A name from the input as Markdown shows it: as text, whatever is in it.
std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (std::string_view("\\`*_[]<>|#~").find(c) != std::string_view::npos) safe += '\\';
    safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return safe;
}

std::string lines(const Json& document) {
  std::string text;
  const Json::Array& warnings = list_at(document, "warnings");
  const Json::Array& remedies = list_at(document, "warning_remedies");
  for (std::size_t i = 0; i < warnings.size(); ++i)
    if (const auto* line = std::get_if<std::string>(&warnings[i].value())) {
      const auto* remedy =
          i < remedies.size() ? std::get_if<std::string>(&remedies[i].value()) : nullptr;
      text += "- ⚠ " + escaped(*line) +
              (remedy && !remedy->empty() ? "; " + escaped(*remedy) : "") + "\n";
    }
  for (const Json& problem : list_at(document, "problems"))
    if (text_at(problem, "severity") != "info") {
      const std::string remedy = text_at(problem, "remedy");
      text +=
          fmt::format("- ⚠ {}: {} times, first at {}{}\n", escaped(text_at(problem, "kind")),
                      number_at(problem, "count").value_or(0), escaped(text_at(problem, "first")),
                      remedy.empty() ? "" : "; " + escaped(remedy));
    }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string markdown_of(const Json& document, const Table& details, const std::string& title) {
  std::string text = "**" + escaped(answer_of(document)) + "**\n" + figures(document) +
                     breakdown(document) + changes(document) + lines(document);
  if (!details.empty())
    text += fmt::format("\n<details><summary>{}</summary>\n\n{}\n</details>\n", title,
                        details.markdown());
  return text;
}

}  // namespace rehearse::cli
