// Document: the result of a command, described once (value.h) and rendered as text, JSON, CSV,
// Markdown or the data of the report page.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/globals.h"
#include "cli/output/method.h"
#include "cli/output/value.h"
#include "profiler/trace/problems.h"
#include "sim/base/warning.h"

namespace rehearse::cli {

/// What the page shows in addition to the document. A section without its data is left out.
struct ReportDetails {
  /// Short text files are shown in full. Empty: those that the command line names.
  std::vector<std::filesystem::path> inputs = {};
  std::vector<std::string> command = {};  ///< gives the page again; empty: this one does
  /// Prefixes of the suites in docs/accuracy.md that measured this kind of prediction.
  std::vector<std::string> suites = {};
  Json timeline = {};  ///< timeline_sheet.h
  Json memory = {};    ///< over the step
  Json roofline = {};  ///< roofline.h
  Json gains = {};     ///< of single changes: single_changes.h
};

struct Document {
  std::string command;
  /// The answer in one sentence, made from values rather than printed text; may be empty.
  std::string answer = {};
  Value content = Value::object();
  /// The list of fields that CSV has and Markdown folds at its end, as a path of keys:
  /// "layouts.instances" is a row per instance, with the labelled fields of its layout before its
  /// own. A list without a key is named by its label.
  std::string rows = {};
  /// A row of that list without content: it gives CSV its columns if there are no rows.
  Value blank_row = {};
  std::string rows_title = {};  ///< of the folded table
  /// How the numbers were computed, with what would change them; shown last.
  std::vector<Method> methods = {};
  /// Caveats of the answer; the screen shows them on stderr.
  std::vector<std::string> cautions = {};

  Value& operator[](std::string_view key) { return content[key]; }
  Value& show(std::string_view key, std::string_view label, Value value, Scale scale = {},
              Look look = {}) {
    return content.show(key, label, std::move(value), scale, look);
  }
  /// A line of the screen.
  void line(std::string text) { content.show("", "", std::move(text)); }

  /// Adds "warnings", and "warning_remedies", which has the same length.
  void add_warnings(const std::vector<Warning>& warnings);
  /// Adds the "problems" of a recording.
  void add_problems(const trace::Problems& problems);
};

/// {"schema": "rehearse/1", "command": …, …}
Json json_of(const Document& document);
/// {"schema": "rehearse/1", "errors": […]}, with the parts of each message.
Json json_of(const Error& error);
std::string text_of(const Document& document);
std::string csv_of(const Document& document);
std::string markdown_of(const Document& document);

/// "head: part; part", with the parts that are not empty.
std::string sentence_of(std::string head, const std::vector<std::string>& parts);
/// "61 % of the step is compute": the largest of the times that add up to a step.
std::string largest_part(const Value& breakdown);
/// A list of times by key as bars, with their shares.
std::string bars_text(const Value& parts);

/// Writes to stdout, or to the file that -o names, as a whole; and to the files of --json and --report.
Status write_document(const Globals& globals, const Document& document,
                      const ReportDetails& details = {});
Status write_text(const Globals& globals, const std::string& text);
/// The same at the end of a command: returns its exit code, unless writing fails.
Result<Exit> answer_with(const Globals& globals, const Document& document,
                         Exit exit = Exit::kSuccess, const ReportDetails& details = {});

}  // namespace rehearse::cli
