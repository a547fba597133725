#include "cli/commands/shared_work.h"

#include <cstdio>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {

namespace fs = std::filesystem;

SharedWork::SharedWork(const Globals& globals, const fs::path& journal)
    : globals_(globals), path_(journal) {
  // An output that is not a regular file, such as /dev/null, has no place for a journal next to it.
  std::error_code error;
  const fs::file_status output = fs::status(globals.output, error);
  if (!journal.empty() || globals.output.empty()) return;
  if (fs::exists(output) && !fs::is_regular_file(output)) return;
  path_ = globals.output.string() + ".journal";
  passing_ = true;
}

Result<work::ExecutionOptions> SharedWork::begin(
    const std::string& name, const std::string& about,
    const std::function<Result<work::Fingerprint>()>& inputs) {
  const bool shared = communicator_ != nullptr;
  work::ExecutionOptions execution{
      .threads = globals_.threads > 0 ? globals_.threads : work::threads_per_rank(),
      .communicator = communicator_.get()};
  if (shared || !path_.empty()) {
    const work::Fingerprint fingerprint = TRY(inputs());
    execution.key = fingerprint.text();
  }
  if (!work::leads()) {
    execution.progress = [](double) { return !interrupted.load(); };
    return execution;
  }
  execution.progress = globals_.progress_of(name);
  if (path_.empty()) return execution;
  journal_.emplace(TRY(work::Journal::open(path_, execution.key, about)));
  execution.journal = &*journal_;
  if (const std::size_t held = journal_->size(); held > 0 && !globals_.quiet)
    say(fmt::format("rehearse: resuming with {} from {}", counted(held, "result"), path_.string()));
  return execution;
}

Status SharedWork::finish() {
  if (journal_ && passing_) return journal_->remove();
  return {};
}

Result<Exit> run_shared(const Globals& globals, const fs::path& journal,
                        const std::function<Result<Exit>(SharedWork&)>& command) {
  SharedWork shared(globals, journal);
  Result<std::unique_ptr<work::Communicator>> communicator = work::join_communicator();
  if (!communicator) {
    if (work::leads()) return forward(communicator);
    return Exit::kFailed;
  }
  shared.communicator_ = std::move(*communicator);
  Result<Exit> exit = command(shared);
  if (exit)
    if (Status ok = shared.finish(); !ok) exit = forward(ok);
  if (!shared.communicator_) return exit;
  if (!exit) work::give_up(*shared.communicator_, exit.error());
  // A rank that was asked to stop does not wait for the others: the launcher ends them.
  if (!interrupted) shared.communicator_->leave();
  if (work::leads() || exit) return exit;
  // Rank 0 has been told; it prints the error and ends with 1. The launcher ends all ranks once one
  // ends with a nonzero code, which could be before rank 0 has printed.
  return Exit::kSuccess;
}

Result<Exit> run_kept(const Globals& globals, const fs::path& journal,
                      const std::function<Result<Exit>(SharedWork&)>& command) {
  if (!work::leads()) return Exit::kSuccess;
  SharedWork kept(globals, journal);
  const Exit exit = TRY(command(kept));
  TRY(kept.finish());
  return exit;
}

strategies::Spread spread_of(const work::ExecutionOptions& execution, const std::string& name) {
  if (!execution.communicator && !execution.journal) return {};
  const auto calls = std::make_shared<std::size_t>(0);  // of all copies
  return [execution, name, calls](const std::string& what, std::size_t count,
                                  const work::Evaluate& evaluate) {
    return work::run_all({.part = fmt::format("{}{} {}", name, what, ++*calls),
                          .items = count,
                          .evaluate = evaluate},
                         execution);
  };
}

}  // namespace rehearse::cli
