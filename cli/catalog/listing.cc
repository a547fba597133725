#include "cli/catalog/listing.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "cost/catalog.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

constexpr std::size_t kRowsShown = 60, kWidthShown = 48, kNamesListed = 12;

/// As the catalog's file has it: conversions leave traces in the last of a double's digits.
std::string digits(double value) { return fmt::format("{:.10g}", value); }

std::string cell(const Value& value) {
  struct Cell {
    double shown_as;
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(const std::string& content) const { return content; }
    std::string operator()(bool content) const { return content ? "yes" : "no"; }
    std::string operator()(double content) const { return digits(content / shown_as); }
    std::string operator()(const std::vector<std::string>& content) const {
      const std::vector<std::string_view> words(content.begin(), content.end());
      return join(words, " ");
    }
    std::string operator()(const std::vector<std::uint32_t>& content) const {
      return fmt::format("{}", fmt::join(content, " "));
    }
  };
  return std::visit(Cell{value.shown_as}, value.content);
}

Json json_value(const Value& value) {
  struct Content {
    Json operator()(std::monostate) const { return {}; }
    Json operator()(double content) const {
      const double exact = std::strtod(digits(content).c_str(), nullptr);
      return std::floor(exact) == exact ? Json(static_cast<std::int64_t>(exact)) : Json(exact);
    }
    Json operator()(const std::string& content) const { return content; }
    Json operator()(bool content) const { return content; }
    Json operator()(const std::vector<std::string>& content) const { return content; }
    Json operator()(const std::vector<std::uint32_t>& content) const { return content; }
  };
  Json content = std::visit(Content{}, value.content);
  return value.unit.empty() ? content : Json{{"value", std::move(content)}, {"unit", value.unit}};
}

bool known(const Value& value) { return value.content.index() != 0; }

/// "REC" says little to who has not read the list of sources.
std::string readable_source(const std::string& source) {
  std::string readable;
  for (const std::string_view id : split(source, '+')) {
    if (!readable.empty()) readable += '+';
    readable += id == "REC" ? "recalled" : id;
  }
  return readable;
}

}  // namespace

Value text(std::string_view content) {
  return content.empty() ? Value{} : Value{.content = std::string(content)};
}
Value texts(std::vector<std::string> content) { return {.content = std::move(content)}; }
Value counts(std::vector<std::uint32_t> content) { return {.content = std::move(content)}; }
Value yes_no(bool content) { return {.content = content}; }
Value number(std::optional<double> content) { return quantity(content, {}, 1); }
Value quantity(std::optional<double> content, std::string_view unit, double shown_as) {
  if (!content) return {};
  return {.content = *content, .unit = unit, .shown_as = shown_as};
}

std::string listing_text(const Listing& listing) {
  if (listing.rows.empty()) return "no row of the catalog matches all of the filters\n";
  std::vector<std::size_t> shown;
  std::vector<Column> columns;
  for (std::size_t f = 0; f < listing.fields.size(); ++f) {
    const Field& field = listing.fields[f];
    const bool filled = std::any_of(listing.rows.begin(), listing.rows.end(),
                                    [f](const std::vector<Value>& row) { return known(row[f]); });
    if (field.in_table.empty() || !filled) continue;
    shown.push_back(f);
    columns.push_back({std::string(field.in_table), field.align});
  }
  Table table(columns);
  for (const std::vector<Value>& row : listing.rows) {
    std::vector<std::string> cells;
    for (const std::size_t f : shown) {
      const std::string content = cell(row[f]);
      cells.push_back(listing.fields[f].key == "source" ? readable_source(content)
                      : known(row[f])                   ? content
                                                        : "–");
    }
    table.add(std::move(cells));
  }
  std::string out = table.text(kWidthShown, kRowsShown);
  if (listing.recalled)
    out += "recalled: remembered and not read again; check before relying on it\n";
  return out;
}

Table listing_table(const Listing& listing) {
  std::vector<Column> columns;
  for (const Field& field : listing.fields)
    columns.push_back({std::string(field.heading), field.align});
  Table table(columns);
  for (const std::vector<Value>& row : listing.rows) {
    std::vector<std::string> cells;
    cells.reserve(row.size());
    for (const Value& value : row) cells.push_back(cell(value));
    table.add(std::move(cells));
  }
  return table;
}

Json listing_json(const Listing& listing) {
  Json json = json_root("catalog");
  json["kind"] = listing.kind;
  json["rows"] = Json::array();
  for (const std::vector<Value>& row : listing.rows) {
    Json object = Json::object();
    for (std::size_t f = 0; f < row.size(); ++f)
      if (known(row[f])) object[std::string(listing.fields[f].key)] = json_value(row[f]);
    json["rows"].push_back(std::move(object));
  }
  return json;
}

Result<std::vector<bool>> kept_rows(std::string_view kind, std::size_t rows,
                                    const std::vector<FilterKeys>& filters) {
  std::vector<bool> kept(rows, true);
  for (const FilterKeys& filter : filters) {
    if (filter.pattern.empty()) continue;
    if (!filter.keys) {
      std::vector<std::string_view> options;
      for (const FilterKeys& other : filters)
        if (other.keys) options.push_back(other.option);
      return fail(fmt::format("{} does not apply to {}", filter.option, kind),
                  "use " + join(options, ", "));
    }
    bool any = false;
    std::set<std::string_view> names;
    for (std::size_t row = 0; row < rows; ++row) {
      bool matches = false;
      for (const std::string& key : (*filter.keys)[row]) {
        names.insert(key);
        matches |= matches_wildcard(filter.pattern, key);
      }
      any |= matches;
      // What holds in any region holds in this one.
      const bool everywhere = filter.option == "--region" && !(*filter.keys)[row].empty() &&
                              (*filter.keys)[row].front() == cost::kAnyRegion;
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
