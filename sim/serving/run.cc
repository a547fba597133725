#include "sim/serving/run.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace rehearse::serving {
namespace {

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
  /// `requests` of them end at this time.
  void finish(std::size_t requests, Picoseconds at) {
    send(at);
    if (full()) released_ = at;
    in_flight_ -= static_cast<std::int64_t>(requests);
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

/// A server, and the requests that reached it and are not in its queue.
struct Replica {
  Scheduler server;
  Picoseconds until{0};  ///< the end of the steps that it runs
  bool ending = false;   ///< whether `server.finished()` ends then
  std::vector<std::uint32_t> arrived = {}, next = {};

  /// Puts requests into the queue, before a step.
  void look(bool overlapped) {
    if (!server.receives()) return;
    for (const std::uint32_t request : next) server.receive(request);
    next.clear();
    // An overlapped server formed this step while the one before ran: what arrived since is for the
    // step after it.
    if (!overlapped || !server.busy())
      for (const std::uint32_t request : arrived) server.receive(request);
    else
      std::swap(arrived, next);
    arrived.clear();
  }
};

}  // namespace

Result<std::vector<Run>> run_replicas(const Rules& rules, const StepPricer& pricer,
                                      std::span<const Request> requests,
                                      const RunOptions& options) {
  for (const Request& request : requests) TRY(Scheduler::check(rules, request));
  std::vector<Served> served(requests.size());
  std::vector<std::size_t> sent_to(requests.size());
  Client client(pricer, requests, options, served);
  Router router(options.routing, options.replicas, rules.prefix_tokens);
  std::vector<Replica> replicas;
  replicas.reserve(options.replicas);
  for (std::size_t i = 0; i < options.replicas; ++i)
    replicas.push_back({Scheduler(rules, pricer, requests, options.scale)});

  Picoseconds now{0};
  const auto horizon_of = [&](const Replica& replica) {
    // Requests of other replicas may end at any time, and the client waits for that.
    const bool coupled = replicas.size() > 1 && client.full();
    const bool waiting = !replica.arrived.empty() || !replica.next.empty();
    return coupled || waiting ? now : client.next_event();
  };
  for (std::size_t left = requests.size();;) {
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      Replica& replica = replicas[i];
      if (!replica.ending || replica.until > now) continue;
      replica.ending = false;
      client.finish(replica.server.finished().size(), now);
      left -= replica.server.finished().size();
      for (const std::uint32_t request : replica.server.finished()) router.end(i, request);
    }
    if (left == 0) break;
    if (now > kLongest)
      return fail("the load takes more than 90 days",
                  "fewer or shorter requests, or a higher rate");
    client.send(now);
    client.deliver(now, [&](std::uint32_t request) {
      sent_to[request] = router.send(request, requests[request]);
      replicas[sent_to[request]].arrived.push_back(request);
    });
    Picoseconds soonest = client.next_event();
    for (Replica& replica : replicas) {
      if (replica.until <= now) {
        replica.look(rules.overlapped);
        if (!replica.server.busy()) continue;
        replica.until = replica.server.run(now, horizon_of(replica), options.single, served);
        replica.ending = true;
      }
      soonest = std::min(soonest, replica.until);
    }
    now = soonest;
  }
  std::vector<Run> runs;
  for (const Replica& replica : replicas)
    runs.push_back({.served = {}, .steps = replica.server.log(), .gaps = replica.server.gaps()});
  for (std::size_t i = 0; i < requests.size(); ++i) runs[sent_to[i]].served.push_back(served[i]);
  return runs;
}

Result<Run> run(const Rules& rules, const StepPricer& pricer, std::span<const Request> requests,
                const RunOptions& options) {
  std::vector<Run> runs = TRY(run_replicas(rules, pricer, requests, options));
  return std::move(runs.front());
}

}  // namespace rehearse::serving
