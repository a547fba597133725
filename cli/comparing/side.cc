#include "cli/comparing/side.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cli/output/attribution.h"
#include "cli/output/json.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using Tree = nlohmann::json;

constexpr std::array kWhole = {
    ComparedField{"throughput", "throughput", &unit::kSamples, true},
    ComparedField{"throughput.tokens_per_s", "throughput", &unit::kTokens, true},
    ComparedField{"tokens_per_s", "tokens", &unit::kTokens, true},
    ComparedField{"step_time", "step time", &unit::kTime},
    ComparedField{"mfu", "MFU", &unit::kShare},
    ComparedField{"memory_per_device", "peak memory", &unit::kSize},
    ComparedField{"energy_per_step", "energy per step", &unit::kEnergy},
    ComparedField{"cost_per_step", "cost per step", &unit::kMoney},
    ComparedField{"carbon_per_step", "carbon per step", &unit::kCarbon},
    ComparedField{"ttft.p50", "TTFT, median", &unit::kTime},
    ComparedField{"ttft.p99", "TTFT, 99th percentile", &unit::kTime},
    ComparedField{"tpot.p50", "TPOT, median", &unit::kTime},
    ComparedField{"end_to_end.p50", "end to end, median", &unit::kTime},
    ComparedField{"end_to_end.p99", "end to end, 99th percentile", &unit::kTime},
    ComparedField{"cost_per_million_tokens", "cost per million tokens", &unit::kMoney},
};

/// The times that add up to a step, by the keys and labels of every document.
const std::vector<ComparedField>& step_parts() {
  static const Value fields = occupancy_fields(program::Occupancy{});
  static const std::vector<std::string> paths = [] {
    std::vector<std::string> all;
    for (const Entry& field : fields.fields())
      if (!field.label.empty()) all.push_back("breakdown." + field.key);
    return all;
  }();
  static const std::vector<ComparedField> fields_of_parts = [] {
    std::vector<ComparedField> all;
    for (const Entry& field : fields.fields())
      if (!field.label.empty()) all.push_back({paths[all.size()], field.label, &unit::kTime});
    return all;
  }();
  return fields_of_parts;
}

/// A quantity as the JSON contract writes it: {"value": …, "low": …, "high": …, "provenance": …}.
std::optional<Quantity> quantity_at(const Tree& root, const ComparedField& field) {
  const Tree* at = &root;
  for (const std::string_view key : split(field.path, '.')) {
    if (!at->is_object() || !at->contains(key)) return std::nullopt;
    at = &at->at(std::string(key));
  }
  if (at->is_object() && at->contains("simulated")) at = &at->at("simulated");  // of `replay`
  const auto number = [&](const char* key) -> std::optional<double> {
    if (!at->is_object() || !at->contains(key) || !at->at(key).is_number()) return std::nullopt;
    const double value = at->at(key);
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  };
  const auto value = number("value");
  if (!value) return std::nullopt;
  Quantity quantity(*value, *field.unit);
  const auto low = number("low"), high = number("high");
  if (low && high && *low <= *value && *value <= *high) quantity.interval = {*low, *high};
  if (at->contains("provenance"))
    for (int p = 0; p <= static_cast<int>(Provenance::kDatasheet); ++p)
      if (at->at("provenance") == to_string(static_cast<Provenance>(p)))
        quantity.provenance = static_cast<Provenance>(p);
  return quantity;
}

Side side_of(std::string name, const Tree& root) {
  Side side{.name = std::move(name)};
  for (const ComparedField& field : whole_fields()) side.whole.push_back(quantity_at(root, field));
  for (const ComparedField& field : part_fields()) side.parts.push_back(quantity_at(root, field));
  if (const auto memory = root.find("memory_per_device"); memory != root.end())
    if (memory->is_object() && memory->contains("verdict") && memory->at("verdict").is_string())
      side.verdict = memory->at("verdict");
  if (const auto methods = root.find("methods"); methods != root.end() && methods->is_array())
    for (const Tree& each : *methods)
      if (each.is_object() && each.contains("name") && each.at("name").is_string())
        if (const auto method = method_named(each.at("name").get<std::string>()))
          side.methods.push_back(*method);
  return side;
}

/// The distance of the ends from the value as factors, as logarithms: down and up.
std::pair<double, double> reach(const Quantity& q) {
  if (!q.interval || q.interval->first <= 0) return {0, 0};
  return {std::log(q.value / q.interval->first), std::log(q.interval->second / q.value)};
}

}  // namespace

std::span<const ComparedField> whole_fields() { return kWhole; }
std::span<const ComparedField> part_fields() { return step_parts(); }

Side side_of(std::string name, const Document& document) {
  return side_of(std::move(name), Tree::parse(json_text(json_of(document))));
}

Result<Side> read_side(const std::filesystem::path& path) {
  const std::string text = TRY(read_file(path));
  const Tree root = Tree::parse(text, nullptr, false);
  Side side = side_of(path.filename().string(), root);
  const bool timed = std::ranges::any_of(side.whole, [](const auto& q) {
    return q && (q->unit == &unit::kTime || q->unit == &unit::kTokens);
  });
  if (!timed)
    return fail(
        Diagnostic{.file = path.string(),
                   .problem = "is not a job, a recording or a saved result with a step time",
                   .expected = "a file that simulate, replay or whatif wrote with "
                               "--format json -o FILE"});
  return side;
}

bool same_results(const Side& a, const Side& b) {
  const auto equal = [](const std::optional<Quantity>& p, const std::optional<Quantity>& q) {
    return p && q ? p->value == q->value && p->interval == q->interval : !p && !q;
  };
  return a.verdict == b.verdict && std::ranges::equal(a.whole, b.whole, equal) &&
         std::ranges::equal(a.parts, b.parts, equal);
}

std::optional<Speedup> speedup(const Side& a, const Side& b) {
  for (std::size_t m = 0; m < kWhole.size(); ++m) {
    const bool rate = kWhole[m].is_rate;
    if (!rate && kWhole[m].path != "step_time") continue;
    if (!a.whole[m] || !b.whole[m] || a.whole[m]->value <= 0 || b.whole[m]->value <= 0) continue;
    const Quantity &slow = rate ? *a.whole[m] : *b.whole[m],
                   &fast = rate ? *b.whole[m] : *a.whole[m];
    const double ratio = fast.value / slow.value;
    const Provenance provenance = std::max(slow.provenance.value_or(Provenance::kRecorded),
                                           fast.provenance.value_or(Provenance::kRecorded));
    if (same_results(a, b)) return Speedup{{1, 1, 1, provenance}, &kWhole[m]};
    const auto [fast_down, fast_up] = reach(fast);
    const auto [slow_down, slow_up] = reach(slow);
    return Speedup{{ratio, ratio * std::exp(-std::hypot(fast_down, slow_up)),
                    ratio * std::exp(std::hypot(fast_up, slow_down)), provenance},
                   &kWhole[m]};
  }
  return std::nullopt;
}

}  // namespace rehearse::cli
