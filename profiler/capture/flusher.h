// The flusher: the only thread that moves rows from memory to the file.
#pragma once

namespace rehearse::capture {

/// Runs until Recording::closing is set; then writes the rest and the trailer, and sets
/// Recording::closed. `recording` is a Recording. Returns null.
void* run_flusher(void* recording);

}  // namespace rehearse::capture
