// Ending the program from a signal handler without leaving half-written files.
#pragma once

namespace rehearse {

/// Removes the temporary file of every PendingFile that is open. Safe in a signal handler; the
/// program must end afterwards.
void remove_pending_files();

}  // namespace rehearse
