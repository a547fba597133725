// What an accelerator waits for that a pipeline feeds: worked by hand.
#include "models/input/feed.h"

#include <catch2/catch.hpp>

#include "models/input/limits.h"
#include "models/input/read_pipeline.h"

namespace rehearse {
namespace {

using namespace input;

Pipeline pipeline_of(const std::string& text) {
  const Result<YamlFile> file = YamlFile::parse(text, "p.yaml");
  REQUIRE(file);
  Pipeline pipeline = read_pipeline(file->root());
  REQUIRE(file->status());
  return pipeline;
}

/// In milliseconds, of work that takes a number of units and lasts a number of milliseconds.
double rhythm(const std::string& text, double units, double lasts) {
  const Result<Seconds> fed = Feed(pipeline_of(text)).time_of({units, Seconds::ms(lasts)});
  INFO((fed ? "" : to_string(fed.error())));
  REQUIRE(fed);
  return lasts * (*fed / Seconds::ms(lasts));
}

TEST_CASE("feed: the worked examples of the page") {
  const std::string decode = "stages: [{name: decode, time: 12 ms, queue: 256, workers: ";
  CHECK(rhythm(decode + "16}]", 256, 100) == Approx(192).epsilon(0.01));
  CHECK(rhythm(decode + "32}]", 256, 100) == 100);
  const std::string one = "stages: [{name: load, time: 10 ms, queue: ";
  CHECK(rhythm(one + "7}]", 8, 80) == Approx(80));
  CHECK(rhythm(one + "3}]", 8, 80) == Approx(120));
  CHECK(rhythm(one + "0}]", 8, 80) == Approx(150));
}

TEST_CASE("feed: the longer of work and units, with constant times and enough queue room") {
  const std::string load = "stages: [{name: load, time: 10 ms, queue: 100}]";
  CHECK(rhythm(load, 5, 20) == Approx(50));
  CHECK(rhythm(load, 5, 49) == Approx(50));
  CHECK(rhythm(load, 5, 51) == 51);
  // What the file says of an accelerator of its own plays no part.
  CHECK(rhythm(load + "\naccelerator: {step: 1 s}", 5, 20) == Approx(50));
}

TEST_CASE("feed: work that takes a part of a unit, or one and a half") {
  const std::string load = "stages: [{name: load, time: 100 ms, queue: 4}]";
  CHECK(rhythm(load, 0.25, 10) == Approx(25));
  CHECK(rhythm(load, 0.25, 30) == 30);
  CHECK(rhythm(load, 1.5, 10) == Approx(150));
  CHECK(rhythm(load, 1.5, 200) == 200);
}

TEST_CASE("feed: thousands of units are grouped") {
  const std::string load = "stages: [{name: load, time: 1 ms, queue: 500}]";
  CHECK(rhythm(load, 2048, 1000) == Approx(2048));
  CHECK(rhythm(load, 2048, 3000) == 3000);
  CHECK(rhythm(load, 2047, 1000) == Approx(2047));
}

TEST_CASE("feed: a pipeline that takes no time is not waited for") {
  CHECK(rhythm("stages: [{name: load}, {name: batch, batch: 32}]", 8, 1) == 1);
}

TEST_CASE("feed: with free storage the time of cores and locks remains") {
  const std::string text =
      "sources: [{name: s3, latency: 90 ms, total: 10 MB/s}]\n"
      "stages: [{name: fetch, serial: 10 ms, queue: 9, read: {from: s3, bytes: 100 kB}}]";
  CHECK(rhythm(text, 4, 8) == Approx(440));
  const Pipeline free = with_free_storage(pipeline_of(text));
  const Result<Seconds> fed = Feed(free).time_of({4, Seconds::ms(8)});
  REQUIRE(fed);
  CHECK(fed->ms() == Approx(40));
}

TEST_CASE("feed: times that vary cost more than their mean, and prefetching wins it back") {
  const auto load = [](const std::string& queue) {
    return "stages: [{name: load, time: {mean: 10 ms, exponential: 1}, queue: " + queue + "}]";
  };
  // A queue of one, service and work of the same rate: exponential against constant.
  const double little = rhythm(load("1"), 1, 10), much = rhythm(load("200"), 1, 12);
  CHECK(little > 11);
  CHECK(much < 12.3);
  CHECK(much >= 12);
}

TEST_CASE("feed: a pipeline too slow to run is one line") {
  const Result<Seconds> fed =
      Feed(pipeline_of("stages: [{name: load, time: 1000 s, batch: 1000000}]"))
          .time_of({2e5, Seconds::s(1)});
  REQUIRE_FALSE(fed);
  CHECK(fed.error().diagnostics.size() == 1);
}

}  // namespace
}  // namespace rehearse
