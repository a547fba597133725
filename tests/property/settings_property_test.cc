// Searching the settings of a server: what bounds cut, and what is shared, decides no answer.
#include <algorithm>
#include <cmath>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "cli/commands/served_load.h"
#include "cli/config/server_flags.h"
#include "cli/planning/find_settings.h"
#include "sim/base/random.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {
namespace {

using strategies::Figures;

/// A job with few settings under a small random load, with these lines.
ServeFile random_job(std::uint64_t seed, const char* more = "") {
  Random random(seed);
  const auto pick = [&](std::initializer_list<const char*> of) {
    return *(of.begin() + random.below(static_cast<std::uint32_t>(of.size())));
  };
  const std::string framework = pick({"vllm", "sglang", "trtllm"});
  const std::string load = fmt::format(
      "{}, requests: {}, input: {{uniform: [50, {}]}}, output: {}",
      pick({"closed: 12", "closed: 40", "rate: 30 per s", "rate: 200 per s"}),
      30 + random.below(40), 100 + random.below(1500), pick({"1", "{uniform: [2, 40]}", "60"}));
  const std::string text = fmt::format(
      "serve:\n  model: {}\n  framework: {}\n  precision: {{weights: fp8}}\n  flags: {{{}}}\n"
      "  slo: {{{}}}\n  load: {{{}}}\n{}"
      "cluster: {{device: {}, devices_per_node: 4, nodes: {}}}\n",
      pick({"llama3_8b", "gpt_oss_20b", "qwen3_32b"}), framework,
      framework == "trtllm" ? pick({"chunked_prefill: true", "max_num_tokens: 2048"})
                            : pick({"max_num_seqs: 16", "prefix_cache: false"}),
      pick({"ttft: 300 ms", "tpot: 8 ms", "ttft: 1 s, tpot: 15 ms", "end_to_end: 100 s"}), load,
      more, pick({"h100_sxm5_80", "b200_sxm_180"}), 1 + random.below(2));
  const Result<YamlFile> file = YamlFile::parse(text, "job");
  REQUIRE(file);
  Result<ServeFile> job = read_serve(file->root(), ".");
  INFO(text << (job ? "" : to_string(job.error())));
  REQUIRE(job);
  return std::move(*job);
}

/// Every setting, run as `simulate` runs it.
std::vector<FoundSetting> exhaustive(const ServeFile& file) {
  const Result<ServerSpace> space = server_space(file);
  REQUIRE(space);
  std::vector<FoundSetting> all;
  for (const ServerSetting& setting : space->settings) {
    ServeFile job = file;
    set(job, setting);
    const Result<ServedLoad> load = serve(job);
    REQUIRE(load);
    const double count = static_cast<double>(file.requests.size());
    const double within = static_cast<double>(kept(*job.slo, load->replicas[0]));
    if (1 - within / count > 1 - kHeldShare) continue;
    const double devices = static_cast<double>(job.devices);
    Figures f = {};
    f[slot(ServerFigure::kPerRequest)] = load->measures[0].duration * devices / within;
    f[slot(ServerFigure::kPerToken)] =
        load->measures[0].duration * devices / load->measures[0].output_tokens;
    f[slot(ServerFigure::kTpot)] = load->mean_tpot().value.s();
    f[slot(ServerFigure::kTtft)] = load->ttft(&serving::Spread::mean).value.s();
    f[slot(ServerFigure::kMissed)] = 1 - within / count;
    all.push_back({setting, f});
  }
  return all;
}

bool beats(const Figures& a, const Figures& b) {
  const auto x = slot(ServerFigure::kTpot), y = slot(ServerFigure::kPerToken);
  return a[x] <= b[x] && a[y] <= b[y] && (a[x] < b[x] || a[y] < b[y]);
}

bool has(const std::vector<FoundSetting>& list, const Figures& figures) {
  return std::any_of(list.begin(), list.end(),
                     [&](const FoundSetting& s) { return s.figures == figures; });
}

/// Searches by an objective that follows from the seed, and compares the answer with every setting.
std::optional<FoundSettings> checked_search(const ServeFile& job, std::uint64_t seed) {
  INFO("seed " << seed);
  const auto objective = static_cast<ServerObjective>(seed % 3);
  constexpr std::size_t kSlots[] = {slot(ServerFigure::kPerRequest), slot(ServerFigure::kTpot),
                                    slot(ServerFigure::kTtft)};
  const std::size_t by = kSlots[static_cast<std::size_t>(objective)];
  const std::vector<FoundSetting> all = exhaustive(job);
  Result<FoundSettings> found =
      find_settings(job, {.objective = objective, .keep = 1, .search = {.threads = 2}});
  REQUIRE(found.has_value() == !all.empty());
  if (!found) return std::nullopt;
  // The best, and figures that are those of `simulate`.
  double least = INFINITY;
  for (const FoundSetting& each : all) least = std::min(least, each.figures[by]);
  CHECK(found->best.front().figures[by] == least);
  for (const FoundSetting& each : found->best) CHECK(has(all, each.figures));
  // The front: no more and no less.
  for (const FoundSetting& each : found->front)
    CHECK(std::none_of(all.begin(), all.end(), [&](const FoundSetting& other) {
      return beats(other.figures, each.figures);
    }));
  for (const FoundSetting& each : all) {
    const bool beaten = std::any_of(all.begin(), all.end(), [&](const FoundSetting& other) {
      return beats(other.figures, each.figures);
    });
    const bool shown =
        std::any_of(found->front.begin(), found->front.end(), [&](const FoundSetting& s) {
          return s.figures[slot(ServerFigure::kTpot)] == each.figures[slot(ServerFigure::kTpot)] &&
                 s.figures[slot(ServerFigure::kPerToken)] ==
                     each.figures[slot(ServerFigure::kPerToken)];
        });
    CHECK(shown == !beaten);
  }
  return std::move(*found);
}

}  // namespace

TEST_CASE("settings: a search finds what running every setting finds") {
  std::size_t found_some = 0, skipped = 0, runs = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const ServeFile job = random_job(seed);
    const std::optional<FoundSettings> found = checked_search(job, seed);
    if (!found) continue;
    ++found_some;
    runs += found->evaluated;
    skipped += server_space(job)->settings.size() - found->evaluated;
  }
  CHECK(found_some > 6);
  CHECK(skipped * 20 > runs);  // of spaces that are hardly larger than the first round of runs
}

TEST_CASE("settings: bounds hold where a step gives several tokens") {
  for (std::uint64_t seed = 31; seed <= 34; ++seed)
    checked_search(random_job(seed, "  speculation: {draft_tokens: 3, mean: 2.5}\n"), seed);
}

TEST_CASE("settings: a search of the split finds what running every split finds") {
  for (std::uint64_t seed = 51; seed <= 56; ++seed) {
    const ServeFile job =
        random_job(seed, "  prefill: {plan: {expert: 1}, transfer: {rate: 20 GB/s, by: layer}}\n");
    const Result<ServerSpace> space = server_space(job);
    REQUIRE(space);
    for (const ServerSetting& setting : space->settings) {
      REQUIRE(setting.prefill);
      REQUIRE(devices_of(setting) <= job.in_cluster);
    }
    checked_search(job, seed);
  }
}

// Llama 3 8B has 32 heads and 32 layers. On two GPUs: one, two replicas, two stages, two tensor ranks. 12
// requests of at most 1,000 + 1 tokens fill 12,012 tokens and 12 rows: 512 to 16,384 tokens are six powers
// of two, and 8 and 16 rows are the two up to the first that holds 12. Two replicas have 6 requests each:
// 6,006 tokens are held by 8,192 (five powers), and 6 rows by 8 (one).
TEST_CASE("settings: the space of two GPUs") {
  const Result<YamlFile> file = YamlFile::parse(
      "serve:\n  model: llama3_8b\n  load: {closed: 12, requests: 24, input: 1000, output: 20}\n"
      "cluster: {device: h100_sxm5_80, devices_per_node: 2, nodes: 1}\n",
      "job");
  REQUIRE(file);
  const Result<ServeFile> job = read_serve(file->root(), ".");
  REQUIRE(job);
  const Result<ServerSpace> space = server_space(*job);
  REQUIRE(space);
  CHECK(space->seen == 3 * 6 * 2 + 5 * 1);
  CHECK(space->settings.size() == space->seen);
  CHECK(space->left_out.empty());
}

TEST_CASE("settings: flags in words give the settings back") {
  for (std::uint64_t seed = 20; seed <= 26; ++seed) {
    const ServeFile job = random_job(seed);
    const Result<ServerSpace> space = server_space(job);
    REQUIRE(space);
    const serving::Deployment& d = job.deployment;
    const ServerSettings usual =
        usual_settings(d.framework, d.version, **cluster::find_gpu(d.device));
    for (const ServerSetting& setting : space->settings) {
      std::string text = "flags: {";
      for (const ServerFlag& flag : flags_of(d.framework, usual, {setting.rules, job.memory}))
        text += fmt::format("{}: {}, ", flag.name, flag.value);
      const Result<YamlFile> file = YamlFile::parse(text + "}\n", "flags");
      REQUIRE(file);
      ServerSettings again = usual;
      read_server_flags(*file->root().map("flags"), d.framework, again);
      INFO(text);
      REQUIRE(file->status());
      CHECK(again.rules.tokens_per_step == setting.rules.tokens_per_step);
      CHECK(again.rules.most_rows == setting.rules.most_rows);
      CHECK(again.rules.chunked == setting.rules.chunked);
      CHECK(again.rules.order == setting.rules.order);
      CHECK(again.rules.reserve == setting.rules.reserve);
      CHECK(again.rules.prefix_cache == setting.rules.prefix_cache);
    }
  }
}

}  // namespace rehearse::cli
