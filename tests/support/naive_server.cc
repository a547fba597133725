#include "tests/support/naive_server.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <utility>

namespace rehearse::test {
namespace {

using serving::Order;

struct Live {
  std::int64_t prompt, wanted;
  std::int64_t output = 0, cached = 0, in_step = 0;
  std::size_t id = 0;
  std::int32_t priority = 0;

  std::int64_t lacks() const { return prompt + output - cached; }
  bool decodes() const { return output > 0 && lacks() == 1; }
};

struct World {
  serving::Rules rules;
  std::vector<Live> running = {};
  std::deque<Live> waiting = {};
  double ratio = 0;
  std::int64_t apart = 0;      // blocks of requests that are neither running nor waiting
  std::int64_t preempted = 0;  // in this step

  std::int64_t wants(const Live& r) const {
    const auto drafts = static_cast<std::int64_t>(rules.drafts.size());
    return r.decodes() ? std::min(1 + drafts, r.wanted - r.output) : r.lacks();
  }
  std::int64_t blocks(std::int64_t tokens) const {
    std::int64_t n = 0;
    while (n * rules.block_tokens < tokens) ++n;
    return n;
  }
  std::int64_t held() const {
    std::int64_t sum = apart;
    for (const Live& r : running) sum += blocks(r.cached + r.in_step);
    return sum;
  }
  std::int64_t left() const {
    std::int64_t used = 0;
    for (const Live& r : running) used += r.in_step;
    return rules.tokens_per_step - used;
  }

  void preempt(std::size_t victim) {
    std::int64_t used = 0, all = 1;
    for (const Live& r : running) {
      used += r.output;
      all += r.wanted;
    }
    ratio = std::min(1.0, static_cast<double>(used) / static_cast<double>(all));
    Live out = running[victim];
    out.cached = out.in_step = 0;
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(victim));
    waiting.push_front(out);
    if (rules.by_priority) std::ranges::sort(waiting, before);
    ++preempted;
  }
  /// By priority, and by arrival among equals.
  static bool before(const Live& a, const Live& b) {
    return std::pair(a.priority, a.id) < std::pair(b.priority, b.id);
  }

  /// False if it lost its blocks.
  bool continue_one(std::size_t id) {
    const auto place = [&] {
      std::size_t i = 0;
      while (running[i].id != id) ++i;
      return i;
    };
    const std::int64_t tokens = std::min(wants(running[place()]), left());
    for (;;) {
      running[place()].in_step = tokens;
      if (held() <= rules.blocks) return true;
      running[place()].in_step = 0;
      std::size_t victim = running.size() - 1;
      if (rules.by_priority)
        victim =
            static_cast<std::size_t>(std::ranges::max_element(running, before) - running.begin());
      const bool own = running[victim].id == id;
      preempt(victim);
      if (own) return false;
    }
  }

  bool fits(const Live& r, std::int64_t tokens) const {
    const std::int64_t free = rules.blocks - held();
    if (blocks(tokens) > free) return false;
    if (rules.reserve == 0) return true;
    double others = 0;
    for (const Live& o : running)
      others += static_cast<double>(blocks(o.prompt + o.wanted) - blocks(o.cached + o.in_step));
    return static_cast<double>(free - blocks(r.prompt + r.wanted)) >= ratio * others;
  }

  void admit() {
    while (preempted == 0 && left() > 0 && !waiting.empty() &&
           static_cast<std::int64_t>(running.size()) < rules.most_rows) {
      Live r = waiting.front();
      if (!rules.chunked && r.lacks() > left() && left() < rules.tokens_per_step) return;
      r.in_step = std::min(r.lacks(), left());
      if (!fits(r, r.in_step)) return;
      running.push_back(r);
      waiting.pop_front();
    }
  }

  void form() {
    preempted = 0;
    for (Live& r : running) r.in_step = 0;
    const auto each = [&](const auto& which) {
      std::vector<std::size_t> order;
      for (const Live& r : running) order.push_back(r.id);
      for (const std::size_t id : order) {
        const auto r = std::ranges::find(running, id, &Live::id);
        if (left() == 0) return;
        if (r != running.end() && r->in_step == 0 && which(*r) && !continue_one(id)) return;
      }
    };
    const auto chunk = [](const Live& r) { return !r.decodes(); };
    const auto any = [](const Live&) { return true; };
    if (rules.order == Order::kDecodeFirst) {
      each(any);
      admit();
      return;
    }
    each(chunk);
    admit();
    if (left() == rules.tokens_per_step) each([](const Live& r) { return r.decodes(); });
  }
};

}  // namespace

NaiveRun naive_server(const serving::Rules& rules, std::span<const serving::Request> requests) {
  World world{rules};
  world.ratio = rules.reserve;
  for (const serving::Request& r : requests)
    world.waiting.push_back({.prompt = r.input,
                             .wanted = r.output,
                             .id = world.waiting.size(),
                             .priority = r.priority});
  if (rules.by_priority) std::ranges::sort(world.waiting, World::before);
  NaiveRun run;
  const auto is_late = [&](const Live& r) {
    const Picoseconds now = Picoseconds::from(Seconds::ms(1)) * std::ssize(run.steps);
    const Picoseconds deadline = requests[r.id].deadline;
    return deadline > Picoseconds(0) && now >= deadline;
  };
  while (!world.running.empty() || !world.waiting.empty()) {
    if (rules.drops &&
        (world.running.empty() || std::ssize(run.steps) % rules.receive_interval == 0))
      run.dropped += static_cast<std::int64_t>(std::erase_if(world.running, is_late) +
                                               std::erase_if(world.waiting, is_late));
    world.form();
    run.preempted += world.preempted;
    if (world.left() == rules.tokens_per_step) continue;
    serving::Step step;
    for (Live& r : world.running) {
      if (r.in_step == 0) continue;
      if (r.decodes()) {
        ++step.decode_rows;
        step.drafted += r.in_step - 1;
        step.decode_context += static_cast<double>(r.cached);
      } else {
        step.prefill.push_back({r.in_step, r.cached});
        step.finished_prefills += r.in_step == r.lacks();
      }
    }
    run.steps.push_back(step);
    run.held.push_back(world.held());
    if (step.decode_rows > 0)
      world.ratio = std::max(rules.least_reserve, world.ratio - rules.reserve_decay);
    for (Live& r : world.running) {
      const bool gives = r.in_step > 0 && r.in_step >= r.lacks();
      const std::int64_t given = r.decodes() ? r.in_step : 1;
      r.cached += r.in_step;
      r.in_step = 0;
      r.output += gives ? given : 0;
    }
    std::erase_if(world.running, [](const Live& r) { return r.output == r.wanted; });
  }
  return run;
}

namespace {

struct NaiveReplica {
  World world;
  bool running = false;
  Picoseconds until{0};
  std::vector<Live> arrived = {};       // without a row
  std::vector<std::size_t> late = {};   // they waited for one
  std::deque<std::size_t> asking = {};  // prompts that want blocks
  Picoseconds link{0};

  Picoseconds time_of_step() const {
    Seconds time = Seconds::ms(1);
    for (const Live& r : world.running)
      time += r.in_step == 0 ? Seconds::s(0)
              : r.decodes()  ? Seconds::us(100)
                             : Seconds::us(50) * static_cast<double>(r.in_step);
    return Picoseconds::from(time);
  }
  void start(Picoseconds now, NaiveTokens& out) {
    do {
      while (!arrived.empty() &&
             static_cast<std::int64_t>(world.running.size()) < world.rules.most_rows) {
        const Live r = arrived.front();
        arrived.erase(arrived.begin());
        world.apart -= world.blocks(r.cached);
        world.running.push_back(r);
        if (std::find(late.begin(), late.end(), r.id) != late.end()) out.first[r.id] = now;
      }
      for (const Live& r : arrived) late.push_back(r.id);
      world.form();
      out.preempted += world.preempted;
    } while (world.left() == world.rules.tokens_per_step && world.preempted > 0);
    running = world.left() < world.rules.tokens_per_step;
    if (running) until = now + time_of_step();
  }
};

}  // namespace

NaiveTokens naive_pools(const serving::Pool& prefill, const serving::Pool& decode,
                        const serving::Transfer& transfer,
                        std::span<const serving::Request> requests) {
  const std::size_t n = requests.size();
  NaiveTokens out{std::vector(n, Picoseconds(0)), std::vector(n, Picoseconds(0))};
  std::vector<NaiveReplica> senders(prefill.replicas, {{prefill.rules}}),
      receivers(decode.replicas, {{decode.rules}});
  std::vector<std::size_t> sender(n), receiver(n);
  std::vector<Picoseconds> arrival(n, Picoseconds(-1));
  std::size_t sent = 0, asked = 0, left = n;
  for (Picoseconds now{0}; left > 0;) {
    for (NaiveReplica& s : senders) {
      if (!s.running || s.until > now) continue;
      s.running = false;
      for (Live& r : s.world.running) {
        r.cached += r.in_step;
        r.in_step = 0;
        if (r.cached < r.prompt) continue;
        out.first[r.id] = out.last[r.id] = now;
        r.output = 1;
        if (requests[r.id].output == 1) {
          --left;
        } else {
          s.world.apart += s.world.blocks(r.prompt);
          receiver[r.id] = asked++ % receivers.size();
          receivers[receiver[r.id]].asking.push_back(r.id);
        }
      }
      std::erase_if(s.world.running, [](const Live& r) { return r.output == 1; });
    }
    for (NaiveReplica& d : receivers) {
      if (!d.running || d.until > now) continue;
      d.running = false;
      for (Live& r : d.world.running) {
        const bool gives = r.in_step > 0 && r.in_step >= r.lacks();
        r.cached += r.in_step;
        r.in_step = 0;
        r.output += gives;
        if (r.output < r.wanted) continue;
        out.last[r.id] = now;
        --left;
      }
      std::erase_if(d.world.running, [](const Live& r) { return r.output == r.wanted; });
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (arrival[i] != now) continue;
      arrival[i] = Picoseconds(-1);
      out.first[i] = now;
      World& from = senders[sender[i]].world;
      from.apart -= from.blocks(requests[i].input);
      receivers[receiver[i]].arrived.push_back(
          {requests[i].input, requests[i].output, 1, requests[i].input, 0, i});
    }
    for (; sent < n && requests[sent].planned <= now; ++sent) {
      sender[sent] = sent % senders.size();
      senders[sender[sent]].world.waiting.push_back({requests[sent].input, 1, 0, 0, 0, sent});
    }
    for (NaiveReplica& s : senders)
      if (!s.running) s.start(now, out);
    for (NaiveReplica& d : receivers) {
      for (; !d.asking.empty(); d.asking.pop_front()) {
        const std::size_t i = d.asking.front();
        const std::int64_t blocks = d.world.blocks(requests[i].input);
        out.waited += !d.world.waiting.empty() || d.world.held() + blocks > d.world.rules.blocks;
        if (!d.world.waiting.empty() || d.world.held() + blocks > d.world.rules.blocks) break;
        d.world.apart += blocks;
        // Each link has a queue of its own.
        NaiveReplica& s = senders[sender[i]];
        s.link = std::max(now, s.link) + transfer.of(transfer.out, requests[i].input);
        d.link = std::max(now, d.link) + transfer.of(transfer.in, requests[i].input);
        arrival[i] = std::max(s.link, d.link) + Picoseconds::from(transfer.latency);
      }
      if (d.running) continue;
      d.start(now, out);
    }
    Picoseconds next(std::numeric_limits<std::int64_t>::max());
    const auto event = [&](Picoseconds at) { next = std::min(next, at); };
    if (sent < n) event(requests[sent].planned);
    for (const Picoseconds at : arrival)
      if (at >= now) event(at);
    for (const NaiveReplica& s : senders)
      if (s.running) event(s.until);
    for (const NaiveReplica& d : receivers)
      if (d.running) event(d.until);
    now = next;
  }
  return out;
}

}  // namespace rehearse::test
