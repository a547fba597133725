// An input pipeline in front of a recording: where it is taken from, what is waited for, and that
// what is shared is shared. Worked by hand.
#include "cli/commands/recorded_input.h"

#include <catch2/catch.hpp>

#include "models/input/read_pipeline.h"
#include "profiler/replay/attribution.h"
#include "profiler/replay/batch_requests.h"
#include "tests/support/replayed.h"
#include "tests/support/trace_builder.h"

namespace rehearse {
namespace {

using test::RankBuilder;
using test::Replayed;

constexpr const char* kLoading = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";

input::Pipeline pipeline_of(const std::string& text) {
  const Result<YamlFile> file = YamlFile::parse(text, "p.yaml");
  REQUIRE(file);
  input::Pipeline pipeline = input::read_pipeline(file->root());
  INFO((file->status() ? "" : to_string(file->status().error())));
  REQUIRE(file->status());
  return pipeline;
}

/// Six steps of 1000 us on a host thread, `loading` of them in a loading range at their end; no
/// GPU.
void add_steps(trace::Trace& trace, double loading, const std::string& host = "",
               double begin = 0) {
  RankBuilder rank(trace);
  rank.rank().info.host = host;
  for (int k = 0; k < 6; ++k) {
    const double at = begin + 1000.0 * k;
    rank.step(k, at, 1000);
    rank.host("work", at + 10, 900 - loading);
    if (loading > 0)
      rank.host(kLoading, at + 1000 - loading, loading, trace::HostKind::kAnnotation);
  }
}

struct Fed {
  cli::FedBy by;
  std::vector<double> steps;  ///< us, whole ones, of all ranks
  double input;               ///< of an average step, us
  double total;
};

Result<Fed> try_feed(Replayed& job, const std::string& text,
                     std::optional<std::uint32_t> batch = 1) {
  cli::FedProgram fed =
      TRY(cli::feed_recording(job.recordings, job.program, pipeline_of(text), batch));
  const Result<replay::ReplayGraph> graph = replay::to_graph(std::move(fed.program));
  REQUIRE(graph);
  Result<graph::Timeline> timeline = engine::run(graph->graph());
  REQUIRE(timeline);
  replay::begin_at_zero(*graph, *timeline);
  Fed result{.by = fed.by, .steps = {}, .input = 0, .total = 0};
  for (const auto& step : replay::compare(job.recordings, *graph, *timeline).steps)
    if (!step.partial) result.steps.push_back(step.period().simulated.us());
  const program::Occupancy parts = replay::occupancy(*graph, *timeline);
  result.input = parts.input.us();
  result.total = parts.total.us();
  return result;
}

Fed feed(Replayed& job, const std::string& text, std::optional<std::uint32_t> batch = 1) {
  Result<Fed> fed = try_feed(job, text, batch);
  INFO((fed ? "" : to_string(fed.error())));
  REQUIRE(fed);
  return *fed;
}

std::string load(int us, int workers = 1) {
  return "stages: [{name: load, workers: " + std::to_string(workers) +
         ", time: " + std::to_string(us) + " us}]";
}

TEST_CASE("fed recording: a step is the longer of its work and its samples") {
  trace::Trace trace;
  add_steps(trace, 0);
  Replayed job(std::move(trace));
  for (const int us : {200, 900, 1000, 1300, 2500}) {
    const Fed fed = feed(job, load(us));
    INFO(us);
    CHECK(fed.by.loading_ranges == 0);
    for (const double step : fed.steps) CHECK(step == Approx(std::max(1000, us)));
    CHECK(fed.input == Approx(std::max(0, us - 1000)).margin(1e-3));
  }
  // Two workers; batches of three, one after another.
  CHECK(feed(job, load(1800, 2)).input == Approx(0).margin(1e-3));
  const auto queued = [](int us) {
    return "stages: [{name: load, queue: 8, time: " + std::to_string(us) + " us}]";
  };
  CHECK(feed(job, queued(400), 3).steps.front() == Approx(1200));
  CHECK(feed(job, queued(300), 3).input == Approx(0).margin(1e-3));
}

TEST_CASE("fed recording: the pipeline replaces the recorded loading") {
  trace::Trace trace;
  add_steps(trace, 280);
  Replayed job(std::move(trace));
  const Fed fast = feed(job, load(10));
  CHECK(fast.by.loading_ranges == 6);
  CHECK(fast.by.replaced.us() == Approx(280));
  for (const double step : fast.steps) CHECK(step == Approx(720));
  const Fed slow = feed(job, load(900));
  for (const double step : slow.steps) CHECK(step == Approx(900));
  CHECK(slow.input == Approx(180));
  CHECK(slow.total == Approx(900));
  // Taken out by an edit, it is not counted a second time.
  const Result<replay::RecordedProgram> removed = replay::remove(
      job.recordings, job.program, *replay::parse_selector("host=enumerate(DataLoader)*"));
  REQUIRE(removed);
  job.program = *removed;
  CHECK(feed(job, load(900)).steps == slow.steps);
}

TEST_CASE("fed recording: ranks share the pipeline of their host, and hosts have one each") {
  const auto two_ranks = [](const std::string& first, const std::string& second) {
    trace::Trace trace;
    add_steps(trace, 0, first);
    add_steps(trace, 0, second);
    return trace;
  };
  Replayed same(two_ranks("a", "a"));
  const Fed shared = feed(same, load(700));
  CHECK(shared.by.most_ranks == 2);
  // 700 us for each of two ranks.
  CHECK(shared.steps.back() == Approx(1400));
  CHECK(shared.total < 1401);
  Replayed apart(two_ranks("a", "b"));
  const Fed own = feed(apart, load(700));
  CHECK(own.by.hosts == 2);
  CHECK(own.input == Approx(0).margin(1e-3));
}

TEST_CASE("fed recording: with a queue shorter than a batch, part of the batch is loaded late") {
  trace::Trace trace;
  add_steps(trace, 0);
  Replayed job(std::move(trace));
  // T + (n - q) t for n = 8 units of 100 us, when `queue` units and one in hand are ready.
  const auto step = [&](int queue) {
    return feed(job, "stages: [{name: load, time: 100 us, queue: " + std::to_string(queue) + "}]",
                8)
        .steps.back();
  };
  CHECK(step(7) == Approx(1000));
  CHECK(step(3) == Approx(1400));
  CHECK(step(0) == Approx(1700));
}

TEST_CASE("fed recording: a unit of the last stage is a batch, and two ranks may share one") {
  trace::Trace trace;
  add_steps(trace, 0);
  Replayed job(std::move(trace));
  const std::string batches =
      "stages: [{name: load, time: 50 us}, {name: batch, batch: 32, time: 1 us}]";
  const Fed fed = feed(job, batches, std::nullopt);
  CHECK(fed.by.batch == 32);
  CHECK(fed.steps.back() == Approx(1600));
  CHECK(feed(job, batches, 16).input == Approx(0).margin(1e-3));
  CHECK(feed(job, batches, 48).total == Approx(2400).epsilon(0.05));
}

TEST_CASE("fed recording: a recording that cannot be fed is an error with the reason") {
  trace::Trace trace;
  add_steps(trace, 0);
  Replayed job(std::move(trace));
  CHECK_THAT(to_string(try_feed(job, load(10), std::nullopt).error()),
             Catch::Contains("forms no batches") && Catch::Contains("--batch N"));
  CHECK_THAT(to_string(try_feed(job, "stages: [{name: a, time: 1 us, queue: 5000000}]").error()),
             Catch::Contains("the input pipeline needs"));
  trace::Trace bare;
  RankBuilder(bare).host("work", 0, 100);
  Replayed span(std::move(bare));
  CHECK_THAT(to_string(try_feed(span, load(10)).error()),
             Catch::Contains("neither steps nor loading ranges"));
  Result<cli::FedProgram> fed =
      cli::feed_recording(job.recordings, job.program, pipeline_of(load(10)), 1);
  REQUIRE(fed);
  CHECK_FALSE(cli::feed_recording(job.recordings, fed->program, pipeline_of(load(10)), 1));
}

}  // namespace
}  // namespace rehearse
