// The edit that joins recorded sums of gradients in larger buckets.
#pragma once

#include "cli/commands/edited_run.h"

namespace rehearse::cli {

/// Recorded sums of gradients, in order of launch, join until a bucket has at least `size`. The last of
/// a bucket takes the time of all, with their fixed time by MessageLaw once, and the others are taken
/// away. What waited for one of them waits for the last. A sum begins a bucket of its own if what it
/// waits for needs one of the bucket. Fails if no two sums join, if their sizes were not recorded, and
/// where activation_messages does.
Result<replay::RecordedProgram> join_sums(const ReplayJob& job, replay::RecordedProgram program,
                                          Bytes size, Bound bound);

}  // namespace rehearse::cli
