// What a live page offers to change, and the changes that it asks for.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output/value.h"
#include "sim/base/result.h"
#include "strategies/plan_fields.h"

namespace rehearse::cli {

/// One input of the page. The page knows its kind, not what it means.
struct Control {
  std::string key = {};  ///< "plan.tensor"
  std::string label = {};
  std::string group = {};
  std::string meaning = {};
  std::string_view kind = {};  ///< "flag", "count", "number", "choice", "name", "text", "lines"
  std::vector<std::string> names = {};  ///< of a choice; else suggested values
  strategies::ValueRange range = {};    ///< of a count or a number
  std::string value = {};               ///< now
  bool main = true;                     ///< else shown on demand
  bool matters = true;                  ///< whether it has any effect now
};
Json json_of(const std::vector<Control>& controls);

/// Keys of controls with the values that the page gives them, which differ from the first ones.
using Settings = std::vector<std::pair<std::string, std::string>>;
/// The value of a key; null if it is not given.
const std::string* find(const Settings& settings, std::string_view key);

/// The control of a field of a plan, with its value in a record.
template <class Record>
Control control_of(const strategies::Field<Record>& field, const Record& record,
                   const std::string& key, const std::string& group) {
  constexpr std::string_view kKinds[] = {"flag", "count", "number", "text", "choice"};
  const strategies::FieldValue value = field.at.get(record);
  return {.key = key,
          .label = std::string(field.name),
          .group = group,
          .meaning = std::string(field.meaning),
          .kind = kKinds[static_cast<std::size_t>(field.at.kind)],
          .names = {field.at.choices.begin(), field.at.choices.end()},
          .range = field.range,
          .value = value ? strategies::value_words(field, *value) : "",
          .main = field.axis.keep != nullptr,
          .matters = field.matters == nullptr || field.matters(record)};
}

/// The subject of a live page: a job, or a recording.
struct LiveSubject {
  std::string name;
  /// Names, the fastest first, and how an answer of each was made: "message", "message by message".
  std::vector<std::pair<std::string, std::string>> fidelities = {};
  std::vector<Control> controls;  ///< at first
  std::string saved_as = {};      ///< the file name of `save`; empty: it cannot be saved

  struct Answer {
    Json data;  ///< of the page: report.h
    std::vector<Control> controls;
  };
  /// May change the state of the process: each process calls it once.
  std::function<Result<Answer>(const Settings& settings, std::string_view fidelity)> answer = {};
  std::function<Result<std::string>(const Settings& settings)> save = {};
};

}  // namespace rehearse::cli
