#include "cli/config/job_costs.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/file.h"
#include "sim/base/named_file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// A quantity above zero.
template <class Q>
std::optional<Q> above_zero(const YamlMap& map, std::string_view key) {
  const std::optional<Q> value = map.optional<Q>(key);
  if (!value || value->si() > 0) return value;
  map.report(key, "is not above zero", "a quantity such as " + to_string(Q::from_si(3600)));
  return std::nullopt;
}

void read_storage(const YamlMap& map, cost::Keeping& keeping) {
  keeping.checkpoint = above_zero<Bytes>(map, "checkpoint");
  keeping.every = above_zero<Seconds>(map, "every");
  keeping.write = above_zero<ByteRate>(map, "write");
  if (const auto restart = map.optional<Seconds>("restart")) {
    if (restart->s() < 0) map.report("restart", "is below zero", "a time such as 5 min");
    keeping.restart = *restart;
  }
  if (const auto keep = map.optional<std::int64_t>("keep")) {
    if (*keep < 1) map.report("keep", "is zero", "at least 1 checkpoint");
    keeping.keep = static_cast<double>(*keep);
  }
  keeping.dataset = above_zero<Bytes>(map, "dataset");
  keeping.fetched = above_zero<Bytes>(map, "fetched");
  map.no_other_keys();
}

Status read_spot(const YamlMap& map, const std::filesystem::path& folder, cost::Keeping& keeping) {
  if (const auto every = above_zero<Seconds>(map, "interrupted_every"))
    keeping.between = {*every, *every, *every, Provenance::kDatasheet};
  const auto log = map.optional<std::string>("lifetimes");
  if (map.has("lifetimes") == map.has("interrupted_every"))
    map.report("interrupted_every", "exactly one of the two is required",
               "interrupted_every: 30 h, or lifetimes: FILE");
  map.no_other_keys();
  if (!log || keeping.between) return {};
  const std::filesystem::path path = TRY(named_file(folder, *log));
  const std::string text = TRY(read_file(path));
  const auto lives = TRY(cost::parse_lifetimes(text, path.string()));
  const Result<Estimate<Seconds>> between = cost::mean_time_between(lives);
  if (!between) {
    Diagnostic d = between.error().diagnostics.front();
    d.file = path.string();
    return fail(std::move(d));
  }
  keeping.between = *between;
  return {};
}

/// The word at the key, or the words of the list there; each once.
std::vector<std::string> words(const YamlMap& map, std::string_view key) {
  std::vector<std::string> all;
  if (map.is_list(key))
    all = map.list<std::string>(key);
  else if (const auto one = map.optional<std::string>(key))
    all = {*one};
  if (map.is_list(key) && all.empty()) map.report(key, "is empty", "one or more names");
  std::vector<std::string> once;
  for (std::string& word : all)
    if (std::ranges::find(once, word) == once.end()) once.push_back(std::move(word));
  return once;
}

Rent read_rent(const YamlMap& root) {
  Rent rent{.providers = words(root, "provider"), .regions = words(root, "region")};
  for (const std::string& word : words(root, "market")) {
    const auto at = std::ranges::find(cost::kMarketKeys, word);
    if (at == std::end(cost::kMarketKeys))
      root.report("market", fmt::format("unknown market '{}'", word),
                  suggest(word, cost::kMarketKeys));
    else
      rent.markets.push_back(static_cast<cost::Market>(at - std::begin(cost::kMarketKeys)));
  }
  return rent;
}

}  // namespace

cost::Place place_of(const YamlMap& root) {
  cost::Place place;
  const auto add = [&](const YamlMap& map) {
    if (const auto instance = map.optional<std::string>("instance"))
      place.rented.push_back(
          {*instance, static_cast<double>(map.optional<std::int64_t>("count").value_or(1))});
    return map.has("instance");
  };
  if (const std::optional<YamlMap> section = root.map("cluster")) {
    add(*section);
    bool all = true;
    if (section->is_list_of_maps("nodes"))
      for (const YamlMap& map : section->maps("nodes")) all &= add(map);
    if (!all) place.rented.clear();  // the price of a part is none of the whole
  }
  return place;
}

Result<JobCosts> read_job_costs(const YamlMap& root, const std::filesystem::path& folder) {
  JobCosts costs{.rent = read_rent(root), .hours = nullptr};
  if (const auto file = root.optional<std::string>("carbon")) {
    cost::CarbonHours hours = TRY(cost::CarbonHours::load(TRY(named_file(folder, *file))));
    costs.hours = std::make_shared<const cost::CarbonHours>(std::move(hours));
  }
  if (const auto map = root.map("storage")) read_storage(*map, costs.keeping);
  if (const auto map = root.map("spot")) TRY(read_spot(*map, folder, costs.keeping));
  return costs;
}

}  // namespace rehearse::cli
