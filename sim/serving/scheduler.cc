#include "sim/serving/scheduler.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "sim/base/check.h"
#include "sim/base/random.h"

namespace rehearse::serving {
namespace {

/// Decode steps whose contexts differ by at most one part in this many have one price, that of the
/// step in their middle: what a law with a curvature misses there is far below its own error.
constexpr std::int64_t kPricePeriod = 32;

void add_gaps(Gaps& gaps, Picoseconds gap, std::int64_t count) {
  if (count == 0) return;
  if (!gaps.empty() && gaps.back().first == gap)
    gaps.back().second += count;
  else
    gaps.emplace_back(gap, count);
}

/// Without a prefix cache nothing but blocks has a name.
Rules usable(Rules rules) {
  if (!rules.prefix_cache) rules.prefix_tokens = rules.block_tokens;
  return rules;
}

}  // namespace

Scheduler::Scheduler(const Rules& rules, const StepPricer& pricer,
                     std::span<const Request> requests, double scale)
    : rules_(usable(rules)),
      pricer_(pricer),
      requests_(requests),
      scale_(scale),
      blocks_(rules_),
      reserve_(rules_) {}

Status Scheduler::check(const Rules& rules, const Request& request) {
  const std::int64_t needed = blocks_for(request.input + request.output, rules.block_tokens);
  if (needed > rules.blocks)
    return fail(fmt::format("a request of {} + {} tokens needs {} blocks of keys and values, and "
                            "the server has {}",
                            request.input, request.output, needed, rules.blocks),
                "shorter requests, or more memory for keys and values");
  if (!rules.chunked && request.input > rules.tokens_per_step)
    return fail(fmt::format("a prompt of {} tokens exceeds the {} of a step, and prompts are not "
                            "cut",
                            request.input, rules.tokens_per_step),
                "shorter prompts, more tokens per step, or chunked prefill");
  return {};
}

void Scheduler::receive(std::uint32_t request) {
  const auto promised = std::find_if(coming_.begin(), coming_.end(),
                                     [&](const Row& row) { return row.request == request; });
  if (promised == coming_.end()) {
    Row row{.request = request};
    if (rules_.prefix_cache && converses(requests_, request))
      row.names = names_of(requests_, request, requests_[request].input / rules_.prefix_tokens);
    const auto after = [&](std::int32_t own, const Row& other) { return own < priority(other); };
    waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), priority(row), after),
                    std::move(row));
    return;
  }
  arrived_.push_back(std::move(*promised));
  coming_.erase(promised);
}

bool Scheduler::promise(std::uint32_t request, Picoseconds now) {
  Row row{
      .request = request, .generated = 1, .cached = requests_[request].input, .elsewhere = true};
  const std::int64_t own = blocks_for(row.cached, rules_.block_tokens);
  const std::int64_t at_end = blocks_at_end(row);
  const std::int64_t free = blocks_.free() - (now < until_ ? ending_ : 0);
  refused_ = !waiting_.empty() || own > free || !leaves_reserve(free - at_end);
  if (refused_) return false;
  blocks_.allocate(own, row.holding, now);
  reserve_.admit(at_end);
  coming_.push_back(std::move(row));
  return true;
}

void Scheduler::release(std::uint32_t request) {
  const auto kept = std::find_if(kept_.begin(), kept_.end(),
                                 [&](const Row& row) { return row.request == request; });
  REHEARSE_CHECK(kept != kept_.end(), "request {} keeps no blocks", request);
  blocks_.release(kept->holding);
  kept_.erase(kept);
}

std::int64_t Scheduler::blocks_at_end(const Row& row) const {
  const Request& request = requests_[row.request];
  return blocks_for(request.input + request.output, rules_.block_tokens);
}

std::int64_t Scheduler::wants(const Row& row) const {
  if (!decodes(row)) return lacks(row);
  const auto drafts = static_cast<std::int64_t>(rules_.drafts.size());
  return std::min(1 + drafts, requests_[row.request].output - row.generated);
}

std::int64_t Scheduler::given(const Row& row, std::int64_t drafted) const {
  // Of the request and its position, whatever the order of steps.
  Random random = random_stream(row.request, static_cast<std::uint64_t>(row.generated));
  std::int64_t tokens = 1;
  while (tokens <= drafted &&
         random.uniform() < rules_.drafts[static_cast<std::size_t>(tokens - 1)])
    ++tokens;
  return tokens;
}

bool Scheduler::leaves_reserve(std::int64_t free) const {
  if (!reserve_.kept()) return true;
  std::int64_t held = 0;
  for (const Row& r : running_) held += blocks_.held_by(r.holding);
  for (const Row& r : arrived_) held += blocks_.held_by(r.holding);
  for (const Row& r : coming_) held += blocks_.held_by(r.holding);
  return reserve_.allows(free, held);
}

void Scheduler::admit_arrived(Picoseconds now) {
  while (!arrived_.empty() && static_cast<std::int64_t>(running_.size()) < rules_.most_rows) {
    running_.push_back(std::move(arrived_.front()));
    arrived_.pop_front();
    if (running_.back().delayed) running_.back().last = now;
    each_left_ = 0;
  }
  for (Row& row : arrived_) row.delayed = true;
}

void Scheduler::form(Picoseconds now) {
  now_ = now;
  budget_ = rules_.tokens_per_step;
  preempted_ = 0;
  for (Row& row : running_) row.in_step = 0;
  admit_arrived(now);
  const bool decode_first = rules_.order == Order::kDecodeFirst;
  continue_rows(decode_first, true);
  admit();
  if (!decode_first && budget_ == rules_.tokens_per_step) continue_rows(true, false);
}

void Scheduler::continue_rows(bool decoding, bool chunks) {
  for (std::size_t i = 0; i < running_.size() && budget_ > 0; ++i) {
    const bool decode = decodes(running_[i]);
    if (running_[i].in_step > 0 || !(decode ? decoding : chunks) || running_[i].ready > now_)
      continue;
    const std::int64_t tokens = std::min(wants(running_[i]), budget_);
    if (running_[i].ready > Picoseconds(0) && must_wait(tokens, wants(running_[i]))) continue;
    if (!make_room(i, tokens)) break;  // those after it wait for the next step
    running_[i].in_step = tokens;
    running_[i].ready = Picoseconds(0);
    budget_ -= tokens;
  }
}

std::size_t Scheduler::first_to_lose() const {
  std::size_t last = running_.size() - 1;
  for (std::size_t i = last; rules_.by_priority && i-- > 0;)
    if (priority(running_[i]) > priority(running_[last])) last = i;
  return last;
}

void Scheduler::wait_again(Row row) {
  const auto before = [&](const Row& other, std::int32_t own) { return priority(other) < own; };
  waiting_.insert(std::lower_bound(waiting_.begin(), waiting_.end(), priority(row), before),
                  std::move(row));
}

void Scheduler::publish(Row& row, std::int64_t tokens, Picoseconds now) {
  const std::int64_t parts = tokens / rules_.prefix_tokens;
  const auto count = static_cast<std::size_t>(parts);
  if (!rules_.prefix_cache) return;
  if (converses(requests_, row.request))
    blocks_.publish(names_of(requests_, row.request, parts), count, row.holding, now);
  else
    blocks_.publish(requests_[row.request].prefix, count, row.holding, now);
}

void Scheduler::preempt(std::size_t row) {
  std::int64_t generated = 0, outputs = 1;
  for (const Row& r : running_) {
    generated += r.generated;
    outputs += requests_[r.request].output;
  }
  reserve_.preempt(generated, outputs);
  Row out = std::move(running_[row]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(row));
  reserve_.remove(blocks_at_end(out));
  // Its full blocks stay in the cache until others take them. Without a cache all of them go to the
  // tiers.
  std::vector<std::uint64_t> left;
  if (rules_.prefix_cache || !rules_.tiers.empty()) {
    const std::int64_t parts = rules_.prefix_cache ? out.cached / rules_.prefix_tokens
                                                   : blocks_for(out.cached, rules_.block_tokens);
    const bool turn = rules_.prefix_cache && converses(requests_, out.request);
    const std::int64_t prompt = requests_[out.request].input / rules_.prefix_tokens;
    out.names = rules_.prefix_cache
                    ? names_of(requests_, out.request, turn ? std::max(parts, prompt) : parts)
                    : names_from(out.request, {}, parts);
    out.left_tokens = std::min(out.cached, parts * rules_.prefix_tokens);
    // What has not arrived yet stays where it was.
    const bool loads = rules_.prefix_cache && out.ready > now_;
    left.assign(
        out.names.begin(),
        out.names.begin() + (loads ? static_cast<std::int64_t>(out.holding.shared.size()) : parts));
  }
  blocks_.leave(left, out.holding, now_);
  budget_ += out.in_step;
  out.ready = Picoseconds(0);
  out.cached = 0;
  out.in_step = 0;
  wait_again(std::move(out));
  ++preempted_;
  each_left_ = 0;
}

bool Scheduler::make_room(std::size_t& row, std::int64_t tokens) {
  const auto missing = [&] {
    const Row& r = running_[row];
    return blocks_for(r.cached + tokens, rules_.block_tokens) - blocks_.held_by(r.holding);
  };
  while (missing() > blocks_.free()) {
    const std::size_t victim = first_to_lose();
    preempt(victim);
    if (victim == row) return false;
    if (victim < row) --row;
  }
  if (const std::int64_t blocks = missing(); blocks > 0)
    blocks_.allocate(blocks, running_[row].holding, now_);
  return true;
}

bool Scheduler::must_wait(std::int64_t tokens, std::int64_t wanted) const {
  // What is computed again after a preemption may exceed a step; then it has one of its own.
  return !rules_.chunked && tokens < wanted && budget_ < rules_.tokens_per_step;
}

void Scheduler::admit() {
  while (preempted_ == 0 && budget_ > 0 && !waiting_.empty() &&
         static_cast<std::int64_t>(running_.size()) < rules_.most_rows && admit_first()) {
  }
}

bool Scheduler::admit_first() {
  Row& row = waiting_.front();
  const Request& request = requests_[row.request];
  const std::int64_t known = request.input + row.generated;
  // The last token is computed even if it is cached, because its output is the next token.
  const std::int64_t reusable = rules_.prefix_cache
                                    ? (known - 1) / rules_.block_tokens * rules_.block_tokens
                                    : row.left_tokens;
  const auto prompt = static_cast<std::size_t>(request.input / rules_.prefix_tokens);
  const std::vector<std::uint64_t>& prefix = row.names.empty() ? request.prefix : row.names;
  const Blocks::Hit hit = blocks_.find(prefix, row.names.empty() ? prompt : row.names.size());
  const std::int64_t on_device = static_cast<std::int64_t>(hit.parts) * rules_.prefix_tokens;
  const std::int64_t cached =
      std::min(on_device + static_cast<std::int64_t>(hit.below) * rules_.prefix_tokens, reusable);
  const bool loads = cached > on_device;
  const std::int64_t tokens = std::min(known - cached, budget_);
  if (!loads && must_wait(tokens, known - cached)) return false;
  const std::int64_t shared =
      static_cast<std::int64_t>(hit.parts) * (rules_.prefix_tokens / rules_.block_tokens);
  const std::int64_t own = blocks_for(cached + tokens, rules_.block_tokens) - shared;
  const std::int64_t free = blocks_.free() - hit.idle;
  const std::int64_t at_end = blocks_at_end(row);
  if (std::max<std::int64_t>(own, 0) > free) return false;
  if (!leaves_reserve(free - (at_end - shared))) return false;
  blocks_.reuse(prefix, hit.parts, row.holding);
  row.loaded = loads ? cached - on_device : 0;
  if (loads) {  // before an eviction may take their place in a tier
    const auto parts = static_cast<std::size_t>(blocks_for(row.loaded, rules_.prefix_tokens));
    row.ready = std::max(blocks_.load(std::span(prefix).subspan(hit.parts, parts), now_),
                         now_ + Picoseconds(1));
  }
  if (own > 0) blocks_.allocate(own, row.holding, now_);
  row.cached = cached;
  row.in_step = loads ? 0 : tokens;
  reserve_.admit(at_end);
  budget_ -= row.in_step;
  each_left_ = 0;
  running_.push_back(std::move(row));
  waiting_.pop_front();
  return true;
}

Step Scheduler::step_of() const {
  Step step;
  for (const Row& row : running_) {
    if (row.in_step == 0) continue;
    if (decodes(row)) {
      ++step.decode_rows;
      step.drafted += row.in_step - 1;
      step.decode_context += static_cast<double>(row.cached);
    } else {
      step.prefill.push_back({row.in_step, row.cached});
      if (row.in_step == lacks(row)) ++step.finished_prefills;
    }
  }
  return step;
}

Picoseconds Scheduler::leaves_at(const Row& row, const std::vector<Served>& served) const {
  const Served& r = served[row.request];
  return rules_.drops && r.deadline > Picoseconds(0)
             ? r.sent + r.deadline
             : Picoseconds(std::numeric_limits<std::int64_t>::max());
}

std::vector<std::uint32_t> Scheduler::drop_late(Picoseconds now, std::vector<Served>& served) {
  std::vector<std::uint32_t> dropped;
  if (!rules_.drops || !receives()) return dropped;
  const auto drop = [&](Row& row) {
    if (leaves_at(row, served) > now) return false;
    Served& out = served[row.request];
    out.dropped = true;
    out.last = now;
    out.output = row.generated;
    blocks_.release(row.holding);
    dropped.push_back(row.request);
    return true;
  };
  std::erase_if(waiting_, drop);
  const std::size_t waited = dropped.size();
  std::erase_if(running_, drop);
  for (std::size_t i = waited; i < dropped.size(); ++i)
    reserve_.remove(blocks_at_end({.request = dropped[i]}));
  if (dropped.size() > waited) each_left_ = 0;
  return dropped;
}

std::int64_t Scheduler::equal_steps(Picoseconds now, Picoseconds horizon,
                                    const std::vector<Served>& served) const {
  if (!rules_.drafts.empty()) return 1;
  if (rules_.drops) {
    for (const Row& row : waiting_) horizon = std::min(horizon, leaves_at(row, served));
    for (const Row& row : running_) horizon = std::min(horizon, leaves_at(row, served));
  }
  // The next step may admit the first in the queue, after a step that preempted or as the share
  // falls.
  if ((!waiting_.empty() || refused_) && (preempted_ > 0 || reserve_.falls())) return 1;
  const std::int64_t wait = std::max<std::int64_t>(0, (horizon - now).count());
  const std::int64_t each = std::max<std::int64_t>(1, each_.count());
  const std::int64_t before = std::min(each_left_, wait / each + (wait % each > 0));
  const std::int64_t interval = rules_.receive_interval;
  std::int64_t steps =
      std::min(each_left_, (steps_ + before + interval - 1) / interval * interval - steps_);
  const auto blocks_of = [&](std::int64_t n) {
    std::int64_t more = 0;
    for (const Row& row : running_)
      more += std::max<std::int64_t>(
          0, blocks_for(row.cached + n, rules_.block_tokens) - blocks_.held_by(row.holding));
    return more;
  };
  // An eviction may admit the first in the queue: with fewer of its tokens cached, its first chunk
  // ends earlier. A tier must see each at its own time.
  const bool evicts = waiting_.empty() && rules_.tiers.empty();
  const std::int64_t room = blocks_.free() - (evicts ? 0 : blocks_.idle());
  while (steps > 1 && blocks_of(steps) > room) steps /= 2;
  return std::max<std::int64_t>(steps, 1);
}

Picoseconds Scheduler::next_arrival() const {
  Picoseconds next(std::numeric_limits<std::int64_t>::max());
  for (const Row& row : running_)
    if (row.ready > now_) next = std::min(next, row.ready);
  return next;
}

Picoseconds Scheduler::run(Picoseconds now, Picoseconds horizon, bool single,
                           std::vector<Served>& served) {
  if (!begin(now)) return now;
  const std::int64_t steps = single ? 1 : equal_steps(now, horizon, served);
  finish(now, each_, steps, served);
  return until_;
}

void Scheduler::end(Picoseconds now, std::vector<Served>& served) {
  finish(begun_.start, now - begun_.start, 1, served);
}

bool Scheduler::begin(Picoseconds now) {
  finished_.clear();
  do {
    form(now);
  } while (budget_ == rules_.tokens_per_step && preempted_ > 0);  // everything was preempted
  if (budget_ == rules_.tokens_per_step) return false;
  Step step = step_of();
  const bool decode_only = step.prefill.empty();
  const bool all = step.decode_rows == static_cast<std::int64_t>(running_.size());
  if (!decode_only || !all || each_left_ == 0) {
    each_left_ = 1;
    if (decode_only && all && rules_.drafts.empty()) {
      std::int64_t left = std::numeric_limits<std::int64_t>::max();
      for (const Row& row : running_)
        left = std::min(left, requests_[row.request].output - row.generated);
      const auto mean = static_cast<std::int64_t>(step.decode_context) / step.decode_rows;
      each_left_ = std::min(left, std::max<std::int64_t>(1, mean / kPricePeriod));
      step.decode_context += 0.5 * static_cast<double>((each_left_ - 1) * step.decode_rows);
    }
    const StepTime time = pricer_.price(step);
    each_ = Picoseconds::from(
        scale_ * (rules_.overlapped ? std::max(time.device, time.host) : time.device + time.host));
    use_ = time.use;
  }
  begun_ = {.start = now,
            .prompts = static_cast<std::int64_t>(step.prefill.size()),
            .decode_rows = step.decode_rows,
            .drafted = step.drafted,
            .waiting = static_cast<std::int64_t>(waiting_.size()),
            .running = static_cast<std::int64_t>(running_.size()),
            .preempted = preempted_};
  for (const PrefillChunk& chunk : step.prefill) begun_.prompt_tokens += chunk.new_tokens;
  return true;
}

void Scheduler::finish(Picoseconds now, Picoseconds each, std::int64_t steps,
                       std::vector<Served>& served) {
  each_left_ -= steps;
  steps_ += steps;
  if (begun_.decode_rows > 0) reserve_.decode(steps);
  until_ = now + each * steps;
  begun_.each = each;
  begun_.steps = steps;
  give_tokens(now, each, steps, served);
  begun_.held = blocks_.held();
  log_.push_back(begun_);
}

void Scheduler::give_tokens(Picoseconds now, Picoseconds each, std::int64_t steps,
                            std::vector<Served>& served) {
  const Picoseconds end = now + each * steps, first_end = now + each;
  std::int64_t repeated = 0;
  ending_ = 0;
  // Blocks of all steps are taken before requests end, as one step after another takes them.
  if (steps > 1)
    for (Row& row : running_)
      if (const std::int64_t more =
              blocks_for(row.cached + steps, rules_.block_tokens) - blocks_.held_by(row.holding);
          more > 0)
        blocks_.allocate(more, row.holding, now);
  for (Row& row : running_) {
    if (row.in_step == 0) continue;
    const Request& request = requests_[row.request];
    Served& out = served[row.request];
    if (!row.started) {
      row.started = true;
      if (row.elsewhere) {
        if (row.delayed) out.first = row.last;
        row.last = out.first;
      } else {
        out.scheduled = now;
        out.reused = row.cached;
        out.loaded = row.loaded;
      }
    }
    const bool gives = row.in_step >= lacks(row);
    const std::int64_t tokens =
        decodes(row) && row.in_step > 1 ? given(row, row.in_step - 1) : steps;
    row.cached += decodes(row) ? tokens : row.in_step;
    if (row.generated == 0) publish(row, std::min(row.cached, request.input), end);
    if (!gives) continue;
    if (row.generated == 0)
      out.first = out.prefilled = first_end;
    else
      add_gaps(gaps_, first_end - row.last, 1);
    repeated += steps - 1;
    row.generated += tokens;
    row.last = end;
    if (row.generated < request.output) continue;
    out.last = end;
    finished_.push_back(row.request);
    reserve_.remove(blocks_at_end(row));
    if (converses(requests_, row.request)) publish(row, row.cached, end);
    if (rules_.keeps_blocks) {
      kept_.push_back({.request = row.request, .holding = std::move(row.holding)});
      continue;
    }
    ending_ += blocks_.held_by(row.holding);
    blocks_.release(row.holding);
  }
  add_gaps(gaps_, each, repeated);
  if (finished_.empty()) return;
  each_left_ = 0;
  std::erase_if(running_,
                [&](const Row& row) { return row.generated == requests_[row.request].output; });
}

}  // namespace rehearse::serving
