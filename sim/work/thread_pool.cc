#include "sim/work/thread_pool.h"

#include <algorithm>

namespace rehearse::work {

ThreadPool::ThreadPool(unsigned threads, const Evaluate& evaluate) : evaluate_(evaluate) {
  for (unsigned i = 0; i < std::max(1U, threads); ++i) threads_.emplace_back([this] { work(); });
}

std::vector<Finished> ThreadPool::finish() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    items_.clear();
  }
  given_.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
  return std::move(finished_);
}

void ThreadPool::give(std::size_t item) {
  ++load_;
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(item);
  }
  given_.notify_one();
}

std::vector<Finished> ThreadPool::take(std::chrono::microseconds wait) {
  std::vector<Finished> taken;
  std::unique_lock lock(mutex_);
  done_.wait_for(lock, wait, [this] { return !finished_.empty() || thrown_; });
  if (thrown_) std::rethrow_exception(thrown_);
  taken.swap(finished_);
  load_ -= taken.size();
  return taken;
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    given_.wait(lock, [this] { return stopping_ || !items_.empty(); });
    if (stopping_) return;
    const std::size_t item = items_.front();
    items_.pop_front();
    lock.unlock();
    std::exception_ptr thrown;
    Result<std::string> result;
    try {
      result = evaluate_(item);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    if (thrown)
      thrown_ = thrown;
    else
      finished_.push_back({item, std::move(result)});
    done_.notify_one();
  }
}

}  // namespace rehearse::work
