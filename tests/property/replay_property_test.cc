// Replays of a toy machine whose truth is known: as recorded, and under what-if questions, against
// the machine itself run with the changed speeds.
#include <cmath>

#include <catch2/catch.hpp>

#include "profiler/replay/compare.h"
#include "profiler/replay/edit.h"
#include "profiler/trace/align.h"
#include "sim/engine/engine.h"
#include "tests/support/program.h"

namespace rehearse::replay {
namespace {

struct Predicted {
  double host_end;    // us
  double device_end;  // us
};

Predicted predict(const test::Recorded& recorded, const std::vector<std::string>& scales) {
  trace::Trace trace = recorded.trace;
  trace::align(trace);
  std::vector<Recording> recordings;
  recordings.emplace_back(trace, 0);
  Result<RecordedProgram> program = lower(recordings, {});
  INFO((program ? "" : to_string(program.error())));
  REQUIRE(program);
  for (const std::string& text : scales) {
    program = scale(recordings, *program, *parse_scale(text));
    REQUIRE(program);
  }
  const Result<ReplayGraph> graph = to_graph(*program);
  REQUIRE(graph);
  const Result<graph::Timeline> timeline = engine::run(graph->graph());
  REQUIRE(timeline);
  double host = 0, device = 0;
  for (const StepComparison& step : compare(recordings, *graph, *timeline).steps)
    host += step.period().simulated.us();
  for (const OpIndex op : program->replays[0].device_last)
    device = std::max(device, (*timeline)[graph->lowered.op(0, op)].end.seconds().us());
  return {host, device};
}

double total(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}

struct Question {
  double host_factor;
  double device_factor;
  std::vector<std::string> scales;
};

/// Relative errors of predicted ends (host and device) over 200 programs and these questions,
/// sorted.
std::vector<double> errors_of(const std::vector<Question>& questions, bool records_syncs) {
  std::vector<double> errors;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const test::Program program = test::random_program(seed);
    const test::Recorded recorded = test::execute(program, {.records_syncs = records_syncs});
    if (recorded.trace.ranks[0].gpu_ops.empty()) continue;
    for (const Question& q : questions) {
      const test::Recorded truth =
          test::execute(program, {.host_factor = q.host_factor, .device_factor = q.device_factor});
      const Predicted predicted = predict(recorded, q.scales);
      errors.push_back(std::abs(predicted.host_end / total(truth.host_steps) - 1));
      errors.push_back(std::abs(predicted.device_end / truth.device_end - 1));
    }
  }
  std::sort(errors.begin(), errors.end());
  REQUIRE(errors.size() >= 300 * questions.size());
  return errors;
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

const std::vector<Question> kAsRecorded = {{1, 1, {}}};
const std::vector<Question> kWhatIf = {{1, 3, {"gpu:3"}},
                                       {1, 0.25, {"gpu:0.25"}},
                                       {2, 1, {"host:2"}},
                                       {0.5, 2, {"host:0.5", "gpu:2"}}};

TEST_CASE("a replay of the toy machine finds its times, at the recorded speed and at others") {
  // Constants are medians of what few ops show: single programs are off by some of them.
  CHECK(errors_of(kAsRecorded, true).back() < 0.02);
  const std::vector<double> errors = errors_of(kWhatIf, true);
  CHECK(quantile(errors, 0.5) < 0.001);
  CHECK(quantile(errors, 0.9) < 0.01);
  CHECK(errors.back() < 0.02);
}

TEST_CASE("without recorded synchronisations, calls and times determine the dependencies") {
  CHECK(errors_of(kAsRecorded, false).back() < 0.02);
  const std::vector<double> errors = errors_of(kWhatIf, false);
  CHECK(quantile(errors, 0.5) < 0.005);
  CHECK(quantile(errors, 0.9) < 0.05);
}

}  // namespace
}  // namespace rehearse::replay
