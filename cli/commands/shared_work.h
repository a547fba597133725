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
#include "strategies/search/search.h"

namespace rehearse::cli {

/// The help of `--journal`, which all commands with a list of results have.
inline constexpr char kJournalHelp[] =
    "store results here as they are found, and resume from an earlier run (default: with -o FILE, "
    "FILE.journal until FILE is written)";

class SharedWork {
 public:
  /// Executes the work: `name` is shown in progress, `about` tells a reader of the journal what it
  /// is. `inputs` is called only if a journal or another rank has to know them. Call it once.
  Result<work::ExecutionOptions> begin(const std::string& name, const std::string& about,
                                       const std::function<Result<work::Fingerprint>()>& inputs);

 private:
  friend Result<Exit> run_shared(const Globals& globals, const std::filesystem::path& journal,
                                 const std::function<Result<Exit>(SharedWork&)>& command);
  friend Result<Exit> run_kept(const Globals& globals, const std::filesystem::path& journal,
                               const std::function<Result<Exit>(SharedWork&)>& command);
  SharedWork(const Globals& globals, const std::filesystem::path& journal);
  Status finish();

  const Globals& globals_;
  std::filesystem::path path_;  // empty: no journal
  bool passing_ = false;        // the journal is for this result alone
  std::unique_ptr<work::Communicator> communicator_;
  std::optional<work::Journal> journal_;
};

/// Runs a command that may share its work. A rank other than the first prints and writes nothing:
/// it returns as soon as its work is done (work::leads()). If the command fails on one rank, all
/// ranks end with that error.
Result<Exit> run_shared(const Globals& globals, const std::filesystem::path& journal,
                        const std::function<Result<Exit>(SharedWork&)>& command);
/// The same for a command that makes many searches at once, which ranks do not share: the first one
/// does all of it.
Result<Exit> run_kept(const Globals& globals, const std::filesystem::path& journal,
                      const std::function<Result<Exit>(SharedWork&)>& command);

/// The action of a command that may share its work, from its options.
template <class Options>
auto shared_action(std::shared_ptr<Options> options,
                   Result<Exit> (*run)(const Options&, const Globals&, SharedWork&)) {
  return [options, run](const Globals& globals) {
    return run_shared(globals, options->journal,
                      [&](SharedWork& shared) { return run(*options, globals, shared); });
  };
}

/// How a search has its candidates evaluated: through the queue, if others share the work or a
/// journal keeps it, and otherwise by its own threads. `name` tells the searches of one work apart.
strategies::Spread spread_of(const work::ExecutionOptions& execution, const std::string& name = {});

}  // namespace rehearse::cli
