// The rate of a job on a slice, relative to the whole GPU, from what is known of the job:
//   1. its law (slice_law.h), from a timed sweep;
//   2. a step on the whole GPU, and the host's time in it;
//   3. nothing: its share of the compute slices, with an interval that reaches up to its rate
//      alone, which a job keeps if it does not fill a GPU.
#pragma once

#include "models/sharing/slice_law.h"

namespace rehearse::sharing {

/// The rate at this batch, at most 1.
Estimate<double> rate_by_law(const JobLaw& law, SliceRatio slice, double size);

/// The GPU's part of a step, without the host's, may grow with the batch completely (the value, and
/// the slow end) or not at all (the fast end). REQUIRES: 0 <= host <= step, step above zero.
Estimate<double> rate_by_step(Seconds step, Seconds host, WorkKind kind, bool training,
                              SliceRatio slice, const SliceConstants& constants);

/// From the scarcer of compute and memory slices to 1. Its provenance is datasheet.
Estimate<double> rate_by_share(const cluster::MigDevice& device, std::uint32_t profile);

}  // namespace rehearse::sharing
