// What an accelerator that is fed by a pipeline waits for: the pipeline run with the accelerator
// behind it, as one more stage, in one graph.
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

/// Work that comes over and over: it takes so many units of the last stage, which may be a part of
/// one, and then lasts so long.
struct Work {
  double units;  ///< above zero
  Seconds time;  ///< above zero
};

/// Fails on a pipeline whose late samples are no one's: a job takes all.
Status gives_all_samples(const Pipeline& pipeline);

/// A pipeline that feeds. What one run of it shows of other work is not run again. Where the
/// accelerator, however fast, never holds the pipeline up, the units are there as soon for all that
/// is as fast: to the picosecond what a run of that work would show. And who never waits does not
/// wait with fewer units a second either; that is proven where no cores and no links are shared,
/// and compared by a property test where they are. Thread-safe.
class Feed {
 public:
  explicit Feed(Pipeline pipeline);

  const Pipeline& pipeline() const { return pipeline_; }

  /// How long the work takes, in the long run: as long as it lasts where it never waits for its
  /// units, else longer. Units are taken as the work begins, of more than 256 that many at a time,
  /// evenly over it. What the pipeline says of an accelerator of its own plays no part. Fails as
  /// simulate() and gives_all_samples() do.
  Result<Seconds> time_of(const Work& work) const;

 private:
  /// Of an accelerator that takes no time: when the units for each of its takes are there, and
  /// before when each may end without the pipeline noticing.
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

/// The pipeline whose reads take no time.
Pipeline with_free_storage(Pipeline pipeline);

}  // namespace rehearse::input
