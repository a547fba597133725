// A document as a screen shows it: lines of a label and a value, bars, tables, lists, with an empty
// line between blocks of different kinds.
#include "sim/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/output/color.h"
#include "cli/output/document.h"
#include "cli/output/rows.h"
#include "cli/output/table.h"

namespace rehearse::cli {
namespace {

/// The colour of a part of a step.
graph::Category category_of(std::string_view key) {
  using graph::Category;
  constexpr std::array<std::pair<std::string_view, Category>, 8> kColors = {
      {{"compute", Category::kCompute},
       {"recompute", Category::kCompute},
       {"optimizer", Category::kCompute},
       {"exposed_communication", Category::kCommunication},
       {"communication", Category::kCommunication},
       {"memory", Category::kMemory},
       {"memory_bandwidth", Category::kMemory},
       {"input", Category::kInput}}};
  for (const auto& [name, category] : kColors)
    if (name == key) return category;
  return Category::kHost;
}

class Screen {
 public:
  /// `rows`: the path of the list that is the document's table.
  explicit Screen(std::string_view rows = "")
      : list_(rows.substr(0, rows.find('.'))),
        within_(list_ == rows ? "" : rows.substr(list_.size() + 1)) {}

  void add(const Value& fields) {
    for (const Entry& field : fields.fields()) add(field);
  }

  void block(const std::string& heading, const std::string& shown) {
    if (shown.empty()) return;
    flush();
    if (!text_.empty()) text_ += "\n";
    if (!heading.empty()) text_ += heading + "\n";
    text_ += shown;
    after_block_ = true;
  }

  std::string text() {
    flush();
    return std::move(text_);
  }

 private:
  void add(const Entry& field) {
    const Value& value = field.value;
    if (field.look.kind == Look::Kind::kTable || field.look.kind == Look::Kind::kPage) return;
    if (!list_.empty() && field.key == list_)
      return block(field.label,
                   value.list().empty()
                       ? ""
                       : rows_of(value, within_, For::kScreen).text(60, field.look.rows, "csv"));
    const auto* words = std::get_if<std::string>(&value.content());
    if (field.label.empty()) {
      if (field.key.empty() && words != nullptr)
        line(*words);
      else if (field.key.empty() && !value.list().empty())
        block("", rows_of(value, "", For::kScreen).text(60, field.look.rows));
      else
        add(value);
      return;
    }
    if (field.look.kind == Look::Kind::kBars) return block(field.label, bars_text(value));
    if (!value.fields().empty()) {
      Screen inner;
      inner.add(value);
      return block(field.label, inner.text());
    }
    const auto* list = std::get_if<Value::Array>(&value.content());
    if (list == nullptr) {
      const std::string shown = words_of(value);
      if (!shown.empty()) lines_.emplace_back(field.label, shown);
      return;
    }
    if (list->empty()) return;
    if (list->front().fields().empty()) {
      std::string all;
      for (std::size_t i = 0; i < std::min(list->size(), field.look.rows); ++i)
        all += "  " + printable(words_of((*list)[i])) + "\n";
      return block(field.label, all);
    }
    block(field.label, rows_of(value, "", For::kScreen).text(60, field.look.rows));
  }

  /// Consecutive lines have no blank line between them. After a block there is one.
  void line(const std::string& words) {
    if (words.empty()) return;
    flush();
    if (after_block_ && !text_.empty()) text_ += "\n";
    after_block_ = false;
    for (const std::string_view each : split(words, '\n')) {
      text_ += printable(each);
      text_.erase(text_.find_last_not_of(' ') + 1);
      text_ += "\n";
    }
    if (words.ends_with('\n')) text_.pop_back();
  }

  /// Labels and values in two columns.
  void flush() {
    if (lines_.empty()) return;
    std::size_t width = 11;
    for (const auto& [label, value] : lines_) width = std::max(width, display_width(label));
    std::string shown;
    for (const auto& [label, value] : lines_)
      shown += label + std::string(width + 2 - display_width(label), ' ') + printable(value) + "\n";
    lines_.clear();
    block("", shown);
  }

  std::string_view list_, within_;
  std::string text_;
  std::vector<std::pair<std::string, std::string>> lines_;  // not yet written
  bool after_block_ = false;
};

}  // namespace

std::string bars_text(const Value& parts) {
  constexpr std::size_t kWidth = 24;
  constexpr double kLeast = 0.0005;
  double total = 0, from = 0;
  std::vector<std::pair<const Entry*, const Quantity*>> shown;
  for (const Entry& field : parts.fields())
    if (const auto* time = std::get_if<Quantity>(&field.value.content());
        time != nullptr && !field.label.empty()) {
      shown.emplace_back(&field, time);
      total += time->value;
    }
  std::string text;
  for (const auto& [field, time] : shown) {
    const double share = total > 0 ? time->value / total : 0;
    if (share < kLeast) continue;
    // Blocks of a character fill from the left alone: bars begin at whole ones.
    const double eighths = std::round(std::clamp(share, 0.0, 1.0) * kWidth * 8);
    const auto cells = static_cast<std::size_t>(std::ceil(eighths / 8));
    const std::size_t begin = std::min(
        static_cast<std::size_t>(std::lround(std::clamp(from, 0.0, 1.0) * kWidth)), kWidth - cells);
    text += fmt::format(
        "  {:<22} {}{} {:>10} {:>5.1f} %\n", field->label, std::string(begin, ' '),
        painted(bar(share * kWidth / static_cast<double>(kWidth - begin), kWidth - begin),
                category_of(field->key)),
        time->unit->text(time->value), share * 100);
    from += share;
  }
  return text;
}

std::string text_of(const Document& document) {
  Screen screen(document.rows);
  screen.add(document.content);
  const std::vector<std::string> methods = method_lines(document.methods, document.command);
  if (!methods.empty())
    screen.block("How this was computed", fmt::format("{}\n", fmt::join(methods, "\n")));
  const std::string rest = screen.text();
  if (document.answer.empty()) return rest;
  return strong(document.answer) + "\n" + rest;
}

}  // namespace rehearse::cli
