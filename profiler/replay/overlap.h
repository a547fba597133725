// Edits of waiting: calls that no longer wait for the device, and device ops that move to another
// stream.
#pragma once

#include <vector>

#include "profiler/replay/edit.h"

namespace rehearse::replay {

/// The calls that copy or synchronize no longer wait for the device, as with pinned memory and
/// without reading results: those of the selected copies, or the selected calls of the host. Fails
/// if none of them waits.
Result<RecordedProgram> make_asynchronous(const std::vector<Recording>& recordings,
                                          RecordedProgram program, const Selector& edit);

/// Ops that get a stream of their own, and the ops that need their results:
/// SELECTOR or SELECTOR:SELECTOR.
struct OwnStream {
  Selector what;
  std::optional<Selector> needed_by;
};
Result<OwnStream> parse_own_stream(std::string_view text);

/// When the results of moved ops are needed, where the edit does not state it: at the end of the
/// step, or at the next op of their former stream.
enum class Needed : std::uint8_t { kAtEndOfStep, kAtOnce };

/// Moves the device ops of each edit to a stream of their own; the last edit that selects an op
/// holds. They follow the last op before them that stays on their former stream, and keep their
/// launch and other waits. The next op of that stream that needs their results, that the next step
/// begins with, or that the host waits for is joined: it, or the waiting host, waits for them too.
/// Fails if a selector matches no device op.
Result<RecordedProgram> move_to_streams(const std::vector<Recording>& recordings,
                                        RecordedProgram program,
                                        const std::vector<OwnStream>& edits, Needed needed);

}  // namespace rehearse::replay
