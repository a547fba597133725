// The measuring method: the number of runs until a time is known. It is independent of devices: a
// Subject runs launches and returns their times.
//
//   1. Warm-up: all subjects in turn, for 100 ms of device time, and until two consecutive batches
//      of each agree within 2 %.
//   2. Samples: a batch of each subject in turn (A B A B), so that a drift of the device's clock
//      affects all alike, until the mean is known well enough or time is up.
//      If the later half of the samples differs from the earlier, the device was not steady yet:
//      the earlier half is dropped, while there is time.
//   3. Batches in which the device was throttled are dropped, and counted.
//
// docs/concepts/micro-benchmarks.md has the reasons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::bench {

struct Summary {
  Seconds median = Seconds::s(0), mean = Seconds::s(0), min = Seconds::s(0), p10 = Seconds::s(0),
          p90 = Seconds::s(0);
  std::size_t samples = 0;
  /// The half-width of the mean's 95 % interval, relative to the mean; infinite with fewer than two
  /// samples.
  double half_width = 0;
};

/// Percentiles are interpolated linearly between the two nearest samples.
/// REQUIRES: at least one sample, each finite and above zero.
Summary summarize(std::span<const Seconds> samples);

/// Half-width of the 95 % interval of a mean, in standard errors: Student's t with
/// `samples` - 1 degrees of freedom. REQUIRES: samples >= 2.
double student_95(std::size_t samples);

/// Result of one batch of launches.
struct Batch {
  std::vector<Seconds> samples;  ///< one per launch; the mean for consecutive launches
  Seconds busy = Seconds::s(0);  ///< device time of the whole batch
  double sm_clock_hz = 0;        ///< 0: unknown
  bool throttled = false;        ///< by heat or the board
  bool capped = false;           ///< by the power limit
};

class Subject {
 public:
  virtual ~Subject() = default;
  /// Fails if a launch fails; the subject is then not run again.
  virtual Result<Batch> run(std::size_t launches) = 0;
};

struct Method {
  Seconds warm_up = Seconds::ms(100);
  double agreement = 0.02;                  ///< of consecutive batches in the warm-up
  Seconds longest_warm_up = Seconds::s(1);  ///< limit if batches never agree
  Seconds batch = Seconds::ms(2);           ///< target time of a batch
  std::size_t most_launches = 128;          ///< per batch: a stream queues this many
  double half_width = 0.01;                 ///< of the mean's 95 % interval
  std::size_t least_samples = 10;
  std::size_t most_samples = 1000;
  Seconds longest = Seconds::ms(500);  ///< device time of the samples
};

struct Measurement {
  Status status = {};  ///< why there is no result
  Summary summary = {};
  std::uint64_t dropped = 0;  ///< batches
  double capped = 0;          ///< share of the batches that count
  double sm_clock_hz = 0;     ///< their mean; 0: unknown
};

/// Returns one measurement per subject. `stop` is called between batches; once it returns true,
/// completed measurements count and the others are marked as stopped. The measurement of a subject
/// that was always throttled is an error.
std::vector<Measurement> measure(std::span<Subject* const> subjects, const Method& method,
                                 const std::function<bool()>& stop = {});

}  // namespace rehearse::bench
