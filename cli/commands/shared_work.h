// Options of commands whose work is shared by threads, by ranks of mpirun, and by later runs
// through a journal.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/globals.h"
#include "sim/work/fingerprint.h"
#include "sim/work/queue.h"

namespace rehearse::cli {

/// What `--journal` says, for people; all commands that share work have it.
inline constexpr char kJournalHelp[] =
    "store results here as they are found, and resume from an earlier run (default: with -o FILE, "
    "FILE.journal until FILE is written)";

class SharedWork {
 public:
  /// Executes the work: `name` for progress, `about` for whoever finds the journal. The inputs are
  /// asked for only where a journal or another rank has to know them. Call it once.
  Result<work::ExecutionOptions> begin(const std::string& name, const std::string& about,
                                       const std::function<Result<work::Fingerprint>()>& inputs);

 private:
  friend Result<Exit> run_shared(const Globals& globals, const std::filesystem::path& journal,
                                 const std::function<Result<Exit>(SharedWork&)>& command);
  SharedWork(const Globals& globals, const std::filesystem::path& journal);
  Status finish();

  const Globals& globals_;
  std::filesystem::path path_;  // empty: no journal
  bool passing_ = false;        // the journal is for this result alone
  std::unique_ptr<work::Communicator> communicator_;
  std::optional<work::Journal> journal_;
};

/// Runs a command that may share its work. On a rank other than the first it says nothing of its
/// own, and has nothing to write: it returns as soon as its work is done (work::leads()). Where it
/// fails on one rank alone, all end with that error.
Result<Exit> run_shared(const Globals& globals, const std::filesystem::path& journal,
                        const std::function<Result<Exit>(SharedWork&)>& command);

}  // namespace rehearse::cli
