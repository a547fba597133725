#include "sim/serving/tenants.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "sim/serving/client.h"
#include "sim/serving/replicas.h"

namespace rehearse::serving {
namespace {

/// A server, its client, and the work that is left of its step.
struct Server {
  explicit Server(const Tenant& tenant)
      : options(tenant.options),
        served(tenant.requests.size()),
        client(tenant.pricer, tenant.requests, options, served),
        replica{.server = Scheduler(tenant.rules, tenant.pricer, tenant.requests, options.scale)},
        requests_left(tenant.requests.size()),
        overlapped(tenant.rules.overlapped),
        blocks(tenant.rules.blocks) {}

  RunOptions options;
  std::vector<Served> served;
  Client client;
  Replica replica;
  std::size_t requests_left;
  bool overlapped;
  std::int64_t blocks;
  bool runs = false;    ///< a step is under way
  Picoseconds left{0};  ///< of its time alone

  void end_step(Picoseconds now) {
    if (runs && left > Picoseconds(0)) return;
    const auto finish = [&](std::uint32_t request) {
      client.finish(request, now);
      --requests_left;
    };
    if (runs) {
      replica.server.end(now, served);
      std::ranges::for_each(replica.server.finished(), finish);
    }
    runs = false;
    std::ranges::for_each(replica.server.drop_late(now, served), finish);
  }
  void start_step(Picoseconds now) {
    client.send(now);
    client.deliver(now, [&](std::uint32_t request) { replica.arrived.push_back(request); });
    if (runs) return;
    replica.look(overlapped);
    replica.ran = runs = replica.server.busy() && replica.server.begin(now);
    if (runs) left = replica.server.alone();
  }
};

/// Who has the device.
class Device {
 public:
  Device(std::deque<Server>& servers, const std::optional<Turns>& turns)
      : servers_(servers), turns_(turns) {
    if (turns_) left_ = Picoseconds::from(turns_->quantum);
  }

  /// Ends a turn that is over, or that its server does not use while others wait.
  void pass_turns() {
    if (!turns_) return;
    if (changing_ && left_ == Picoseconds(0)) {
      changing_ = false;
      left_ = Picoseconds::from(turns_->quantum);
    }
    if (changing_ || (servers_[owner_].runs && left_ > Picoseconds(0))) return;
    for (std::size_t i = 1; i < servers_.size(); ++i) {
      const std::size_t next = (owner_ + i) % servers_.size();
      if (!servers_[next].runs) continue;
      owner_ = next;
      changing_ = true;
      left_ = Picoseconds::from(turns_->change);
      return;
    }
    left_ = Picoseconds::from(turns_->quantum);  // nobody else wants it
  }

  /// The speed of a server's step, relative to the server alone.
  double speed(const Server& server) const {
    if (turns_) return !changing_ && &server == &servers_[owner_] ? 1 : 0;
    double use = 0;
    for (const Server& each : servers_)
      if (each.runs) use += each.replica.server.use();
    return use > 1 ? 1 / use : 1;
  }

  /// When a turn or a switch ends.
  Picoseconds next(Picoseconds now) const {
    const bool wanted = std::ranges::any_of(servers_, &Server::runs);
    return turns_ && (changing_ || wanted) ? now + left_ : kNever;
  }
  void advance(Picoseconds by) {
    if (turns_) left_ = std::max(left_ - by, Picoseconds(0));
  }

 private:
  std::deque<Server>& servers_;
  const std::optional<Turns>& turns_;
  std::size_t owner_ = 0;
  bool changing_ = false;
  Picoseconds left_{0};  ///< of the turn, or of the switch to it
};

Picoseconds over(Picoseconds time, double speed) {
  if (speed == 1) return time;
  return Picoseconds(
      static_cast<std::int64_t>(std::ceil(static_cast<double>(time.count()) / speed)));
}

}  // namespace

Result<std::vector<Run>> run_tenants(std::span<const Tenant> tenants,
                                     const std::optional<Turns>& turns) {
  std::deque<Server> servers;
  for (const Tenant& tenant : tenants) {
    for (const Request& request : tenant.requests) TRY(Scheduler::check(tenant.rules, request));
    servers.emplace_back(tenant);
  }
  Device device(servers, turns);
  for (Picoseconds now{0};;) {
    for (Server& server : servers) server.end_step(now);
    if (std::ranges::all_of(servers, [](const Server& s) { return s.requests_left == 0; })) break;
    TRY(check_length(now));
    for (Server& server : servers) server.start_step(now);
    device.pass_turns();
    Picoseconds next = device.next(now);
    for (const Server& server : servers) {
      next = std::min(next, server.client.next_event());
      if (!server.runs) next = std::min(next, server.replica.server.next_arrival());
      const double speed = device.speed(server);
      if (server.runs && speed > 0) next = std::min(next, now + over(server.left, speed));
    }
    for (Server& server : servers) {
      const double speed = device.speed(server);
      if (!server.runs || speed == 0) continue;
      if (now + over(server.left, speed) <= next)
        server.left = Picoseconds(0);
      else
        server.left = server.left - Picoseconds(static_cast<std::int64_t>(std::floor(
                                        static_cast<double>((next - now).count()) * speed)));
    }
    device.advance(next - now);
    now = next;
  }
  std::vector<Run> runs;
  for (Server& server : servers)
    runs.push_back({.served = std::move(server.served),
                    .steps = server.replica.server.log(),
                    .gaps = server.replica.server.gaps(),
                    .blocks = server.blocks,
                    .gone = kNever});
  return runs;
}

}  // namespace rehearse::serving
