#include "cli/output/rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/text.h"
#include "sim/base/utf8.h"

namespace rehearse::cli {
namespace {

bool plain(For whom) { return whom == For::kPrograms || whom == For::kFolded; }

bool of_page(Look::Kind kind) { return kind == Look::Kind::kPage || kind == Look::Kind::kAxis; }

bool hidden(Look::Kind kind, For whom) {
  if (of_page(kind)) return whom != For::kPage;
  return kind == (plain(whom) ? Look::Kind::kScreen : Look::Kind::kTable);
}

/// A row of a table: labelled fields, those of fields in it among them.
using Cells = std::vector<const Entry*>;

void add_cell(const Entry& field, Cells& cells) {
  const auto same =
      std::ranges::find_if(cells, [&](const Entry* f) { return f->label == field.label; });
  if (of_page(field.look.kind) && same != cells.end())
    *same = &field;
  else
    cells.push_back(&field);
}

void add_cells(const Value& fields, For whom, Cells& cells) {
  for (const Entry& field : fields.fields()) {
    if (hidden(field.look.kind, whom)) continue;
    if (!field.label.empty()) {
      add_cell(field, cells);
    } else if (!field.value.fields().empty()) {
      add_cells(field.value, whom, cells);
    }
  }
}

/// The rows that a path leads to, with the labelled fields on the way.
void add_rows(const Value& at, std::string_view path, For whom, Cells outer,
              std::vector<Cells>& rows, bool inside = false) {
  if (std::holds_alternative<Value::Array>(at.content())) {
    for (const Value& each : at.list()) add_rows(each, path, whom, outer, rows, true);
    return;
  }
  if (path.empty()) {
    add_cells(at, whom, outer);
    if (!outer.empty()) rows.push_back(std::move(outer));
    return;
  }
  const std::size_t dot = path.find('.');
  const std::string_view key = path.substr(0, dot);
  if (inside) add_cells(at, whom, outer);
  for (const Entry& field : at.fields())
    if ((field.key.empty() ? field.label : field.key) == key)
      add_rows(field.value, dot == std::string_view::npos ? "" : path.substr(dot + 1), whom, outer,
               rows);
}

/// The fields of one label that are shown.
struct Series {
  const Entry* first;
  bool interval = false, number = false;
  const Quantity* quantity = nullptr;  ///< one of them

  /// In a column without a scale, programs are shown the unit of JSON.
  Scale scale(For whom) const {
    if (!first->scale.name.empty()) return first->scale;
    return quantity != nullptr && plain(whom) ? quantity->unit->scale : Scale{};
  }
};

std::vector<Series> series_of(const std::vector<Cells>& rows) {
  std::vector<Series> all;
  for (const Cells& cells : rows) {
    std::size_t at = 0;
    for (const Entry* field : cells) {
      auto same = std::ranges::find_if(
          all, [&](const Series& s) { return s.first->label == field->label; });
      if (same == all.end())
        same = all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), {.first = field});
      at = static_cast<std::size_t>(same - all.begin()) + 1;
      const Value::Content& content = field->value.content();
      if (const auto* quantity = std::get_if<Quantity>(&content)) {
        same->quantity = quantity;
        same->number = true;
        same->interval |= quantity->interval.has_value();
      }
      same->number |= std::holds_alternative<double>(content) ||
                      std::holds_alternative<std::int64_t>(content) ||
                      std::holds_alternative<std::uint64_t>(content);
    }
  }
  return all;
}

std::string number(double value, const Scale& scale, For whom) {
  std::string digits = digits_of(value, scale);
  return plain(whom) ? digits : with_commas(std::move(digits));
}

struct Words {
  For whom;
  const Scale& scale;  ///< without a name: none

  std::string operator()(std::nullptr_t) const { return ""; }
  std::string operator()(const Value::Absent&) const { return ""; }
  std::string operator()(bool content) const { return content ? "yes" : "no"; }
  std::string operator()(std::int64_t n) const {
    if (!scale.name.empty()) return number(static_cast<double>(n), scale, whom);
    const std::string digits = fmt::format("{}", n);
    return plain(whom) ? digits : with_commas(digits);
  }
  std::string operator()(std::uint64_t n) const {
    if (!scale.name.empty()) return number(static_cast<double>(n), scale, whom);
    const std::string digits = fmt::format("{}", n);
    return plain(whom) ? digits : with_commas(digits);
  }
  std::string operator()(double value) const {
    if (!scale.name.empty()) return number(value, scale, whom);
    const std::string digits = fmt::format("{:.6g}", value);
    return plain(whom) || digits.find('e') != std::string::npos ? digits : with_commas(digits);
  }
  std::string operator()(const std::string& text) const {
    return whom == For::kFolded || whom == For::kComment ? markdown_text(text) : text;
  }
  std::string operator()(const Quantity& q) const {
    return scale.name.empty() && !plain(whom) ? q.unit->text(q.value)
                                              : number(q.value, scale, whom);
  }
  std::string operator()(const Value::Array& list) const {
    std::string text;
    for (const Value& each : list)
      text += (text.empty() ? "" : plain(whom) ? " " : ", ") + std::visit(*this, each.content());
    return text;
  }
  std::string operator()(const Value::Object&) const { return ""; }
};

std::string heading_of(const Series& s, std::string_view end, For whom) {
  std::string text = s.first->label + std::string(end);
  const Scale scale = s.scale(whom);
  return scale.name.empty() ? text : fmt::format("{} ({})", text, scale.name);
}

/// With the columns of `like`.
Table table_of(const std::vector<Cells>& rows, const std::vector<Cells>& like, For whom) {
  const std::vector<Series> all = series_of(like);
  std::vector<Column> columns;
  for (const Series& s : all) {
    columns.push_back({heading_of(s, "", whom), s.number ? Align::kRight : Align::kLeft,
                       s.first->look.kind == Look::Kind::kProse});
    if (!s.interval) continue;
    for (const char* end : {" low", " high"})
      columns.push_back({heading_of(s, end, whom), Align::kRight, false, true});
  }
  Table table(std::move(columns));
  for (const Cells& cells : rows) {
    std::vector<std::string> row;
    for (const Series& s : all) {
      const auto field =
          std::ranges::find_if(cells, [&](const Entry* f) { return f->label == s.first->label; });
      const Scale scale = s.scale(whom);
      const Words words{whom, scale};
      const Value none;
      const Value& value = field == cells.end() ? none : (*field)->value;
      row.push_back(field == cells.end() && !plain(whom) ? "–"
                                                         : std::visit(words, value.content()));
      if (!s.interval) continue;
      const auto* q = std::get_if<Quantity>(&value.content());
      const bool known = q != nullptr && q->interval.has_value();
      row.push_back(known ? words(Quantity(q->interval->first, *q->unit)) : "");
      row.push_back(known ? words(Quantity(q->interval->second, *q->unit)) : "");
    }
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

Table rows_of(const Value& content, std::string_view path, For whom, const Value& blank) {
  std::vector<Cells> rows;
  add_rows(content, path, whom, {}, rows);
  if (!rows.empty()) return table_of(rows, rows, whom);
  Cells cells;
  add_cells(blank, whom, cells);
  return table_of(rows, {cells}, whom);
}

Value page_quantity(const Quantity& quantity, std::string text) {
  const bool known = quantity.interval.has_value();
  return {{"text", std::move(text)},
          {"value", quantity.value},
          {"low", known ? Value(quantity.interval->first) : Value(std::nullopt)},
          {"high", known ? Value(quantity.interval->second) : Value(std::nullopt)},
          // A ratio has no unit in SI, but is not drawn on the scale of a share.
          {"unit", quantity.unit == &unit::kFactor ? "×" : quantity.unit->si},
          {"range", known ? Value(sourced_words(quantity)) : Value(std::nullopt)}};
}

namespace {

constexpr std::string_view name_of(Look::Kind kind) {
  switch (kind) {
    case Look::Kind::kAxis: return "axis";
    case Look::Kind::kSpan: return "span";
    case Look::Kind::kProse: return "prose";
    default: return "";
  }
}

/// The quantity of a cell; of a plain number, without a unit.
std::optional<Quantity> quantity_of(const Value::Content& content) {
  return std::visit(
      [](const auto& value) -> std::optional<Quantity> {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Quantity>)
          return value;
        else if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
          return Quantity(static_cast<double>(value), unit::kCount);
        else
          return std::nullopt;
      },
      content);
}

}  // namespace

Value page_rows(const Value& content, std::string_view path, std::size_t most) {
  std::vector<Cells> found;
  add_rows(content, path, For::kPage, {}, found);
  const std::vector<Series> all = series_of(found);
  Value columns = Value::array(), rows = Value::array();
  for (const Series& s : all)
    columns.push_back({{"name", heading_of(s, "", For::kPage)},
                       {"look", name_of(s.first->look.kind)},
                       {"right", s.number}});
  for (std::size_t r = 0; r < std::min(found.size(), most); ++r) {
    Value row = Value::array();
    for (const Series& s : all) {
      const auto field = std::ranges::find_if(
          found[r], [&](const Entry* f) { return f->label == s.first->label; });
      const Value none("–");
      const Value::Content& cell = (field == found[r].end() ? none : (*field)->value).content();
      const Scale scale = s.scale(For::kPage);
      std::string text = printable(std::visit(Words{For::kPage, scale}, cell));
      const std::optional<Quantity> quantity = quantity_of(cell);
      row.push_back(quantity ? page_quantity(*quantity, std::move(text)) : Value(std::move(text)));
    }
    rows.push_back(std::move(row));
  }
  return {{"columns", std::move(columns)},
          {"rows", std::move(rows)},
          {"more", found.size() - std::min(found.size(), most)}};
}

std::string words_of(const Value& value) {
  if (const auto* quantity = std::get_if<Quantity>(&value.content()))
    return sourced_words(*quantity);
  return std::visit(Words{For::kScreen, Scale{}}, value.content());
}

}  // namespace rehearse::cli
