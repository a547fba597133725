#include "cli/study/study.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "cli/config/fidelity_names.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

constexpr std::string_view kExpect = "expect";
constexpr double kMostPoints = 100'000;

bool is_name(std::string_view text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') && std::ranges::all_of(text, is_word);
}

std::vector<std::string> names_in(const YamlMap& map) {
  std::vector<std::string> names = map.keys();
  for (const std::string& name : names)
    if (!is_name(name))
      map.report(name, "is not a valid name", "letters, digits and _, starting with a letter");
  return names;
}

/// One axis: a list of values of the parameter of that name, or a list of mappings that all set the
/// same parameters.
std::vector<Setting> read_axis(const YamlMap& sweep, const std::string& name) {
  std::vector<Setting> settings;
  if (!sweep.is_list_of_maps(name)) {
    for (std::string& value : sweep.list<std::string>(name))
      settings.push_back({{name, std::move(value)}});
    if (settings.empty()) sweep.report(name, "has no values", "a list such as [4, 8]");
    return settings;
  }
  for (const YamlMap& map : sweep.maps(name)) {
    Setting setting;
    for (const std::string& key : names_in(map))
      if (auto value = map.optional<std::string>(key)) setting.emplace_back(key, std::move(*value));
    const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (!settings.empty() && !std::equal(setting.begin(), setting.end(), settings[0].begin(),
                                         settings[0].end(), same_key))
      sweep.report(name, "has mappings of different keys", "the same keys in the same order");
    map.no_other_keys();
    settings.push_back(std::move(setting));
  }
  return settings;
}

std::vector<std::vector<Setting>> read_sweep(const YamlMap& sweep) {
  std::vector<std::vector<Setting>> axes;
  std::vector<std::string> known;
  for (const std::string& name : names_in(sweep)) {
    std::vector<Setting> axis = read_axis(sweep, name);
    if (axis.empty()) continue;
    for (const auto& [key, value] : axis[0]) {
      if (std::ranges::find(known, key) != known.end())
        sweep.report(name, fmt::format("sets '{}', which another axis sets", key));
      known.push_back(key);
    }
    axes.push_back(std::move(axis));
  }
  sweep.no_other_keys();
  double points = 1;
  for (const std::vector<Setting>& axis : axes) points *= static_cast<double>(axis.size());
  if (points > kMostPoints) {
    sweep.report("", fmt::format("{:.3g} points", points), fmt::format("{:g} at most", kMostPoints),
                 "a list of mappings that set several parameters");
    return {};
  }
  return axes;
}

/// `parameters` are those of the first point.
std::vector<Measure> read_measures(const YamlMap& map, const std::vector<JobTemplate>& jobs,
                                   const std::vector<FeedTemplate>& feeds,
                                   const Setting& parameters) {
  std::vector<Measure> measures;
  for (const std::string& name : names_in(map)) {
    const auto expression = map.optional<std::string>(name);
    if (!expression) continue;
    const Measured any = {
        .of = [](Observed, std::size_t) { return exact_term(1).estimate; },
        .crossover = [](std::span<const std::size_t>) -> Result<Estimate<double>> {
          return exact_term(1).estimate;
        },
        .feed = [&](std::string_view function,
                    std::string_view feed) { return feed_unit(feeds, function, feed); },
        .parameter = [&](std::string_view parameter) -> Result<Term> {
          const auto is_it = [&](const auto& known) { return known.first == parameter; };
          if (std::ranges::none_of(parameters, is_it))
            return fail(fmt::format("'{}' is not a parameter", parameter),
                        "such as step_time(JOB)");
          return parameter_value(parameter, parameters);
        }};
    if (const Result<Term> ok = measure(*expression, jobs, any); !ok) {
      const Diagnostic& d = ok.error().diagnostics.front();
      map.report(name, d.problem, d.expected, d.nearest);
    }
    measures.push_back({name, *expression});
  }
  map.no_other_keys();
  if (measures.empty()) map.report("", "measures nothing", "such as speed_up: step_time(a) / …");
  return measures;
}

/// "8" for 8, not "8.0".
std::string number_text(double value) {
  if (value == std::round(value) && std::abs(value) < 1e15)
    return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{}", value);
}

Result<std::string> parameter(std::string_view name, const Setting& parameters) {
  std::vector<std::string_view> known;
  for (const auto& [key, value] : parameters) {
    if (key == name) return value;
    known.push_back(key);
  }
  if (known.empty())
    return fail(fmt::format("no parameter '{}'", name), "a parameter of the sweep");
  return fail(fmt::format("unknown parameter '{}'", name), suggest(name, known));
}

Result<std::string> value_of(std::string_view expression, const Setting& parameters) {
  const Vocabulary vocabulary = {
      .name = [&](std::string_view name) { return parameter_value(name, parameters); },
      .function = [](std::string_view function, std::span<const std::string_view>) -> Result<Term> {
        return fail(fmt::format("'{}' is not a function of parameters", function), "+ - * /");
      }};
  const Term term = TRY(evaluate(expression, vocabulary));
  const std::string number = number_text(term.estimate.value);
  return term.unit.empty() ? number : number + " " + term.unit;
}

/// The parenthesis that closes the one at `open`; npos where none does.
std::size_t closing(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return at;
  }
  return std::string::npos;
}

}  // namespace

Result<Term> parameter_value(std::string_view name, const Setting& parameters) {
  const std::string text = TRY(parameter(name, parameters));
  if (std::optional<Term> term = quantity_term(text)) return *term;
  return fail(fmt::format("parameter '{}' is '{}'", name, text), "a number");
}

Result<Term> measure(const std::string& expression, const std::vector<JobTemplate>& jobs,
                     const Measured& measured) {
  std::vector<std::string_view> known;
  known.reserve(jobs.size());
  for (const JobTemplate& job : jobs) known.push_back(job.name);
  const auto index = [](const auto& names, std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(names, name) - std::begin(names));
  };
  const Vocabulary vocabulary = {
      .name = measured.parameter,
      .function = [&](std::string_view name, std::span<const std::string_view> of) -> Result<Term> {
        constexpr std::string_view kCrossover = "crossover";
        if (of.size() == 1)
          if (std::optional<Result<Term>> term = measured.feed(name, of[0])) return *term;
        const std::size_t quantity = index(kQuantityNames, name);
        if (quantity == std::size(kQuantityNames) && name != kCrossover) {
          std::vector<std::string_view> names(std::begin(kQuantityNames), std::end(kQuantityNames));
          names.push_back(kCrossover);
          for (const std::string_view function : feed_functions()) names.push_back(function);
          return fail(fmt::format("unknown quantity '{}'", name), suggest(name, names));
        }
        std::vector<std::size_t> of_jobs;
        for (const std::string_view job : of) {
          of_jobs.push_back(index(known, job));
          if (of_jobs.back() == known.size())
            return fail(
                fmt::format("unknown job '{}'", job),
                known.empty() ? "a job of training; the study has none" : suggest(job, known));
        }
        if (name == kCrossover) {
          const Estimate<double> gain = TRY(measured.crossover(of_jobs));
          return Term{gain};
        }
        if (of_jobs.size() != 1)
          return fail(fmt::format("'{}' takes one job, not {}", name, of_jobs.size()), "one job");
        const Estimate<double> value =
            TRY(measured.of(static_cast<Observed>(quantity), of_jobs[0]));
        return Term{value, std::string(kQuantityUnits[quantity])};
      }};
  return evaluate(expression, vocabulary);
}

Result<std::string> fill_in(const std::string& text, const Setting& parameters) {
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      filled += text[at++];
      continue;
    }
    const std::size_t from = at + 1;
    std::size_t to = from;
    Result<std::string> value;
    if (from < text.size() && text[from] == '(') {
      to = closing(text, from);
      if (to == std::string::npos) return fail(fmt::format("'{}' lacks a ')'", text));
      value = value_of(std::string_view(text).substr(from + 1, to - from - 1), parameters);
      ++to;
    } else {
      while (to < text.size() && is_name(std::string_view(text).substr(from, to + 1 - from))) ++to;
      value = parameter(std::string_view(text).substr(from, to - from), parameters);
    }
    if (!value) return value;
    filled += *value;
    at = to;
  }
  return filled;
}

Result<sharing::Links> links_of(const std::string& text) {
  const auto* found =
      std::find(std::begin(sharing::kLinksNames), std::end(sharing::kLinksNames), text);
  if (found == std::end(sharing::kLinksNames))
    return fail(Diagnostic{.problem = fmt::format("unknown division '{}'", text),
                           .nearest = suggest(text, sharing::kLinksNames)});
  return static_cast<sharing::Links>(found - std::begin(sharing::kLinksNames));
}

std::vector<Setting> points_of(const Study& study) {
  std::vector<Setting> points = {{}};
  for (const std::vector<Setting>& axis : study.axes) {
    std::vector<Setting> longer;
    for (const Setting& point : points)
      for (const Setting& setting : axis) {
        longer.push_back(point);
        longer.back().insert(longer.back().end(), setting.begin(), setting.end());
      }
    points = std::move(longer);
  }
  return points;
}

Result<Study> load_study(const std::filesystem::path& path) {
  std::string text = TRY(read_file(path));
  return read_study(path, std::move(text));
}

Result<Study> read_study(const std::filesystem::path& path, std::string text) {
  const YamlFile file = TRY(YamlFile::parse(text, path.string()));
  const YamlMap root = file.root();
  Study study{.path = path, .text = std::move(text)};
  study.name = root.required<std::string>("name").value_or("");
  study.source = root.required<std::string>("source").value_or("");
  study.system = root.optional<std::string>("system").value_or(study.name);
  study.about = root.optional<std::string>("about").value_or("");
  study.assumed = root.list<std::string>("assumed");
  root.choose("fidelity", kFidelityNames, study.fidelity);
  if (auto links = root.optional<std::string>("links")) {
    study.links = std::move(*links);
    if (study.links.find('$') == std::string::npos)
      if (const Result<sharing::Links> known = links_of(study.links); !known) {
        const Diagnostic& d = known.error().diagnostics.front();
        root.report("links", d.problem, d.expected, d.nearest);
      }
  }
  const auto section = [&](std::string_view key, std::string_view expected) {
    std::optional<YamlMap> map = root.map(key);
    if (!map && !root.has(key)) root.report(key, "is missing", std::string(expected));
    return map;
  };

  if (const auto sweep = root.map("sweep")) study.axes = read_sweep(*sweep);
  const std::optional<YamlMap> base = root.map("base");
  study.feeds = read_feeds(root);
  std::optional<YamlMap> of_jobs;
  if (study.feeds.empty() || root.has("jobs")) of_jobs = section("jobs", "jobs: {NAME: {…}}");
  if (const auto& jobs = of_jobs) {
    bool any = false;
    for (const std::string& name : names_in(*jobs))
      if (const auto job = jobs->map(name)) {
        const YamlMap whole = base ? job->over(*base) : *job;
        any = true;
        if (std::optional<FeedTemplate> feed = job_feed(name, whole))
          study.feeds.push_back(std::move(*feed));
        else
          study.jobs.push_back({name, whole});
      }
    jobs->no_other_keys();
    if (!any) root.report("jobs", "contains no job", "jobs: {NAME: {…}}");
  }
  const std::vector<Setting> points = points_of(study);
  const Setting first = points.empty() ? Setting{} : points.front();
  if (const auto measure = section("measure", "such as {speed_up: step_time(a) / step_time(b)}"))
    study.measures = read_measures(*measure, study.jobs, study.feeds, first);
  if (const auto kind = root.choice("source_kind", kSourceKindNames))
    study.source_kind = static_cast<SourceKind>(*kind);
  std::vector<std::string_view> measures;
  for (const Measure& measure : study.measures) measures.push_back(measure.name);
  study.front = root.list<std::string>("front");
  for (const std::string& name : study.front)
    if (std::ranges::find(measures, name) == measures.end())
      root.report("front", fmt::format("unknown measure '{}'", name), suggest(name, measures));
  if (!study.front.empty() && study.front.size() != 2)
    root.report("front", fmt::format("{} measures", study.front.size()), "two measures");
  const SweptPoints swept{.measures = measures, .points = points};
  for (const YamlMap& fit : root.maps("fitted")) study.fits.push_back(read_fit(fit, swept));
  if (root.is_list(kExpect)) {
    for (const YamlMap& expect : root.maps(kExpect))
      study.expectations.push_back(read_expectation(expect, swept, study.fits, study.source_kind));
    if (study.expectations.empty()) root.report(kExpect, "expects nothing", "- {measure: …, …}");
  } else if (const auto expect = section(kExpect, "{measure: …, value: …, tolerance: …}")) {
    study.expectations.push_back(read_expectation(*expect, swept, study.fits, study.source_kind));
  }
  root.no_other_keys();
  TRY(file.status());
  return study;
}

}  // namespace rehearse::cli
