#include "sim/serving/run.h"

#include <algorithm>

#include "sim/serving/client.h"

namespace rehearse::serving {

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
        replica.start(now, horizon_of(replica), options.single, served);
      }
      soonest = std::min(soonest, replica.until);
    }
    now = soonest;
  }
  std::vector<Run> runs;
  for (const Replica& replica : replicas)
    runs.push_back(
        {.steps = replica.server.log(), .gaps = replica.server.gaps(), .blocks = rules.blocks});
  for (std::size_t i = 0; i < requests.size(); ++i) runs[sent_to[i]].served.push_back(served[i]);
  return runs;
}

Result<Run> run(const Rules& rules, const StepPricer& pricer, std::span<const Request> requests,
                const RunOptions& options) {
  std::vector<Run> runs = TRY(run_replicas(rules, pricer, requests, options));
  return std::move(runs.front());
}

}  // namespace rehearse::serving
