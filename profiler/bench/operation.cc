#include "profiler/bench/operation.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace rehearse::bench {
namespace {

/// Releases held streams if launching takes too long, because a launch that waits for the device
/// would wait forever. A stream holds about a thousand commands; a library may enqueue more than we
/// count.
class Watchdog {
 public:
  explicit Watchdog(const std::vector<Gpu*>& gpus)
      : thread_([this, &gpus] {
          std::unique_lock lock(mutex_);
          constexpr auto kPatience = std::chrono::milliseconds(500);
          if (done_.wait_for(lock, kPatience, [this] { return ended_; })) return;
          barked_ = true;
          for (Gpu* gpu : gpus) gpu->release();
        }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() { end(); }

  /// Ends it. Returns whether it had to release the streams.
  bool end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    done_.notify_one();
    if (thread_.joinable()) thread_.join();
    return barked_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool ended_ = false, barked_ = false;
  std::thread thread_;
};

}  // namespace

template <class Enqueue>
Status StreamSubject::enqueue(Enqueue enqueue) {
  const std::vector<Gpu*>& gpus = operation_.gpus();
  if (!held_ || !operation_.asynchronous()) return enqueue();
  for (Gpu* gpu : gpus) {
    gpu->make_current();
    held_ = gpu->hold() && held_;
  }
  Watchdog watchdog(gpus);
  const Status status = enqueue();
  if (watchdog.end()) held_ = false;
  for (Gpu* gpu : gpus) gpu->release();
  return status;
}

Result<Batch> StreamSubject::run(std::size_t launches) {
  timed().make_current();
  const ClockState before = timed().clocks();
  const bool was_held = held_;
  const bool separate = cold_ || !operation_.asynchronous();
  Batch batch = TRY(separate ? one_by_one(launches) : back_to_back(launches));
  for (Gpu* gpu : operation_.gpus()) TRY(gpu->synchronize());
  // The launches ran while the device did: the times may include gaps of the host.
  if (was_held && !held_) return run(launches);
  const ClockState after = timed().clocks();
  batch.throttled = before.throttled || after.throttled;
  batch.capped = before.capped || after.capped;
  batch.sm_clock_hz =
      before.sm_hz > 0 && after.sm_hz > 0 ? (before.sm_hz + after.sm_hz) / 2 : after.sm_hz;
  return batch;
}

Result<Batch> StreamSubject::back_to_back(std::size_t launches) {
  const CudaEvent from = TRY(timed().event(0)), to = TRY(timed().event(1));
  TRY(enqueue([&]() -> Status {
    TRY(timed().record(from));
    for (std::size_t i = 0; i < launches; ++i) TRY(launch());
    timed().make_current();
    return timed().record(to);
  }));
  const Seconds busy = TRY(timed().between(from, to));
  return Batch{.samples = {busy / static_cast<double>(launches)}, .busy = busy};
}

Result<Batch> StreamSubject::one_by_one(std::size_t launches) {
  // With a flush and two events per launch, a stream fills up sooner.
  launches = std::min<std::size_t>(launches, 32);
  std::vector<CudaEvent> events;
  for (std::size_t i = 0; i < 2 * launches; ++i) events.push_back(TRY(timed().event(i)));
  TRY(enqueue([&]() -> Status {
    for (std::size_t i = 0; i < launches; ++i) {
      if (cold_) TRY(timed().flush());
      TRY(timed().record(events[2 * i]));
      TRY(launch());
      TRY(timed().record(events[2 * i + 1]));
    }
    return {};
  }));
  Batch batch;
  for (std::size_t i = 0; i < launches; ++i)
    batch.samples.push_back(TRY(timed().between(events[2 * i], events[2 * i + 1])));
  const Seconds busy = TRY(timed().between(events.front(), events.back()));
  batch.busy = busy;
  return batch;
}

}  // namespace rehearse::bench
