#include "sim/engine/simgrid/network.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

namespace rehearse::engine::simgrid_back_end {
namespace {

namespace s4u = simgrid::s4u;
using simgrid::kernel::timer::Timer;

// docs/concepts/simgrid.md gives the reason for each.
constexpr const char* kOptions[] = {"network/model:CM02",         "network/crosstraffic:0",
                                    "network/latency-factor:1",   "network/weight-S:0",
                                    "network/bandwidth-factor:1", "network/TCP-gamma:0",
                                    "surf/precision:1e-12",       "maxmin/precision:1e-12"};

class SimGridNetwork final : public Network {
 public:
  explicit SimGridNetwork(const Platform& platform) {
    static char name[] = "rehearse";
    static char* arguments[] = {name, nullptr};
    int count = 1;
    engine_ = std::make_unique<s4u::Engine>(&count, arguments);
    for (const char* option : kOptions) s4u::Engine::set_config(option);
    build(platform);
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
      const auto flow = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(
          static_cast<const s4u::Comm&>(activity).get_data<void>()));
      if (live_[flow].get() != &activity) return;  // taken away
      // An activity must outlive its own callback.
      ended_.push_back(std::move(live_[flow]));
      live_[flow] = nullptr;
      client_->arrived(flow);
    });
    s4u::Engine::on_time_advance_cb([this](double) { ended_.clear(); });
  }

  double now() const override { return s4u::Engine::get_clock(); }

  void begin(std::uint32_t flow, std::uint32_t route, double work) override {
    if (flow >= live_.size()) live_.resize(flow + 1);
    s4u::CommPtr comm = s4u::Comm::sendto_init();
    comm->set_payload_size(static_cast<std::uint64_t>(std::llround(work)));
    comm->set_data(reinterpret_cast<void*>(std::uintptr_t{flow}));
    const auto [source, destination] = ends_of(route);
    comm->set_source(hosts_[source]);
    comm->set_destination(hosts_[destination]);  // starts it
    live_[flow] = std::move(comm);
  }

  double take_away(std::uint32_t flow) override {
    // If it were suspended instead, a flow without latency would never resume: SimGrid restores its
    // sharing penalty, which is its latency.
    s4u::CommPtr comm = std::move(live_[flow]);
    live_[flow] = nullptr;
    const double left = comm->get_remaining();
    comm->cancel();
    ended_.push_back(std::move(comm));
    return left;
  }

  void set_rate(std::uint32_t link, double rate) override { links_[link]->set_bandwidth(rate); }

  void wake_at(double seconds) override {
    if (timer_) timer_->remove();
    timer_ = Timer::set(std::max(seconds, now()), [this] {
      timer_ = nullptr;  // SimGrid deletes it
      client_->woken();
    });
  }

  void run(Client& client) override {
    client_ = &client;
    engine_->run();
  }

 private:
  /// Routes are pairs of hosts. n hosts give n (n-1) of them, so the route table of a full zone,
  /// which has n^2 entries, is no larger than necessary.
  std::pair<std::size_t, std::size_t> ends_of(std::size_t route) const {
    const std::size_t source = route / (hosts_.size() - 1);
    const std::size_t destination = route % (hosts_.size() - 1);
    return {source, destination < source ? destination : destination + 1};
  }

  void build(const Platform& platform) {
    auto* zone = s4u::create_full_zone("zone");
    for (std::size_t i = 0; i < platform.links.size(); ++i) {
      s4u::Link* link = zone->create_link("link" + std::to_string(i), platform.links[i].rate);
      if (platform.links[i].per_flow) link->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
      links_.push_back(link->set_latency(0)->seal());
    }
    std::size_t hosts = 2;
    while (hosts * (hosts - 1) < platform.routes.size()) ++hosts;
    for (std::size_t i = 0; i < hosts; ++i)
      hosts_.push_back(zone->create_host("host" + std::to_string(i), 1e9)->seal());
    for (std::size_t i = 0; i < platform.routes.size(); ++i) {
      std::vector<s4u::LinkInRoute> route;
      for (const std::uint32_t link : platform.routes[i]) route.emplace_back(links_[link]);
      const auto [source, destination] = ends_of(i);
      zone->add_route(hosts_[source]->get_netpoint(), hosts_[destination]->get_netpoint(), nullptr,
                      nullptr, route, false);
    }
    zone->seal();
  }

  std::unique_ptr<s4u::Engine> engine_;
  std::vector<s4u::Link*> links_;
  std::vector<s4u::Host*> hosts_;
  std::vector<s4u::CommPtr> live_;  // by number of the flow
  std::vector<s4u::CommPtr> ended_;
  Timer* timer_ = nullptr;
  Client* client_ = nullptr;
};

}  // namespace

extern "C" Network* rehearse_simgrid_network(const Platform& platform) {
  return new SimGridNetwork(platform);
}

}  // namespace rehearse::engine::simgrid_back_end
