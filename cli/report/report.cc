#include "cli/report/report.h"

#include <algorithm>

#include "cli/output/json.h"
#include "cli/output/rows.h"
#include "cli/report/report_files.h"
#include "profiler/ingest/input.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/utf8.h"

namespace rehearse::cli {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The cells of "| a | b |"; none of a line that is no row.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  if (line.empty() || line.front() != '|') return cells;
  line.remove_prefix(1);
  for (std::size_t bar = line.find('|'); bar != std::string_view::npos; bar = line.find('|')) {
    cells.push_back(trimmed(line.substr(0, bar)));
    line.remove_prefix(bar + 1);
  }
  return cells;
}

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

constexpr std::string_view kDataMark = "@DATA@", kLoadsMark = "@LOADS@";

/// Quoted for a shell.
std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./,:=@%+").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += text.empty() ? std::filesystem::path(word).filename().string() : " " + quoted(word);
  return text;
}

/// The command line of this process, from the kernel.
std::string command_line() {
  const Result<std::string> text = read_file("/proc/self/cmdline");
  if (!text) return "";
  std::vector<std::string> words;
  for (std::size_t from = 0; from < text->size();) {
    const std::size_t end = std::min(text->find('\0', from), text->size());
    words.push_back(text->substr(from, end - from));
    from = end + 1;
  }
  return shell_words(words);
}

/// The files that the command read: texts whole, where they are short enough to be read, and the
/// origin of recordings, also of those that a file names.
Json inputs_json(std::vector<std::filesystem::path> inputs) {
  constexpr std::size_t kLongest = 64 << 10;
  const std::vector<ingest::ReadRecording> recordings = ingest::recordings_read();
  for (const ingest::ReadRecording& each : recordings)
    if (std::ranges::find(inputs, each.path) == inputs.end()) inputs.push_back(each.path);
  Json list = Json::array();
  for (const std::filesystem::path& path : inputs) {
    Json entry = {{"path", path.string()}};
    const auto found = std::ranges::find(recordings, path, &ingest::ReadRecording::path);
    if (found != recordings.end())
      entry["recording"] = {
          {"ranks", found->ranks}, {"commits", found->commits}, {"devices", found->devices}};
    std::error_code error;
    if (held_file(path) ||
        (std::filesystem::is_regular_file(path, error) &&
         std::filesystem::file_size(path, error) <= kLongest && path.extension() != ".json"))
      if (const Result<std::string> text = read_file(path);
          text && text->find('\0') == std::string::npos)
        entry["text"] = *text;
    list.push_back(std::move(entry));
  }
  return list;
}

/// JSON for a script element: no text in it can end the element. Without white space between
/// tokens.
std::string for_script(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '\\') {
      safe += c;
      safe += json[++i];
      continue;
    }
    if (c == '"') quoted = !quoted;
    if (c == '<')
      safe += "\\u003c";
    else if (quoted || (c != ' ' && c != '\n'))
      safe += c;
  }
  return safe;
}

}  // namespace

Json page_data(const Document& document, const ReportDetails& details) {
  return {{"answer", document.answer},
          {"document", json_of(document)},
          {"shown", shown_of(document)},
          {"timeline", details.timeline},
          {"memory", details.memory},
          {"roofline", details.roofline},
          {"gains", details.gains},
          {"accuracy", accuracy_of(details.suites)},
          {"reproduce",
           {{"command", details.command.empty() ? command_line() : shell_words(details.command)},
            {"version", std::string("rehearse ") + REHEARSE_VERSION},
            {"inputs", inputs_json(details.inputs)}}}};
}

std::string page_text(const Json& data, std::string_view loads_from) {
  std::string page(report_files::page_html);
  page.replace(page.find(kLoadsMark), kLoadsMark.size(), loads_from);
  return page.replace(page.find(kDataMark), kDataMark.size(), for_script(json_text(data)));
}

Status write_report(const Globals& globals, const Document& document, ReportDetails details) {
  if (globals.report.empty()) return {};
  if (details.inputs.empty()) details.inputs = globals.inputs;
  PendingFile file = TRY(PendingFile::create(globals.report));
  TRY(file.write(page_text(page_data(document, details))));
  return file.commit();
}

Json shown_of(const Document& document) {
  Blocks blocks(document);
  blocks.add(document.content);
  return blocks.list();
}

Json accuracy_in(std::string_view page, const std::vector<std::string>& suites) {
  Json rows = Json::array();
  std::vector<std::string_view> headings;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const std::vector<std::string_view> cells = cells_of(page.substr(0, end));
    page.remove_prefix(std::min(end + 1, page.size()));
    if (cells.empty()) continue;
    if (cells.front() == "suite") {
      headings = cells;
    } else if (cells.size() == headings.size() &&
               std::any_of(suites.begin(), suites.end(), [&](const std::string& suite) {
                 return cells.front().starts_with(suite);
               })) {
      Json row = Json::object();
      for (std::size_t c = 0; c < cells.size(); ++c) row[headings[c]] = cells[c];
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Json accuracy_of(const std::vector<std::string>& suites) {
  return accuracy_in(report_files::accuracy_md, suites);
}

}  // namespace rehearse::cli
