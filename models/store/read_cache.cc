#include "models/store/read_cache.h"

#include <cmath>

#include <fmt/core.h>

#include "models/store/read_graph.h"
#include "models/store/read_parts.h"
#include "sim/base/file.h"
#include "sim/base/named_file.h"

namespace rehearse::store {
namespace {

enum class Kind { kZipf, kGraph, kEpochs, kSequential, kRuns, kRecorded };
constexpr std::string_view kKinds[] = {"zipf", "graph", "epochs", "sequential", "runs", "recorded"};
constexpr double kMostSimulated = 2e8;
constexpr std::int64_t kMostReadahead = 1'000'000;

/// The share at a key, from 0 to 1.
std::optional<double> share_at(const YamlMap& map, std::string_view key) {
  const auto share = map.optional<double>(key);
  if (!share || (*share >= 0 && *share <= 1)) return share;
  map.report(key, fmt::format("{:g} of the keys", *share), "0 to 1");
  return std::nullopt;
}

/// The time at a key.
Seconds time_at(const YamlMap& map, std::string_view key) {
  const Seconds time = map.required<Seconds>(key).value_or(Seconds::s(0));
  if (!(time.s() >= 0 && time.s() <= 1000)) map.report(key, "is out of range", "0 to 1000 s");
  return time;
}

/// `before` other streams of this kind have already been drawn; random keys differ from theirs.
KeyStream read_stream(const YamlMap& map, const std::filesystem::path& folder,
                      std::uint32_t before) {
  KeyStream stream{.keys = 1};
  const auto kind = map.choice("kind", kKinds);
  if (!kind) {
    if (!map.has("kind"))
      map.report("kind", "is missing", "zipf, graph, epochs, sequential, runs, recorded");
    return stream;
  }
  if (static_cast<Kind>(*kind) == Kind::kRecorded) {
    const auto file = map.required<std::string>("file");
    const Result<std::string> text =
        file ? named_file(folder, *file).and_then([](const auto& path) { return read_file(path); })
             : Result<std::string>(std::string("0"));
    if (!text)
      map.report("file", text.error().diagnostics.front().problem);
    else
      stream = taken(map, "file", recorded_keys(*text, file.value_or("")), stream);
    return stream;
  }
  if (static_cast<Kind>(*kind) == Kind::kGraph && map.has("file"))
    return read_recorded_sampled(map, folder, before);
  Shape shape{.keys = count_in(map, "keys", 1'000'000'000),
              .batch = count_in(map, "batch", 1'000'000'000),
              .batches = count_in(map, "batches", 100'000'000)};
  const std::uint64_t seed = count_in(map, "seed", 0xffff'ffff, 1);
  shape.seed = nth_seed(seed, before);
  std::vector<std::uint32_t> fan_out;
  std::uint32_t degree = 1;
  double of_batch = shape.batch;
  if (static_cast<Kind>(*kind) == Kind::kEpochs) of_batch = shape.keys;
  if (static_cast<Kind>(*kind) == Kind::kGraph) {
    fan_out = read_fan_out(map);
    for (const std::uint32_t fan : fan_out) of_batch *= 1 + static_cast<double>(fan);
    degree = count_in(map, "degree", 1'000'000'000);
    of_batch = std::min(of_batch, static_cast<double>(shape.keys));
  }
  if (of_batch * shape.batches > kMostSimulated || shape.keys > kMostSimulated) {
    map.report("batches",
               fmt::format("{:.3g} accesses to {} keys", of_batch * shape.batches, shape.keys),
               fmt::format("{:g} at most", kMostSimulated), "a smaller copy of all sizes");
    return stream;
  }
  if (!map.status()) return stream;
  switch (static_cast<Kind>(*kind)) {
    case Kind::kZipf: return zipf_stream(shape, exponent_of(map, shape.keys));
    case Kind::kGraph:
      return read_sampled(map,
                          {.keys = shape.keys,
                           .degree = degree,
                           .exponent = exponent_of(map, shape.keys),
                           .seed = seed},
                          shape, fan_out);
    case Kind::kEpochs:
      if (const auto share = share_at(map, "reordered")) {
        const double compared =
            static_cast<double>(shape.batches) * shape.batches * *share * shape.keys;
        if (compared > kMostSimulated)
          map.report("batches", fmt::format("{:.3g} comparisons of epochs by keys", compared),
                     fmt::format("{:g} at most", kMostSimulated), "a smaller copy of all sizes");
        else
          return reordered(epoch_permutations(shape),
                           static_cast<std::uint32_t>(std::llround(*share * shape.keys)));
      }
      return epoch_permutations(shape);
    case Kind::kSequential:
      return sequential(shape, map.optional<bool>("backward").value_or(false) ? -1 : 1);
    case Kind::kRuns:
      return runs(shape, count_in(map, "run", shape.keys),
                  map.optional<bool>("backward").value_or(false));
    case Kind::kRecorded: break;
  }
  return stream;
}

/// Segments one after another, repeated `times`.
KeyStream read_segments(const YamlMap& map, const std::filesystem::path& folder) {
  const std::vector<YamlMap> segments = map.maps("segments");
  const std::uint32_t times = count_in(map, "times", 10'000, 1);
  if (!map.status()) return KeyStream{.keys = 1};
  std::vector<KeyStream> streams;
  for (std::uint32_t round = 0; round < times; ++round) {
    double accesses = 0;
    for (const YamlMap& segment : segments) {
      // Each segment draws its own numbers; otherwise two equal ones would request the same keys.
      KeyStream stream = read_stream(segment, folder, static_cast<std::uint32_t>(streams.size()));
      segment.no_other_keys();
      if (segment.choice("kind", kKinds) == static_cast<std::size_t>(Kind::kRecorded))
        segment.report("kind", "has other keys", "segments of the same keys");
      if (!streams.empty() && stream.keys != streams.front().keys)
        segment.report(
            "keys", fmt::format("{}, of the first segment {}", stream.keys, streams.front().keys));
      accesses += static_cast<double>(stream.accesses.size());
      streams.push_back(std::move(stream));
    }
    if (accesses * times > kMostSimulated)
      map.report("times", fmt::format("{:.3g} accesses", accesses * times),
                 fmt::format("{:g} at most", kMostSimulated), "a smaller copy of all sizes");
    if (!map.status()) return KeyStream{.keys = 1};
  }
  if (!streams.empty()) return in_turn(streams);
  map.report("segments", "is empty", "segments: [{kind: runs, …}, …]");
  return KeyStream{.keys = 1};
}

KeyStream read_whole_stream(const YamlMap& map, const std::filesystem::path& folder) {
  KeyStream stream = map.has("segments") ? read_segments(map, folder) : read_stream(map, folder, 0);
  if (map.optional<bool>("unique").value_or(false)) stream = unique_in_batches(stream);
  if (map.optional<bool>("scattered").value_or(false)) stream = scattered(stream, 1);
  map.no_other_keys();
  return stream;
}

Drive read_drive(const YamlMap& map, std::optional<Bytes> unit) {
  Drive drive{.latency = time_at(map, "latency"),
              .rate = map.required<ByteRate>("rate").value_or(ByteRate::bytes_per_s(1)),
              .unit = unit.value_or(Bytes::b(1))};
  if (!(drive.rate.bytes_per_s() > 0)) map.report("rate", "is out of range", "above 0");
  map.no_other_keys();
  return drive;
}

Prefetch read_prefetch(const YamlMap& map) {
  Prefetch prefetch{.step = time_at(map, "step"), .read = time_at(map, "read")};
  prefetch.ahead = count_in(map, "ahead", 1'000'000'000, {}, 0);
  if (map.has("write")) prefetch.write = time_at(map, "write");
  map.no_other_keys();
  return prefetch;
}

}  // namespace

CacheRun read_cache(const YamlMap& map, const std::filesystem::path& folder) {
  CacheRun read;
  if (const auto stream = map.map("stream"))
    read.stream = read_whole_stream(*stream, folder);
  else if (!map.has("stream"))
    map.report("stream", "is missing", "stream: {kind: zipf, …}");
  std::optional<Bytes> unit;
  if (map.has("item") || map.has("page") || map.has("drive")) {
    unit = map.required<Bytes>("item");
    if (unit && !(unit->b() >= 1)) map.report("item", "is out of range", "1 B at least");
    if (const auto page = map.optional<Bytes>("page"); page && unit) {
      const double most = std::max(double(read.stream.accesses.size()), double(read.stream.keys));
      if (*unit / *page * most > kMostSimulated)
        map.report("page", "is so small that items lie on too many",
                   fmt::format("at most {:g} pages and accesses", kMostSimulated));
      else
        read.stream = taken(map, "page", pages_of(read.stream, *unit, *page), read.stream);
      unit = page;
    }
  }
  map.choose("policy", kPolicyNames, read.cache.policy);
  if (!map.has("share")) map.report("share", "is missing", "a share of the keys, 0 to 1");
  if (const auto share = share_at(map, "share"))
    read.cache.capacity = static_cast<std::uint32_t>(std::llround(*share * read.stream.keys));
  read.cache.batches = count_in(map, "sees", 1'000'000'000, kAllBatches);
  read.cache.readahead = count_in(map, "readahead", kMostReadahead, 1);
  read.cache.around = map.optional<bool>("around").value_or(false);
  if (const auto drive = map.map("drive")) read.drive = read_drive(*drive, unit);
  if (const auto prefetch = map.map("prefetch")) read.prefetch = read_prefetch(*prefetch);
  if (const auto first = map.optional<std::int64_t>("from_batch")) {
    if (*first < 0 ||
        static_cast<std::size_t>(*first) >= std::max<std::size_t>(read.stream.batches(), 1))
      map.report("from_batch", fmt::format("{} of {} batches", *first, read.stream.batches()));
    else
      read.first = static_cast<std::size_t>(*first);
  }
  map.no_other_keys();
  return read;
}

}  // namespace rehearse::store
