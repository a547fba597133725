#include "cli/config/serve_load.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "cli/config/request_trace.h"
#include "sim/base/named_file.h"
#include "sim/base/text.h"
#include "sim/serving/load.h"

namespace rehearse::cli {
namespace {

constexpr std::int64_t kMostTokens = 100'000'000, kMostDrawn = 10'000'000;
constexpr double kMostRate = 1e9;  // requests per second

/// A number, {uniform: [least, most]}, or {median: …, sigma: …, most: …}.
serving::Lengths read_lengths(const YamlMap& load, std::string_view key,
                              std::int64_t most = kMostTokens) {
  serving::Lengths lengths;
  if (!load.is_map(key)) {
    const auto fixed = load.within<std::int64_t>(key, 1, most);
    return {fixed.value_or(1), fixed.value_or(1)};
  }
  const YamlMap map = *load.map(key);
  if (const auto median = map.within<double>("median", 1, static_cast<double>(most))) {
    lengths.median = *median;
    lengths.sigma = map.within<double>("sigma", 0.01, 5).value_or(1);
    const auto least_end = static_cast<std::int64_t>(std::ceil(*median));
    lengths.most = map.within<std::int64_t>("most", least_end, most).value_or(most);
    for (const char* needed : {"sigma", "most"})
      if (!map.has(needed)) map.report(needed, "is missing", "{median: 300, sigma: 1, most: 4096}");
    map.no_other_keys();
    return lengths;
  }
  const std::vector<std::int64_t> ends = map.list<std::int64_t>("uniform");
  if (ends.size() == 2 && 1 <= ends[0] && ends[0] <= ends[1] && ends[1] <= most)
    lengths = {ends[0], ends[1]};
  else if (!map.has("median"))
    map.report("uniform", "is no range of numbers", fmt::format("[least, most], 1 to {}", most));
  map.no_other_keys();
  return lengths;
}

/// "2 per s", "2/s", or 2.
std::optional<double> read_rate(const YamlMap& load) {
  const std::optional<std::string> text = load.optional<std::string>("rate");
  if (!text) return std::nullopt;
  double rate = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), rate);
  const std::string_view unit =
      trim(std::string_view(*text).substr(static_cast<std::size_t>(end - text->data())));
  if (error != std::errc() || !(unit.empty() || unit == "per s" || unit == "/s"))
    load.report("rate", fmt::format("'{}' is no rate", *text), "requests per second: 2 per s");
  else if (!(rate > 0 && rate <= kMostRate))
    load.report("rate", fmt::format("'{}' is out of range", *text), "above 0, at most 1e9 per s");
  else
    return rate;
  return std::nullopt;
}

serving::Arrivals read_arrivals(const YamlMap& load) {
  serving::Arrivals arrivals{.rate = read_rate(load).value_or(1)};
  const Seconds longest = Seconds::s(90 * 86'400);
  if (const auto shape = load.within<double>("shape", 0.01, 100)) arrivals.shape = *shape;
  if (const auto swing = load.within<double>("swing", 0, 1)) {
    arrivals.swing = *swing;
    arrivals.period =
        duration_in(load, "period", Seconds::s(1), longest).value_or(Seconds::s(86'400));
  }
  if (const auto map = load.map("bursts")) {
    const auto length = duration_in(*map, "length", Seconds::ms(100), longest),
               pause = duration_in(*map, "pause", Seconds::ms(100), longest);
    for (const char* needed : {"length", "pause"})
      if (!map->has(needed)) map->report(needed, "is missing", "{length: 10 s, pause: 60 s}");
    const double quiet = map->within<double>("quiet", 0, 1).value_or(0);
    if (length && pause) arrivals.bursts = {*length, *pause, quiet};
    map->no_other_keys();
  }
  return arrivals;
}

/// A time, or {exponential: mean}.
void read_think(const YamlMap& load, serving::Load& into) {
  const Seconds day = Seconds::s(86'400);
  into.random_think = load.is_map("think");
  if (!into.random_think) {
    into.think = duration_in(load, "think", Seconds::s(0), day).value_or(Seconds::s(0));
    return;
  }
  const YamlMap map = *load.map("think");
  into.think = duration_in(map, "exponential", Seconds::s(0), day).value_or(Seconds::s(0));
  if (!map.has("exponential")) map.report("exponential", "is missing", "{exponential: 2 s}");
  map.no_other_keys();
}

/// Shares of the priorities, and a deadline of all or one for each of them.
void read_classes(const YamlMap& load, serving::Load& into) {
  into.classes = load.list<double>("priorities");
  if (load.has("priorities")) {
    const double sum = std::accumulate(into.classes.begin(), into.classes.end(), 0.0);
    if (into.classes.empty() || into.classes.size() > 100 || !(std::abs(sum - 1) < 1e-6) ||
        std::ranges::any_of(into.classes, [](double share) { return !(share >= 0); }))
      load.report("priorities", "are no shares of the requests",
                  "a share of each priority from 0 on, with the sum 1: [0.2, 0.8]");
  }
  if (load.is_list("deadline"))
    into.deadlines = load.list<Seconds>("deadline");
  else if (const auto one = load.optional<Seconds>("deadline"))
    into.deadlines = {*one};
  const auto wrong = [](Seconds time) {
    return !(Seconds::ms(1) <= time && time <= Seconds::s(86'400));
  };
  if (std::ranges::any_of(into.deadlines, wrong))
    load.report("deadline", "is out of range", "1 ms to 1 day");
  if (into.deadlines.size() > 1 && into.deadlines.size() != into.classes.size())
    load.report(
        "deadline",
        fmt::format("{} deadlines for {} priorities", into.deadlines.size(), into.classes.size()),
        "one time, or a list with one for each of the `priorities`");
}

/// All prompts begin with the same tokens. Whole blocks of them are one part of each prompt's prefix; the later
/// parts of conversations have names too, so that a part is then a block.
void share_beginning(std::int64_t tokens, ServeFile& file) {
  const bool turns =
      std::ranges::any_of(file.requests, [](const serving::Request& r) { return r.follows; });
  serving::Rules& prompts = file.prefill ? file.prefill->rules : file.rules;
  std::vector<std::uint64_t> names = {0};
  if (turns) {
    names.resize(static_cast<std::size_t>(tokens / prompts.block_tokens));
    std::iota(names.begin(), names.end(), 0);
  } else if (tokens >= prompts.block_tokens) {
    prompts.prefix_tokens = tokens / prompts.block_tokens * prompts.block_tokens;
  } else {
    prompts.prefix_cache = false;
  }
  for (serving::Request& request : file.requests)
    if (!request.follows) request.prefix = names;
}

/// Requests that are drawn, in a closed loop or at a rate.
Status draw_requests(const YamlMap& load, const std::filesystem::path& folder, ServeFile& file) {
  serving::Load drawn;
  if (!file.closed) drawn.arrivals = read_arrivals(load);
  drawn.turns = read_lengths(load, "turns", 1000);
  read_think(load, drawn);
  if (!file.closed && load.has("think") && !load.has("turns"))
    load.report("think", "has no turn to wait for", "turns: 4, or a closed loop");
  read_classes(load, drawn);
  const std::int64_t most = file.in_flight * (drawn.turns.most > 1 ? drawn.turns.most : 1);
  const auto count = load.within<std::int64_t>("requests", 1, kMostDrawn)
                         .value_or(file.closed ? std::min(kMostDrawn, 10 * most) : 1000);
  drawn.count = static_cast<std::size_t>(count);
  const auto seed = load.within<std::int64_t>("seed", 0, 1'000'000'000).value_or(1);
  std::int64_t shortest = 1;
  if (const auto pairs = load.optional<std::string>("lengths")) {
    const RequestTrace read = TRY(named_file(folder, *pairs).and_then(load_requests));
    shortest = kMostTokens;
    for (const serving::Request& request : read.requests) {
      drawn.pairs.emplace_back(request.input, request.output);
      shortest = std::min(shortest, request.input);
    }
    for (const char* other : {"input", "output"})
      if (load.has(other)) load.report(other, "is given by `lengths`", "one of the two");
  } else {
    for (const char* needed : {"input", "output"})
      if (!load.has(needed)) load.report(needed, "is missing", "tokens, or {uniform: [a, b]}");
  }
  drawn.input = read_lengths(load, "input");
  drawn.output = read_lengths(load, "output");
  file.requests = serving::draw(drawn, static_cast<std::uint64_t>(seed));
  if (drawn.pairs.empty()) shortest = drawn.input.least;
  if (const auto shared = load.within<std::int64_t>("shared", 1, shortest))
    share_beginning(*shared, file);
  return {};
}

}  // namespace

std::optional<Seconds> duration_in(const YamlMap& map, std::string_view key, Seconds least,
                                   Seconds most) {
  const auto time = map.optional<Seconds>(key);
  if (!time || (least <= *time && *time <= most)) return time;
  map.report(key, "is out of range", fmt::format("{} to {}", to_string(least), to_string(most)));
  return {};
}

Status read_load(const YamlMap& load, const std::filesystem::path& folder, ServeFile& file) {
  const auto closed = load.within<std::int64_t>("closed", 1, kMostDrawn);
  const auto most = load.within<std::int64_t>("in_flight", 1, kMostDrawn);
  const std::optional<std::string> trace = load.optional<std::string>("trace");
  file.closed = closed.has_value();
  file.in_flight = closed.value_or(most.value_or(0));
  if (load.has("closed") + load.has("rate") + load.has("trace") != 1) {
    load.report("closed", "exactly one kind of load is required",
                "closed: requests in flight, rate: 2 per s, or trace: FILE");
    return {};  // which other keys are known depends on the kind
  }
  if (trace) {
    RequestTrace read = TRY(named_file(folder, *trace).and_then(load_requests));
    file.requests = std::move(read.requests);
    // Names of parts that are no whole number of blocks say nothing about blocks.
    const auto name = [&](serving::Rules& rules) {
      if (!read.prefix_tokens) return;
      if (*read.prefix_tokens % rules.block_tokens == 0)
        rules.prefix_tokens = *read.prefix_tokens;
      else
        rules.prefix_cache = false;
    };
    name(file.rules);
    if (file.prefill) name(file.prefill->rules);
  } else {
    TRY(draw_requests(load, folder, file));
  }
  if (closed && most) load.report("in_flight", "is given by `closed`", "one of the two");
  const bool deadlines = std::ranges::any_of(
      file.requests, [](const serving::Request& r) { return r.deadline > Picoseconds(0); });
  if (load.optional<bool>("drop").value_or(false)) {
    file.rules.drops = true;
    if (!deadlines) load.report("drop", "has no deadline", "deadline: 10 s");
    if (file.prefill)
      load.report("drop", "does not apply to a server with two pools", "one pool, or drop: false");
  }
  if (!file.rules.by_priority && std::ranges::any_of(file.requests, [&](const auto& r) {
        return r.priority != file.requests.front().priority;
      }))
    file.notes.push_back(
        "Priorities change no step: the server takes all requests in order of arrival. `flags: "
        "{scheduling_policy: priority}` of vllm changes that");
  if (const auto warm = load.within<std::int64_t>("warmup", 0, kMostDrawn); warm && *warm > 0)
    file.notes.push_back(fmt::format("{} end before the measured ones begin, and are not measured",
                                     counted(static_cast<std::size_t>(*warm), "warm-up request")));
  load.no_other_keys();
  return {};
}

}  // namespace rehearse::cli
