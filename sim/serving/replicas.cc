#include "sim/serving/replicas.h"

#include "sim/base/check.h"
#include "sim/base/statistics.h"
#include "sim/base/watch.h"

namespace rehearse::serving {
namespace {

constexpr std::size_t kMostDecisions = 10'000'000;

}  // namespace

Status check_length(Picoseconds now) {
  if (now <= kLongest) return {};
  return fail("the load takes more than 90 days", "fewer or shorter requests, or a higher rate");
}

Status go_on(Picoseconds now, std::size_t left, std::size_t requests) {
  if (!report(1 - static_cast<double>(left) / static_cast<double>(requests)))
    return fail("stopped");
  return check_length(now);
}

void Replica::look(bool overlapped) {
  if (!server.receives()) return;
  for (const std::uint32_t request : next) server.receive(request);
  next.clear();
  // An overlapped server formed this step while the one before ran: what arrived since is for the
  // step after it.
  if (!overlapped || !ran || !server.busy())
    for (const std::uint32_t request : arrived) server.receive(request);
  else
    std::swap(arrived, next);
  arrived.clear();
}

bool Replica::start(Picoseconds now, Picoseconds horizon, bool single,
                    std::vector<Served>& served) {
  until = server.run(now, horizon, single, served);
  busy += until - now;
  return ending = ran = until > now;
}

Replicas::Replicas(const Pool& pool, std::span<const Request> requests, const RunOptions& options,
                   std::vector<Served>& served)
    : pool_(pool),
      requests_(requests),
      options_(options),
      served_(served),
      router_(pool.routing, pool.rules.prefix_tokens) {
  if (pool.scaling) scaler_.emplace(*pool.scaling);
  for (std::size_t i = pool.scaling ? pool.scaling->least : pool.replicas; i > 0; --i)
    add(Picoseconds(0), Picoseconds(0));
  open_ready(Picoseconds(0));
}

void Replicas::add(Picoseconds now, Picoseconds ready) {
  starting_.push_back(replicas_.size());
  replicas_.push_back({.server = Scheduler(pool_.rules, pool_.pricer, requests_, options_.scale),
                       .rented = now,
                       .ready = ready});
  router_.add();
  ++staying_;
}

void Replicas::remove_youngest(Picoseconds now) {
  std::size_t i = replicas_.size() - 1;
  while (replicas_[i].leaving) --i;
  replicas_[i].leaving = true;
  router_.close(i);
  std::erase(starting_, i);
  if (router_.idle(i)) replicas_[i].gone = now;
  --staying_;
}

void Replicas::open_ready(Picoseconds now) {
  for (; !starting_.empty() && replicas_[starting_.front()].ready <= now; starting_.pop_front())
    router_.open(starting_.front());
}

Status Replicas::scale(Picoseconds now) {
  if (scaler_ && scaler_->next() <= now) {
    if (scaler_->decisions() == kMostDecisions)
      return fail("the rule of `scaling` decides more than ten million times",
                  "a longer `every`, or a shorter load");
    count(now);
    const std::size_t should = scaler_->decide(now, signal(now), staying_);
    decided_ = now;
    request_time_ = 0;
    while (staying_ < should) add(now, now + Picoseconds::from(pool_.scaling->start));
    while (staying_ > should) remove_youngest(now);
  }
  open_ready(now);
  return {};
}

Picoseconds Replicas::next_change() const {
  if (!scaler_) return kNever;
  return starting_.empty() ? scaler_->next()
                           : std::min(scaler_->next(), replicas_[starting_.front()].ready);
}

std::size_t Replicas::route(std::uint32_t request, Picoseconds now) {
  count(now);
  ++unfinished_;
  if (scaler_ && pool_.scaling->signal == Signal::kTtft) without_token_.push_back(request);
  // A router knows what it sent: prompts, and no answers.
  if (pool_.routing == Routing::kPrefix && converses(requests_, request))
    return router_.send(
        request, requests_[request].input,
        names_of(requests_, request, requests_[request].input / pool_.rules.prefix_tokens));
  return router_.send(request, requests_[request].input, requests_[request].prefix);
}

void Replicas::end(std::size_t replica, std::uint32_t request, Picoseconds now) {
  count(now);
  --unfinished_;
  router_.end(replica, request);
  if (replicas_[replica].leaving && router_.idle(replica)) replicas_[replica].gone = now;
}

void Replicas::count(Picoseconds now) {
  request_time_ += unfinished_ * static_cast<double>((now - counted_).count());
  counted_ = now;
}

double Replicas::late_first_token(Picoseconds now) {
  const auto ready = static_cast<double>(staying_ - starting_.size());
  std::vector<double> times;
  std::erase_if(without_token_, [&](std::uint32_t request) {
    const Served& r = served_[request];
    const bool out = r.first > Picoseconds(0) && r.first <= now;
    if (out) times.push_back((r.first - r.sent).seconds().s());
    return out || r.dropped;
  });
  // Where no token came out, unfinished requests keep the replicas that there are.
  if (times.empty())
    return unfinished_ > 0 ? pool_.scaling->target * static_cast<double>(staying_) : 0;
  std::sort(times.begin(), times.end());
  return quantile(times, 0.9) * ready;
}

double Replicas::signal(Picoseconds now) {
  const auto interval = static_cast<double>((now - decided_).count());
  switch (pool_.scaling->signal) {
    case Signal::kRequests: return request_time_ / interval;
    case Signal::kQueue: {
      std::size_t waiting = 0;
      for (const Replica& r : replicas_)
        waiting += r.server.waiting() + r.arrived.size() + r.next.size();
      return static_cast<double>(waiting);
    }
    case Signal::kBusy: {
      Picoseconds busy{0};
      for (const Replica& r : replicas_) busy += r.busy - std::max(r.until - now, Picoseconds(0));
      return static_cast<double>((busy - std::exchange(busy_, busy)).count()) / interval;
    }
    case Signal::kTtft: return late_first_token(now);
  }
  REHEARSE_CHECK(false, "an unknown signal");
}

Picoseconds Replicas::next_end() const {
  Picoseconds next = kNever;
  for (const Replica& replica : replicas_)
    next = std::min(next, replica.ending ? replica.until : replica.server.next_arrival());
  return next;
}

std::vector<Run> Replicas::runs() const {
  std::vector<Run> runs;
  for (const Replica& r : replicas_)
    runs.push_back({.steps = r.server.log(),
                    .gaps = r.server.gaps(),
                    .blocks = pool_.rules.blocks,
                    .rented = r.rented,
                    .ready = r.ready,
                    .gone = r.gone});
  return runs;
}

}  // namespace rehearse::serving
