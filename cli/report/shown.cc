#include "cli/report/shown.h"

#include "cli/output/rows.h"
#include "sim/base/text.h"
#include "sim/base/utf8.h"

namespace rehearse::cli {
namespace {

/// The most rows of a table on the page.
constexpr std::size_t kMostRows = 500;

Value field_of(const Entry& field) {
  Value shown = {{"label", field.label}};
  if (const auto* quantity = std::get_if<Quantity>(&field.value.content()))
    shown.add(page_quantity(*quantity, quantity->unit->text(quantity->value)));
  else
    shown["text"] = printable(words_of(field.value));
  return shown;
}

Value parts_of(const Value& bars) {
  Value parts = Value::array();
  for (const Entry& part : bars.fields()) {
    if (part.label.empty() || !std::holds_alternative<Quantity>(part.value.content())) continue;
    Value shown = {{"key", part.key}};
    shown.add(field_of(part));
    parts.push_back(std::move(shown));
  }
  return parts;
}

class Blocks {
 public:
  explicit Blocks(const Document& document) : rows_(document.rows), title_(document.rows_title) {}

  /// `title`: of the fields among them.
  void add(const Value& fields, const std::string& title = "") {
    for (const Entry& field : fields.fields()) add(field, title);
    flush(title);
  }
  Value list() { return std::move(blocks_); }

 private:
  void add(const Entry& field, const std::string& title) {
    const Value& value = field.value;
    const std::size_t dot = rows_.find('.');
    if (!rows_.empty() && field.look.kind != Look::Kind::kTable &&
        (field.key.empty() ? field.label : field.key) == rows_.substr(0, dot)) {
      flush(title);
      return table(field.label.empty() ? title_ : field.label, value,
                   dot == std::string_view::npos ? "" : rows_.substr(dot + 1));
    }
    if (field.look.kind == Look::Kind::kTable) return;
    if (field.label.empty() && !field.key.empty()) {
      for (const Entry& inner : value.fields()) add(inner, title);
      return;
    }
    if (!field.label.empty() && value.fields().empty() && value.list().empty()) {
      Value shown = field_of(field);
      if (!std::get<std::string>(shown["text"].content()).empty())
        fields_.push_back(std::move(shown));
      return;
    }
    flush(title);
    if (const auto* words = std::get_if<std::string>(&value.content()))
      line(*words);
    else if (field.look.kind == Look::Kind::kBars)
      block("bars", field.label, {{"parts", parts_of(value)}});
    else if (!value.fields().empty())
      add(value, field.label);
    else if (!value.list().empty() && !value.list().front().fields().empty())
      table(field.label, value, "");
    else if (!value.list().empty())
      items(field.label, value);
  }

  /// A text of several lines is a drawing for the screen, and is left out.
  void line(std::string_view words) {
    const std::string_view text = trim(words);
    if (!text.empty() && text.find('\n') == std::string_view::npos)
      block("line", "", {{"text", printable(text)}});
  }

  void items(const std::string& title, const Value& list) {
    Value texts = Value::array();
    for (const Value& each : list.list()) texts.push_back(printable(words_of(each)));
    block("list", title, {{"items", std::move(texts)}});
  }

  void table(const std::string& title, const Value& value, std::string_view within) {
    Value rows = page_rows(value, within, kMostRows);
    if (!rows["rows"].list().empty()) block("table", title, rows);
  }

  void block(std::string_view kind, const std::string& title, const Value& content) {
    Value one = {{"kind", kind}, {"title", title}};
    one.add(content);
    blocks_.push_back(std::move(one));
  }

  /// Consecutive fields are one block.
  void flush(const std::string& title) {
    if (fields_.empty()) return;
    block("fields", title, {{"fields", Value::array(std::exchange(fields_, {}))}});
  }

  std::string_view rows_;  // the path of the list that is the document's table
  const std::string& title_;
  Value blocks_ = Value::array();
  Value::Array fields_;  // not yet in a block
};

}  // namespace

Json shown_of(const Document& document) {
  Blocks blocks(document);
  blocks.add(document.content);
  return blocks.list();
}

}  // namespace rehearse::cli
