#include "profiler/trace/problems.h"

#include <algorithm>

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

using enum Severity;

constexpr std::array<ProblemInfo, kProblemKinds> kInfos = {{
    {"truncated", kError, "the file ends in the middle"},
    {"malformed", kError, "part of the file is unreadable and was skipped"},
    {"invalid_text", kWarning, "text that is not UTF-8 was replaced"},
    {"absurd_number", kWarning, "an implausible number; the record was dropped"},
    {"missing_field", kWarning, "a record lacks a required field; dropped"},
    {"unknown_category", kWarning, "an unknown category; dropped"},
    {"ignored_category", kInfo, "a category that replay does not need; dropped"},
    {"negative_duration", kWarning, "a record ends before it starts; dropped"},
    {"zero_duration", kInfo, "a device op lasts less than the resolution of the clock"},
    {"duplicate_id", kWarning, "two launch calls, or two ops, share an id"},
    {"clock_skew", kWarning, "a device op starts before the call that launched it"},
    {"unlaunched", kInfo, "a device op was launched before the recording began"},
    {"unfinished", kInfo, "a launch call has no device op in the recording"},
    {"unpaired_flow", kInfo, "a flow arrow starts and never ends"},
    {"unbalanced_range", kWarning, "a range was opened and never closed, or the reverse"},
    {"stream_overlap", kInfo, "device ops of one stream overlap (dependent launch)"},
    {"missing_steps", kInfo, "no step marks; the whole recording counts as one step"},
    {"unjoined", kInfo, "operators of the execution trace are not in the timed recording"},
    {"dropped_records", kError, "the profiler lost records"},
    {"dangling_dependency", kWarning, "a dependency names an op that is not recorded; dropped"},
    {"lost_timing", kWarning, "the profiler lost the times of a record; dropped"},
    {"not_recorded", kWarning, "the profiler could not record a part of the program"},
    {"unchecked", kInfo, "a store of version 2 has no checksum: damage may go unseen"},
}};

}  // namespace

const ProblemInfo& info(ProblemKind kind) { return kInfos[static_cast<std::size_t>(kind)]; }

std::string_view to_string(Severity severity) {
  switch (severity) {
    case kInfo: return "info";
    case kWarning: return "warning";
    case kError: return "error";
  }
  return "?";
}

void Problems::add(ProblemKind kind, std::string_view where, std::uint64_t count) {
  if (count == 0) return;
  const auto i = static_cast<std::size_t>(kind);
  if (counts_[i] == 0) first_[i] = where;
  counts_[i] += count;
}

void Problems::add(const Problems& other) {
  for (std::size_t i = 0; i < kProblemKinds; ++i)
    add(static_cast<ProblemKind>(i), other.first_[i], other.counts_[i]);
}

std::vector<Problem> Problems::list() const {
  std::vector<Problem> found;
  for (std::size_t i = 0; i < kProblemKinds; ++i)
    if (counts_[i] > 0) found.push_back({static_cast<ProblemKind>(i), counts_[i], first_[i]});
  std::ranges::stable_sort(found, [](const Problem& a, const Problem& b) {
    return info(a.kind).severity > info(b.kind).severity;
  });
  return found;
}

Severity Problems::worst() const {
  const std::vector<Problem> found = list();
  return found.empty() ? kInfo : info(found.front().kind).severity;
}

std::string_view remedy_of(ProblemKind kind) { return kRemedies[static_cast<std::size_t>(kind)]; }

}  // namespace rehearse::trace
