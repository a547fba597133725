#include "cli/check/budget.h"

#include <cmath>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {
namespace {

/// A kind of quantity: how a limit on it is read, shown and explained.
struct Amount {
  Result<double> (*parse)(std::string_view text);
  std::string (*words)(double si);
  const char* example;
};

constexpr Amount kTime = {parse_si<Seconds>, [](double s) { return to_string(Seconds::s(s), 4); },
                          "+2% or 450 ms"};
constexpr Amount kEnergy = {parse_si<Joules>, [](double j) { return to_string(Joules::j(j)); },
                            "+5% or 900 J"};
constexpr Amount kMemory = {parse_si<Bytes>, [](double b) { return to_string(Bytes::b(b)); },
                            "+1% or 76 GiB"};
constexpr Amount kMoney = {parse_si<Usd>, [](double usd) { return to_string(Usd::usd(usd)); },
                           "an amount, such as 3 USD"};

/// A quantity that can be limited by name, and whether the limit is a rise.
struct Subject {
  std::string_view name;
  const Amount* amount;
  Limit::Of of = Limit::Of::kQuantity;
};
constexpr Subject kSubjects[] = {
    {"step_time", &kTime},
    {"compute", &kTime},
    {"exposed_communication", &kTime},
    {"copies", &kTime},
    {"launch_gaps", &kTime},
    {"energy", &kEnergy},
    {"memory", &kMemory},
    {"cost_per_step", &kMoney, Limit::Of::kCostPerStep},
    {"cost_per_epoch", &kMoney, Limit::Of::kCostPerEpoch},
};

/// Reads the limit at one key. Reports a wrong text and returns nothing.
std::optional<Limit> read_limit(const YamlMap& map, const Subject& subject) {
  const std::optional<std::string> text = map.optional<std::string>(subject.name);
  if (!text) return std::nullopt;
  Limit limit{.of = subject.of, .name = std::string(subject.name)};
  const auto wrong = [&](const Error& error) -> std::optional<Limit> {
    map.report(subject.name, error.diagnostics.front().problem, subject.amount->example);
    return std::nullopt;
  };
  if (text->ends_with('%')) {
    if (subject.amount == &kMoney) {
      map.report(subject.name,
                 fmt::format("'{}' is relative: cost is proportional to the step time, which has a "
                             "limit of its own",
                             *text),
                 subject.amount->example, "step_time: " + *text);
      return std::nullopt;
    }
    const Result<double> rise = parse_rise(*text);
    if (!rise) return wrong(rise.error());
    limit.rise = *rise;
    return limit;
  }
  const Result<double> most = subject.amount->parse(*text);
  if (!most) return wrong(most.error());
  if (!(*most > 0)) {
    map.report(subject.name, fmt::format("'{}' allows nothing", *text), subject.amount->example);
    return std::nullopt;
  }
  limit.most = *most;
  return limit;
}

Result<std::vector<Limit>> read_limits(const YamlFile& file) {
  const YamlMap root = file.root();
  std::vector<Limit> limits;
  for (const Subject& subject : kSubjects)
    if (auto limit = read_limit(root, subject)) limits.push_back(std::move(*limit));
  if (const auto ops = root.map("ops"))
    for (const std::string& pattern : ops->keys()) {
      const std::optional<std::string> text = ops->optional<std::string>(pattern);
      if (!text) continue;
      const Result<double> rise = parse_rise(*text);
      if (!rise)
        ops->report(pattern, rise.error().diagnostics.front().problem, "an increase, such as +5%");
      else
        limits.push_back({.of = Limit::Of::kOps, .name = pattern, .rise = *rise});
    }
  root.no_other_keys();
  TRY(file.status());
  return limits;
}

}  // namespace

std::string describe(const Limit& limit) {
  return limit.of == Limit::Of::kOps ? "ops: " + limit.name : limit.name;
}

std::string amount(const Limit& limit, double value) {
  if (limit.of != Limit::Of::kOps)
    for (const Subject& subject : kSubjects)
      if (subject.name == limit.name) return subject.amount->words(value);
  return kTime.words(value);
}

std::string allowed(const Limit& limit) {
  if (limit.most) return amount(limit, *limit.most);
  return fmt::format("+{:g} %", limit.rise.value_or(0) * 100);
}

Result<double> parse_rise(std::string_view text) {
  const std::string_view word = trim(text);
  if (!word.ends_with('%'))
    return fail(fmt::format("'{}' has no unit", word), "a share of the baseline, such as 3%");
  const std::string number(trim(word.substr(0, word.size() - 1)));
  char* end = nullptr;
  const double percent = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !std::isfinite(percent))
    return fail(fmt::format("'{}' is not a percentage", word), "such as 3%");
  if (!(percent > 0 && percent <= 1000))
    return fail(fmt::format("'{}' is out of range", word), "above 0 %, at most 1000 %");
  return percent / 100;
}

Result<std::vector<Limit>> read_budget(const std::filesystem::path& path) {
  return YamlFile::load(path).and_then(read_limits);
}

Result<std::vector<Limit>> parse_budget(const std::string& text, std::string name) {
  return YamlFile::parse(text, std::move(name)).and_then(read_limits);
}

}  // namespace rehearse::cli
