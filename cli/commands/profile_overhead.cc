#include "cli/commands/profile_overhead.h"

#include <algorithm>

#include <fmt/core.h>

#include "profiler/ingest/input.h"
#include "profiler/replay/recording.h"
#include "profiler/replay/steps.h"
#include "sim/base/statistics.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

Seconds step_at(const MeasuredSteps& steps, double share) {
  return steps.steps[static_cast<std::size_t>(share * static_cast<double>(steps.steps.size() - 1))];
}

/// The step time of a plain run, less the cost of its own ranges.
Seconds plain_step(const MeasuredSteps& steps, Seconds step, Seconds cost_per_range) {
  return step - cost_per_range * steps.ranges_per_step;
}

Spread spread_of(const std::vector<double>& shares) {
  const auto [low, high] = std::ranges::minmax_element(shares);
  return {.value = median(shares), .low = *low, .high = *high};
}

std::optional<MeasuredSteps> steps_of(const trace::Trace& trace, std::size_t rank) {
  const replay::Recording recording(trace, rank);
  const replay::Steps found = replay::find_steps(recording);
  if (found.source != replay::StepSource::kMarks) return std::nullopt;
  std::vector<replay::Step> whole;
  std::ranges::copy_if(found.steps, std::back_inserter(whole),
                       [](const replay::Step& step) { return !step.partial; });
  const std::size_t warm_up = std::max<std::size_t>(1, whole.size() / 5);
  if (whole.size() <= warm_up) return std::nullopt;
  whole.erase(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(warm_up));

  MeasuredSteps measured{.ranges_per_step = 0, .calls_per_step = 0};
  for (const replay::Step& step : whole)
    measured.steps.push_back((step.end - step.start).seconds());
  std::ranges::sort(measured.steps);
  double ranges = 0, calls = 0;
  for (const trace::HostOp& op : trace.ranks[rank].host_ops) {
    if (op.start < whole.front().start || op.start >= whole.back().end) continue;
    const bool call = op.kind == trace::HostKind::kRuntime || op.kind == trace::HostKind::kDriver;
    (call ? calls : ranges) += 1;
  }
  measured.ranges_per_step = ranges / static_cast<double>(whole.size());
  measured.calls_per_step = calls / static_cast<double>(whole.size());
  return measured;
}

/// Runs the command once, into a folder that is then removed; fails if the command fails.
Result<RunPair> run_again(const capture::LaunchOptions& options, bool plain) {
  const capture::LaunchReport report = TRY(capture::launch(options));
  RunPair pair{.wall_recorded = report.wall, .wall_plain = report.wall};
  Result<std::optional<MeasuredSteps>> steps =
      options.inject ? measured_steps(options.folder) : std::optional<MeasuredSteps>();
  std::error_code ignored;
  if (options.inject) fs::remove_all(options.folder, ignored);
  if (report.shell_code() != 0)
    return fail(fmt::format("the command ended with {} when it was run again {} recording",
                            report.shell_code(), plain ? "without" : "with"),
                "a command that can run more than once, for --overhead");
  if (!steps) return forward(steps);
  (plain ? pair.plain : pair.recorded) = std::move(*steps);
  return pair;
}

}  // namespace

Result<std::optional<MeasuredSteps>> measured_steps(const fs::path& folder) {
  std::error_code ignored;
  const bool any =
      std::any_of(fs::directory_iterator(folder, ignored), fs::directory_iterator(),
                  [](const auto& entry) { return entry.path().extension() == ".cap"; });
  if (!any) return std::optional<MeasuredSteps>();
  const std::vector<fs::path> inputs = {folder};
  const trace::Trace trace = TRY(ingest::read_inputs(inputs, {}));
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank)
    if (std::optional<MeasuredSteps> steps = steps_of(trace, rank)) return steps;
  return std::optional<MeasuredSteps>();
}

Overhead overhead_of(const std::vector<RunPair>& pairs, Seconds cost_per_range) {
  std::vector<Seconds> walls, plain_steps;
  std::vector<double> wall_shares, step_shares;
  std::vector<Seconds> per_call;
  for (const RunPair& pair : pairs) {
    walls.push_back(pair.wall_plain);
    wall_shares.push_back(pair.wall_recorded / pair.wall_plain - 1);
    if (!pair.recorded || !pair.plain) continue;
    const Seconds plain = plain_step(*pair.plain, median(pair.plain->steps), cost_per_range);
    plain_steps.push_back(plain);
    step_shares.push_back(median(pair.recorded->steps) / plain - 1);
    if (pair.recorded->calls_per_step > 0) {
      const Seconds longer =
          median(pair.recorded->steps) - plain - cost_per_range * pair.recorded->ranges_per_step;
      per_call.push_back(std::max(Seconds::s(0), longer) / pair.recorded->calls_per_step);
    }
  }
  Overhead overhead{
      .pairs = pairs.size(), .wall_plain = median(walls), .wall_share = spread_of(wall_shares)};
  if (plain_steps.empty()) return overhead;
  overhead.step_plain = median(plain_steps);
  overhead.step_share = spread_of(step_shares);
  if (plain_steps.size() == 1) {
    const auto pair =
        std::ranges::find_if(pairs, [](const RunPair& p) { return p.recorded && p.plain; });
    const auto share = [&](double recorded, double plain) {
      return step_at(*pair->recorded, recorded) /
                 plain_step(*pair->plain, step_at(*pair->plain, plain), cost_per_range) -
             1;
    };
    overhead.step_share->low = std::min(overhead.step_share->value, share(0.25, 0.75));
    overhead.step_share->high = std::max(overhead.step_share->value, share(0.75, 0.25));
  }
  if (!per_call.empty()) overhead.cost_per_call = median(per_call);
  return overhead;
}

Result<Overhead> measure_overhead(const capture::LaunchOptions& options,
                                  const capture::LaunchReport& first, std::size_t pairs) {
  std::optional<MeasuredSteps> steps = TRY(measured_steps(options.folder));
  const bool marked = steps.has_value();
  capture::LaunchOptions again = options;
  again.folder = options.folder / ".again";  // gone when it has been read
  again.output_to_stderr = true;
  std::vector<RunPair> runs;
  for (std::size_t i = 0; i < pairs; ++i) {
    RunPair pair{.wall_recorded = first.wall, .wall_plain = first.wall, .recorded = steps};
    if (i > 0) {
      const RunPair recorded = TRY(run_again(again, false));
      pair.wall_recorded = recorded.wall_recorded;
      pair.recorded = recorded.recorded;
    }
    capture::LaunchOptions plain = again;
    plain.inject = marked;
    plain.record = {};
    plain.record.device = false;
    plain.record.power = 0;
    if (!plain.python.empty()) plain.variables.push_back("REHEARSE_TORCH_OPS=steps");
    const RunPair other = TRY(run_again(plain, true));
    pair.wall_plain = other.wall_plain;
    pair.plain = other.plain;
    runs.push_back(std::move(pair));
  }
  return overhead_of(runs, first.cost_per_range);
}

}  // namespace rehearse::cli
