#include "cli/check/predictions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "profiler/ingest/input.h"
#include "profiler/replay/compare.h"
#include "profiler/replay/lower.h"
#include "sim/base/file.h"
#include "sim/engine/engine.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using compare::Verdict;
using Errors = GuardedRecording::Errors;
using Known = std::map<std::string, Errors>;

/// As shares of the measured time. No replay is that far off.
constexpr double kMostError = 1e6;

/// Recordings with times; the captures of one folder are one recording.
std::vector<fs::path> recordings_below(const fs::path& folder) {
  std::set<fs::path> found;
  const auto look_at = [&](const fs::path& path, bool is_folder) {
    const Result<ingest::InputKind> kind = ingest::detect_input(path);
    if (!kind || *kind == ingest::InputKind::kExecutionTrace || *kind == ingest::InputKind::kChakra)
      return;
    if (!is_folder || *kind == ingest::InputKind::kCapture) found.insert(path);
  };
  look_at(folder, true);
  constexpr auto kOptions = fs::directory_options::skip_permission_denied;
  for (const auto& entry : fs::recursive_directory_iterator(folder, kOptions))
    if (entry.is_directory() || entry.is_regular_file())
      look_at(entry.path(), entry.is_directory());
  return {found.begin(), found.end()};
}

Result<Errors> replayed(const fs::path& path) {
  const trace::Trace trace = TRY(ingest::read_inputs(std::vector{path}, {}));
  std::vector<replay::Recording> recordings;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) recordings.emplace_back(trace, r);
  const replay::ReplayGraph graph = TRY(replay::to_graph(recordings));
  const graph::Timeline timeline = TRY(engine::run(graph.graph()));
  const replay::Comparison c = replay::compare(recordings, graph, timeline);
  return Errors{c.step_time.error(), c.start_error};
}

Result<Known> read_baseline(const fs::path& path) {
  const std::string text = TRY(read_file(path));
  const auto wrong = [&](std::string problem) {
    return fail_in(path, std::move(problem),
                   "the output of 'rehearse check --predictions FOLDER --format json'");
  };
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return wrong("is not JSON");
  if (!json.is_object() || !json.contains("predictions") || !json["predictions"].is_array())
    return wrong("has no predictions");
  Known known;
  for (const auto& one : json["predictions"]) {
    const auto number = [&](const char* key) {
      return one.is_object() && one.contains(key) && one[key].is_number();
    };
    if (!one.is_object() || !one.contains("name") || !one["name"].is_string())
      return wrong("has a prediction without a name");
    if (!number("step_error") || !number("start_error")) continue;  // it could not be read then
    const std::string name = one["name"].get<std::string>();
    const Errors errors{one["step_error"].get<double>(), one["start_error"].get<double>()};
    for (const double error : {errors.step, errors.start})
      if (!(std::abs(error) <= kMostError))
        return wrong(fmt::format("{} has an error of {}, and errors are at most {}", name, error,
                                 kMostError));
    known[name] = errors;
  }
  return known;
}

std::string magnitude(double share) { return fmt::format("{:.2f} %", std::abs(share) * 100); }

CheckFinding finding_of(const GuardedRecording& r, const fs::path& folder) {
  CheckFinding finding{r.name, Verdict::kPass, {}, (folder / r.name).string()};
  if (!r.now) {
    finding.verdict = r.before ? Verdict::kFail : Verdict::kPass;
    finding.message = r.trouble;
    return finding;
  }
  if (!r.before) {
    finding.message =
        fmt::format("step time error {}; nothing to compare with", magnitude(r.now->step));
    return finding;
  }
  const auto worse = [](double now, double before) {
    return std::abs(now) > std::abs(before) + kWorse;
  };
  if (worse(r.now->step, r.before->step) || worse(r.now->start, r.before->start))
    finding.verdict = Verdict::kFail;
  finding.message = fmt::format("step time error {} (was {}), GPU start error {} (was {})",
                                magnitude(r.now->step), magnitude(r.before->step),
                                magnitude(r.now->start), magnitude(r.before->start));
  return finding;
}

}  // namespace

Result<PredictionGuard> guard_predictions(const fs::path& folder, const fs::path& baseline,
                                          const Globals& globals) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    return fail_in(folder, fs::exists(folder, ignored) ? "is not a folder" : "does not exist",
                   "a folder of recordings");
  Known known;
  if (!baseline.empty()) known = TRY(read_baseline(baseline));
  PredictionGuard guard;
  guard.has_baseline = !baseline.empty();
  const std::vector<fs::path> paths = recordings_below(folder);
  const Progress progress = globals.progress_of("replaying");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (progress && !progress(static_cast<double>(i) / static_cast<double>(paths.size())))
      return fail("stopped");
    GuardedRecording r{.name = fs::relative(paths[i], folder).generic_string()};
    const Result<Errors> errors = replayed(paths[i]);
    if (errors)
      r.now = *errors;
    else
      r.trouble = errors.error().diagnostics.front().problem;
    if (const auto at = known.find(r.name); at != known.end()) {
      r.before = at->second;
      known.erase(at);
    }
    guard.recordings.push_back(std::move(r));
  }
  for (const auto& [name, before] : known)
    guard.recordings.push_back({.name = name, .before = before, .trouble = "no longer exists"});
  if (paths.empty()) return fail_in(folder, "contains no recording with times");
  std::ranges::sort(guard.recordings, {}, &GuardedRecording::name);
  for (const GuardedRecording& r : guard.recordings) guard.findings.add(finding_of(r, folder));
  return guard;
}

Value prediction_rows(const PredictionGuard& guard) {
  Value list = Value::array();
  for (std::size_t i = 0; i < guard.recordings.size(); ++i) {
    const GuardedRecording& r = guard.recordings[i];
    Value one = {{"name", "recording", r.name},
                 {"verdict", "verdict", to_string(guard.findings.judged[i].verdict)},
                 {"", "what", guard.findings.judged[i].message, {}, kProse}};
    if (r.now) {
      one["step_error"] = r.now->step;
      one["start_error"] = r.now->start;
    } else {
      one["trouble"] = r.trouble;
    }
    if (r.before)
      one["before"] = {{"step_error", r.before->step}, {"start_error", r.before->start}};
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace rehearse::cli
