// The recorded process and its two files: HOST-PID.hello, created first, which shows that the
// process loaded the library, and HOST-PID.cap with the recording.
#pragma once

#include <cstdint>

#include <limits.h>
#include <sys/types.h>

namespace rehearse::capture {

/// Makes both files in `folder`, the capture with its first block, gives the name of the capture
/// and its size. A process that took the place of another by exec gets names of its own:
/// HOST-PID-2. `forked_from` is the recorded process that this one was forked from, 0 when there is
/// none. On failure errno says why.
bool create_files(const char* folder, pid_t forked_from, char (&path)[PATH_MAX + 1],
                  std::uint64_t& bytes);

}  // namespace rehearse::capture
