#include "profiler/ingest/astra_system.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/base/yaml.h"

namespace rehearse::ingest {
namespace {

/// A number from `least` to `most`; `usual` where the key is absent.
double number(const YamlMap& map, std::string_view key, double usual, double least, double most) {
  const double value = map.optional<double>(key).value_or(usual);
  if (value >= least && value <= most) return value;
  map.report(key, fmt::format("{:g} is out of range", value),
             fmt::format("{:g} to {:g}", least, most));
  return usual;
}

/// A key that may have one value alone here; nothing else is simulated.
void only(const YamlMap& map, std::string_view key, std::string_view value) {
  const std::optional<std::string> given = map.optional<std::string>(key);
  if (given && *given != value)
    map.report(key, fmt::format("'{}' is not supported", *given), std::string(value));
}

struct Known {
  std::string_view theirs, ours;
};
constexpr Known kReductions[] = {{"ring", "ring"},
                                 {"oneRing", "ring"},
                                 {"halvingDoubling", "halving_doubling"},
                                 {"oneHalvingDoubling", "halving_doubling"},
                                 {"doubleBinaryTree", "tree"}};
constexpr Known kExchanges[] = {
    {"ring", "pairwise"}, {"oneRing", "pairwise"}, {"direct", "linear"}, {"oneDirect", "linear"}};

/// The one algorithm that a kind has along every dimension, in both words; nothing where it is not
/// given or not supported.
template <std::size_t N>
std::optional<Known> algorithm(const YamlMap& map, std::string_view key, const Known (&known)[N]) {
  std::optional<Known> found;
  for (const std::string& name : map.list<std::string>(key)) {
    const auto* row = std::ranges::find(known, name, &Known::theirs);
    if (row == std::end(known)) {
      map.report(key, fmt::format("'{}' is not supported", name),
                 join(known, ", ", [](const Known& each) { return each.theirs; }));
      return std::nullopt;
    }
    if (found && found->theirs != row->theirs) {
      map.report(key, "other algorithms along other dimensions are not supported",
                 "one name for all dimensions");
      return std::nullopt;
    }
    found = *row;
  }
  return found;
}

AstraSystem read(const YamlMap& map) {
  AstraSystem system;
  constexpr std::string_view kPolicies[] = {"LIFO", "FIFO", "EXPLICIT"};
  system.last_first = map.choice("scheduling-policy", kPolicies) == std::size_t{0};
  only(map, "intra-dimension-scheduling", "FIFO");
  only(map, "inter-dimension-scheduling", "baseline");
  only(map, "active-chunks-per-dimension", "1");
  only(map, "model-shared-bus", "0");
  only(map, "replay-only", "0");
  map.optional<std::string>("trace-enabled");  // what is printed
  map.optional<std::string>("boost-mode");     // how fast it runs
  // Ticks are nanoseconds.
  map.required<double>("endpoint-delay");
  system.endpoint_delay = Seconds::ns(number(map, "endpoint-delay", 0, 0, 1e9));
  map.required<double>("preferred-dataset-splits");
  const double splits = number(map, "preferred-dataset-splits", 1, 1, 1024);
  if (splits != std::floor(splits))
    map.report("preferred-dataset-splits", "is no whole number", "such as 4");
  system.collectives.splits = static_cast<std::uint32_t>(splits);
  constexpr std::string_view kOptimizations[] = {"baseline", "localBWAware"};
  system.collectives.scatters_first =
      map.choice("collective-optimization", kOptimizations) == std::size_t{1};

  std::optional<Known> reduction;
  for (const char* key : {"all-reduce-implementation", "reduce-scatter-implementation",
                          "all-gather-implementation"}) {
    const std::optional<Known> one = algorithm(map, key, kReductions);
    if (one && reduction && one->theirs != reduction->theirs)
      map.report(key,
                 fmt::format("'{}' here and '{}' before are not supported together", one->theirs,
                             reduction->theirs),
                 "one name for all_reduce, reduce_scatter and all_gather");
    if (one) reduction = one;
  }
  const std::optional<Known> exchange = algorithm(map, "all-to-all-implementation", kExchanges);
  if (reduction) system.reduction = reduction->ours;
  if (exchange) system.exchange = exchange->ours;
  const auto one_ring = [](const Known& known) { return known.theirs.starts_with("one"); };
  system.collectives.one_ring = reduction && one_ring(*reduction);
  if (reduction && exchange && one_ring(*reduction) != one_ring(*exchange))
    map.report("all-to-all-implementation",
               fmt::format("'{}' with '{}' for the others is not supported", exchange->theirs,
                           reduction->theirs),
               "all over one logical dimension, or none");

  const double peak = number(map, "peak-perf", 0, 0, 1e9);
  const double memory = number(map, "local-mem-bw", 0, 0, 1e9);
  if (number(map, "roofline-enabled", 0, 0, 1) != 0) {
    for (const auto& [key, value] : {std::pair{"peak-perf", peak}, {"local-mem-bw", memory}})
      if (!(value > 0))
        map.report(key, "is missing", "a number above zero, as roofline-enabled is 1");
    system.peak = FlopRate::flop_per_s(peak * 1e12);
    system.memory = ByteRate::bytes_per_s(memory * 1e9);
  }
  map.no_other_keys();
  return system;
}

Result<AstraSystem> read(const YamlFile& file) {
  const AstraSystem system = read(file.root());
  TRY(file.status());
  return system;
}

}  // namespace

Result<AstraSystem> load_astra_system(const std::filesystem::path& path) {
  return read(TRY(YamlFile::load(path)));
}
Result<AstraSystem> parse_astra_system(const std::string& text, std::string name) {
  return read(TRY(YamlFile::parse(text, std::move(name))));
}

}  // namespace rehearse::ingest
