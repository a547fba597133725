#include "sim/serving/pools.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <queue>

#include "sim/base/check.h"
#include "sim/serving/client.h"
#include "sim/serving/replicas.h"

namespace rehearse::serving {
namespace {

/// A prompt whose keys and values are to be sent, and the step that ends it.
struct Prompt {
  std::uint32_t request;
  Picoseconds begin, end;
};

/// The link of a replica of the first pool, out of it.
struct Outlet {
  Picoseconds busy{0};  ///< until then, if all layers were computed
  Picoseconds last{0};  ///< the last layer sent
  Picoseconds step{0};  ///< end of the step whose prompts it sends
};

/// What a replica of the second pool has besides its server.
struct Inlet {
  std::deque<Prompt> asking = {};  ///< for blocks
  Picoseconds busy{0};             ///< the link into it
};

/// When the keys and values of a prompt arrive that has its blocks at `now`.
Picoseconds arrival_of(const Prompt& prompt, std::int64_t tokens, const Transfer& transfer,
                       Picoseconds now, Outlet& out, Picoseconds& in_busy) {
  const auto of_layer = [&](Picoseconds all) {
    return Picoseconds(all.count() / std::max<std::int64_t>(1, transfer.layers));
  };
  const Picoseconds sending = transfer.of(transfer.out, tokens);
  const Picoseconds receiving = transfer.of(transfer.in, tokens);
  const Picoseconds first = std::max(now, prompt.begin + of_layer(prompt.end - prompt.begin));
  const Picoseconds all = std::max(now, prompt.end);
  if (prompt.end > out.step) {
    out.busy = std::max(out.busy, out.last);
    out.step = prompt.end;
  }
  out.busy = std::max(out.busy, first) + sending;
  out.last = std::max(out.last, all) + of_layer(sending);
  in_busy = std::max(in_busy, first) + receiving;
  return std::max({out.busy, out.last, in_busy, all + of_layer(receiving)}) +
         Picoseconds::from(transfer.latency);
}

}  // namespace

Picoseconds Transfer::of(const Time& time, std::int64_t tokens) const {
  return Picoseconds::from(time.token * static_cast<double>(tokens) +
                           time.windowed * static_cast<double>(std::min(tokens, window)));
}

Result<std::vector<Run>> run_pools(const Pool& prefill, const Pool& decode,
                                   const Transfer& transfer, std::span<const Request> requests,
                                   const RunOptions& options) {
  Pool first = prefill, second = decode;
  first.rules.keeps_blocks = true;
  first.rules.drafts.clear();
  second.rules.prefix_cache = false;
  first.rules.drops = second.rules.drops = false;
  std::vector<Request> prompts(requests.begin(), requests.end());
  for (Request& prompt : prompts) prompt.output = 1;
  Rules fitting = second.rules;
  fitting.chunked = true;  // prompts that are computed again may exceed a step
  for (std::size_t i = 0; i < requests.size(); ++i) {
    TRY(Scheduler::check(first.rules, prompts[i]));
    TRY(Scheduler::check(fitting, requests[i]));
  }
  std::vector<Served> served(requests.size());
  std::vector<std::size_t> sender_of(requests.size()), receiver_of(requests.size());
  Client client(first.pricer, requests, options, served);
  Replicas senders(first, prompts, options, served), receivers(second, requests, options, served);
  std::vector<Outlet> outlets(senders.size());
  std::vector<Inlet> inlets(receivers.size());

  using Arrival = std::pair<Picoseconds, std::uint32_t>;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  Picoseconds now{0};
  std::size_t left = requests.size();

  const auto ask = [&](std::uint32_t request, Picoseconds begin, Picoseconds end) {
    receiver_of[request] = receivers.route(request, now);
    inlets[receiver_of[request]].asking.push_back({request, begin, end});
  };
  const auto end_steps = [&] {
    senders.end_steps(now, [&](std::size_t sender, std::uint32_t request) {
      if (requests[request].output > 1) {
        if (transfer.layers == 0) ask(request, now, now);
        return;
      }
      senders[sender].server.release(request);
      client.finish(request, now);
      --left;
    });
    receivers.end_steps(now, [&](std::size_t, std::uint32_t request) {
      client.finish(request, now);
      --left;
    });
    for (; !arrivals.empty() && arrivals.top().first <= now; arrivals.pop()) {
      const std::uint32_t request = arrivals.top().second;
      served[request].arrived = served[request].first = now;
      senders[sender_of[request]].server.release(request);
      receivers[receiver_of[request]].arrived.push_back(request);
    }
  };
  const auto start_prompts = [&] {
    senders.start(now, now, false, [&](const Replica& replica) {
      if (transfer.layers == 0) return;
      for (const std::uint32_t request : replica.server.finished())
        if (requests[request].output > 1) ask(request, now, replica.until);
    });
  };
  const auto promise_blocks = [&] {
    for (std::size_t i = 0; i < inlets.size(); ++i)
      while (!inlets[i].asking.empty() &&
             receivers[i].server.promise(inlets[i].asking.front().request, now)) {
        const Prompt& prompt = inlets[i].asking.front();
        served[prompt.request].room = now;
        arrivals.emplace(arrival_of(prompt, requests[prompt.request].input, transfer, now,
                                    outlets[sender_of[prompt.request]], inlets[i].busy),
                         prompt.request);
        inlets[i].asking.pop_front();
      }
  };
  /// The next event but for the ends of the second pool's steps.
  const auto next_event = [&] {
    const Picoseconds next = std::min(client.next_event(), senders.next_end());
    return arrivals.empty() ? next : std::min(next, arrivals.top().first);
  };

  for (;;) {
    end_steps();
    if (left == 0) break;
    TRY(go_on(now, left, requests.size()));
    client.send(now);
    client.deliver(now, [&](std::uint32_t request) {
      sender_of[request] = senders.route(request, now);
      senders[sender_of[request]].arrived.push_back(request);
    });
    start_prompts();
    promise_blocks();
    const Picoseconds next = next_event();
    // Another replica may end a request at any time: the client, or a prompt, may wait for that.
    const bool coupled = client.awaits() || std::ranges::any_of(inlets, [](const Inlet& i) {
                           return !i.asking.empty();
                         });
    receivers.start(now, next, coupled, [](const Replica&) {});
    now = std::min(next, receivers.next_end());
    REHEARSE_CHECK(now < kNever, "{} requests wait for each other", left);
  }
  std::vector<Run> runs = senders.runs();
  for (Run& run : receivers.runs()) runs.push_back(std::move(run));
  for (std::size_t i = 0; i < requests.size(); ++i) runs[sender_of[i]].served.push_back(served[i]);
  return runs;
}

}  // namespace rehearse::serving
