// Input pipelines: worked by hand, read from files, refused with one line.
#include <fstream>

#include <catch2/catch.hpp>

#include "models/input/limits.h"
#include "models/input/read_pipeline.h"
#include "models/input/simulate.h"
#include "models/input/tune.h"
#include "tests/support/data.h"
#include "tests/support/pages.h"
#include "tests/support/pipeline_text.h"

namespace rehearse {
namespace {

using namespace input;
using Catch::Contains;
using test::flow_of;
using test::parsed;
using test::pipeline_of;
using test::rate_of;

// The page states a pipeline, and units per second, the tightest bound, and what it is:
//   ```yaml   then  ```rates
//   stages: …       125 of 125: threads of decode
TEST_CASE("input: the worked examples of the page give the stated results") {
  const auto blocks = test::blocks_of(test::source_file("docs/concepts/input.md"));
  std::size_t checked = 0;
  for (std::size_t b = 0; b + 1 < blocks.size(); ++b) {
    if (blocks[b].language != "yaml" || blocks[b + 1].language != "rates") continue;
    const Pipeline p = pipeline_of(test::join_lines(blocks[b].lines));
    const std::string& line = blocks[b + 1].lines.front();
    INFO(line);
    double rate = 0, bound = 0;
    int rest = 0;
    REQUIRE(std::sscanf(line.c_str(), "%lf of %lf: %n", &rate, &bound, &rest) == 2);
    const Limit tightest = limits_of(p).front();
    CHECK(tightest.units_per_s == Approx(bound).epsilon(0.002));
    CHECK(to_string(p, tightest) == line.substr(static_cast<std::size_t>(rest)));
    const Result<Flow> flow = simulate(p);
    REQUIRE(flow);
    CHECK(flow->units_per_s.value == Approx(rate).epsilon(0.01));
    ++checked;
  }
  CHECK(checked >= 5);
}

std::string keys_file(const std::string& text) {
  const std::filesystem::path path = test::scratch_folder() / "keys.txt";
  std::ofstream(path) << text;
  return path.string();
}

TEST_CASE("input: misses of a cache are read, take by take") {
  // Keys 1 2 3, 1 4, 1 2 through two places under lru: 3, 2 and 1 misses. A unit is 1 MB, at
  // 100 MB/s: 30, 20 and 10 ms, over and over.
  const std::string keys = keys_file("1 2 3\n1 4\n1 2\n");
  const auto text = [&](const std::string& source, const std::string& stage) {
    return "sources: [{name: disk, connection: 100 MB/s" + source + "}]\nstages: [{name: get, " +
           stage +
           "read: {from: disk, bytes: 1 MB, cache: {stream: {kind: recorded, file: " + keys +
           "}, share: 0.5}}}]";
  };
  const Pipeline p = pipeline_of(text("", ""));
  REQUIRE(p.stages[0].reads.size() == 3);
  CHECK(p.stages[0].reads[0].b() == 3e6);
  CHECK(p.stages[0].reads[1].b() == 2e6);
  CHECK(p.stages[0].reads[2].b() == 1e6);
  CHECK(p.stages[0].bytes.b() == 2e6);
  CHECK(rate_of(text("", "")) == Approx(50).epsilon(0.01));
  // Requests of 1 MB each, 5 ms before each: twice 10, 30 ms in the mean.
  CHECK(rate_of(text(", latency: 5 ms, request: 1 MB", "")) == Approx(1000.0 / 30).epsilon(0.01));
  // With a step of 15 ms: with a queue of one the mean of 20 ms decides. Of steps of
  // 25 ms none is waited for with room enough.
  const std::string fed = text("", "queue: 3, ");
  CHECK(rate_of(fed + "\naccelerator: {step: 15 ms}") == Approx(50).epsilon(0.01));
  CHECK(rate_of(fed + "\naccelerator: {step: 25 ms}") == Approx(40).epsilon(0.01));
  // Where only the one in hand is ahead, the longest read is waited for in every round: 5 ms.
  const double tight = rate_of(text("", "queue: 0, ") + "\naccelerator: {step: 25 ms}");
  CHECK(tight == Approx(3 / 0.080).epsilon(0.01));
}

TEST_CASE("input: a take without misses makes no request") {
  const std::string keys = keys_file("1 2\n1\n2 1\n2\n");
  // All is kept: from the second batch on nothing is read.
  const std::string text =
      "sources: [{name: disk, latency: 10 ms, requests_per_s: 50, usd_per_1000_requests: 4}]\n"
      "stages: [{name: get, time: 1 ms, read: {from: disk, bytes: 1 MB, cache: {stream: {kind: "
      "recorded, file: " +
      keys + "}, share: 1, from_batch: ";
  const Pipeline none = pipeline_of(text + "1}}}]");
  CHECK(requests_of(none, none.stages[0]) == 0);
  CHECK(request_price_of(none).usd() == 0);
  CHECK(simulate(none)->units_per_s.value == Approx(1000).epsilon(0.01));
  // With the first batch, one of four makes a request: 20 ms to be admitted and 10 ms.
  const Pipeline one = pipeline_of(text + "0}}}]");
  CHECK(requests_of(one, one.stages[0]) == 0.25);
  CHECK(request_price_of(one).usd() == Approx(0.001));
  CHECK(simulate(one)->units_per_s.value == Approx(4 / 0.034).epsilon(0.02));
}

TEST_CASE("input: mistakes in the cache of a read") {
  const auto error_of = [](const std::string& cache) {
    const Result<Pipeline> read = parsed(
        "sources: [{name: disk}]\nstages: [{name: get, read: {from: disk, bytes: 1 kB, cache: " +
        cache + "}}]");
    return read ? "no error" : to_string(read.error());
  };
  CHECK_THAT(error_of("{share: 0.5}"), Contains("cache.stream: is missing"));
  CHECK_THAT(error_of("{stream: {kind: epochs, keys: 9, batch: 3, batches: 1}, shar: 1}"),
             Contains("shar"));
  CHECK_THAT(error_of("{stream: {kind: epochs, keys: 9, batch: 3, batches: 1}, share: 0.5, policy: "
                      "lfu, readahead: 2}"),
             Contains("readahead of 2"));
}

TEST_CASE("input: a lock admits one thread of each worker") {
  // 0.101 s for an item; 10.6 ms of it hold the lock: 4 / 0.101 s with a thread in each of four
  // workers; with 16, 4 / 10.6 ms, since 16 threads would do 633 a second.
  const std::string head =
      "stages: [{name: fetch, time: 90.4 ms, serial: 10.6 ms, workers: 4, threads: ";
  CHECK(rate_of(head + "1}]") == Approx(39.6).epsilon(0.002));
  CHECK(rate_of(head + "16}]") == Approx(377.4).epsilon(0.005));
}

TEST_CASE("input: a source has work of its client for each request") {
  // Two requests of 1 MB a take. Alone, a take of the only thread: 2 (10 + 3 + 4) + 5 + 1 = 40 ms.
  const std::string reads = ", read: {from: s, bytes: 2 MB}}]";
  const auto with = [&](const std::string& client, const std::string& source = "") {
    return "sources: [{name: s, latency: 10 ms, request: 1 MB" + client + source + "}]\n";
  };
  const std::string client = ", client: {time: 3 ms, serial: 4 ms}";
  const std::string one = "stages: [{name: get, time: 5 ms, serial: 1 ms" + reads;
  CHECK(rate_of(with(client) + one) == Approx(25).epsilon(0.01));
  CHECK(rate_of(with("") + one) == Approx(1000.0 / 26).epsilon(0.01));
  // With eight threads the lock decides: 2 x 4 + 1 = 9 ms for each worker.
  const std::string many =
      "stages: [{name: get, workers: 3, threads: 8, time: 5 ms, serial: 1 ms" + reads;
  const Pipeline locked = pipeline_of(with(client) + many);
  CHECK(to_string(locked, limits_of(locked).front()) == "serial part of get");
  CHECK(rate_of(with(client) + many) == Approx(3000.0 / 9).epsilon(0.01));
  // One core: 2 x 7 + 6 = 20 ms of it a take, though a worker could wait meanwhile.
  CHECK(rate_of("host: {cores: 1}\n" + with(client) + many) == Approx(50).epsilon(0.01));
  // Half of the takes come from memory and make no request: 40 ms and 5 + 1 ms in turn.
  CHECK(rate_of(with(client, ", hits: 0.5") + one) == Approx(2000.0 / 46).epsilon(0.01));
}

TEST_CASE("input: sources bound by connections, by all of them, by requests") {
  const auto source = [](const std::string& keys, const std::string& threads) {
    return "sources: [{name: s3, latency: 100 ms, connection: 100 MB/s, " + keys +
           "}]\nstages: [{name: get, workers: " + threads + ", read: {from: s3, bytes: 10 MB}}]";
  };
  // 0.1 s before the first byte and 0.1 s for the rest: 5 a second on each connection.
  CHECK(rate_of(source("hits: 0", "1")) == Approx(5));
  CHECK(rate_of(source("hits: 0", "8")) == Approx(40));
  CHECK(rate_of(source("total: 200 MB/s", "8")) == Approx(20).epsilon(0.01));
  CHECK(rate_of(source("requests_per_s: 10", "8")) == Approx(10).epsilon(0.01));
  // Requests of 1 MB each wait 0.1 s: 1.1 s for an item. Half of them from memory at 1 GB/s: 10 ms.
  CHECK(rate_of(source("request: 1 MB", "1")) == Approx(1 / 1.1));
  CHECK(rate_of(source("request: 1 MB, hits: 0.5, memory: 1 GB/s", "1")) ==
        Approx(2 / 1.11).epsilon(0.01));
}

TEST_CASE("input: an epoch through a cache of a share of the data") {
  // Half of the data in memory: 0.5 + 0.5 ln 0.5 = 0.1534 of the reads, by lru.
  const std::string text =
      "sources: [{name: disk, latency: 1 ms, cache: {memory: 50 GB, data: 100 GB}}]\n"
      "stages: [{name: get, read: {from: disk, bytes: 1 MB}}]";
  CHECK(pipeline_of(text).sources[0].hits == Approx(0.1534).margin(0.01));
  CHECK(rate_of(text) == Approx(1000 / (1 - 0.1534)).epsilon(0.02));
}

TEST_CASE("input: chunks come fast once their buffer is full, files one by one") {
  // 100 records of 100 kB at once: 0.1 s + 10 MB / 100 MB/s. As files: 0.1 s + 1 ms each.
  const std::string source = "sources: [{name: s3, latency: 100 ms, connection: 100 MB/s}]\n";
  CHECK(rate_of(source + "stages: [{name: get, split: 100, read: {from: s3, bytes: 10 MB}}, "
                         "{name: take, shuffle: 250}]") == Approx(500).epsilon(0.01));
  CHECK(rate_of(source + "stages: [{name: get, read: {from: s3, bytes: 100 kB}}]") ==
        Approx(1 / 0.101).epsilon(0.01));
  // 400 samples: the fourth chunk is there after 0.8 s.
  const Flow flow = flow_of("samples: 400\n" + source +
                            "stages: [{name: get, split: 100, read: {from: s3, bytes: 10 MB}}, "
                            "{name: take, shuffle: 250}]");
  REQUIRE(flow.epoch);
  CHECK(flow.epoch->s() == Approx(0.8));
}

TEST_CASE("input: workers start one after another before any of them works") {
  const Flow flow =
      flow_of("samples: 20\nstages: [{name: get, workers: 4, time: 1 s, start_up: 0.5 s}]");
  CHECK(flow.epoch->s() == Approx(4 * 0.5 + 5));
  CHECK(flow.units_per_s.value == Approx(4));
}

TEST_CASE("input: busy cores slow each other down") {
  // 48 cores at 0.83 of their speed, second threads for 1.02 of it: 40.6 times one thread.
  const auto with = [](const std::string& workers) {
    return rate_of(
        "host: {cores: 48, loaded: 0.83, smt: 1.02}\nstages: [{name: map, time: 10 ms, "
        "ordered: false, workers: " +
        workers + "}]");
  };
  CHECK(with("1") == Approx(100));
  CHECK(with("48") == Approx(100 * 48 * 0.83).epsilon(0.005));
  CHECK(with("96") == Approx(100 * 48 * 0.83 * 1.02).epsilon(0.005));
  CHECK(with("24") == Approx(100 * 24 * (1 - 0.17 * 23 / 47)).epsilon(0.005));
}

TEST_CASE("input: the cost of a straggler with and without an ordered queue") {
  const auto with = [](const std::string& ordered) {
    return rate_of("seed: 3\nstages:\n  - {name: load, workers: 8, queue: 8, ordered: " + ordered +
                   ", time: {mean: 8 ms, exponential: 1}}\n  - {name: use, time: 1 ms}");
  };
  CHECK(with("false") > 1.05 * with("true"));
}

TEST_CASE("input: recorded times are drawn unchanged") {
  const Flow flow = flow_of("stages: [{name: load, time: {samples: [1 ms, 3 ms, 8 ms]}}]");
  CHECK(flow.units_per_s.value == Approx(250).epsilon(0.02));
  CHECK(flow.units_per_s.low < flow.units_per_s.value);
  CHECK(flow.units_per_s.provenance == Provenance::kRecorded);
}

TEST_CASE("input: the cost of the requests of a unit") {
  const Pipeline p = pipeline_of(
      "sources: [{name: s3, latency: 1 ms, request: 4 MB, hits: 0.5, usd_per_1000_requests: 0.4}]\n"
      "stages: [{name: get, read: {from: s3, bytes: 10 MB}}, {name: batch, batch: 32}]");
  // 32 items of 3 requests; memory serves half of them.
  CHECK(request_price_of(p).usd() == Approx(32 * 3 * 0.5 * 0.0004));
  CHECK(counts_of(p).samples == 32);
}

TEST_CASE("input: the tuner gives each stage what the rate needs") {
  // Of 8 cores: 12 ms and 4 ms for a sample; 6 and 2 workers make 500 a second, all cores busy.
  const Result<Tuned> tuned = tune(pipeline_of(
      "host: {cores: 8}\nstages: [{name: decode, time: 12 ms}, {name: augment, time: 4 ms}]"));
  REQUIRE(tuned);
  CHECK(tuned->units_per_s == Approx(500));
  CHECK(tuned->pipeline.stages[0].workers == 6);
  CHECK(tuned->pipeline.stages[1].workers == 2);
  REQUIRE(tuned->changes.size() == 4);  // of workers, and of queues for more of them
  CHECK(tuned->changes[0].stage == 0);
  CHECK(tuned->changes[0].from == 1);
  REQUIRE(tuned->flow);
  CHECK(tuned->flow->units_per_s.value == Approx(500).epsilon(0.02));
  // The accelerator takes 100: two workers and one are enough.
  const Result<Tuned> enough =
      tune(pipeline_of("host: {cores: 8}\nstages: [{name: decode, workers: 8, time: 12 ms}, {name: "
                       "augment, time: 4 ms}]"
                       "\naccelerator: {step: 10 ms}"));
  CHECK(enough->units_per_s == Approx(100));
  CHECK(enough->pipeline.stages[0].workers == 2);  // 1.2
  CHECK(enough->limit.kind == LimitKind::kStep);
}

TEST_CASE("input: the tuner adds workers where a lock binds, and threads where latency does") {
  const std::string head =
      "sources: [{name: s3, latency: 90 ms}]\nstages: [{name: fetch, serial: 10 ms, "
      "read: {from: s3, bytes: 1 kB}, most: {workers: 4, threads: ";
  const Result<Tuned> one = tune(pipeline_of(head + "1}}]"));
  CHECK(one->units_per_s == Approx(40));
  const Result<Tuned> many = tune(pipeline_of(head + "64}}]"));
  CHECK(many->units_per_s == Approx(400));
  CHECK(many->pipeline.stages[0].workers == 4);
  CHECK(many->pipeline.stages[0].threads == 10);
  CHECK(many->limit.units_per_s == Approx(400));
}

TEST_CASE("input: the tuner gives varying times enough queue room") {
  const auto tuned = [](const std::string& time) {
    return tune(pipeline_of("stages: [{name: fetch, time: " + time +
                            ", most: {workers: 64}}]\naccelerator: {step: 10 ms}"))
        .value();
  };
  const Tuned constant = tuned("80 ms"), varying = tuned("{mean: 80 ms, exponential: 1}");
  CHECK(constant.pipeline.stages[0].workers == 8);
  CHECK(varying.pipeline.stages[0].workers == 8);
  CHECK(varying.pipeline.stages[0].room() > constant.pipeline.stages[0].room());
  CHECK(varying.flow->units_per_s.value > 98);
}

TEST_CASE("input: the tuner keeps the most valuable data that fits in memory") {
  // 1000 samples: 1 MB each as read, 4 MB decoded.
  const auto tuned = [](const std::string& memory) {
    const Result<Tuned> t =
        tune(pipeline_of("samples: 1000\nhost: {cores: 4, memory: " + memory +
                         "}\n"
                         "sources: [{name: disk, total: 100 MB/s}]\n"
                         "stages: [{name: read, unit: 1 MB, read: {from: disk, bytes: 1 MB}},\n"
                         "         {name: decode, unit: 4 MB, time: 10 ms, worker_memory: 100 MB}, "
                         "{name: augment, time: 5 ms}]"));
    INFO((t ? "" : to_string(t.error())));
    REQUIRE(t);
    return *t;
  };
  CHECK_FALSE(tuned("900 MB").kept);
  CHECK(tuned("900 MB").units_per_s == Approx(100));  // of the disk
  const Tuned read = tuned("2 GB");
  CHECK(read.kept == 0);
  CHECK(read.units_per_s == Approx(4 / 0.015).epsilon(0.35));  // whole workers on four cores
  CHECK(simulate(read.pipeline)->units_per_s.value == Approx(read.units_per_s).epsilon(0.02));
  const Tuned decoded = tuned("5 GB");
  CHECK(decoded.kept == 1);
  CHECK(decoded.kept_bytes.b() == Approx(4e9));
  CHECK(decoded.units_per_s == Approx(800));
  // A worker of 100 MB does not fit.
  CHECK_FALSE(
      tune(pipeline_of("host: {cores: 1, memory: 50 MB}\n"
                       "stages: [{name: a, time: 1 ms, worker_memory: 100 MB}]")));
}

TEST_CASE("input: mistakes of a file are one line each") {
  const auto refused = [](const std::string& text) {
    const Result<Pipeline> pipeline = parsed(text);
    REQUIRE_FALSE(pipeline);
    return to_string(pipeline.error());
  };
  CHECK_THAT(refused("samples: 3\n"), Contains("stages") && Contains("missing"));
  CHECK_THAT(refused("stages: []\n"), Contains("stages"));
  CHECK_THAT(refused("stages: [{name: a, time: 5}]\n"), Contains("p.yaml:1:") && Contains("unit"));
  CHECK_THAT(refused("stages: [{name: a, tiem: 5 ms}]\n"), Contains("time"));
  CHECK_THAT(refused("stages: [{name: a, time: -5 ms}]\n"), Contains("0 s to 1000 s"));
  CHECK_THAT(refused("stages: [{name: a, workers: 0}]\n"), Contains("1 to 4096"));
  CHECK_THAT(refused("stages: [{name: a, workers: 4096, threads: 4096}]\n"), Contains("4096 per"));
  CHECK_THAT(refused("stages: [{name: a, read: {from: s3, bytes: 1 MB}}]\n"),
             Contains("'s3' is not a source"));
  CHECK_THAT(
      refused("sources: [{name: s33}]\nstages: [{name: a, read: {from: s3, bytes: 1 MB}}]\n"),
      Contains("did you mean 's33'"));
  CHECK_THAT(refused("stages: [{name: a}, {name: a}]\n"), Contains("appears twice"));
  CHECK_THAT(refused("stages: [{name: a, time: {mean: 1 ms, exponential: 2}}]\n"),
             Contains("0 to 1"));
  CHECK_THAT(refused("stages: [{name: a, time: {mean: 1 ms, exponential: 1, lognormal: 1}}]\n"),
             Contains("one of the two"));
  CHECK_THAT(refused("stages: [{name: a, time: {samples: []}}]\n"), Contains("holds no times"));
  CHECK_THAT(refused("host: {loaded: 1}\nstages: [{name: a}]\n"), Contains("cores"));
  CHECK_THAT(refused("sources: [{name: s, hits: 1, cache: {memory: 1 B, data: 2 B}}]\n"
                     "stages: [{name: a}]\n"),
             Contains("one of the two"));
  CHECK_THAT(refused("accelerator: {}\nstages: [{name: a}]\n"), Contains("step"));
  CHECK_THAT(refused("stages: [{name: a, batch: 1000000}, {name: b, batch: 1000000}]\n"),
             Contains("1e+12") && Contains("1e9 at most"));
  // What can be read and not be run.
  const auto stuck = [](const std::string& text) {
    const Result<Flow> flow = simulate(pipeline_of(text));
    REQUIRE_FALSE(flow);
    return to_string(flow.error());
  };
  CHECK_THAT(stuck("stages: [{name: a}]\n"), Contains("all stages take no time"));
  CHECK_THAT(stuck("stages: [{name: a, time: 1 ms}, {name: b, batch: 1000000}]\n"),
             Contains("ops at most"));
  CHECK_THAT(stuck("stages: [{name: a, time: 1000 s}, {name: b, batch: 12}]\n"),
             Contains("less than"));
}

}  // namespace
}  // namespace rehearse
