#include "cli/check/budget.h"

#include <array>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {
namespace {

enum class AmountKind { kTime, kEnergy, kMemory, kMoney };

/// A quantity that can be limited by name, and whether the limit is a rise.
struct Subject {
  std::string_view name;
  AmountKind kind;
  Limit::Of of = Limit::Of::kQuantity;
};
constexpr std::array<Subject, 9> kSubjects = {{
    {"step_time", AmountKind::kTime},
    {"compute", AmountKind::kTime},
    {"exposed_communication", AmountKind::kTime},
    {"copies", AmountKind::kTime},
    {"launch_gaps", AmountKind::kTime},
    {"energy", AmountKind::kEnergy},
    {"memory", AmountKind::kMemory},
    {"cost_per_step", AmountKind::kMoney, Limit::Of::kCostPerStep},
    {"cost_per_epoch", AmountKind::kMoney, Limit::Of::kCostPerEpoch},
}};

const Subject* subject_of(std::string_view name) {
  for (const Subject& subject : kSubjects)
    if (subject.name == name) return &subject;
  return nullptr;
}

std::string_view example(AmountKind kind) {
  constexpr std::string_view kExamples[] = {"+2% or 450 ms", "+5% or 900 J", "+1% or 76 GiB",
                                            "an amount, such as 3 USD"};
  return kExamples[static_cast<int>(kind)];
}

Result<double> parse_amount(AmountKind kind, std::string_view text) {
  const auto si = [](const auto& parsed) -> Result<double> {
    if (!parsed) return forward(parsed);
    return parsed->si();
  };
  switch (kind) {
    case AmountKind::kTime:
      return si(parse_quantity<Seconds>(text));
    case AmountKind::kEnergy:
      return si(parse_quantity<Joules>(text));
    case AmountKind::kMemory:
      return si(parse_quantity<Bytes>(text));
    case AmountKind::kMoney:
      return si(parse_quantity<Usd>(text));
  }
  return fail("unknown");
}

/// Reads the limit at one key. Reports a wrong text and returns nothing.
std::optional<Limit> read_limit(const YamlMap& map, const Subject& subject) {
  const std::optional<std::string> text = map.optional<std::string>(subject.name);
  if (!text) return std::nullopt;
  Limit limit{.of = subject.of, .name = std::string(subject.name)};
  const auto wrong = [&](const Error& error) -> std::optional<Limit> {
    map.report(subject.name, error.diagnostics.front().problem, std::string(example(subject.kind)));
    return std::nullopt;
  };
  if (text->ends_with('%')) {
    if (subject.kind == AmountKind::kMoney) {
      map.report(subject.name,
                 fmt::format("'{}' is relative: cost is proportional to the step time, which has a "
                             "limit of its own",
                             *text),
                 std::string(example(subject.kind)), "step_time: " + *text);
      return std::nullopt;
    }
    const Result<double> rise = parse_rise(*text);
    if (!rise) return wrong(rise.error());
    limit.rise = *rise;
    return limit;
  }
  const Result<double> most = parse_amount(subject.kind, *text);
  if (!most) return wrong(most.error());
  if (!(*most > 0)) {
    map.report(subject.name, fmt::format("'{}' allows nothing", *text),
               std::string(example(subject.kind)));
    return std::nullopt;
  }
  limit.most = *most;
  return limit;
}

Result<std::vector<Limit>> read(const YamlFile& file) {
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
  if (Status ok = file.status(); !ok) return forward(ok);
  return limits;
}

}  // namespace

std::string describe(const Limit& limit) {
  return limit.of == Limit::Of::kOps ? "ops: " + limit.name : limit.name;
}

std::string amount(const Limit& limit, double value) {
  const Subject* subject = subject_of(limit.name);
  switch (subject && limit.of != Limit::Of::kOps ? subject->kind : AmountKind::kTime) {
    case AmountKind::kEnergy:
      return to_string(Joules::j(value));
    case AmountKind::kMemory:
      return to_string(Bytes::b(value));
    case AmountKind::kMoney:
      return to_string(Usd::usd(value));
    case AmountKind::kTime:
      break;
  }
  return to_string(Seconds::s(value), 4);
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
  const Result<YamlFile> file = YamlFile::load(path);
  if (!file) return forward(file);
  return read(*file);
}

Result<std::vector<Limit>> parse_budget(const std::string& text, std::string name) {
  const Result<YamlFile> file = YamlFile::parse(text, std::move(name));
  if (!file) return forward(file);
  return read(*file);
}

}  // namespace rehearse::cli
