#include "cli/catalog/listing.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "cost/catalog.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

constexpr std::size_t kListedRows = 60, kNamesListed = 12;

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

}  // namespace

Cell text(std::string_view content) { return {maybe(content)}; }
Cell texts(std::vector<std::string> content) { return {std::move(content)}; }
Cell counts(std::vector<std::uint32_t> content) { return {std::move(content)}; }
Cell yes_no(bool content) { return {content}; }
Cell number(std::optional<double> content) { return {maybe(content)}; }
Cell quantity(std::optional<double> content, std::string_view unit, double shown_as) {
  if (!content) return {};
  // Restores the catalog file's digits: conversions change the last digits of a double.
  const double exact = std::strtod(fmt::format("{:.10g}", *content).c_str(), nullptr);
  return {Quantity(exact, unit_named(unit)), shown_as};
}

void add_cell(const CellField& field, Cell cell, Value& row) {
  const Scale scale{field.unit, cell.shown_as, 0};
  // CSV has the column even if no row has a value.
  if (std::holds_alternative<Value::Absent>(cell.value.content())) {
    row.show("", field.label, "", scale, kInTables);
    return;
  }
  if (field.key == "source")
    if (const auto* source = std::get_if<std::string>(&cell.value.content())) {
      row.show("", field.label, readable_source(*source), {}, kOnScreen);
      row.show(field.key, field.label, std::move(cell.value), {}, kInTables);
      return;
    }
  row.show(field.key, field.label, std::move(cell.value), scale,
           field.on_screen ? Look{} : kInTables);
}

Document listing_document(const Listing& listing) {
  Document document{.command = "catalog", .rows = "rows"};
  document.blank_row = Value::object();
  for (const CellField& field : listing.fields)
    document.blank_row.show("", field.label, "", {field.unit});
  if (listing.rows.list().empty())
    document.line("no row of the catalog matches all of the filters");
  document["kind"] = listing.kind;
  document.show("rows", "", listing.rows, {}, first(kListedRows));
  if (listing.recalled)
    document.line(
        "recalled: from memory, not checked against its source; check before relying on it");
  return document;
}

Result<std::vector<bool>> kept_rows(std::string_view kind, std::size_t rows,
                                    const std::vector<FilterKeys>& filters) {
  std::vector<bool> kept(rows, true);
  for (const FilterKeys& filter : filters) {
    bool any = false;
    std::set<std::string_view> names;
    for (std::size_t row = 0; row < rows; ++row) {
      bool matches = false;
      for (const std::string& key : filter.keys[row]) {
        names.insert(key);
        matches |= matches_wildcard(filter.pattern, key);
      }
      any |= matches;
      // A row that applies to any region applies to this one.
      const bool everywhere = filter.option == "--region" && !filter.keys[row].empty() &&
                              filter.keys[row].front() == cost::kAnyRegion;
      kept[row] = kept[row] && (matches || everywhere);
    }
    if (any) continue;
    const std::vector<std::string_view> list(names.begin(), names.end());
    return fail(
        fmt::format("{}: nothing among {} matches '{}'", filter.option, kind, filter.pattern), {},
        list.size() <= kNamesListed ? suggest(filter.pattern, list)
                                    : cluster::suggest_name(filter.pattern, list, kind));
  }
  return kept;
}

}  // namespace rehearse::cli
