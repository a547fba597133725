#include "sim/work/queue.h"

#include <algorithm>

#include <fmt/core.h>
#include <unistd.h>

#include "sim/base/check.h"
#include "sim/base/text.h"
#include "sim/work/bytes.h"

namespace rehearse::work {
namespace {

/// How long the first rank waits for its own threads before it checks for messages, which do not
/// wake it; and how long a process without messages waits before it checks whether to stop.
constexpr std::chrono::microseconds kLook{200}, kLookAlone{50'000};
constexpr std::size_t kMessage = 1 << 20;  // results are sent in messages of about this size

enum Kind : std::uint64_t {
  kHello,     // a member to the first: what it is about to work on, with how many threads
  kCannot,    // a member to the first: why it cannot
  kFinished,  // a member to the first: results
  kItems,     // the first to a member: items to evaluate
  kResults,   // the first to a member: results of all, in order
  kEnd,       // the first to a member: no more; an error, if there is one
};

Packer message(Kind kind) {
  Packer packer;
  packer.put(std::uint64_t{kind});
  return packer;
}

void put(Packer& packer, const Error& error) {
  packer.put(std::uint64_t{error.diagnostics.size()});
  for (const Diagnostic& d : error.diagnostics) {
    packer.put(d.file);
    packer.put(std::uint64_t{d.line.value_or(0)});
    packer.put(std::uint64_t{d.column.value_or(0)});
    for (const std::string* text : {&d.key, &d.problem, &d.expected, &d.nearest}) packer.put(*text);
  }
}

Error take_error(Unpacker& from) {
  Error error;
  for (std::uint64_t left = from.count(); left > 0 && from.ok(); --left) {
    Diagnostic& d = error.diagnostics.emplace_back();
    d.file = from.text();
    if (const auto line = static_cast<std::uint32_t>(from.count())) d.line = line;
    if (const auto column = static_cast<std::uint32_t>(from.count())) d.column = column;
    for (std::string* text : {&d.key, &d.problem, &d.expected, &d.nearest}) *text = from.text();
  }
  return error;
}

/// The first rank, or the only process.
class Leader {
 public:
  Leader(const Work& work, const ExecutionOptions& execution)
      : work_(work),
        execution_(execution),
        results_(work.items),
        there_(work.items, false),
        failed_at_(work.items) {
    others_.resize(execution.communicator ? static_cast<std::size_t>(execution.communicator->size())
                                          : 1);
  }

  Result<std::vector<std::string>> run() {
    Result<std::vector<std::string>> done = run_to_the_end();
    // A stopped member ends silently: the launcher then ends the others.
    if (execution_.communicator && !stopped_) tell(done);
    return done;
  }

 private:
  struct Other {
    std::size_t threads = 0;  // 0: has not said hello
    std::size_t load = 0;
  };

  Result<std::vector<std::string>> run_to_the_end() {
    if (execution_.journal)
      for (const auto& [item, value] : execution_.journal->held(work_.part))
        if (item < work_.items) accept(item, value);
    ThreadPool pool(execution_.threads, work_.evaluate);
    while (true) {
      hand_out(pool);
      if (pool.load() == 0 && all_idle()) break;
      std::vector<Finished> finished = pool.take(execution_.communicator ? kLook : kLookAlone);
      TRY(read_messages(finished));
      TRY(keep(finished));
      if (execution_.progress && !execution_.progress(share())) {
        finished = pool.finish();
        TRY(keep(finished));
        return stop();
      }
    }
    if (error_) return tl::unexpected(*error_);
    return std::move(results_);
  }

  double share() const {
    return work_.items == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(work_.items);
  }

  /// Whether every member is present and idle.
  bool all_idle() const {
    return std::all_of(others_.begin() + 1, others_.end(),
                       [](const Other& other) { return other.threads > 0 && other.load == 0; });
  }

  /// The items that a member should have: one per thread, and another one waiting while many are
  /// left.
  std::size_t due(std::size_t threads) const {
    std::size_t all = 0;
    for (const Other& other : others_) all += other.threads;
    const std::size_t left = work_.items - next_;
    return threads + (left > 2 * (all + execution_.threads) ? threads : 0);
  }

  /// The next item without a result; `items` if there is none, or if an earlier one failed.
  std::size_t next_item() {
    while (next_ < work_.items && there_[next_]) ++next_;
    return next_ < failed_at_ ? next_ : work_.items;
  }

  void hand_out(ThreadPool& pool) {
    while (pool.load() < due(pool.threads()) && next_item() < work_.items) pool.give(next_++);
    for (std::size_t rank = 1; rank < others_.size(); ++rank) {
      Other& other = others_[rank];
      std::vector<std::size_t> items;
      while (other.load < due(other.threads) && other.threads > 0 && next_item() < work_.items) {
        items.push_back(next_++);
        ++other.load;
      }
      if (items.empty()) continue;
      Packer packer = message(kItems);
      for (const std::size_t item : items) packer.put(std::uint64_t{item});
      execution_.communicator->send(static_cast<int>(rank), packer.take());
    }
  }

  Status read_messages(std::vector<Finished>& finished) {
    while (execution_.communicator) {
      const std::optional<Message> got = execution_.communicator->take();
      if (!got) break;
      Other& other = others_[static_cast<std::size_t>(got->from)];
      Unpacker from(got->text);
      switch (from.count()) {
        case kHello: {
          const std::string key = from.text(), part = from.text();
          other.threads = from.count();
          if (key != execution_.key || part != work_.part)
            return fail(
                fmt::format("rank {} on {} has another build of the program or other inputs",
                            got->from, from.text()),
                "the same files and the same program on every machine");
          break;
        }
        case kCannot: {
          const std::string machine = from.text();
          Error error = take_error(from);
          for (Diagnostic& d : error.diagnostics)
            d.problem += fmt::format(" (on rank {}, {})", got->from, machine);
          return tl::unexpected(std::move(error));
        }
        case kFinished:
          while (!from.ended()) {
            const std::size_t item = from.count();
            if (from.count())
              finished.push_back({item, from.text()});
            else
              finished.push_back({item, tl::unexpected(take_error(from))});
            --other.load;
          }
          break;
        default: REHEARSE_CHECK(false, "an unexpected message from rank {}", got->from);
      }
      REHEARSE_CHECK(from.ok(), "an incomplete message from rank {}", got->from);
    }
    return {};
  }

  void accept(std::size_t item, std::string value) {
    results_[item] = std::move(value);
    there_[item] = true;
    ++done_;
  }

  Status keep(std::vector<Finished>& finished) {
    if (finished.empty()) return {};
    if (execution_.journal) TRY(execution_.journal->keep(work_.part, finished));
    for (auto& [item, result] : finished) {
      if (result) {
        accept(item, std::move(*result));
      } else if (item < failed_at_) {  // those before it have all been handed out
        failed_at_ = item;
        error_ = result.error();
      }
    }
    return {};
  }

  tl::unexpected<Error> stop() {
    stopped_ = true;
    return tl::unexpected(stopped(execution_.journal));
  }

  void tell(const Result<std::vector<std::string>>& done) {
    const auto to_all = [&](const std::string& text) {
      for (std::size_t rank = 1; rank < others_.size(); ++rank)
        execution_.communicator->send(static_cast<int>(rank), text);
    };
    for (std::size_t item = 0; done && item < done->size();) {
      Packer packer = message(kResults);
      for (std::size_t size = 0; item < done->size() && size < kMessage; ++item) {
        packer.put((*done)[item]);
        size += (*done)[item].size();
      }
      to_all(packer.take());
    }
    Packer end = message(kEnd);
    put(end, done ? Error{} : done.error());
    to_all(end.take());
  }

  const Work& work_;
  const ExecutionOptions& execution_;
  std::vector<std::string> results_;
  std::vector<bool> there_;
  std::size_t done_ = 0, next_ = 0, failed_at_;
  std::optional<Error> error_;
  bool stopped_ = false;
  std::vector<Other> others_;  // by rank; the first is unused
};

/// Any other rank.
Result<std::vector<std::string>> follow(const Work& work, const ExecutionOptions& execution) {
  Communicator& communicator = *execution.communicator;
  ThreadPool pool(execution.threads, work.evaluate);
  Packer hello = message(kHello);
  hello.put(execution.key);
  hello.put(work.part);
  hello.put(std::uint64_t{pool.threads()});
  hello.put(communicator.machine());
  communicator.send(0, hello.take());

  std::vector<std::string> results;
  while (true) {
    if (const std::optional<Message> got = communicator.take()) {
      Unpacker from(got->text);
      switch (from.count()) {
        case kItems:
          while (!from.ended()) pool.give(from.count());
          break;
        case kResults:
          while (!from.ended()) results.push_back(from.text());
          break;
        default: {
          Error error = take_error(from);
          if (!error.diagnostics.empty()) return tl::unexpected(std::move(error));
          return results;
        }
      }
      continue;
    }
    const std::vector<Finished> finished = pool.take(kLook);
    if (!finished.empty()) {
      Packer packer = message(kFinished);
      for (const auto& [item, result] : finished) {
        packer.put(std::uint64_t{item});
        packer.put(std::uint64_t{result.has_value()});
        if (result)
          packer.put(*result);
        else
          put(packer, result.error());
      }
      communicator.send(0, packer.take());
    }
    if (execution.progress && !execution.progress(0)) return fail("stopped");
  }
}

}  // namespace

Result<std::vector<std::string>> run_all(const Work& work, const ExecutionOptions& execution) {
  if (execution.communicator && execution.communicator->rank() > 0) return follow(work, execution);
  return Leader(work, execution).run();
}

Error stopped(const Journal* journal) {
  if (!journal) return fail("stopped", "", "use --journal FILE to keep results and resume").value();
  return fail(fmt::format("stopped with {} done", counted(journal->size(), "result")), "",
              fmt::format("they are in {}; the same command resumes from there",
                          journal->path().string()))
      .value();
}

void give_up(Communicator& communicator, const Error& error) {
  if (communicator.rank() > 0) {
    Packer packer = message(kCannot);
    packer.put(communicator.machine());
    put(packer, error);
    communicator.send(0, packer.take());
    return;
  }
  Packer packer = message(kEnd);
  put(packer, error);
  const std::string text = packer.take();
  for (int rank = 1; rank < communicator.size(); ++rank) communicator.send(rank, text);
}

unsigned threads_per_rank() {
  const unsigned mine = std::max(1U, std::thread::hardware_concurrency());
  const std::optional<Launch> launch = launched();
  const auto machine = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  if (!launch || mine < machine) return mine;
  return std::max(1U, mine / static_cast<unsigned>(std::max(1, launch->on_this_machine)));
}

}  // namespace rehearse::work
