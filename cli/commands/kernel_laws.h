// The laws of edits: kernels in another number format, fused kernels, and collectives with more or
// fewer bytes.
#pragma once

#include <map>
#include <string_view>
#include <utility>

#include "cli/commands/edited_run.h"
#include "models/compute/op_cost.h"
#include "models/workload/op.h"
#include "profiler/replay/edit.h"

namespace rehearse::cli {

/// The cost laws of a rank's GPU, with the measurements of single operations that came with the
/// recording. Fails if the GPU is not in the catalog; `instead`: the edit that needs no law.
Result<compute::OpCost> cost_on(const ReplayJob& job, const trace::Rank& rank,
                                std::string_view instead);
Seconds at(const Estimate<Seconds>& time, Bound bound);

/// Kernels, and the number format of their operands: SELECTOR:FORMAT.
struct InFormat {
  replay::Selector what;
  workload::Dtype format;
};
Result<InFormat> parse_format_edit(std::string_view text);

/// Each kernel takes recorded × modelled time in the new format ÷ that in the recorded one, on the
/// recorded GPU. Measurements of single operations that came with the recording replace the model
/// where they have both. A cast of the weights of each selected operator, and of its input if the
/// operator before it has another format, is added; the low bound has none, the high bound twice as
/// much. The last edit that selects a kernel holds. Kernels without recorded shapes keep their time, with a warning. Fails if that is true of
/// all, or if the GPU is not in the catalog.
Result<replay::RecordedProgram> in_format(const ReplayJob& job, replay::RecordedProgram program,
                                          const std::vector<InFormat>& edits, Bound bound,
                                          const Globals& globals);

/// Runs of the selected kernels as one kernel each (replay::find_runs). Without a time, the law is:
/// matrix products keep their time. The others move their bytes without those of results that only
/// the next kernel reads. Two batched matrix products or more are attention, which takes recorded ×
/// modelled time of fused attention ÷ that of the kernels. Without shapes a run takes the geometric
/// mean of its bounds: its longest kernel, and all of them.
Result<replay::RecordedProgram> fuse_kernels(const ReplayJob& job, replay::RecordedProgram program,
                                             const replay::MaybeTimed& edit, Bound bound);

/// The law of a recorded group of ranks, per kind of collective:
///
///   time = fixed + (recorded time − fixed) × bytes ÷ recorded bytes
///
/// `fixed` is the constant of a straight line through the recorded times of different sizes
/// (comm::pieces::fit_affine), at most the shortest of them. With one size it is zero. The ends of
/// the interval have no fixed time, and the shortest recorded one.
class MessageLaw {
 public:
  explicit MessageLaw(const replay::RecordedProgram& recorded);

  /// REQUIRES: `op` has a duration; `group` is its group in the program.
  Picoseconds with_bytes(std::uint32_t group, const program::ProgramOp& op, double times,
                         Bound bound) const;

 private:
  struct Fixed {
    Picoseconds value{0}, most{0};
  };
  std::map<std::pair<std::uint32_t, CollectiveKind>, Fixed> fixed_;
};

}  // namespace rehearse::cli
