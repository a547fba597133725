// A document as a comment on a pull request: the answer, figures with their intervals, where the
// time goes, other tables, warnings, and its rows folded at the end.
#include <fmt/format.h>

#include "cli/output/document.h"
#include "cli/output/rows.h"
#include "cli/output/table.h"

namespace rehearse::cli {
namespace {

/// Quantities with a label, also those in unlabelled fields.
void add_figures(const Value& fields, Table& table) {
  for (const Entry& field : fields.fields()) {
    if (field.look.kind == Look::Kind::kTable) continue;
    const auto* q = std::get_if<Quantity>(&field.value.content());
    if (q != nullptr && !field.label.empty())
      table.add({field.label, q->unit->text(q->value),
                 q->interval ? q->unit->text(q->interval->first) + " – " +
                                   q->unit->text(q->interval->second)
                             : "",
                 q->provenance ? std::string(to_string(*q->provenance)) : ""});
    else if (field.label.empty())
      add_figures(field.value, table);
  }
}

std::string bars_table(const Entry& bars) {
  double total = 0;
  for (const Entry& part : bars.value.fields())
    if (const auto* time = std::get_if<Quantity>(&part.value.content());
        time && !part.label.empty())
      total += time->value;
  Table table({{bars.label, Align::kLeft}, {"time"}, {"share"}});
  for (const Entry& part : bars.value.fields())
    if (const auto* time = std::get_if<Quantity>(&part.value.content());
        time && !part.label.empty() && time->value != 0)
      table.add({part.label, time->unit->text(time->value),
                 fmt::format("{:.1f} %", total > 0 ? time->value / total * 100 : 0)});
  return table.empty() ? "" : "\n" + table.markdown();
}

/// The fields with a heading, except for the list that is folded, and the lines of text. A text of
/// several lines is a drawing for the screen and is left out.
std::string sections(const Value& fields, std::string_view folded) {
  std::string text;
  for (const Entry& field : fields.fields()) {
    if (field.label.empty()) {
      const auto* words = std::get_if<std::string>(&field.value.content());
      if (!field.key.empty())
        text += sections(field.value, folded);
      else if (words != nullptr && !words->empty() && words->find('\n') == std::string::npos)
        text += "\n" + markdown_text(printable(*words)) + "\n";
      continue;
    }
    if (field.look.kind == Look::Kind::kBars) text += bars_table(field);
    if (field.value.list().empty() || field.look.kind == Look::Kind::kTable ||
        field.look.kind == Look::Kind::kPage || field.key == folded)
      continue;
    text += "\n" + field.label + "\n\n";
    if (!field.value.list().front().fields().empty()) {
      text += rows_of(field.value, "", For::kComment).markdown();
      continue;
    }
    for (const Value& each : field.value.list())
      text += "- " + markdown_text(printable(words_of(each))) + "\n";
  }
  return text;
}

}  // namespace

std::string markdown_of(const Document& document) {
  const Value& content = document.content;
  const Table rows = rows_of(content, document.rows, For::kFolded, document.blank_row);
  if (document.answer.empty()) return rows.markdown();
  std::string text = "**" + markdown_text(document.answer) + "**\n";
  Table figures({{"", Align::kLeft}, {"predicted"}, {"90 % interval"}, {"from", Align::kLeft}});
  add_figures(content, figures);
  if (!figures.empty()) text += "\n" + figures.markdown();
  text += sections(content, document.rows.substr(0, document.rows.find('.')));
  if (!document.cautions.empty()) text += "\n";
  for (const std::string& caution : document.cautions)
    text += "- ⚠ " + markdown_text(printable(caution)) + "\n";
  if (!rows.empty())
    text += fmt::format("\n<details><summary>{}</summary>\n\n{}\n</details>\n", document.rows_title,
                        rows.markdown());
  return text;
}

}  // namespace rehearse::cli
