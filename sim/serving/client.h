// The client of a run: when requests are sent, and when they reach a server. For the sources of this module.
#pragma once

#include <algorithm>
#include <limits>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "sim/serving/run.h"

namespace rehearse::serving {

/// Requests on their way from the client to the queue of the server.
class Client {
 public:
  Client(const StepPricer& pricer, std::span<const Request> requests, const RunOptions& options,
         std::vector<Served>& served)
      : pricer_(pricer), requests_(requests), options_(options), served_(served) {}

  /// Sends all requests that the client sends by `now`.
  void send(Picoseconds now) {
    while (next_send() <= now) {
      const Request& request = requests_[next_];
      const RequestTime time = pricer_.request(request.input);
      const Picoseconds sent = next_send();
      free_at_ = std::max(free_at_, sent) + Picoseconds::from(time.serial * options_.scale);
      const Picoseconds queued = free_at_ + Picoseconds::from(time.latency * options_.scale);
      served_[next_] = {
          .sent = sent, .queued = queued, .input = request.input, .output = request.output};
      on_the_way_.emplace(queued, next_++);
      ++in_flight_;
    }
  }
  /// Calls `receive` with each request that reaches a queue by `now`.
  template <class Receive>
  void deliver(Picoseconds now, const Receive& receive) {
    for (; !on_the_way_.empty() && on_the_way_.top().first <= now; on_the_way_.pop())
      receive(on_the_way_.top().second);
  }
  /// A request ends at this time.
  void finish(Picoseconds at) {
    send(at);
    if (full()) released_ = at;
    --in_flight_;
  }
  /// When something is sent or reaches the queue without a request ending before.
  Picoseconds next_event() const {
    return on_the_way_.empty() ? next_send() : std::min(next_send(), on_the_way_.top().first);
  }
  /// Whether the next request is sent when another ends.
  bool full() const { return options_.most_in_flight > 0 && in_flight_ >= options_.most_in_flight; }

 private:
  Picoseconds next_send() const {
    if (next_ == requests_.size() || full())
      return Picoseconds(std::numeric_limits<std::int64_t>::max());
    return std::max(requests_[next_].planned, released_);
  }

  const StepPricer& pricer_;
  std::span<const Request> requests_;
  const RunOptions& options_;
  std::vector<Served>& served_;
  std::uint32_t next_ = 0;
  std::int64_t in_flight_ = 0;
  Picoseconds free_at_{0};   // the client and the front end, for the next request
  Picoseconds released_{0};  // the last end of a request that another one waited for
  using OnTheWay = std::pair<Picoseconds, std::uint32_t>;
  std::priority_queue<OnTheWay, std::vector<OnTheWay>, std::greater<>> on_the_way_ = {};
};

}  // namespace rehearse::serving
