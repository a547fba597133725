#include "cli/catalog/listing.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "cost/catalog.h"
#include "sim/base/check.h"
#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/cluster/origin.h"

namespace rehearse::cli {
namespace {

// A list that is not too long is shown whole; of a longer one, the screen shows the first rows.
constexpr std::size_t kShownWhole = 150, kFirstRows = 60, kNamesListed = 12;

/// Sources with a readable name: "REC" means little without the list of sources.
std::string readable_source(const std::string& source) {
  std::string readable;
  for (const std::string_view id : split(source, '+')) {
    if (!readable.empty()) readable += '+';
    readable += id == "REC" ? "recalled" : id;
  }
  return readable;
}

/// Units of the catalog that are not SI: "USD/h". They live as long as the program.
const Unit& unit_named(std::string_view si) {
  static std::map<std::string, Unit, std::less<>> units;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto known = units.find(si);
  if (known != units.end()) return known->second;
  const auto added = units.emplace(si, Unit{}).first;
  return added->second = {added->first, nullptr, {added->first, 1, 0}};
}

const std::string& text_of(const Cells& row, std::string_view column) {
  static const std::string none;
  const auto cell = row.find(column);
  return cell == row.end() ? none : cell->second;
}

/// The texts of a cell: several, or none.
std::vector<std::string> texts_of(const CatalogColumn& column, const Cells& row) {
  const std::string& text = text_of(row, column.from);
  std::vector<std::string> texts;
  if (column.form.content != Form::Content::kTexts)
    texts.push_back(text);
  else
    for (const std::string_view each : split(text, ' ')) texts.emplace_back(each);
  std::erase(texts, "");
  return texts;
}

double number_of(std::string_view text) {
  const auto number = parse_number<double>(text);
  REHEARSE_CHECK(number, "'{}' is no number of the catalog", text);
  return *number;
}

/// Absent for an empty cell.
Value value_of(const CatalogColumn& column, const Cells& row) {
  const std::string& text = text_of(row, column.from);
  const Form& form = column.form;
  if (form.content == Form::Content::kTexts) return texts_of(column, row);
  if (text.empty()) return std::nullopt;
  switch (form.content) {
    case Form::Content::kYesNo: return text == "yes";
    case Form::Content::kNumber: return number_of(text);
    case Form::Content::kCounts: {
      std::vector<std::int64_t> counts;
      for (const std::string_view word : split(text, ' '))
        counts.push_back(static_cast<std::int64_t>(number_of(word)));
      return counts;
    }
    case Form::Content::kQuantity: {
      // Restores the file's digits: a product changes the last digits of a double.
      const double exact =
          std::strtod(fmt::format("{:.10g}", number_of(text) * form.shown_as).c_str(), nullptr);
      const auto unit = row.find(form.si);
      return Quantity(exact, unit_named(unit == row.end() ? form.si : unit->second));
    }
    default: return text;
  }
}

void add_cell(const CatalogColumn& column, const Cells& cells, Value& row) {
  const Scale scale{column.form.unit, column.form.shown_as, 0};
  Value value = value_of(column, cells);
  // CSV has the column even if no row has a value.
  if (std::holds_alternative<Value::Absent>(value.content())) {
    row.show("", column.label, "", scale, kInTables);
  } else if (column.key == "source") {
    row.show("", column.label, readable_source(text_of(cells, column.from)), {}, kOnScreen);
    row.show(column.key, column.label, std::move(value), {}, kInTables);
  } else if (column.form.content == Form::Content::kNumber && scale.si != 1) {
    row.show("", column.label, value, Scale{scale.name, scale.si}, kOnScreen);
    row.show(column.key, column.label, std::move(value), scale, kInTables);
  } else {
    row.show(column.key, column.label, std::move(value), scale, column.look);
  }
}

/// Removes the rows whose cells in the column do not match. Fails if there are none that do.
Status keep_matching(const Kind& kind, std::string_view option, const std::string& pattern,
                     const std::vector<Cells>& rows, std::vector<bool>& kept) {
  const CatalogColumn& column = *kind.filter(option);
  bool any = false;
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<std::string> texts = texts_of(column, rows[i]);
    const bool matches = std::ranges::any_of(
        texts, [&](const std::string& text) { return matches_wildcard(pattern, text); });
    names.insert(texts.begin(), texts.end());
    any |= matches;
    // A row that applies to any region applies to this one.
    const bool everywhere =
        option == "--region" && !texts.empty() && texts.front() == cost::kAnyRegion;
    kept[i] = kept[i] && (matches || everywhere);
  }
  if (any) return {};
  const std::vector<std::string_view> list(names.begin(), names.end());
  return fail(fmt::format("{}: nothing among {} matches '{}'", option, kind.name, pattern), {},
              list.size() <= kNamesListed ? suggest(pattern, list)
                                          : suggest_name(pattern, list, kind.name));
}

}  // namespace

const CatalogColumn* Kind::filter(std::string_view option) const {
  std::string_view key = option.substr(2);
  for (const auto& [of, looks_at] : filtered)
    if (of == option) key = looks_at;
  const auto column = std::ranges::find(columns, key, &CatalogColumn::key);
  return column == columns.end() ? nullptr : &*column;
}

Result<Document> list_kind(const Kind& kind, const Filters& filters) {
  const std::vector<Cells> rows = kind.rows();
  std::vector<bool> kept(rows.size(), true);
  for (const auto& [option, pattern] : {std::pair{"--name", &filters.name},
                                        {"--provider", &filters.provider},
                                        {"--gpu", &filters.gpu},
                                        {"--region", &filters.region}})
    if (!pattern->empty() && kind.filter(option) != nullptr)
      TRY(keep_matching(kind, option, *pattern, rows, kept));
  Document document{.command = "catalog", .rows = "rows"};
  document.blank_row = Value::object();
  for (const CatalogColumn& column : kind.columns)
    document.blank_row.show("", column.label, "", {column.form.unit});
  Value listed = Value::array();
  bool recalled = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!kept[i]) continue;
    Value row = Value::object();
    for (const CatalogColumn& column : kind.columns) add_cell(column, rows[i], row);
    listed.push_back(std::move(row));
    recalled |= text_of(rows[i], "recalled") == "yes";
  }
  if (listed.list().empty()) document.line("no row of the catalog matches all of the filters");
  document["kind"] = kind.name;
  const bool whole = listed.list().size() <= kShownWhole;
  document.show("rows", "", std::move(listed), {}, first(whole ? kShownWhole : kFirstRows));
  if (recalled)
    document.line(
        "recalled: from memory, not checked against its source; check before relying on it");
  return document;
}

}  // namespace rehearse::cli
