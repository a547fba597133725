#include "cli/output/document.h"

#include <cstdio>

#include <fmt/format.h>

#include "cli/output/json.h"
#include "cli/output/rows.h"
#include "cli/progress_line.h"
#include "cli/report/report.h"
#include "profiler/trace/problems.h"
#include "sim/base/file.h"

namespace rehearse::cli {

void Document::add_warnings(const std::vector<Warning>& warnings) {
  Value what = Value::array(), remedies = Value::array();
  for (const Warning& warning : warnings) {
    what.push_back(warning.what);
    remedies.push_back(warning.remedy);
    cautions.push_back(warning.what + (warning.remedy.empty() ? "" : "; " + warning.remedy));
  }
  content["warnings"] = std::move(what);
  content["warning_remedies"] = std::move(remedies);
}

void Document::add_problems(const trace::Problems& problems) {
  Value list = Value::array();
  for (const trace::Problem& problem : problems.list()) {
    const auto& info = trace::info(problem.kind);
    const std::string_view remedy = trace::remedy_of(problem.kind);
    list.push_back({{"severity", "severity", to_string(info.severity)},
                    {"kind", "problem", info.name},
                    {"count", "count", problem.count},
                    {"first", "first", problem.first},
                    {"remedy", remedy},
                    {"", "meaning", info.meaning, {}, kProse}});
    if (info.severity != trace::Severity::kInfo)
      cautions.push_back(fmt::format("{}: {} times, first at {}{}{}", info.name, problem.count,
                                     problem.first, remedy.empty() ? "" : "; ", remedy));
  }
  content["problems"] = std::move(list);
}

Json json_of(const Document& document) {
  Json json = {{"schema", "rehearse/1"}, {"command", document.command}};
  json.add(document.content);
  if (!document.methods.empty())
    json["methods"] = method_fields(document.methods, document.command);
  return json;
}

Json json_of(const Error& error) {
  Json list = Json::array();
  for (const Diagnostic& d : error.diagnostics)
    list.push_back({{"file", maybe(d.file)},
                    {"line", maybe(d.line)},
                    {"column", maybe(d.column)},
                    {"key", maybe(d.key)},
                    {"problem", d.problem},
                    {"expected", maybe(d.expected)},
                    {"nearest", maybe(d.nearest)},
                    {"message", to_string(d)}});
  return {{"schema", "rehearse/1"}, {"errors", std::move(list)}};
}

std::string csv_of(const Document& document) {
  return rows_of(document.content, document.rows, For::kPrograms, document.blank_row).csv();
}

std::string sentence_of(std::string head, const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts)
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  if (text.empty()) return printable(head);
  return printable(head.empty() ? text : std::move(head) + ": " + text);
}

std::string largest_part(const Value& breakdown) {
  double total = 0, most = 0;
  std::string_view name;
  for (const Entry& part : breakdown.fields()) {
    const auto* time = std::get_if<Quantity>(&part.value.content());
    if (time == nullptr || part.label.empty()) continue;
    total += time->value;
    if (time->value <= most) continue;
    most = time->value;
    name = part.label;
  }
  return total > 0 ? fmt::format("{:.0f} % of the step is {}", most / total * 100, name) : "";
}

namespace {

std::string made(Format format, const Document& document) {
  switch (format) {
    case Format::kTable: return text_of(document);
    case Format::kJson: return json_text(json_of(document));
    case Format::kCsv: return csv_of(document);
    case Format::kMarkdown: return markdown_of(document);
  }
  return {};
}

}  // namespace

Status write_document(const Globals& globals, const Document& document,
                      const ReportDetails& details) {
  if (!globals.json.empty()) TRY(write_file(globals.json, json_text(json_of(document))));
  TRY(write_report(globals, document, details));
  return write_text(globals, made(globals.format, document));
}

Status write_text(const Globals& globals, const std::string& text) {
  if (globals.output.empty()) {
    clear_progress_line();
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (!written) return fail("stdout cannot be written");
    return {};
  }
  return write_file(globals.output, text);
}

Result<Exit> answer_with(const Globals& globals, const Document& document, Exit exit,
                         const ReportDetails& details) {
  TRY(write_document(globals, document, details));
  return exit;
}

}  // namespace rehearse::cli
