// Threads of this process that evaluate items for one thread, which distributes items and collects
// results.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sim/work/journal.h"

namespace rehearse::work {

/// Evaluates an item. Called by several threads at once; the result depends on the item
/// alone.
using Evaluate = std::function<Result<std::string>(std::size_t item)>;

class ThreadPool {
 public:
  ThreadPool(unsigned threads, const Evaluate& evaluate);
  ~ThreadPool() { finish(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t threads() const { return threads_.size(); }
  /// Items that were given and not yet taken.
  std::size_t load() const { return load_; }
  void give(std::size_t item);
  /// The results finished since the last call; waits this long for the first. Rethrows exceptions.
  std::vector<Finished> take(std::chrono::microseconds wait);
  /// Drops items that have not begun, waits for the others and returns their results.
  std::vector<Finished> finish();

 private:
  void work();

  const Evaluate& evaluate_;
  std::mutex mutex_;
  std::condition_variable given_, done_;
  std::deque<std::size_t> items_;
  std::vector<Finished> finished_;
  std::exception_ptr thrown_;
  bool stopping_ = false;
  std::size_t load_ = 0;  // of the thread that gives and takes
  std::vector<std::thread> threads_;
};

}  // namespace rehearse::work
