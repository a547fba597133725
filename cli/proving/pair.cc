#include "cli/proving/pair.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/installed.h"
#include "sim/base/text.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "pair.yaml";
constexpr const char* kStepExpected = "a regular expression with one group, such as 'step (.* ms)'";

/// The pair files of a path, sorted; none if there are none.
std::vector<fs::path> pairs_at(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {path};
  if (fs::exists(path / kFileName, error)) return {path / kFileName};
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
    if (fs::exists(entry.path() / kFileName, error)) found.push_back(entry.path() / kFileName);
  std::ranges::sort(found);
  return found;
}

std::string suggest_name(const std::string& given) {
  const std::vector<std::string> names = shipped_pairs();
  const std::vector<std::string_view> views(names.begin(), names.end());
  return names.empty() ? "" : suggest(given, views);
}

/// The library's regular expressions overflow at large counts and references.
bool has_long_number(std::string_view text) {
  std::size_t digits = 0;
  return std::ranges::any_of(text, [&](char c) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    return digits > 4;
  });
}

}  // namespace

Result<Pair> read_pair(const fs::path& file) {
  const YamlFile yaml = TRY(YamlFile::load(file));
  const YamlMap root = yaml.root();
  const auto text = [&](const char* key) { return root.optional<std::string>(key).value_or(""); };
  Pair pair{.file = fs::absolute(file),
            .name = fs::absolute(file).parent_path().filename().string(),
            .about = text("about"),
            .needs = text("needs"),
            .prepare = text("prepare"),
            .baseline = root.required<std::string>("baseline").value_or(""),
            .candidate = root.required<std::string>("candidate").value_or(""),
            .record = root.optional<std::string>("record").value_or(
                "rehearse profile -o recording -- sh -c \"$BASELINE\""),
            .predict = root.required<std::string>("predict").value_or(""),
            .step = {},
            .limit = root.within<Seconds>("limit", Seconds::ms(1), Seconds::s(86400))
                         .value_or(Seconds::s(600))};
  constexpr std::size_t kLongest = 1000;  // the library matches recursively
  if (const auto step = root.required<std::string>("step"); step && step->size() > kLongest) {
    root.report("step", fmt::format("has {} characters", step->size()),
                fmt::format("at most {}", kLongest));
  } else if (step && has_long_number(*step)) {
    root.report("step", "has a number of more than four digits", kStepExpected);
  } else if (step) {
    try {
      pair.step = std::regex(*step);
      if (pair.step.mark_count() != 1)
        root.report("step",
                    fmt::format("'{}' has {}", *step, counted(pair.step.mark_count(), "group")),
                    kStepExpected);
    } catch (const std::regex_error&) {
      root.report("step", fmt::format("'{}' is no regular expression", *step), kStepExpected);
    }
  }
  root.no_other_keys();
  TRY(yaml.status());
  return pair;
}

std::vector<std::string> shipped_pairs() {
  std::vector<std::string> names;
  if (const Result<fs::path> shipped = installed_library("pairs"))
    for (const fs::path& file : pairs_at(*shipped))
      names.push_back(file.parent_path().filename().string());
  return names;
}

Result<std::vector<fs::path>> find_pairs(std::span<const std::string> given) {
  const Result<fs::path> shipped = installed_library("pairs");
  if (given.empty() && !shipped) return forward(shipped);
  std::vector<fs::path> all = given.empty() ? pairs_at(*shipped) : std::vector<fs::path>();
  for (const std::string& each : given) {
    std::vector<fs::path> found = pairs_at(each);
    if (found.empty() && shipped) found = pairs_at(*shipped / each);
    if (found.empty())
      return fail_in(each, fmt::format("is no pair: there is no {}", kFileName),
                     "a folder with that file, a folder of such folders, or the "
                     "name of a shipped pair",
                     shipped ? suggest_name(each) : "");
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

Result<Seconds> stated_step(const Pair& pair, const std::string& output) {
  std::string stated;
  // A longer line is no statement, and would exhaust the stack of the library.
  constexpr std::size_t kLongestLine = 10'000;
  for (const std::string_view line : split(output, '\n'))
    if (line.size() <= kLongestLine)
      for (auto match = std::cregex_iterator(line.begin(), line.end(), pair.step);
           match != std::cregex_iterator(); ++match)
        stated = (*match)[1];
  if (stated.empty()) return fail("printed nothing that `step` matches");
  Result<Seconds> time = parse_quantity<Seconds>(stated);
  if (time && *time <= Seconds::s(0))
    return fail(fmt::format("printed a step of '{}'", stated), "a time above 0");
  return time;
}

}  // namespace rehearse::cli
