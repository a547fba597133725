// Replays of a toy machine whose truth is known: as recorded, and under what-if questions, against
// the machine itself run with the changed speeds.
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "profiler/replay/compare.h"
#include "profiler/replay/edit.h"
#include "profiler/replay/fewer_launches.h"
#include "profiler/replay/overlap.h"
#include "profiler/trace/align.h"
#include "sim/engine/engine.h"
#include "tests/support/program.h"

namespace rehearse::replay {
namespace {

struct Predicted {
  double host_end;    // us
  double device_end;  // us
};

using Edit =
    std::function<Result<RecordedProgram>(const std::vector<Recording>&, RecordedProgram program)>;

Edit scaled(const std::string& text) {
  return [text](const std::vector<Recording>& recordings, RecordedProgram program) {
    return scale(recordings, std::move(program), *parse_scale(text));
  };
}

/// Nothing where an edit matches nothing.
std::optional<Predicted> predict(const test::Recorded& recorded, const std::vector<Edit>& edits) {
  trace::Trace trace = recorded.trace;
  trace::align(trace);
  std::vector<Recording> recordings;
  recordings.emplace_back(trace, 0);
  Result<RecordedProgram> program = lower(recordings, {});
  INFO((program ? "" : to_string(program.error())));
  REQUIRE(program);
  for (const Edit& edit : edits) {
    program = edit(recordings, *program);
    if (!program) return std::nullopt;
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
  return Predicted{host, device};
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

/// Adds the relative errors of the predicted ends, of host and device.
void compare_ends(const Predicted& predicted, const test::Recorded& truth,
                  std::vector<double>& errors) {
  errors.push_back(std::abs(predicted.host_end / total(truth.host_steps) - 1));
  errors.push_back(std::abs(predicted.device_end / truth.device_end - 1));
}

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
      std::vector<Edit> edits;
      for (const std::string& text : q.scales) edits.push_back(scaled(text));
      const auto predicted = predict(recorded, edits);
      REQUIRE(predicted);
      compare_ends(*predicted, truth, errors);
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

using Action = test::Action;

/// The program with consecutive kernels of a stream as one of this length. What waits for a stream,
/// or makes it wait, separates them, and so does the end of a step.
test::Program with_fused(const test::Program& program, double length) {
  test::Program fused;
  for (const std::vector<Action>& step : program) {
    std::map<int, std::size_t> open;  // by stream: the first kernel of a run
    std::set<std::size_t> gone, longer;
    for (std::size_t i = 0; i < step.size(); ++i) {
      const Action& a = step[i];
      if (a.kind == Action::Kind::kKernel) {
        const auto [first, is_new] = open.emplace(a.stream, i);
        if (!is_new) longer.insert(first->second);
        if (!is_new) gone.insert(i);
      } else if (a.kind == Action::Kind::kSyncDevice) {
        open.clear();
      } else if (a.kind != Action::Kind::kWork) {
        open.erase(a.stream);
        if (a.kind == Action::Kind::kStreamWait) open.erase(a.other);
      }
    }
    fused.emplace_back();
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (gone.contains(i)) continue;
      fused.back().push_back(step[i]);
      if (longer.contains(i)) fused.back().back().length = length;
    }
  }
  return fused;
}

/// The program without waiting for single streams: such a call costs its own.
test::Program without_waits(test::Program program) {
  for (std::vector<Action>& step : program)
    for (Action& a : step)
      if (a.kind == Action::Kind::kSyncStream) a = {Action::Kind::kWork, test::Machine{}.sync_cost};
  return program;
}

std::vector<double> errors_of(const std::function<test::Program(const test::Program&)>& change,
                              const Edit& edit) {
  std::vector<double> errors;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const test::Program program = test::random_program(seed);
    const test::Recorded recorded = test::execute(program, {});
    if (recorded.trace.ranks[0].gpu_ops.empty()) continue;
    if (const auto predicted = predict(recorded, {edit}))
      compare_ends(*predicted, test::execute(change(program), {}), errors);
  }
  std::sort(errors.begin(), errors.end());
  REQUIRE(errors.size() >= 200);
  return errors;
}

TEST_CASE("fused kernels take the time of the toy machine with these kernels") {
  const std::vector<double> errors =
      errors_of([](const test::Program& program) { return with_fused(program, 100); },
                [](const std::vector<Recording>& recordings,
                   RecordedProgram program) -> Result<RecordedProgram> {
                  const auto runs = TRY(find_runs(recordings, program, *parse_selector("kernel")));
                  const std::vector times(runs.size(), Picoseconds::from(Nanoseconds(100000)));
                  return fuse(recordings, std::move(program), runs, times);
                });
  CHECK(quantile(errors, 0.5) < 0.001);
  CHECK(quantile(errors, 0.9) < 0.05);
}

TEST_CASE("calls that no longer wait take the time of the toy machine without them") {
  const std::vector<double> errors = errors_of(
      without_waits, [](const std::vector<Recording>& recordings, RecordedProgram program) {
        return make_asynchronous(recordings, std::move(program),
                                 *parse_selector("host=cudaStreamSynchronize"));
      });
  CHECK(quantile(errors, 0.5) < 0.001);
  CHECK(quantile(errors, 0.9) < 0.02);
}

}  // namespace
}  // namespace rehearse::replay
