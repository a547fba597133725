#include "models/input/read_pipeline.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/store/read_cache.h"
#include "sim/base/text.h"
#include "sim/cluster/storage_kinds.h"

namespace rehearse::input {
namespace {

constexpr Seconds kLongest = Seconds::s(1000);

/// A whole number in a range, or `absent`.
std::uint32_t count_in(const YamlMap& map, std::string_view key, std::int64_t least,
                       std::int64_t most, std::uint32_t absent) {
  return static_cast<std::uint32_t>(map.within(key, least, most).value_or(absent));
}

double number_in(const YamlMap& map, std::string_view key, double least, double most,
                 double absent) {
  return map.within(key, least, most).value_or(absent);
}

std::optional<Seconds> time_at(const YamlMap& map, std::string_view key) {
  return map.within(key, Seconds::s(0), kLongest);
}

template <class Q>
std::optional<Q> positive(const YamlMap& map, std::string_view key) {
  const auto value = map.optional<Q>(key);
  if (!value) return std::nullopt;
  if (value->si() >= 1 && value->si() <= 1e18) return value;
  map.report(key, "is out of range",
             fmt::format("{} to {}", rehearse::to_string(Q::from_si(1)),
                         rehearse::to_string(Q::from_si(1e18))));
  return std::nullopt;
}

/// "4 ms", {mean: 4 ms, exponential: 0.1}, {mean: 4 ms, lognormal: 0.5} or {samples: [4 ms, 5 ms]}.
ServiceTime read_time(const YamlMap& map, std::string_view key) {
  ServiceTime time;
  if (!map.is_map(key)) {
    time.mean = time_at(map, key).value_or(Seconds::s(0));
    return time;
  }
  const YamlMap how = *map.map(key);
  if (how.has("samples")) {
    time.samples = how.list<Seconds>("samples");
    double sum = 0;
    for (const Seconds sample : time.samples) {
      if (!(sample >= Seconds::s(0) && sample <= kLongest))
        how.report("samples", rehearse::to_string(sample) + " is out of range", "0 s to 1000 s");
      sum += sample.s();
    }
    if (time.samples.empty())
      how.report("samples", "holds no times", "a list such as [3.1 ms, 2.9 ms]");
    else
      time.mean = Seconds::s(sum / static_cast<double>(time.samples.size()));
  } else {
    how.required<Seconds>("mean");
    time.mean = time_at(how, "mean").value_or(Seconds::s(0));
    time.exponential = number_in(how, "exponential", 0, 1, 0);
    time.lognormal = number_in(how, "lognormal", 0, 3, 0);
    if (how.has("exponential") && how.has("lognormal"))
      how.report("lognormal", "cannot be combined with exponential", "one of the two");
  }
  how.no_other_keys();
  return time;
}

/// The share of reads that memory serves when all of the data is read once an epoch, in a new order
/// each time. It is found by running such a cache on ten thousand keys, from the second epoch on.
double hits_of(const YamlMap& map) {
  const auto memory = map.required<Bytes>("memory"), data = map.required<Bytes>("data");
  store::Cache cache;
  map.choose("policy", store::kPolicyNames, cache.policy);
  if (!memory || !data) return 0;
  if (!(memory->b() >= 0) || !(data->b() >= 1)) {
    map.report("data", "has no size, or negative memory", "memory: 64 GiB, data: 140 GB");
    return 0;
  }
  constexpr std::uint32_t kKeys = 10'000, kBatch = 100;
  const double share = std::min(*memory / *data, 1.0);
  cache.capacity = static_cast<std::uint32_t>(std::llround(share * kKeys));
  const store::KeyStream stream =
      store::epoch_permutations({.keys = kKeys, .batch = kBatch, .batches = 5});
  return store::run(stream, cache)->hit_ratio(kKeys / kBatch);
}

/// The catalog's values for the kind of storage that `like` names.
Source source_like(const YamlMap& map) {
  Source source;
  const auto like = map.optional<std::string>("like");
  if (!like) return source;
  const Result<const cluster::StorageKind*> kind = cluster::find_storage(*like);
  if (!kind) {
    const Diagnostic& what = kind.error().diagnostics.front();
    map.report("like", what.problem, what.expected, what.nearest);
    return source;
  }
  source.latency.mean = (*kind)->latency;
  source.connection = (*kind)->connection;
  source.total = (*kind)->total;
  source.requests_per_s = (*kind)->requests_per_s;
  source.request_price = (*kind)->request_price.value_or(Usd::usd(0));
  return source;
}

Source read_source(const YamlMap& map) {
  Source source = source_like(map);
  source.name = map.required<std::string>("name").value_or("");
  if (map.has("latency")) source.latency = read_time(map, "latency");
  if (map.has("connection")) source.connection = positive<ByteRate>(map, "connection");
  if (map.has("total")) source.total = positive<ByteRate>(map, "total");
  source.request = positive<Bytes>(map, "request");
  source.memory = positive<ByteRate>(map, "memory");
  if (map.has("requests_per_s"))
    source.requests_per_s = number_in(map, "requests_per_s", 1e-3, 1e9, 1);
  if (const auto client = map.map("client")) {
    source.client = read_time(*client, "time");
    source.client_serial = read_time(*client, "serial");
    client->no_other_keys();
  }
  if (map.has("usd_per_1000_requests"))
    source.request_price = Usd::usd(number_in(map, "usd_per_1000_requests", 0, 1e6, 0) / 1000);
  if (map.has("hits") && map.has("cache"))
    map.report("hits", "cannot be combined with a cache, which determines it", "one of the two");
  source.hits = number_in(map, "hits", 0, 1, 0);
  if (const auto cache = map.map("cache")) {
    source.hits = hits_of(*cache);
    cache->no_other_keys();
  }
  map.no_other_keys();
  return source;
}

/// The reads of a cache in front of the source for each take, which is a batch of its keys.
void read_cached(const YamlMap& map, const std::filesystem::path& folder, Stage& stage) {
  const store::CacheRun cached = store::read_cache(map, folder);
  if (cached.prefetch) map.report("prefetch", "belongs to the pipeline", "queue: N of the stage");
  if (!map.status()) return;
  const Result<store::Traffic> traffic = store::run(cached.stream, cached.cache);
  if (!traffic) {
    const Diagnostic& d = traffic.error().diagnostics.front();
    map.report("", d.problem, d.expected, d.nearest);
    return;
  }
  const Bytes unit = stage.bytes;
  double units = 0;
  for (std::size_t b = cached.first; b < traffic->batches.size(); ++b) {
    const auto of_batch =
        static_cast<double>(traffic->batches[b].reads + traffic->batches[b].fills);
    stage.reads.push_back(unit * of_batch);
    units += of_batch;
  }
  stage.bytes = unit * (units / static_cast<double>(stage.reads.size()));
}

void read_read(const YamlMap& map, const std::vector<Source>& sources,
               const std::filesystem::path& folder, Stage& stage) {
  std::vector<std::string_view> names;
  names.reserve(sources.size());
  for (const Source& source : sources) names.push_back(source.name);
  const auto from = map.required<std::string>("from");
  const auto bytes = map.required<Bytes>("bytes");
  if (from) {
    const auto at = std::ranges::find(names, *from);
    if (at == names.end())
      map.report("from", fmt::format("'{}' is not a source of this file", *from),
                 names.empty() ? "sources: [{name: …}]" : "",
                 names.empty() ? "" : suggest(*from, names));
    else
      stage.source = static_cast<std::size_t>(at - names.begin());
  }
  if (bytes) {
    if (!(bytes->b() >= 0 && bytes->b() <= 1e15))
      map.report("bytes", "is out of range", "0 B to 1e15 B");
    else
      stage.bytes = *bytes;
    if (const auto cache = map.map("cache")) read_cached(*cache, folder, stage);
    Bytes most = stage.bytes;
    for (const Bytes read : stage.reads) most = std::max(most, read);
    // The requests of a read are drawn one by one, so very many are refused.
    if (stage.source && sources[*stage.source].request &&
        most / *sources[*stage.source].request > 1e4)
      map.report("bytes", "is more than 10000 requests of its source", {}, "a larger request");
  }
  map.no_other_keys();
}

Stage read_stage(const YamlMap& map, const std::vector<Source>& sources,
                 const std::filesystem::path& folder) {
  Stage stage{.name = map.required<std::string>("name").value_or(""),
              .workers = count_in(map, "workers", 1, 4096, 1),
              .threads = count_in(map, "threads", 1, 4096, 1),
              .time = read_time(map, "time"),
              .serial = read_time(map, "serial"),
              .visits = number_in(map, "visits", 1e-6, 1000, 1),
              .batch = count_in(map, "batch", 1, 1'000'000, 1),
              .split = count_in(map, "split", 1, 1'000'000, 1),
              .shuffle = count_in(map, "shuffle", 0, 10'000'000, 0),
              .ordered = map.optional<bool>("ordered").value_or(true),
              .start_up = time_at(map, "start_up").value_or(Seconds::s(0)),
              .worker_memory = positive<Bytes>(map, "worker_memory").value_or(Bytes::b(0)),
              .unit = positive<Bytes>(map, "unit")};
  stage.most_workers = std::max(stage.workers, 64U);
  stage.most_threads = stage.threads;
  if (const auto most = map.map("most")) {
    stage.most_workers = count_in(*most, "workers", stage.workers, 4096, stage.most_workers);
    stage.most_threads = count_in(*most, "threads", stage.threads, 4096, stage.most_threads);
    most->no_other_keys();
  }
  if (map.has("queue")) stage.queue = count_in(map, "queue", 0, 10'000'000, 0);
  if (stage.workers > 4096 / stage.threads)
    map.report("threads", fmt::format("{} × {} threads", stage.workers, stage.threads),
               "at most 4096 per stage");
  if (const auto read = map.map("read")) read_read(*read, sources, folder, stage);
  map.no_other_keys();
  return stage;
}

Host read_host(const YamlMap& map) {
  map.required<std::int64_t>("cores");
  Host host{.cores = count_in(map, "cores", 1, 4096, 1),
            .loaded = number_in(map, "loaded", 0.05, 1, 1),
            .smt = number_in(map, "smt", 0.5, 2, 1),
            .memory = positive<Bytes>(map, "memory"),
            .numa = count_in(map, "numa", 1, 64, 1),
            .pinned = map.optional<bool>("pinned").value_or(false)};
  if (host.cores % host.numa != 0)
    map.report("numa", fmt::format("{} cores on {} nodes", host.cores, host.numa),
               "a multiple of the nodes");
  if (host.pinned && host.numa > 1)
    map.report("numa", "cannot be combined with pinned: a pinned thread stays on its node",
               "one of the two");
  map.no_other_keys();
  return host;
}

/// The samples of a round must be distinguishable up to the barrier, and abandoned samples must
/// leave no work unfinished.
void check_rounds(const YamlMap& map, const Pipeline& pipeline, const Loop& loop) {
  const auto refuse = [&](const Stage& stage, std::string_view what, std::string_view expected) {
    map.report("late", fmt::format("'{}' {}", stage.name, what), std::string(expected));
  };
  const Stage& last = pipeline.stages.back();
  if (last.slots() != 1 || last.split != 1 || last.visits != 1 || last.shuffle != 0)
    refuse(last, "is the barrier, and may only take whole batches one at a time",
           "one worker, no split, no shuffle, no visits");
  if (pipeline.stages.size() < 2) refuse(last, "is the only stage", "workers before the barrier");
  for (std::size_t i = 0; i + 1 < pipeline.stages.size(); ++i) {
    const Stage& stage = pipeline.stages[i];
    if (stage.batch != 1 || stage.split != 1 || stage.visits != 1 || stage.shuffle != 0)
      refuse(stage, "does not process samples one by one",
             "no batch, split, shuffle or visits before the last stage");
    if (i + 2 == pipeline.stages.size() && stage.ordered && stage.slots() > 1)
      refuse(stage, "delivers its units in order, so that none is late", "ordered: false");
    if (loop.late != Late::kAbandoned) continue;
    if (stage.source &&
        (pipeline.sources[*stage.source].total || pipeline.sources[*stage.source].requests_per_s))
      refuse(stage, "shares a source, which cannot abandon requests", "late: finished");
  }
  if (loop.late == Late::kAbandoned && pipeline.host)
    map.report("late", "abandoned work would keep using the host", "no host", "finished");
  if (loop.in_flight < last.batch)
    map.report("in_flight", fmt::format("{} of a batch of {}", loop.in_flight, last.batch),
               fmt::format("{} or more", last.batch));
  if (loop.quorum && *loop.quorum > last.batch)
    map.report("quorum", fmt::format("{} of a batch of {}", *loop.quorum, last.batch),
               fmt::format("{} or fewer", last.batch));
}

/// REQUIRES: there are stages.
Loop read_loop(const YamlMap& map, const Pipeline& pipeline) {
  map.required<std::int64_t>("in_flight");
  Loop loop{.in_flight = count_in(map, "in_flight", 1, 10'000'000, 1)};
  map.choose("late", kLateNames, loop.late);
  if (map.has("quorum")) loop.quorum = count_in(map, "quorum", 1, 10'000'000, 1);
  loop.wait = time_at(map, "wait").value_or(Seconds::s(0));
  if (map.has("quorum") != map.has("wait"))
    map.report(map.has("quorum") ? "quorum" : "wait", "is incomplete",
               "a quorum, and the wait after which it suffices");
  if (loop.quorum && !loop.rounds())
    map.report("quorum", "without rounds", "late: finished or abandoned in addition");
  map.no_other_keys();
  if (loop.rounds()) {
    check_rounds(map, pipeline, loop);
  } else if (const double least = least_in_flight(pipeline);
             static_cast<double>(loop.in_flight) < least) {
    map.report("in_flight",
               fmt::format("{} samples never fill a unit of '{}'", loop.in_flight,
                           pipeline.stages.back().name),
               fmt::format("{:.0f} or more", least));
  }
  return loop;
}

template <class Named>
void check_name(const YamlMap& map, const std::vector<Named>& before, const std::string& name) {
  for (const Named& other : before)
    if (other.name == name && !name.empty())
      map.report("name", fmt::format("'{}' appears twice", name));
}

}  // namespace

Pipeline read_pipeline(const YamlMap& map, const std::filesystem::path& folder) {
  Pipeline pipeline;
  if (const auto host = map.map("host")) pipeline.host = read_host(*host);
  for (const YamlMap& source : map.maps("sources")) {
    Source read = read_source(source);
    check_name(source, pipeline.sources, read.name);
    pipeline.sources.push_back(std::move(read));
  }
  for (const YamlMap& stage : map.maps("stages")) {
    Stage read = read_stage(stage, pipeline.sources, folder);
    check_name(stage, pipeline.stages, read.name);
    pipeline.stages.push_back(std::move(read));
  }
  if (pipeline.stages.empty())
    map.report("stages", map.has("stages") ? "contains no stage" : "is missing",
               "stages: [{name: read, …}]");
  if (pipeline.stages.size() > 40)
    map.report("stages", fmt::format("{} stages", pipeline.stages.size()), "40 at most");
  double batches = 1, splits = 1;
  for (const Stage& stage : pipeline.stages) batches *= stage.batch, splits *= stage.split;
  if (std::max(batches, splits) > 1e9)
    map.report("stages",
               fmt::format("batches of {:g} and splits of {:g}, multiplied", batches, splits),
               "1e9 at most of each");
  if (const auto loop = map.map("loop"); loop && !pipeline.stages.empty())
    pipeline.loop = read_loop(*loop, pipeline);
  if (const auto accelerator = map.map("accelerator")) {
    if (!accelerator->has("step"))
      accelerator->report("step", "is missing", "a time, such as 250 ms");
    pipeline.step = read_time(*accelerator, "step");
    accelerator->no_other_keys();
  }
  if (const auto samples = map.optional<std::int64_t>("samples")) {
    if (*samples < 1 || *samples > 1'000'000'000'000'000)
      map.report("samples", fmt::format("{} samples", *samples), "1 to 1e15");
    else
      pipeline.samples = static_cast<std::uint64_t>(*samples);
  }
  if (const auto seed = map.optional<std::int64_t>("seed"))
    pipeline.seed = static_cast<std::uint64_t>(*seed);
  return pipeline;
}

Result<Pipeline> load_pipeline(const std::filesystem::path& path) {
  const YamlFile file = TRY(YamlFile::load(path));
  const YamlMap root = file.root();
  Pipeline pipeline = read_pipeline(root, path.parent_path());
  root.no_other_keys();
  TRY(file.status());
  return pipeline;
}

}  // namespace rehearse::input
