// One queue of items for the threads of a process and for the ranks of a team, with a journal.
//
// The first rank hands items out in their order, keeps what comes back, and works too. Whoever asks
// for nothing more than threads gets just that.
#pragma once

#include <string>
#include <vector>

#include "sim/base/progress.h"
#include "sim/base/result.h"
#include "sim/work/crew.h"
#include "sim/work/journal.h"
#include "sim/work/team.h"

namespace rehearse::work {

struct Work {
  std::string part;       ///< a name of its own among those of one journal: "points"
  std::size_t items = 0;  ///< each of a millisecond or more, so that handing it out is nothing
  Evaluate evaluate = {};
};

/// Who does it, and what is kept.
struct Means {
  unsigned threads = 1;  ///< of this process, on top of the one that calls
  std::string key = {};  ///< of all inputs: the members of a team have to agree on it
  Journal* journal = nullptr;
  Team* team = nullptr;
  Progress progress = {};
};

/// The results, by item: the same whoever evaluated them. All members of a team call this for the
/// same works in the same order, and all get the results; the journal is the first member's.
///
/// Fails with the error of the lowest item that fails, always the same; where the progress asks to
/// stop, which says what is kept; where the journal cannot be written; where a member of the team
/// has other inputs or none. Throws what an item threw.
Result<std::vector<std::string>> run_all(const Work& work, const Means& means);

/// For a member that cannot take part, or go on: whoever waits for it learns why.
void give_up(Team& team, const Error& error);

/// Threads for each rank, where nobody said how many: those that the launcher bound it to, or its
/// part of the machine's.
unsigned threads_per_rank();

}  // namespace rehearse::work
