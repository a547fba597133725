#include "cli/study/controller_values.h"

#include <cmath>

#include <fmt/core.h>

#include "cli/study/expression.h"

namespace rehearse::cli {
namespace {

constexpr double kLeast = 1e-12, kMost = 1e12;

double number_in(const YamlMap& map, std::string_view key, double least, double most,
                 double absent) {
  return map.within<double>(key, least, most).value_or(absent);
}

struct Range {
  double low, high;
};
/// Both ends are required, of a context; those of a belief have defaults.
Range range_in(const YamlMap& map) {
  const double low = number_in(map, "low", kLeast, kMost, 1),
               high = number_in(map, "high", kLeast, kMost, 1);
  for (const std::string_view key : {"low", "high"})
    if (!map.has(key)) map.report(key, "is missing", "a number above 0");
  if (low > high) map.report("low", fmt::format("{:g} is above high, {:g}", low, high));
  return {low, high};
}

control::Context read_context(const YamlMap& map) {
  control::Context context;
  const std::size_t kinds = map.has("segments") + map.has("walk") + map.has("recorded");
  if (kinds != 1)
    map.report("", fmt::format("has {} processes", kinds), "one of segments, walk and recorded");
  if (const auto segments = map.map("segments")) {
    const Range range = range_in(*segments);
    segments->required<double>("hazard");
    context = control::Segments{number_in(*segments, "hazard", 0, 1, 0), range.low, range.high};
    segments->no_other_keys();
  } else if (const auto walk = map.map("walk")) {
    const Range range = range_in(*walk);
    walk->required<double>("step");
    context = control::Walk{number_in(*walk, "step", 0, 100, 0), range.low, range.high};
    walk->no_other_keys();
  } else {
    control::Recorded recorded{map.list<double>("recorded")};
    for (const double level : recorded.levels)
      if (!(level >= kLeast && level <= kMost))
        map.report("recorded", fmt::format("{:g} is out of range", level), "a number above 0");
    if (recorded.levels.empty()) {
      if (map.has("recorded")) map.report("recorded", "has no levels", "a list such as [10, 1]");
      recorded.levels = {1};
    }
    context = std::move(recorded);
  }
  map.no_other_keys();
  return context;
}

void read_estimate(const YamlMap& map, control::EstimateRule& rule) {
  constexpr std::string_view kKinds[] = {"last", "window", "exponential", "belief"};
  if (!map.is_map("estimate")) {
    map.choose("estimate", std::span(kKinds).first<1>(), rule.kind);
    return;
  }
  const YamlMap how = *map.map("estimate");
  if (how.has("window")) {
    rule.kind = control::EstimateKind::kWindow;
    rule.windows =
        static_cast<std::uint32_t>(how.within<std::int64_t>("window", 1, 100'000).value_or(1));
  } else if (how.has("exponential")) {
    rule.kind = control::EstimateKind::kExponential;
    rule.share = number_in(how, "exponential", 1e-6, 1, 1);
  } else if (const auto belief = how.map("belief")) {
    rule.kind = control::EstimateKind::kBelief;
    const Range range = range_in(*belief);
    rule.hazard = number_in(*belief, "hazard", 0, 1, 0);
    rule.noise = number_in(*belief, "noise", 0, 100, 0);
    rule.mean = (std::log(range.low) + std::log(range.high)) / 2;
    rule.spread = (std::log(range.high) - std::log(range.low)) / std::sqrt(12.0);
    for (const std::string_view key : {"hazard", "noise"})
      if (!belief->has(key)) belief->report(key, "is missing", "a number from 0");
    belief->no_other_keys();
  } else if (!how.has("belief")) {
    map.report("estimate", "is none", "last, {window: 8}, {exponential: 0.2} or {belief: {…}}");
  }
  how.no_other_keys();
}

}  // namespace

ControllerRun read_controller(const YamlMap& map) {
  ControllerRun run{.controller = {.context = control::Recorded{{1}}, .first = 1}};
  control::Controller& c = run.controller;
  run.price = map.required<std::string>("price").value_or("1");
  c.choices = map.list<double>("choices");
  if (c.choices.empty()) {
    map.report("choices", "are missing", "a list such as [1, 2, 4]");
    c.choices = {1};
  }
  c.first = map.optional<double>("first").value_or(c.choices.front());
  if (const auto context = map.map("context"))
    c.context = read_context(*context);
  else if (!map.has("context"))
    map.report("context", "is missing", "context: {segments: {…}}");
  c.windows =
      static_cast<std::uint32_t>(map.within<std::int64_t>("windows", 1, 1'000'000).value_or(1000));
  c.seed = static_cast<std::uint64_t>(map.within<std::int64_t>("seed", 0, INT64_MAX).value_or(1));
  if (const auto observe = map.map("observe")) {
    c.noise = number_in(*observe, "noise", 0, 10, 0);
    c.every =
        static_cast<std::uint32_t>(observe->within<std::int64_t>("every", 1, 100'000).value_or(1));
    c.delay =
        static_cast<std::uint32_t>(observe->within<std::int64_t>("delay", 1, 100'000).value_or(1));
    c.cost = number_in(*observe, "cost", 0, kMost, 0);
    observe->no_other_keys();
  }
  read_estimate(map, c.estimate);
  for (const YamlMap& row : map.maps("classes")) {
    const double from = number_in(row, "from", 0, kMost, 0);
    if (!c.classes.empty() && from <= c.classes.back().first)
      row.report("from", "is not above that of the class before", "classes in order");
    c.classes.emplace_back(from, row.required<double>("choice").value_or(1));
    row.no_other_keys();
  }
  map.no_other_keys();
  return run;
}

Result<control::Outcome> run_controller(const ControllerRun& run) {
  return control::run(run.controller, [&](double choice, double level) -> Result<double> {
    const Vocabulary vocabulary = {
        .name = [&](std::string_view name) -> Result<Term> {
          if (name == "choice") return exact_term(choice);
          if (name == "level") return exact_term(level);
          return fail(fmt::format("'{}' is not part of a price", name), "choice or level");
        },
        .function = [](std::string_view function,
                       std::span<const std::string_view>) -> Result<Term> {
          return fail(fmt::format("'{}' is not a function of prices", function), "+ - * / min max");
        }};
    return TRY(evaluate(run.price, vocabulary)).estimate.value;
  });
}

}  // namespace rehearse::cli
