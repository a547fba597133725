#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "cli/study/feed_runs.h"
#include "cli/study/study.h"
#include "models/control/controller.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct ControllerRun {
  control::Controller controller;
  std::string price = "1";                ///< an expression
  std::vector<std::string> choices = {};  ///< as written
  /// Parameters of the point that a choice and a level replace; empty: none, so that the price is an
  /// expression of `choice` and `level` alone.
  std::string knob = {}, follows = {};
  std::vector<Setting> states = {};  ///< what each state replaces
};

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

/// Each state as a setting of parameters: a mapping, or a value of the parameter that follows.
std::vector<Setting> states_in(const YamlMap& map, const std::string& follows) {
  std::vector<Setting> states;
  if (map.is_list_of_maps("of"))
    for (const YamlMap& of : map.maps("of")) {
      Setting& state = states.emplace_back();
      for (const std::string& key : of.keys())
        if (auto value = of.optional<std::string>(key)) state.emplace_back(key, std::move(*value));
      of.no_other_keys();
    }
  else
    for (std::string& value : map.list<std::string>("of"))
      states.push_back({{follows, std::move(value)}});
  if (states.empty()) {
    map.report("of", "has no states", "a list such as [{run: 1}, {run: 50}]");
    states.push_back({});
  }
  return states;
}

control::Context read_states(const YamlMap& map, ControllerRun& run) {
  run.states = states_in(map, run.follows);
  const auto count = static_cast<std::uint32_t>(run.states.size());
  run.controller.states = count;
  if (map.has("each") == map.has("hazard"))
    map.report("", "has no rhythm, or two", "either each or hazard");
  const double hazard = number_in(map, "hazard", 0, 1, 0);
  const auto each = map.within<std::int64_t>("each", 1, 100'000);
  map.no_other_keys();
  if (!each) return control::States{hazard, count};
  control::Recorded recorded;
  for (std::uint32_t state = 1; state <= count; ++state)
    recorded.levels.insert(recorded.levels.end(), static_cast<std::size_t>(*each), state);
  return recorded;
}

control::Context read_context(const YamlMap& map, ControllerRun& run) {
  control::Context context;
  const std::size_t kinds =
      map.has("segments") + map.has("walk") + map.has("recorded") + map.has("states");
  if (kinds != 1)
    map.report("", fmt::format("has {} processes", kinds),
               "one of segments, walk, recorded and states");
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
  } else if (const auto states = map.map("states")) {
    context = read_states(*states, run);
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

/// The index of the choice at the key; 0 if it is absent.
std::size_t choice_in(const YamlMap& map, std::string_view key,
                      const std::vector<std::string>& choices) {
  const auto choice = map.optional<std::string>(key);
  if (!choice) return 0;
  const auto found = std::ranges::find(choices, *choice);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  map.report(key, fmt::format("'{}' is not a choice", *choice),
             suggest(*choice, std::vector<std::string_view>(choices.begin(), choices.end())));
  return 0;
}

/// The name of a parameter of the sweep; empty if the key is absent.
std::string parameter_in(const YamlMap& map, std::string_view key, const Setting& parameters) {
  const auto name = map.optional<std::string>(key);
  if (!name) return {};
  std::vector<std::string_view> known;
  known.reserve(parameters.size());
  for (const auto& [parameter, value] : parameters) known.push_back(parameter);
  if (std::ranges::find(known, *name) == known.end())
    map.report(key, fmt::format("'{}' is not a parameter of the sweep", *name),
               known.empty() ? "sweep: {NAME: [its usual value]}" : suggest(*name, known));
  return *name;
}

/// The price as an expression of these two alone.
control::PriceOf plain_price(const ControllerRun& run) {
  std::vector<Result<Term>> choices;  // prices are asked for many times
  for (const std::string& choice : run.choices)
    choices.push_back(parameter_value("choice", {{"choice", choice}}));
  return [&run, choices](std::size_t choice, double level) -> Result<double> {
    const Vocabulary vocabulary = {
        .name = [&](std::string_view name) -> Result<Term> {
          if (name == "level") return exact_term(level);
          if (name == "choice") return choices[choice];
          return fail(fmt::format("'{}' is not part of a price", name),
                      "choice, level, or a parameter of knob: or follows:");
        },
        .function = [](std::string_view function,
                       std::span<const std::string_view>) -> Result<Term> {
          return fail(fmt::format("'{}' depends on no choice", function),
                      "+ - * / min max, or knob: PARAMETER");
        }};
    return TRY(evaluate(run.price, vocabulary)).estimate.value;
  };
}

/// Prices of parts of the study, measured once at each state or recorded level, or at nine levels of
/// a range, and interpolated between these in logarithms.
class MeasuredPrices {
 public:
  MeasuredPrices(const ControllerRun& run, const PointValues& point) : run_(run), point_(point) {
    if (const auto* recorded = std::get_if<control::Recorded>(&run.controller.context)) {
      levels_ = recorded->levels;
    } else if (run.controller.states > 0) {
      for (std::uint32_t s = 1; s <= run.controller.states; ++s) levels_.push_back(s);
    } else {
      constexpr int kLevels = 9;
      const auto [low, high] = control::range_of(run.controller.context);
      for (int i = 0; i < kLevels; ++i)
        levels_.push_back(low * std::pow(high / low, i / (kLevels - 1.0)));
    }
    std::ranges::sort(levels_);
    levels_.erase(std::unique(levels_.begin(), levels_.end()), levels_.end());
  }

  Result<double> at(std::size_t choice, double level) {
    const auto above = std::lower_bound(levels_.begin(), levels_.end(), level);
    if (above == levels_.end()) return measured(choice, levels_.back());
    if (above == levels_.begin() || *above == level) return measured(choice, *above);
    const double low = *(above - 1);
    const double from = TRY(measured(choice, low)), to = TRY(measured(choice, *above));
    const double share = std::log(level / low) / std::log(*above / low);
    return from * std::pow(to / from, share);
  }

 private:
  Result<double> measured(std::size_t choice, double level) {
    const std::pair<std::size_t, double> key(choice, level);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    Setting replaced;
    if (run_.controller.states > 0)
      replaced = run_.states[static_cast<std::size_t>(level) - 1];
    else if (!run_.follows.empty())
      replaced.emplace_back(run_.follows, fmt::format("{}", level));
    if (!run_.knob.empty()) replaced.emplace_back(run_.knob, run_.choices[choice]);
    const double price = TRY(point_.at(run_.price, replaced));
    if (!(price > 0 && std::isfinite(price)))
      return fail(fmt::format("the price of choice {} is {:g}", run_.choices[choice], price),
                  "a price above 0");
    known_.emplace(key, price);
    return price;
  }

  const ControllerRun& run_;
  const PointValues& point_;
  std::vector<double> levels_;  // ascending
  std::map<std::pair<std::size_t, double>, double> known_;
};

/// Mistakes are recorded in the map's file; the result is then meaningless.
ControllerRun read_controller(const YamlMap& map, const Setting& parameters) {
  ControllerRun run{.controller = {.context = control::Recorded{{1}}}};
  control::Controller& c = run.controller;
  run.price = map.required<std::string>("price").value_or("1");
  run.knob = parameter_in(map, "knob", parameters);
  run.follows = parameter_in(map, "follows", parameters);
  run.choices = map.list<std::string>("choices");
  if (run.choices.empty()) {
    map.report("choices", "are missing", "a list such as [1, 2, 4]");
    run.choices = {"1"};
  }
  c.choices = run.choices.size();
  c.first = choice_in(map, "first", run.choices);
  if (const auto context = map.map("context"))
    c.context = read_context(*context, run);
  else if (!map.has("context"))
    map.report("context", "is missing", "context: {segments: {…}}");
  c.windows =
      static_cast<std::uint32_t>(map.within<std::int64_t>("windows", 1, 1'000'000).value_or(1000));
  c.seed = static_cast<std::uint64_t>(map.within<std::int64_t>("seed", 0, INT64_MAX).value_or(1));
  if (const auto observe = map.map("observe")) {
    c.noise = number_in(*observe, "noise", 0, c.states > 0 ? 1 : 10, 0);
    c.every =
        static_cast<std::uint32_t>(observe->within<std::int64_t>("every", 1, 100'000).value_or(1));
    c.delay =
        static_cast<std::uint32_t>(observe->within<std::int64_t>("delay", 1, 100'000).value_or(1));
    c.cost = number_in(*observe, "cost", 0, kMost, 0);
    observe->no_other_keys();
  }
  read_estimate(map, c.estimate);
  if (c.states > 0 && c.estimate.kind != control::EstimateKind::kLast)
    map.report("estimate", "is of levels, but the context has states", "last");
  for (const YamlMap& row : map.maps("classes")) {
    const double from = number_in(row, "from", 0, kMost, 0);
    if (!c.classes.empty() && from <= c.classes.back().first)
      row.report("from", "is not above that of the class before", "classes in order");
    row.required<std::string>("choice");
    c.classes.emplace_back(from, choice_in(row, "choice", run.choices));
    row.no_other_keys();
  }
  map.no_other_keys();
  return run;
}

/// Fails with one line, also if the price is no expression of what it may depend on.
Result<control::Outcome> outcome_of(const ControllerRun& run, const PointValues& point) {
  if (run.knob.empty() && run.follows.empty() && run.states.empty())
    return control::run(run.controller, plain_price(run));
  MeasuredPrices prices(run, point);
  return control::run(run.controller,
                      [&](std::size_t choice, double level) { return prices.at(choice, level); });
}

}  // namespace

Result<FeedRun> run_controller(const YamlMap& map, const FeedContext& context) {
  const ControllerRun run = read_controller(map, context.point.parameters);
  TRY(map.status());
  const control::Outcome outcome = TRY(outcome_of(run, context.point));
  return [choice = run.choices[outcome.fixed_choice], outcome](std::string_view name) {
    if (name == "fixed_choice") return parameter_value("choice", {{"choice", choice}});
    return Result<Term>(exact(name == "controlled_price" ? outcome.chosen
                              : name == "known_price"    ? outcome.known
                              : name == "fixed_price"    ? outcome.fixed
                                                         : outcome.error));
  };
}

}  // namespace rehearse::cli
