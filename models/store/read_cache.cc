#include "models/store/read_cache.h"

#include <cmath>

#include <fmt/core.h>

#include "models/store/read_graph.h"
#include "models/store/read_parts.h"
#include "sim/base/file.h"

namespace rehearse::store {
namespace {

enum class Kind { kZipf, kGraph, kEpochs, kSequential, kRecorded };
constexpr std::string_view kKinds[] = {"zipf", "graph", "epochs", "sequential", "recorded"};
constexpr double kMostSimulated = 2e8;

KeyStream read_stream(const YamlMap& map, const std::filesystem::path& folder) {
  KeyStream stream{.keys = 1};
  const auto kind = map.choice("kind", kKinds);
  if (!kind) {
    if (!map.has("kind"))
      map.report("kind", "is missing", "zipf, graph, epochs, sequential, recorded");
    return stream;
  }
  if (static_cast<Kind>(*kind) == Kind::kRecorded) {
    const auto file = map.required<std::string>("file");
    const Result<std::string> text =
        file ? read_file(folder / *file) : Result<std::string>(std::string("0"));
    if (!text)
      map.report("file", text.error().diagnostics.front().problem);
    else
      stream = taken(map, "file", recorded_keys(*text, file.value_or("")), stream);
    return stream;
  }
  if (static_cast<Kind>(*kind) == Kind::kGraph && map.has("file"))
    return read_recorded_sampled(map, folder);
  Shape shape{.keys = count_in(map, "keys", 1'000'000'000),
              .batch = count_in(map, "batch", 1'000'000'000),
              .batches = count_in(map, "batches", 100'000'000),
              .seed = count_in(map, "seed", 0xffff'ffff, 1)};
  Sampling sampling{.fan_out = {}, .degree = 1, .exponent = 0};
  double of_batch = shape.batch;
  if (static_cast<Kind>(*kind) == Kind::kEpochs) of_batch = shape.keys;
  if (static_cast<Kind>(*kind) == Kind::kGraph) {
    sampling.fan_out = read_fan_out(map);
    for (const std::uint32_t fan_out : sampling.fan_out)
      of_batch *= 1 + static_cast<double>(fan_out);
    sampling.degree = count_in(map, "degree", 1'000'000'000);
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
    case Kind::kZipf:
      return zipf_stream(shape, exponent_of(map, shape.keys));
    case Kind::kGraph:
      sampling.exponent = exponent_of(map, shape.keys);
      return read_sampled(map,
                          {.keys = shape.keys,
                           .degree = sampling.degree,
                           .exponent = sampling.exponent,
                           .seed = shape.seed},
                          shape, sampling.fan_out);
    case Kind::kEpochs:
      return epoch_permutations(shape);
    case Kind::kSequential:
      return sequential(shape, map.optional<bool>("backward").value_or(false) ? -1 : 1);
    case Kind::kRecorded:
      break;
  }
  return stream;
}

}  // namespace

CacheRun read_cache(const YamlMap& map, const std::filesystem::path& folder) {
  CacheRun read;
  if (const auto stream = map.map("stream")) {
    read.stream = read_stream(*stream, folder);
    if (stream->optional<bool>("unique").value_or(false))
      read.stream = unique_in_batches(read.stream);
    if (stream->optional<bool>("scattered").value_or(false))
      read.stream = scattered(read.stream, 1);
    stream->no_other_keys();
  } else if (!map.has("stream")) {
    map.report("stream", "is missing", "stream: {kind: zipf, …}");
  }
  if (map.has("item") || map.has("page")) {
    const auto item = map.required<Bytes>("item"), page = map.required<Bytes>("page");
    const double most = std::max(double(read.stream.accesses.size()), double(read.stream.keys));
    if (item && page && *item / *page * most > kMostSimulated)
      map.report("page", "is so small that items lie on too many",
                 fmt::format("{:g} pages, and accesses to them, at most", kMostSimulated));
    else if (item && page)
      read.stream = taken(map, "page", pages_of(read.stream, *item, *page), read.stream);
  }
  map.choose("policy", kPolicyNames, read.cache.policy);
  const auto share = map.required<double>("share");
  if (share && !(*share >= 0 && *share <= 1))
    map.report("share", fmt::format("{:g} of the keys", *share), "0 to 1");
  else if (share)
    read.cache.capacity = static_cast<std::uint32_t>(std::llround(*share * read.stream.keys));
  read.cache.batches = count_in(map, "sees", 1'000'000'000, kAllBatches);
  read.cache.readahead = count_in(map, "readahead", 1'000'000, 1);
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
