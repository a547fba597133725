#include "sim/serving/run.h"

#include <algorithm>

#include "sim/serving/client.h"
#include "sim/serving/replicas.h"

namespace rehearse::serving {

Result<std::vector<Run>> run_replicas(const Pool& pool, std::span<const Request> requests,
                                      const RunOptions& options) {
  for (const Request& request : requests) TRY(Scheduler::check(pool.rules, request));
  std::vector<Served> served(requests.size());
  std::vector<std::size_t> sent_to(requests.size());
  Client client(pool.pricer, requests, options, served);
  Replicas replicas(pool, requests, options, served);

  Picoseconds now{0};
  for (std::size_t left = requests.size();;) {
    replicas.end_steps(now, [&](std::size_t, std::uint32_t request) {
      client.finish(request, now);
      --left;
    });
    if (left == 0) break;
    TRY(go_on(now, left, requests.size()));
    TRY(replicas.scale(now));
    client.send(now);
    client.deliver(now, [&](std::uint32_t request) {
      sent_to[request] = replicas.route(request, now);
      replicas[sent_to[request]].arrived.push_back(request);
    });
    const Picoseconds next = client.next_event();
    replicas.start(now, next, client.awaits(), [](const Replica&) {});
    now = std::min({next, replicas.next_change(), replicas.next_end()});
  }
  std::vector<Run> runs = replicas.runs();
  for (std::size_t i = 0; i < requests.size(); ++i) runs[sent_to[i]].served.push_back(served[i]);
  return runs;
}

Result<Run> run(const Rules& rules, const StepPricer& pricer, std::span<const Request> requests,
                const RunOptions& options) {
  std::vector<Run> runs = TRY(run_replicas({rules, pricer}, requests, options));
  return std::move(runs.front());
}

}  // namespace rehearse::serving
