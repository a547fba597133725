#include "sim/base/on_threads.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace rehearse {

void on_threads(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned t = 1; t < threads && t < count; ++t) others.emplace_back(run);
    run();
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace rehearse
