// Published steps on slices of A100: MIGProfiler's sweeps over batches and sequences, and MISO's
// training jobs. They are data next to the source tree, not part of it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/cluster/partition.h"
#include "tests/validation/studies/sharing/slice_fit.h"
#include "tests/validation/studies/sharing/unmeasured.h"

namespace rehearse::cli {

struct SlicedStep {
  std::uint32_t profile;        ///< of the job's device
  double size;                  ///< batch, or sequence length
  std::optional<Seconds> time;  ///< absent: it did not fit
  std::optional<Bytes> used;    ///< of the slice's memory; absent where it did not run, and of MISO
};

struct SlicedJob {
  std::string name;    ///< "A100-40 inference bert-base"
  std::string family;  ///< of jobs of one kind in one publication
  cluster::MigDevice device;
  sharing::WorkKind kind;
  bool training;
  bool over_sequences;  ///< else over batches
  /// What its layers compute: of jobs whose model is known.
  std::optional<sharing::DescribedJob> described;
  bool fast_host;  ///< that of the A100-80 server
  std::vector<SlicedStep> steps = {};

  std::vector<sharing::SweepPoint> points(std::uint32_t profile) const;
  /// The profiles on which it was run, smallest first, without the whole.
  std::vector<std::uint32_t> slices() const;
  sharing::TimedJob timed() const;
};

/// Nothing where the folder has none of it. MISO's deepspeech2 is passed over: its steps are a
/// mixture (a tenth of them takes a fifth of the median), and so are sequences of 256 and more of
/// the A100-80 server, where texts are shorter than the sequence. Fails where a table is wrong.
Result<std::vector<SlicedJob>> read_sliced_jobs(const std::filesystem::path& data);

}  // namespace rehearse::cli
