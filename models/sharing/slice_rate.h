// How fast a job is on a slice, of its speed on the whole GPU, by as much as is known of it:
//   1. its law (slice_law.h), from a sweep that was timed;
//   2. a step on the whole GPU, and how long the host takes for it;
//   3. nothing: its share of the compute slices, and an interval that reaches to its speed alone,
//      which a job keeps that does not fill a GPU.
#pragma once

#include "models/sharing/slice_law.h"

namespace rehearse::sharing {

/// At this batch. 1 at most.
Estimate<double> rate_by_law(const JobLaw& law, SliceRatio slice, double size);

/// The GPU's part of a step, without the host's, may grow with the batch completely (the value,
/// and the slow end) or not at all (the fast end). REQUIRES: 0 <= host <= step, step above zero.
Estimate<double> rate_by_step(Seconds step, Seconds host, WorkKind kind, bool training,
                              SliceRatio slice, const SliceConstants& constants);

/// From the scarcer of compute and memory slices to 1; datasheet.
Estimate<double> rate_by_share(const cluster::MigDevice& device, std::uint32_t profile);

}  // namespace rehearse::sharing
