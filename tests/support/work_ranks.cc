// A program of its own that shares work as commands do, for tests that kill it and that start it
// under mpirun.
//
// work_ranks ITEMS MILLISECONDS JOURNAL LOG [--threads N] [--key KEY] [--fail ITEM]
//            [--kill RANK AFTER] [--words BYTES]
//
// Each evaluation first adds its item to LOG; after AFTER items, rank RANK kills itself. The first
// rank prints the results. The error of a failing item is BYTES longer.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "sim/work/queue.h"

using namespace rehearse;

// Leaks of Open MPI are recognized by the libraries that called it, which have no frame pointers.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "fast_unwind_on_malloc=0"; }

namespace {

std::atomic<bool> interrupted = false;

int failed(const Error& error) {
  if (work::leads()) fmt::print(stderr, "work_ranks: {}\n", to_string(error));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const auto number = [](const char* text) { return static_cast<std::size_t>(std::atol(text)); };
  const std::size_t items = number(argv[1]);
  const std::chrono::milliseconds duration(number(argv[2]));
  const std::string journal_name = argv[3];
  const int log = ::open(argv[4], O_WRONLY | O_CREAT | O_APPEND, 0666);
  work::ExecutionOptions execution{.threads = 1, .key = "key"};
  std::size_t fail_at = items, kill_after = SIZE_MAX, words = 0;
  int kill_rank = -1;
  for (int i = 5; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--threads"))
      execution.threads = static_cast<unsigned>(number(argv[++i]));
    if (!std::strcmp(argv[i], "--key")) execution.key = argv[++i];
    if (!std::strcmp(argv[i], "--fail")) fail_at = number(argv[++i]);
    if (!std::strcmp(argv[i], "--words")) words = number(argv[++i]);
    if (!std::strcmp(argv[i], "--kill")) {
      kill_rank = std::atoi(argv[++i]);
      kill_after = number(argv[++i]);
    }
  }
  std::signal(SIGTERM, [](int) { interrupted = true; });

  Result<std::unique_ptr<work::Communicator>> communicator = work::join_communicator();
  if (!communicator) return failed(communicator.error());
  execution.communicator = communicator->get();
  // A rank with another key, as if on another machine with other files.
  const int rank = execution.communicator ? execution.communicator->rank() : 0;
  if (execution.key == "differs") execution.key += std::to_string(rank);
  std::optional<work::Journal> journal;
  if (rank == 0 && journal_name != "-") {
    Result<work::Journal> opened = work::Journal::open(journal_name, execution.key, "a test");
    if (!opened) {
      if (execution.communicator) {
        work::give_up(*execution.communicator, opened.error());
        execution.communicator->leave();
      }
      return failed(opened.error());
    }
    journal.emplace(std::move(*opened));
    execution.journal = &*journal;
  }
  execution.progress = [](double) { return !interrupted.load(); };

  std::atomic<std::size_t> begun = 0;
  const work::Work work{
      .part = "items", .items = items, .evaluate = [&](std::size_t item) -> Result<std::string> {
        const std::string line = fmt::format("{}\n", item);
        if (::write(log, line.data(), line.size()) < 0) return fail("no log");
        if (rank == kill_rank && ++begun > kill_after) ::raise(SIGKILL);
        std::this_thread::sleep_for(duration);
        if (item >= fail_at)
          return fail(fmt::format("item {} is bad{}", item, std::string(words, '!')));
        return fmt::format("{} squared is {}", item, item * item);
      }};
  const Result<std::vector<std::string>> results = work::run_all(work, execution);
  // Print before any rank leaves: mpirun ends the others when the first ends with an error.
  const int code = results ? 0 : failed(results.error());
  if (execution.communicator && !interrupted) execution.communicator->leave();
  if (!results) return code;
  if (rank == 0)
    for (const std::string& result : *results) fmt::print("{}\n", result);
  return 0;
}
