// A step with many microbatches, from steps with few of them.
//
// The middle of a step repeats: each further group of microbatches makes the step longer by the
// same time. So a quantity x that adds up over a step, such as its length, is
//
//   x(m) = x(more) + (m − more) / (more − few) · (x(more) − x(few)).
//
// Each run fills the pipeline and empties it. A third run with still fewer microbatches tells
// whether the step repeats yet.
#pragma once

#include <optional>

#include "models/workload/layout.h"
#include "sim/base/units.h"
#include "strategies/layout_transform.h"

namespace rehearse::step {

struct FewerMicrobatches {
  workload::Layout least, few, more;  ///< in equal distances
  double further = 0;                 ///< (m − more) / (more − few)
};

/// The passes ahead of the first backward are those of up to two microbatches for each stage.
inline constexpr std::uint32_t kLeastFill = 4;

/// `fill`: the fewest microbatches, for each stage. Absent if the runs are not much cheaper than one
/// with all microbatches, and with parameter servers, whose workers need not wait for each other.
/// REQUIRES: the layout is that of this training and plan.
std::optional<FewerMicrobatches> fewer_microbatches(const workload::Layout& layout,
                                                    const strategies::JobSetting& setting,
                                                    std::uint32_t fill);

/// Whether the last microbatches took as long as those before.
bool repeats(Seconds with_least, Seconds with_few, Seconds with_more);

}  // namespace rehearse::step
