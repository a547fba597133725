#include "models/sharing/shipped_pairs.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/sharing/pair_files.h"
#include "sim/base/check.h"
#include "sim/base/yaml.h"

namespace rehearse::sharing {
namespace {

constexpr std::int64_t kVersion = 1;
/// A coefficient is the logarithm of a factor; no factor reaches a hundred.
constexpr double kLargest = 4.6;

std::map<std::string, FamilyBatches> read_families(const YamlMap& root) {
  std::map<std::string, FamilyBatches> families;
  const auto map = root.map("families");
  if (!map) {
    root.report("families", "is missing", "the measured families");
    return families;
  }
  for (const std::string& name : map->keys()) {
    const auto family = map->map(name);
    if (!family) {
      map->report(name, "is not a family", "{middle: …, from: …, to: …}");
      continue;
    }
    FamilyBatches& batches = families[name];
    const auto middle = family->required<double>("middle");
    batches.from = family->required<double>("from").value_or(1);
    batches.to = family->required<double>("to").value_or(1);
    if (!(batches.from > 0 && batches.from <= batches.to))
      family->report("to", "is not a range of batches", "0 < from <= to");
    else if (middle && !(*middle >= batches.from && *middle <= batches.to))
      family->report("middle", "is out of the range", "a batch between from and to");
    else if (middle)
      batches.mean_log2 = std::log2(*middle);
    family->no_other_keys();
  }
  return families;
}

std::map<std::string, double> read_terms(const YamlMap& root) {
  std::map<std::string, double> terms;
  const auto map = root.map("terms");
  if (!map) {
    root.report("terms", "is missing", "coefficients by the name of their term");
    return terms;
  }
  for (const std::string& name : map->keys()) {
    const auto value = map->optional<double>(name);
    if (value && !(std::abs(*value) <= kLargest))
      map->report(name, fmt::format("{} is out of range", *value), "-4.6 to 4.6");
    else if (value)
      terms[name] = *value;
  }
  return terms;
}

}  // namespace

Result<ShippedPairs> parse_shipped_pairs(const std::string& text, std::string name) {
  const YamlFile file = TRY(YamlFile::parse(text, std::move(name)));
  const YamlMap root = file.root();
  ShippedPairs pairs;
  const auto version = root.required<std::int64_t>("pairs");
  if (version && *version != kVersion)
    root.report("pairs", fmt::format("version {}", *version), fmt::format("{}", kVersion));
  pairs.device = root.required<std::string>("device").value_or("");
  pairs.also = root.list<std::string>("also");
  double residual = 0;
  if (const auto fitted = root.map("fitted")) {
    pairs.source = fitted->required<std::string>("source").value_or("");
    pairs.rows_used = fitted->required<std::string>("rows_used").value_or("");
    pairs.date = fitted->required<std::string>("date").value_or("");
    const auto rows = fitted->required<std::int64_t>("rows");
    if (rows && *rows < 0) fitted->report("rows", "is below 0");
    pairs.rows = static_cast<std::size_t>(std::max<std::int64_t>(0, rows.value_or(0)));
    residual = fitted->required<double>("residual").value_or(0);
    pairs.left_out = fitted->required<double>("left_out").value_or(0);
    for (const auto& [key, error] : {std::pair("residual", residual), {"left_out", pairs.left_out}})
      if (!(error >= 0)) fitted->report(key, "is below 0");
    pairs.step_from = fitted->required<Seconds>("step_from").value_or(Seconds::s(0));
    pairs.step_to = fitted->required<Seconds>("step_to").value_or(Seconds::s(0));
    fitted->no_other_keys();
  } else {
    root.report("fitted", "is missing", "source, date and errors of the fit");
  }
  auto families = read_families(root);
  auto terms = read_terms(root);
  root.no_other_keys();
  TRY(file.status());
  pairs.law = std::make_shared<PairLaw>(std::move(families), std::move(terms), residual);
  return pairs;
}

const std::vector<ShippedPairs>& shipped_pairs() {
  static const std::vector<ShippedPairs> kAll = [] {
    std::vector<ShippedPairs> all;
    for (const std::string_view text : pair_files::all()) {
      Result<ShippedPairs> read = parse_shipped_pairs(std::string(text), "shipped pairs");
      REHEARSE_CHECK(read.has_value(), "{}", to_string(read.error()));
      all.push_back(std::move(*read));
    }
    return all;
  }();
  return kAll;
}

const ShippedPairs* find_shipped_pairs(std::string_view device) {
  for (const ShippedPairs& pairs : shipped_pairs())
    if (pairs.device == device || std::ranges::find(pairs.also, device) != pairs.also.end())
      return &pairs;
  return nullptr;
}

}  // namespace rehearse::sharing
