// Runs `study` on a text.
#pragma once

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse::test {

/// The text with `from`, which it has, replaced by `to`; the text itself if `from` is empty.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (from.empty()) return text;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// The text with the name of a file, if it has it, replaced by a file of these contents.
inline std::string with_file(std::string text, const std::string& name,
                             const std::string& contents) {
  if (text.find(name) == std::string::npos) return text;
  return replaced(std::move(text), name, write_scratch(name, contents).string());
}

/// The file is named s.yaml.
inline Ran run_study(const std::string& text, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"study", write_scratch("s.yaml", text).string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return rehearse(arguments);
}

/// The document of the run, checked by check_values.
inline Json study_json(const std::string& text, int code = 0) {
  Json json = document(run_study(text, {"--format", "json"}), code);
  check_values(json, "tolerance");
  return json;
}

/// The value of a measure at a point of the document.
inline double measured(const Json& point, const std::string& name) {
  for (const Json& one : point["measured"])
    if (one["name"] == name) return one["got"]["value"];
  FAIL("no measure " << name);
  return 0;
}

}  // namespace rehearse::test
