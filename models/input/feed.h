// The waiting of an accelerator for its pipeline: the pipeline runs with the accelerator as a
// further stage, in one program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/input/pipeline.h"
#include "sim/base/once.h"
#include "sim/base/time.h"

namespace rehearse::input {

/// Repeated work: it takes a number of units of the last stage, possibly a fraction of
/// one, and then lasts a given time.
struct Work {
  double units;  ///< above zero
  Seconds time;  ///< above zero
};

/// Fails on a pipeline that throws late samples away: a job uses all samples.
Status gives_all_samples(const Pipeline& pipeline);

/// A pipeline that feeds an accelerator. One run serves several works: as long as the accelerator
/// never delays the pipeline, units arrive at the same times for every work, and the result equals
/// that of a separate run to the picosecond. A work that never waits does not wait with fewer units
/// per second either. This is proven without shared cores and links, and a property test compares
/// both with them. Thread-safe.
class Feed {
 public:
  explicit Feed(Pipeline pipeline);

  const Pipeline& pipeline() const { return pipeline_; }

  /// The long-run time of the work: its own time if it never waits for its units, otherwise longer.
  /// Units are taken as the work begins; more than 256 are taken in groups, evenly over it. The
  /// pipeline's own accelerator is ignored. Fails as simulate() and gives_all_samples() do.
  Result<Seconds> time_of(const Work& work) const;

 private:
  /// The times at which the units of each request are ready for an accelerator that takes no time,
  /// and the latest end of each request that does not delay the pipeline.
  struct Unheld {
    std::vector<Picoseconds> there, latest;
    std::size_t first, last;  ///< Settled
  };
  struct Kept {
    Once<std::uint32_t, Result<Unheld>> unheld;
    Once<std::pair<std::uint32_t, Picoseconds>, Result<Seconds>> rhythms;
  };

  Pipeline with_accelerator(std::uint32_t units, Seconds hold) const;
  Result<Unheld> run_unheld(std::uint32_t units) const;
  std::optional<Seconds> rhythm_unheld(std::uint32_t units, Seconds hold) const;
  const Result<Seconds>& rhythm(std::uint32_t units, Seconds hold) const;
  bool waits(std::uint32_t units, Seconds hold) const;

  Pipeline pipeline_;
  std::unique_ptr<Kept> kept_ = std::make_unique<Kept>();
};

/// The pipeline with reads that take no time.
Pipeline with_free_storage(Pipeline pipeline);

}  // namespace rehearse::input
