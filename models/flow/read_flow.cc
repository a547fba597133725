#include <cmath>

#include <fmt/core.h>

#include "models/flow/flow.h"
#include "sim/base/text.h"
#include "sim/base/units.h"

namespace rehearse::flow {
namespace {

constexpr std::string_view kEnd = "end";
constexpr double kMostSeconds = 1e9;

/// Seconds from `least` to 10^9, if the key is present.
std::optional<double> seconds_in(const YamlMap& map, std::string_view key, double least) {
  const auto time = map.optional<Seconds>(key);
  if (time && !(time->s() >= least && time->s() <= kMostSeconds)) {
    map.report(key, "is out of range", fmt::format("{:g} s to {:g} s", least, kMostSeconds));
    return std::nullopt;
  }
  return time ? std::optional(time->s()) : std::nullopt;
}

std::optional<Waits> waits_in(const YamlMap& map, std::string_view key) {
  const auto of = map.map(key);
  if (!of) return std::nullopt;
  of->required<Seconds>("first");
  Waits waits{.first = seconds_in(*of, "first", 1e-6).value_or(1),
              .factor = of->within<double>("factor", 1, 100).value_or(1)};
  if (waits.factor > 1 && waits.factor < 1.01)
    of->report("factor", fmt::format("{:g} hardly grows", waits.factor), "1, or 1.01 to 100");
  if (const auto most = seconds_in(*of, "most", 1e-6)) waits.most = *most;
  if (waits.most < waits.first) of->report("most", "is below first");
  of->no_other_keys();
  return waits;
}

class Names {
 public:
  explicit Names(const std::vector<YamlMap>& rows) {
    for (const YamlMap& row : rows) {
      const std::string name = row.required<std::string>("name").value_or("");
      if (index(name)) row.report("name", fmt::format("'{}' is the name of another step", name));
      if (name == kEnd) row.report("name", "'end' is the end of the flow", "another name");
      names_.push_back(name);
    }
  }

  /// The step with the name at the key, or the end.
  std::size_t at(const YamlMap& map, std::string_view key) const {
    const auto name = map.required<std::string>(key);
    if (!name || *name == kEnd) return names_.size();
    if (const auto found = index(*name)) return *found;
    std::vector<std::string_view> known(names_.begin(), names_.end());
    known.push_back(kEnd);
    map.report(key, fmt::format("unknown step '{}'", *name), suggest(*name, known));
    return names_.size();
  }

 private:
  std::optional<std::size_t> index(std::string_view name) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == name) return i;
    return std::nullopt;
  }
  std::vector<std::string> names_;
};

std::vector<Branch> branches_of(const YamlMap& row, std::size_t following, const Names& names) {
  if (!row.has("then")) return {{following, 1}};
  if (!row.is_list("then")) return {{names.at(row, "then"), 1}};
  std::vector<Branch> branches;
  double sum = 0;
  for (const YamlMap& branch : row.maps("then")) {
    branch.required<double>("share");
    const std::size_t to = names.at(branch, "to");
    branches.push_back({to, branch.within<double>("share", 0, 1).value_or(0)});
    sum += branches.back().share;
    branch.no_other_keys();
  }
  if (!(std::abs(sum - 1) < 1e-9))
    row.report("then", fmt::format("the shares sum to {:g}", sum), "1");
  return branches;
}

}  // namespace

Flow read_flow(const YamlMap& map) {
  Flow flow{.transition = seconds_in(map, "transition", 0).value_or(0),
            .limit = seconds_in(map, "time_limit", 0)};
  flow.runs =
      static_cast<std::uint32_t>(map.within<std::int64_t>("runs", 1, 1'000'000).value_or(1000));
  flow.seed =
      static_cast<std::uint64_t>(map.within<std::int64_t>("seed", 0, INT64_MAX).value_or(1));
  const std::vector<YamlMap> rows = map.maps("steps");
  if (rows.empty()) map.report("steps", "are missing", "a list such as [{name: copy, time: 9 s}]");
  const Names names(rows);
  for (std::size_t s = 0; s < rows.size(); ++s) {
    const YamlMap& row = rows[s];
    FlowStep step;
    row.required<Seconds>("time");
    step.time = seconds_in(row, "time", 0).value_or(0);
    row.choose("law", kTimeLawNames, step.law);
    step.poll = waits_in(row, "poll");
    step.fails = row.within<double>("fails", 0, 1).value_or(0);
    step.retries =
        static_cast<std::uint32_t>(row.within<std::int64_t>("retries", 0, 10'000).value_or(0));
    step.back_off = waits_in(row, "back_off");
    step.limit = seconds_in(row, "time_limit", 0);
    step.then = branches_of(row, s + 1, names);
    if (row.has("otherwise")) step.otherwise = names.at(row, "otherwise");
    row.no_other_keys();
    flow.steps.push_back(std::move(step));
  }
  map.no_other_keys();
  return flow;
}

}  // namespace rehearse::flow
