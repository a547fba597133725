// One queue of items for the threads of a process and for the ranks of a communicator, with a
// journal.
//
// The first rank hands items out in their order, collects the results, and also evaluates. A caller
// that asks only for threads gets just these.
#pragma once

#include <string>
#include <vector>

#include "sim/base/progress.h"
#include "sim/base/result.h"
#include "sim/work/communicator.h"
#include "sim/work/journal.h"
#include "sim/work/thread_pool.h"

namespace rehearse::work {

struct Work {
  std::string part;       ///< a name of its own among those of one journal: "points"
  std::size_t items = 0;  ///< each of a millisecond or more, so that handing it out is nothing
  Evaluate evaluate = {};
};

/// The workers, and where results are stored.
struct ExecutionOptions {
  unsigned threads = 1;  ///< of this process, in addition to the calling one
  std::string key = {};  ///< of all inputs: the members of a communicator must agree on it
  Journal* journal = nullptr;
  Communicator* communicator = nullptr;
  Progress progress = {};
};

/// The results, by item, independent of which worker evaluated them. All members of a communicator
/// call this for the same works in the same order, and all get the results; the journal is the
/// first member's.
///
/// Fails with the error of the lowest item that fails, always the same; if the progress asks to
/// stop, with the number of stored results; if the journal cannot be written; if a member of the
/// communicator has other inputs or none. Rethrows exceptions of items.
Result<std::vector<std::string>> run_all(const Work& work, const ExecutionOptions& execution);

/// The error of a work that was asked to stop: it says what the journal has, if there is one.
Error stopped(const Journal* journal);

/// For a member that cannot take part, or continue: the waiting members get the error.
void give_up(Communicator& communicator, const Error& error);

/// Threads for each rank if the number is not given: those that the launcher bound it to, or its
/// part of the machine's.
unsigned threads_per_rank();

}  // namespace rehearse::work
