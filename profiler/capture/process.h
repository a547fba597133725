// The recorded process and its two files: HOST-PID.hello, created first, which shows that the
// process loaded the library, and HOST-PID.cap with the recording.
#pragma once

#include <cstdint>

#include <limits.h>
#include <sys/types.h>

namespace rehearse::capture {

/// Creates both files in `folder`, the capture with its first block; returns the name of the
/// capture and its size. A process that replaced another by exec gets a name of its own:
/// HOST-PID-2. `forked_from` is the recorded process from which this one was forked, 0 if there is
/// none. On failure, errno has the reason.
bool create_files(const char* folder, pid_t forked_from, char (&path)[PATH_MAX + 1],
                  std::uint64_t& bytes);

}  // namespace rehearse::capture
