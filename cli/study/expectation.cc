#include "cli/study/expectation.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// Whether any point of the sweep that has the parameter has this value.
bool is_swept(const SweptPoints& swept, const std::string& parameter, const std::string& value) {
  return std::ranges::any_of(swept.points, [&](const Setting& point) {
    return is_selected({{parameter, {value}}}, point);
  });
}

void add_once(std::vector<std::string>& values, const std::string& value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(value);
}

std::vector<std::string_view> parameters_of(const SweptPoints& swept) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : swept.points.front()) names.push_back(name);
  return names;
}

/// Reports where `name` is not a parameter.
bool check_parameter(const YamlMap& map, std::string_view key, const std::string& name,
                     const SweptPoints& swept) {
  const std::vector<std::string_view> known = parameters_of(swept);
  if (std::ranges::find(known, name) != known.end()) return true;
  map.report(key, fmt::format("'{}' is not a parameter of the sweep", name),
             known.empty() ? "a sweep" : suggest(name, known));
  return false;
}

Selection read_selection(const YamlMap& map, const SweptPoints& swept) {
  Selection selection;
  for (const std::string& name : map.keys()) {
    std::vector<std::string> values;
    if (map.is_list(name))
      values = map.list<std::string>(name);
    else if (auto value = map.optional<std::string>(name))
      values = {std::move(*value)};
    if (!check_parameter(map, name, name, swept)) continue;
    for (const std::string& value : values)
      if (!is_swept(swept, name, value))
        map.report(name, fmt::format("no point of the sweep has {} {}", name, value));
    selection.emplace_back(name, std::move(values));
  }
  return selection;
}

/// Whether each value of a selection is swept, at one point or at several.
bool all_swept(const Selection& selection, const SweptPoints& swept) {
  return std::ranges::all_of(selection, [&](const auto& wanted) {
    return std::ranges::all_of(wanted.second, [&](const std::string& value) {
      return is_swept(swept, wanted.first, value);
    });
  });
}

Curve read_curve(const YamlMap& map, const SweptPoints& swept) {
  Curve curve;
  if (const auto at = map.map("at")) curve.at = read_selection(*at, swept);
  const auto any = [&](const Selection& selection) {
    return std::ranges::any_of(swept.points,
                               [&](const Setting& point) { return is_selected(selection, point); });
  };
  if (map.has("at") && !any(curve.at) && all_swept(curve.at, swept))
    map.report("at", "no point of the sweep matches");
  const auto over = map.optional<std::string>("over");
  const auto published = map.map("published");
  if (map.has("over") != map.has("published")) {
    map.report(map.has("over") ? "over" : "published", "needs the other of the two",
               "over: PARAMETER and published: {VALUE: NUMBER, …}");
    return curve;
  }
  if (!over || !check_parameter(map, "over", *over, swept) || !published) return curve;
  curve.over = *over;
  for (const std::string& value : published->keys()) {
    const auto number = published->optional<double>(value);
    if (!number) continue;
    if (!any(curve.points_of(value)))
      published->report(value, fmt::format("no point of the sweep has {} {}", *over, value));
    else if (*number == 0)
      published->report(value, "is 0", "a number that errors can be relative to");
    else
      curve.published.emplace_back(value, *number);
  }
  if (published->keys().empty()) map.report("published", "is empty", "{VALUE: NUMBER, …}");
  return curve;
}

std::optional<std::string> read_measure(const YamlMap& map, const SweptPoints& swept) {
  if (const auto index = map.choice("measure", swept.measures))
    return std::string(swept.measures[*index]);
  return std::nullopt;
}

/// REQUIRES: the kind and the published numbers are read.
void read_tolerance(const YamlMap& map, Expectation& e) {
  constexpr std::string_view kKey = "tolerance";
  e.reason = map.optional<std::string>("reason").value_or("");
  const auto read = [&](const YamlMap& from, std::string_view key) {
    const auto tolerance = from.optional<double>(key);
    if (tolerance && !(*tolerance >= 0 && *tolerance < 1))
      from.report(key, fmt::format("{:g} is not a relative tolerance", *tolerance), "from 0 to 1");
    else if (tolerance && *tolerance > kUsualTolerance && e.reason.empty() &&
             e.kind == ClaimKind::kPrediction)
      from.report(key, fmt::format("{:g} is more than {:g}", *tolerance, kUsualTolerance),
                  "a reason: such as the error that the publication states");
    return tolerance;
  };
  if (const auto both = map.is_map(kKey) ? map.map(kKey) : std::nullopt) {
    if (!e.is_curve()) map.report(kKey, "several tolerances of one value or range", "one number");
    e.tolerance = read(*both, "worst");
    e.mean_tolerance = read(*both, "mean");
    both->no_other_keys();
  } else {
    e.tolerance = read(map, kKey);
  }
  const bool covers = e.comparison == Comparison::kCovers;
  if (covers && map.has(kKey))
    map.report(kKey, "does not apply to sweep: covers", "none: the sweep reaches both ends or not");
  if (e.tolerance || e.mean_tolerance || covers || map.has(kKey)) return;
  if (e.is_curve() || e.is_value())
    map.report(kKey, "is missing", fmt::format("{:g}, or one with a reason:", kUsualTolerance));
  else
    e.tolerance = 0;  // a range has a width of its own
}

/// REQUIRES: the kind of the source is read.
void read_kind(const YamlMap& map, Expectation& e) {
  const bool cites = e.source_kind && *e.source_kind != SourceKind::kNone;
  if (!cites) e.kind = ClaimKind::kMechanism;
  map.choose("kind", kClaimKindNames, e.kind);
  if (e.kind == ClaimKind::kPrediction && !cites)
    map.report("kind", "a prediction of a number that no publication states",
               "mechanism or identity, or a source_kind");
}

void read_value_or_range(const YamlMap& map, Expectation& e) {
  const bool ranged = map.has("range");
  if (int{ranged} + int{map.has("value")} + int{map.has("published")} != 1) {
    map.report(ranged ? "value" : "range", "exactly one of the three is required",
               "value: …, range: [from, to] or published: {…}");
  }
  if (const auto value = map.optional<double>("value")) e.low = e.high = *value;
  if (!ranged) return;
  const std::vector<double> ends = map.list<double>("range");
  if (ends.size() != 2 || !(ends[0] < ends[1]))
    map.report("range", "is not a range", "[from, to]");
  else
    e.low = ends[0], e.high = ends[1];
  map.choose("sweep", kComparisonNames, e.comparison);
  if (!map.has("sweep"))
    map.report("sweep", "is missing", "the criterion: within, covers or spans");
}

std::string text_of(const Setting& point) {
  if (point.empty()) return "the only point";
  return join(point, ", ", [](const auto& each) { return each.first + " " + each.second; });
}

/// Refuses an expectation about a point that a constant was fitted to.
void refuse_fitted(const YamlMap& map, const Expectation& e, const SweptPoints& swept,
                   std::span<const Fit> fits) {
  const auto is_meant = [&](const Setting& point) {
    if (!e.is_curve()) return is_selected(e.curve.at, point);
    return std::ranges::any_of(e.curve.published, [&](const auto& row) {
      return is_selected(e.curve.points_of(row.first), point);
    });
  };
  for (const Fit& fit : fits) {
    if (fit.measure && *fit.measure != e.measure) continue;
    for (const auto& [value, number] : fit.curve.published)
      for (const Setting& point : swept.points)
        if (is_selected(fit.curve.points_of(value), point) && is_meant(point)) {
          map.report(
              e.is_curve() ? "published" : "measure",
              fmt::format("is compared with {}, on which {} {} fitted", text_of(point),
                          join(fit.constants, ", "), fit.constants.size() == 1 ? "was" : "were"),
              "points on which nothing was fitted",
              e.is_curve() ? "list it under 'fitted' only" : "exclude it by 'at'");
          return;
        }
  }
}

}  // namespace

bool is_selected(const Selection& selection, const Setting& point) {
  return std::ranges::all_of(selection, [&](const auto& wanted) {
    return std::ranges::any_of(point, [&](const auto& parameter) {
      return parameter.first == wanted.first &&
             std::ranges::find(wanted.second, parameter.second) != wanted.second.end();
    });
  });
}

Selection Curve::points_of(const std::string& value) const {
  Selection selection = at;
  selection.push_back({over, {value}});
  return selection;
}

Fit read_fit(const YamlMap& map, const SweptPoints& swept) {
  Fit fit{.constants = map.list<std::string>("constants"),
          .measure = read_measure(map, swept),
          .curve = read_curve(map, swept),
          .source = map.optional<std::string>("source").value_or("")};
  if (fit.constants.empty()) map.report("constants", "is missing", "a list of fitted constants");
  if (fit.source.empty() && !map.has("published") && !map.has("over"))
    map.report("published", "is missing",
               "the points on which it was fitted, or source: of other rows");
  if (map.has("at") && !map.has("over"))
    map.report("at", "names points without published values", "over: and published:");
  map.no_other_keys();
  return fit;
}

Expectation read_expectation(const YamlMap& map, const SweptPoints& swept,
                             std::span<const Fit> fits, std::optional<SourceKind> source_kind) {
  Expectation e{.curve = read_curve(map, swept), .source_kind = source_kind, .map = map};
  if (auto measure = read_measure(map, swept))
    e.measure = *measure;
  else if (!map.has("measure"))
    map.report("measure", "is missing", "one of those above");
  e.source = map.optional<std::string>("source").value_or("");
  if (const auto kind = map.choice("source_kind", kSourceKindNames))
    e.source_kind = static_cast<SourceKind>(*kind);
  e.configuration = map.optional<std::string>("configuration").value_or("");
  read_kind(map, e);
  read_value_or_range(map, e);
  read_tolerance(map, e);
  map.no_other_keys();
  refuse_fitted(map, e, swept, fits);
  return e;
}

Selection free_parameters(const Expectation& e, std::span<const Setting> points) {
  std::vector<Selection> described;  // by one published number each
  for (const auto& [value, number] : e.curve.published)
    described.push_back(e.curve.points_of(value));
  if (!e.is_curve()) described = {e.curve.at};
  const auto is_stated = [&](const std::string& name) {
    return std::ranges::any_of(e.curve.at,
                               [&](const auto& stated) { return stated.first == name; });
  };
  Selection free;
  for (std::size_t p = 0; p < points.front().size(); ++p) {
    const std::string& name = points.front()[p].first;
    if (is_stated(name)) continue;
    std::vector<std::string> all;
    for (const Selection& selection : described) {
      std::vector<std::string> values;
      for (const Setting& point : points)
        if (is_selected(selection, point)) add_once(values, point[p].second);
      if (values.size() > 1)
        for (const std::string& value : values) add_once(all, value);
    }
    if (!all.empty()) free.emplace_back(name, std::move(all));
  }
  return free;
}

}  // namespace rehearse::cli
