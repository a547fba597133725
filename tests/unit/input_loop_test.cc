// Closed loops and bound threads: worked by hand, read from files, refused with one line.
#include <algorithm>

#include <catch2/catch.hpp>

#include "models/input/feed.h"
#include "models/input/limits.h"
#include "models/input/read_pipeline.h"
#include "models/input/simulate.h"
#include "models/input/tune.h"
#include "tests/support/pipeline_text.h"

namespace rehearse {
namespace {

using namespace input;
using Catch::Contains;
using test::flow_of;
using test::parsed;
using test::pipeline_of;
using test::rate_of;

std::string error_of(const std::string& text) {
  const Result<Pipeline> pipeline = parsed(text);
  REQUIRE_FALSE(pipeline);
  return to_string(pipeline.error());
}

TEST_CASE("loop: a batch of all, with a serial hand-off") {
  // Four actions of 1 ms each go out, the last environment ends at 4 + 10, the batch takes 5: 19
  // ms.
  CHECK(rate_of("loop: {in_flight: 4}\n"
                "stages: [{name: send, time: 1 ms}, {name: step, workers: 4, time: 10 ms, "
                "ordered: false}, {name: take, batch: 4, time: 5 ms}]") == Approx(1 / 0.019));
  // On two threads they step in two rounds: 1 + 10 + 10; the second begins at 11 and 12.
  CHECK(rate_of("loop: {in_flight: 4}\n"
                "stages: [{name: send, time: 1 ms}, {name: step, workers: 2, time: 10 ms, "
                "ordered: false}, {name: take, batch: 4, time: 5 ms}]") == Approx(1 / 0.027));
}

TEST_CASE("loop: twice as many in flight keep all threads at work") {
  // Times of 10 ms and a hand-off of 0.5: with eight in flight a batch of four waits for no one.
  const std::string rest =
      "}\nstages: [{name: send, time: 0.5 ms}, {name: step, workers: 4, time: 10 ms, ordered: "
      "false}, {name: take, batch: 4}]";
  CHECK(rate_of("loop: {in_flight: 4" + rest) == Approx(1 / 0.012));
  CHECK(rate_of("loop: {in_flight: 8" + rest) == Approx(100).epsilon(0.01));
}

TEST_CASE("loop: staleness is the number of ordered batches in flight") {
  // Of two workers one draws 2 ms, the other 5; on average. In order, a batch waits for its own.
  const std::string rest =
      "}\nseed: 5\nstages: [{name: step, workers: 2, time: {samples: [2 ms, 5 ms]}, queue: 50}, "
      "{name: take, batch: 2}]";
  // Each batch: 2 with one chance in four, else 5 ms: 4.25.
  CHECK(rate_of("loop: {in_flight: 2" + rest) == Approx(1 / 0.00425).epsilon(0.01));
  const double stale = rate_of("loop: {in_flight: 4" + rest);
  CHECK(stale > 1.05 / 0.00425);
  // Never faster than both always busy: 3.5 ms.
  CHECK(rate_of("loop: {in_flight: 40" + rest) == Approx(1 / 0.0035).epsilon(0.02));
  CHECK(stale < 1 / 0.0035);
}

TEST_CASE("loop: late work is kept, finished or abandoned") {
  // Two of three, which take 1 ms or 9, each with an even chance, on three workers. Abandoned: a
  // round takes 1 ms unless two or more draw 9, half of the time: 5 ms in the mean.
  const std::string rest =
      "\nseed: 3\nstages: [{name: step, workers: 3, time: {samples: [1 ms, 9 ms]}, ordered: "
      "false, queue: 50}, {name: take, batch: 2}]";
  const double abandoned = rate_of("loop: {in_flight: 3, late: abandoned}" + rest);
  CHECK(abandoned == Approx(1 / 0.005).epsilon(0.02));
  // Finished: every third of the work is for nothing, and still has to be done: 5 ms of three
  // workers for each, at best.
  const double finished = rate_of("loop: {in_flight: 3, late: finished}" + rest);
  CHECK(finished < abandoned);
  CHECK(finished <= 1 / 0.005 * 1.01);
  // Kept, none is: two for 10 ms of three workers.
  CHECK(rate_of("loop: {in_flight: 30}" + rest) == Approx(3 / 0.010).epsilon(0.02));
}

TEST_CASE("loop: a quorum continues after its wait") {
  const std::string stages =
      "\nstages: [{name: client, workers: 4, time: 8 ms, ordered: false}, {name: take, batch: 4}]";
  // All come after 8 ms, before the wait is over, and a wait that is over waits for the quorum.
  CHECK(rate_of("loop: {in_flight: 4, late: abandoned, quorum: 2, wait: 20 ms}" + stages) ==
        Approx(125));
  CHECK(rate_of("loop: {in_flight: 4, late: abandoned, quorum: 2, wait: 1 ms}" + stages) ==
        Approx(125));
  // On two workers two come at 8 ms and two at 16; the wait ends at 10.
  const Flow two = flow_of(
      "loop: {in_flight: 4, late: abandoned, quorum: 2, wait: 10 ms}\n"
      "stages: [{name: client, workers: 2, time: 8 ms, ordered: false}, {name: take, batch: 4}]");
  CHECK(two.units_per_s.value == Approx(100));
  CHECK(two.filled == Approx(0.5));
  // Two workers hold two samples each round, until it is over: all of the time.
  CHECK(two.busy[0] == Approx(1).epsilon(0.01));
}

TEST_CASE("loop: threads that keep to their cores share some of them") {
  // Three threads on two cores: pinned, the first and the third have one of them, at 1.25 of its
  // speed: 16 ms for both. Free, each has two thirds of a core.
  const auto with = [](const std::string& host, const std::string& loop) {
    return rate_of("host: {cores: 2, smt: 1.25" + host + "}\n" + loop +
                   "\nstages: [{name: step, workers: 3, time: 10 ms, ordered: false}, {name: take, "
                   "batch: 3}]");
  };
  const std::string loop = "loop: {in_flight: 3}";
  CHECK(with(", pinned: true", loop) == Approx(1 / 0.016).epsilon(0.001));
  // Half of the cores have a second thread: 1.125 of two.
  CHECK(with("", loop) == Approx(1 / (0.030 / 2.25)).epsilon(0.001));
  // A thread that is alone on its core does more of the free items.
  CHECK(with(", pinned: true", "") * 3 == Approx(225).epsilon(0.01));
  CHECK(with(", numa: 2", loop) == Approx(1 / 0.016).epsilon(0.001));
}

TEST_CASE("loop: the number in flight limits the rate, and a larger number is advised") {
  const Pipeline p = pipeline_of(
      "loop: {in_flight: 2}\n"
      "stages: [{name: ask, workers: 8, time: 9 ms, ordered: false}, {name: use, time: 1 ms, most: "
      "{workers: 1}}]");
  CHECK(to_string(p, limits_of(p).front()) == "samples in flight");
  CHECK(limits_of(p).front().units_per_s == Approx(200));
  const Result<Tuned> tuned = tune(p);
  REQUIRE(tuned);
  REQUIRE(std::any_of(tuned->changes.begin(), tuned->changes.end(),
                      [](const Change& c) { return c.knob == Knob::kInFlight && c.to > 10; }));
  CHECK(simulate(tuned->pipeline)->units_per_s.value == Approx(1000).epsilon(0.02));
  CHECK(tuned->units_per_s == Approx(1000));
}

TEST_CASE("loop: a job is fed by a loop that keeps late work") {
  const std::string stages = "\nstages: [{name: read, workers: 4, time: 10 ms, ordered: false}]";
  // Two in flight: 200 a second at the most, where 400 are asked for.
  const Result<Seconds> slow = Feed(pipeline_of("loop: {in_flight: 2}" + stages))
                                   .time_of({.units = 1, .time = Seconds::ms(2.5)});
  REQUIRE(slow);
  CHECK(slow->ms() == Approx(12.5 / 2).epsilon(0.02));
  Pipeline rounds = pipeline_of("loop: {in_flight: 2}" + stages);
  rounds.loop->late = Late::kFinished;
  const Result<Seconds> refused = Feed(rounds).time_of({.units = 1, .time = Seconds::ms(2.5)});
  REQUIRE_FALSE(refused);
  CHECK_THAT(to_string(refused.error()), Contains("late: kept"));
  // More of the job's units than are ever there.
  const Result<Seconds> stuck = Feed(pipeline_of("loop: {in_flight: 2}" + stages))
                                    .time_of({.units = 8, .time = Seconds::ms(2.5)});
  REQUIRE_FALSE(stuck);
  CHECK_THAT(to_string(stuck.error()), Contains("2 samples in flight") && Contains("8 or more"));
}

TEST_CASE("loop: an invalid loop is one line") {
  const std::string stages =
      "stages: [{name: a, workers: 4, time: 1 ms, ordered: false}, {name: b, batch: 4}]\n";
  CHECK_THAT(error_of("loop: {in_flight: 3}\n" + stages),
             Contains("3 samples never fill a unit of 'b'") && Contains("4 or more"));
  CHECK_THAT(error_of("loop: {late: kept}\n" + stages), Contains("in_flight"));
  CHECK_THAT(error_of("loop: {in_flight: 4, lat: kept}\n" + stages), Contains("lat"));
  CHECK_THAT(error_of("loop: {in_flight: 4, late: dropped}\n" + stages),
             Contains("late") && Contains("abandoned"));
  CHECK_THAT(error_of("loop: {in_flight: 4, quorum: 2, wait: 1 s}\n" + stages),
             Contains("without rounds"));
  CHECK_THAT(error_of("loop: {in_flight: 4, late: finished, quorum: 2}\n" + stages),
             Contains("is incomplete"));
  CHECK_THAT(error_of("loop: {in_flight: 4, late: finished, wait: 2 s}\n" + stages),
             Contains("is incomplete"));
  CHECK_THAT(error_of("loop: {in_flight: 4, late: finished, quorum: 5, wait: 2 s}\n" + stages),
             Contains("5 of a batch of 4"));
  CHECK_THAT(error_of("loop: {in_flight: 3, late: finished}\n" + stages),
             Contains("3 of a batch of 4"));
  CHECK_THAT(error_of("loop: {in_flight: 4, late: abandoned}\nhost: {cores: 2}\n" + stages),
             Contains("keep using the host") && Contains("finished"));
  CHECK_THAT(error_of("loop: {in_flight: 1, late: finished}\nstages: [{name: a, time: 1 s}]\n"),
             Contains("only stage"));
  CHECK_THAT(error_of("loop: {in_flight: 4, late: finished}\nstages: [{name: a, workers: 2, time: "
                      "1 s}, {name: b, batch: 4}]\n"),
             Contains("ordered: false"));
  CHECK_THAT(error_of("loop: {in_flight: 4, late: finished}\nstages: [{name: a, batch: 2, time: "
                      "1 s}, {name: b, batch: 4}]\n"),
             Contains("one by one"));
  CHECK_THAT(error_of("loop: {in_flight: 4, late: finished}\nstages: [{name: a, time: 1 s}, "
                      "{name: b, workers: 2, batch: 4}]\n"),
             Contains("is the barrier"));
  CHECK_THAT(error_of("loop: {in_flight: 4, late: abandoned}\nsources: [{name: s, total: 1 "
                      "MB/s}]\nstages: [{name: a, read: {from: s, bytes: 1 B}}, {name: b}]\n"),
             Contains("shares a source"));
  CHECK_THAT(error_of("host: {cores: 6, numa: 4}\n" + stages), Contains("6 cores on 4 nodes"));
  CHECK_THAT(error_of("host: {cores: 6, numa: 2, pinned: true}\n" + stages),
             Contains("cannot be combined with pinned"));
}

}  // namespace
}  // namespace rehearse
