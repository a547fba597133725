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
    for (Picoseconds sent = next_send(); sent <= now; sent = next_send()) {
      const std::uint32_t id = take_next();
      const Request& request = requests_[id];
      const RequestTime time = pricer_.request(request.input);
      free_at_ = std::max(free_at_, sent) + Picoseconds::from(time.serial * options_.scale);
      const Picoseconds queued = free_at_ + Picoseconds::from(time.latency * options_.scale);
      served_[id] = {.sent = sent,
                     .queued = queued,
                     .input = request.input,
                     .output = request.output,
                     .priority = request.priority,
                     .deadline = request.deadline};
      on_the_way_.emplace(queued, id);
      awaited_ += has_next_turn(id);
    }
  }
  /// Calls `receive` with each request that reaches a queue by `now`.
  template <class Receive>
  void deliver(Picoseconds now, const Receive& receive) {
    for (; !on_the_way_.empty() && on_the_way_.top().first <= now; on_the_way_.pop())
      receive(on_the_way_.top().second);
  }
  /// A request ends at this time.
  void finish(std::uint32_t id, Picoseconds at) {
    send(at);
    if (has_next_turn(id)) {
      --awaited_;
      think(id + 1, at);
      return;
    }
    const bool waited_for = full();
    --in_flight_;
    if (!waited_for) return;
    released_ = at;
    if (next_ < requests_.size() && requests_[next_].think > Picoseconds(0))
      think(begin_conversation(), at);
  }
  /// When something is sent or reaches the queue without a request ending before.
  Picoseconds next_event() const {
    return on_the_way_.empty() ? next_send() : std::min(next_send(), on_the_way_.top().first);
  }
  /// Whether a request may be sent because another ends.
  bool awaits() const { return full() || awaited_ > 0; }

 private:
  bool full() const { return options_.most_in_flight > 0 && in_flight_ >= options_.most_in_flight; }
  bool has_next_turn(std::uint32_t id) const {
    return id + 1 < requests_.size() && requests_[id + 1].follows;
  }
  void think(std::uint32_t id, Picoseconds from) {
    thought_.emplace(std::max(requests_[id].planned, from + requests_[id].think), id);
  }
  Picoseconds next_conversation() const {
    if (next_ == requests_.size() || full())
      return Picoseconds(std::numeric_limits<std::int64_t>::max());
    return std::max(requests_[next_].planned, released_);
  }
  Picoseconds next_send() const {
    return thought_.empty() ? next_conversation()
                            : std::min(thought_.top().first, next_conversation());
  }
  std::uint32_t begin_conversation() {
    const std::uint32_t first = next_++;
    while (next_ < requests_.size() && requests_[next_].follows) ++next_;
    ++in_flight_;
    return first;
  }
  /// The request of next_send().
  std::uint32_t take_next() {
    if (thought_.empty() || next_conversation() < thought_.top().first) return begin_conversation();
    const std::uint32_t id = thought_.top().second;
    thought_.pop();
    return id;
  }

  const StepPricer& pricer_;
  std::span<const Request> requests_;
  const RunOptions& options_;
  std::vector<Served>& served_;
  std::uint32_t next_ = 0;      // the first turn of the next conversation
  std::int64_t in_flight_ = 0;  // conversations; a request without other turns is one
  std::int64_t awaited_ = 0;    // requests that the next turns of their conversations wait for
  Picoseconds free_at_{0};      // the client and the front end, for the next request
  Picoseconds released_{0};     // the last end of a request that another one waited for
  using Events =
      std::priority_queue<std::pair<Picoseconds, std::uint32_t>,
                          std::vector<std::pair<Picoseconds, std::uint32_t>>, std::greater<>>;
  Events thought_ = {};     // requests whose think times have begun, and when they end
  Events on_the_way_ = {};  // when requests reach a queue
};

}  // namespace rehearse::serving
