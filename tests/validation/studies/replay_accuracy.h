// How well replays explain recordings: the measured side of docs/accuracy.md.
//
// A baseline error near zero proves little, since replaying every gap as host work has none. So
// each recording is also asked questions whose answers have known limits (a device ten times
// slower), each rule is switched off in turn, and pairs of recordings of one job in two set-ups are
// predicted one from the other.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "profiler/replay/compare.h"
#include "profiler/replay/lower.h"
#include "sim/base/progress.h"

namespace rehearse::cli {

/// One recording (of one rank, or of several of one job together).
struct RecordingAccuracy {
  std::string name;    ///< path below the data folder
  std::string device;  ///< as recorded
  std::size_t ranks = 1;
  std::size_t device_ops = 0;
  replay::StepSource step_source = replay::StepSource::kSpan;
  replay::Comparison plain;  ///< without residuals
  replay::Comparison with_residuals;
  std::vector<replay::StepComparison> whole_steps;  ///< of `plain`
  /// Step time relative to as recorded.
  double gpu_times_0 = 0, gpu_times_10 = 0, host_times_2 = 0;
  std::optional<double> collectives_times_10;
  /// What of the perturbations breaks a physical limit; empty when nothing does.
  std::string broken_limit;
  struct Ablation {
    const char* rule;
    double step_error;   ///< of the step time
    double start_error;  ///< of device ops
  };
  std::vector<Ablation> ablations;
};

/// One rank's host work made twice as long in a joint replay, and what it does to the others.
struct Coupling {
  std::string name;
  std::uint32_t rank;
  double own_lateness_us = 0;  ///< how much later its last arrival comes
  /// Mean over the other ranks of how much later their last collective ends.
  double others_delay_us = 0;
  /// The same by the definition of a collective, from the arrivals alone.
  double others_implied_us = 0;
};

/// One rank's collective durations hidden and predicted from the others'.
struct HiddenRank {
  std::string name;
  std::uint32_t rank;
  double step_error;  ///< of the hidden rank
};

/// A recording predicted from another of the same job in another set-up.
struct PairPrediction {
  std::string from, to, edit;
  Seconds predicted = Seconds::s(0);
  Seconds measured_mean = Seconds::s(0);    ///< of whole steps within 25 % of their median
  Seconds measured_median = Seconds::s(0);  ///< of all whole steps
  std::size_t outliers = 0;
};

struct ReplayAccuracy {
  std::vector<RecordingAccuracy> recordings;
  std::vector<std::string> without_device_work;  ///< read, but with nothing to predict
  std::vector<std::pair<std::string, std::string>> unreadable;  ///< file and why
  std::vector<Coupling> couplings;
  std::vector<HiddenRank> hidden;
  std::vector<PairPrediction> pairs;
};

/// Replays every recording below `data`. Files of one folder that name different ranks of one job
/// are replayed apart and together. Fails when there is none.
Result<ReplayAccuracy> measure_replay_accuracy(const std::filesystem::path& data,
                                               const Progress& progress);

}  // namespace rehearse::cli
