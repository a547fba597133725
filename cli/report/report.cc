#include "cli/report/report.h"

#include <algorithm>

#include "cli/output/json.h"
#include "cli/report/accuracy.h"
#include "cli/report/report_files.h"
#include "cli/report/shown.h"
#include "profiler/ingest/input.h"
#include "sim/base/file.h"

namespace rehearse::cli {
namespace {

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

}  // namespace rehearse::cli
