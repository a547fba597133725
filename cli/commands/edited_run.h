// Edits of a recording, and its run with them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/replay_job.h"
#include "sim/base/estimate.h"

namespace rehearse::cli {

/// Makes a program of the recording from another.
struct Edit {
  std::function<Result<replay::RecordedProgram>(replay::RecordedProgram program, Bound)> apply;
  /// What it cannot know, in one sentence. Empty: it is the same at both bounds.
  std::string assumption = {};
};

struct EditedRun {
  ReplayRun run;
  std::vector<std::string> assumptions;  ///< each once
  /// The shortest and the longest step, if something is assumed.
  struct Steps {
    Seconds low, high;
  };
  std::optional<Steps> assumed = {};

  /// The step with the interval of an edited replay, widened by what the edits assume and by
  /// `further_error` (profiler/replay/interval.h).
  Estimate<Seconds> step(const ReplayJob& job, double further_error = 0) const;
};

/// Runs the recording with these edits, in their order.
Result<ReplayRun> run_at(const ReplayJob& job, const std::vector<Edit>& edits, Bound bound);
/// The same. If one of them assumes something, all run
/// at both bounds too.
Result<EditedRun> run_edited(const ReplayJob& job, const std::vector<Edit>& edits);

}  // namespace rehearse::cli
