#include "profiler/trace/remedies.h"

#include <array>

namespace rehearse::trace {
namespace {

constexpr std::array<std::string_view, kProblemKinds> kRemedies = {
    "record again, and let the profiler end before the program does",  // truncated
    "record again, or export the file again",                          // malformed
    "name ranges and kernels in UTF-8",                                // invalid_text
    "record again with a newer release of the profiler",               // absurd_number
    "record again with a newer release of the profiler",               // missing_field
    "record with the categories that docs/formats/inputs.md lists",    // unknown_category
    "",                                                                // ignored_category
    "record again: the clock of the profiler stepped back",            // negative_duration
    "",                                                                // zero_duration
    "record one process per file",                                     // duplicate_id
    "record again with a newer driver, which aligns the clocks of host and device",  // clock_skew
    "begin the recording a step earlier",                                            // unlaunched
    "end the recording after a synchronization, or a step later",                    // unfinished
    "",                                                               // unpaired_flow
    "close each range that is opened, on the thread that opened it",  // unbalanced_range
    "",                                                               // stream_overlap
    "mark each step: prof.step(), or a range around it",              // missing_steps
    "record both traces in the same run",                             // unjoined
    "record fewer steps, or use larger profiler buffers",             // dropped_records
    "record the whole step from its first op",                        // dangling_dependency
    "record fewer kinds of activity at a time",                       // lost_timing
    "run rehearse doctor, then record again",                         // not_recorded
    "import the recording, or the store, again",                      // unchecked
};

}  // namespace

std::string_view remedy_of(ProblemKind kind) { return kRemedies[static_cast<std::size_t>(kind)]; }

}  // namespace rehearse::trace
