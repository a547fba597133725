#include "sim/serving/pools.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <queue>

#include "sim/serving/client.h"

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

struct Sender {
  Replica replica;
  Outlet link = {};
};

struct Receiver {
  Replica replica;
  std::deque<Prompt> asking = {};  ///< for blocks
  Picoseconds link_busy{0};        ///< into it
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
  Rules first_rules = prefill.rules, second_rules = decode.rules;
  first_rules.keeps_blocks = true;
  first_rules.drafts.clear();
  second_rules.prefix_cache = false;
  std::vector<Request> prompts(requests.begin(), requests.end());
  for (Request& prompt : prompts) prompt.output = 1;
  Rules fitting = second_rules;
  fitting.chunked = true;  // prompts that are computed again may exceed a step
  for (std::size_t i = 0; i < requests.size(); ++i) {
    TRY(Scheduler::check(first_rules, prompts[i]));
    TRY(Scheduler::check(fitting, requests[i]));
  }
  std::vector<Served> served(requests.size());
  std::vector<std::size_t> sender_of(requests.size()), receiver_of(requests.size());
  Client client(prefill.pricer, requests, options, served);
  Router to_senders(prefill.routing, prefill.replicas, first_rules.prefix_tokens);
  Router to_receivers(decode.routing, decode.replicas, second_rules.prefix_tokens);
  std::vector<Sender> senders;
  std::vector<Receiver> receivers;
  senders.reserve(prefill.replicas);
  receivers.reserve(decode.replicas);
  for (std::size_t i = 0; i < prefill.replicas; ++i)
    senders.push_back({{Scheduler(first_rules, prefill.pricer, prompts, options.scale)}});
  for (std::size_t i = 0; i < decode.replicas; ++i)
    receivers.push_back({{Scheduler(second_rules, decode.pricer, requests, options.scale)}});

  using Arrival = std::pair<Picoseconds, std::uint32_t>;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  constexpr Picoseconds kNever(std::numeric_limits<std::int64_t>::max());
  Picoseconds now{0};
  std::size_t left = requests.size();

  const auto ask = [&](std::uint32_t request, Picoseconds begin, Picoseconds end) {
    receiver_of[request] = to_receivers.send(request, requests[request]);
    receivers[receiver_of[request]].asking.push_back({request, begin, end});
  };
  const auto end_steps = [&] {
    for (std::size_t i = 0; i < senders.size(); ++i) {
      Replica& replica = senders[i].replica;
      if (!replica.ending || replica.until > now) continue;
      replica.ending = false;
      for (const std::uint32_t request : replica.server.finished()) {
        to_senders.end(i, request);
        if (requests[request].output > 1) {
          if (transfer.layers == 0) ask(request, now, now);
          continue;
        }
        replica.server.release(request);
        client.finish(1, now);
        --left;
      }
    }
    for (std::size_t i = 0; i < receivers.size(); ++i) {
      Replica& replica = receivers[i].replica;
      if (!replica.ending || replica.until > now) continue;
      replica.ending = false;
      client.finish(replica.server.finished().size(), now);
      left -= replica.server.finished().size();
      for (const std::uint32_t request : replica.server.finished()) to_receivers.end(i, request);
    }
    for (; !arrivals.empty() && arrivals.top().first <= now; arrivals.pop()) {
      const std::uint32_t request = arrivals.top().second;
      served[request].arrived = served[request].first = now;
      senders[sender_of[request]].replica.server.release(request);
      receivers[receiver_of[request]].replica.arrived.push_back(request);
    }
  };
  const auto start_prompts = [&] {
    for (Sender& sender : senders) {
      Replica& replica = sender.replica;
      if (replica.until > now) continue;
      replica.look(first_rules.overlapped);
      if (!replica.server.busy() || !replica.start(now, now, options.single, served) ||
          transfer.layers == 0)
        continue;
      for (const std::uint32_t request : replica.server.finished())
        if (requests[request].output > 1) ask(request, now, replica.until);
    }
  };
  const auto promise_blocks = [&] {
    for (Receiver& receiver : receivers)
      while (!receiver.asking.empty() &&
             receiver.replica.server.promise(receiver.asking.front().request, now)) {
        const Prompt& prompt = receiver.asking.front();
        served[prompt.request].room = now;
        arrivals.emplace(arrival_of(prompt, requests[prompt.request].input, transfer, now,
                                    senders[sender_of[prompt.request]].link, receiver.link_busy),
                         prompt.request);
        receiver.asking.pop_front();
      }
  };
  /// The next event but for the ends of the second pool's steps.
  const auto next_event = [&] {
    Picoseconds next = client.next_event();
    if (!arrivals.empty()) next = std::min(next, arrivals.top().first);
    for (const Sender& sender : senders)
      if (sender.replica.ending) next = std::min(next, sender.replica.until);
    return next;
  };
  const auto start_tokens = [&](Picoseconds next) {
    // Another replica may end a request at any time: the client, or a prompt, may wait for that.
    const bool coupled =
        receivers.size() > 1 &&
        (client.full() || std::any_of(receivers.begin(), receivers.end(),
                                      [](const Receiver& r) { return !r.asking.empty(); }));
    Picoseconds soonest = kNever;
    for (Receiver& receiver : receivers) {
      Replica& replica = receiver.replica;
      if (replica.until <= now) {
        replica.look(second_rules.overlapped);
        if (!replica.server.busy()) continue;
        const bool waiting = !replica.arrived.empty() || !replica.next.empty();
        if (!replica.start(now, coupled || waiting ? now : next, options.single, served)) continue;
      }
      soonest = std::min(soonest, replica.until);
    }
    return soonest;
  };

  for (;;) {
    end_steps();
    if (left == 0) break;
    if (now > kLongest)
      return fail("the load takes more than 90 days",
                  "fewer or shorter requests, or a higher rate");
    client.send(now);
    client.deliver(now, [&](std::uint32_t request) {
      sender_of[request] = to_senders.send(request, requests[request]);
      senders[sender_of[request]].replica.arrived.push_back(request);
    });
    start_prompts();
    promise_blocks();
    const Picoseconds next = next_event();
    now = std::min(next, start_tokens(next));
    REHEARSE_CHECK(now < kNever, "{} requests wait for each other", left);
  }
  std::vector<Run> runs;
  for (const Sender& sender : senders)
    runs.push_back({.steps = sender.replica.server.log(), .blocks = first_rules.blocks});
  for (const Receiver& receiver : receivers)
    runs.push_back({.steps = receiver.replica.server.log(),
                    .gaps = receiver.replica.server.gaps(),
                    .blocks = second_rules.blocks});
  for (std::size_t i = 0; i < requests.size(); ++i) runs[sender_of[i]].served.push_back(served[i]);
  return runs;
}

}  // namespace rehearse::serving
