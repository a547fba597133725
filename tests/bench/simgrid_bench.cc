// SimGrid on the same graph, in the way that is fastest: no pre-built graph, each activity created
// when its predecessors have ended. One host represents one stream.
#include <benchmark/benchmark.h>
#include <simgrid/s4u.hpp>

#include "sim/engine/engine.h"
#include "tests/bench/graphs.h"

namespace rehearse::bench {
namespace {

namespace s4u = simgrid::s4u;

class SimGridRun {
 public:
  static SimGridRun& instance() {  // SimGrid allows only one engine per process
    static SimGridRun run;
    return run;
  }

  double run(const graph::Graph& graph) {
    graph_ = &graph;
    const double begin = s4u::Engine::get_clock();
    need_.clear();
    live_.assign(graph.size(), nullptr);
    for (std::size_t i = 0; i < graph.size(); ++i) need_.push_back(graph.need(OpId(i)));
    for (std::size_t i = 0; i < graph.size(); ++i)
      if (need_[i] == 0) start(OpId(i));
    engine_->run();
    return s4u::Engine::get_clock() - begin;
  }

 private:
  SimGridRun() {
    int argc = 1;
    static char name[] = "bench";
    static char* argv[] = {name, nullptr};
    engine_ = new s4u::Engine(&argc, argv);
    s4u::Engine::set_config("network/model:CM02");
    s4u::Engine::set_config("network/crosstraffic:0");
    s4u::Engine::set_config("surf/precision:1e-12");
    auto* zone = s4u::create_star_zone("zone");
    for (int i = 0; i < 64; ++i)
      hosts_.push_back(zone->create_host("stream" + std::to_string(i), 1e12));
    zone->seal();
    s4u::Activity::on_completion_cb([this](s4u::Activity const& exec) {
      const auto op = static_cast<std::uint32_t>(std::stoul(exec.get_cname()));
      for (const OpId next : graph_->successors(OpId(op)))
        if (--need_[next.index()] == 0) start(next);
      done_.push_back(op);
    });
    // An activity must outlive its own callback.
    s4u::Engine::on_time_advance_cb([this](double) {
      for (const std::uint32_t op : done_) live_[op] = nullptr;
      done_.clear();
    });
  }

  void start(OpId op) {
    const auto stream = graph_->demand(op).server->index();
    auto exec = s4u::Exec::init();
    exec->set_name(std::to_string(op.index()));
    exec->set_flops_amount(static_cast<double>(graph_->duration(op).count()));
    exec->set_host(hosts_[stream]);
    exec->vetoable_start();
    live_[op.index()] = exec;
  }

  s4u::Engine* engine_;
  std::vector<s4u::Host*> hosts_;
  const graph::Graph* graph_ = nullptr;
  std::vector<std::uint32_t> need_;
  std::vector<s4u::ActivityPtr> live_;
  std::vector<std::uint32_t> done_;
};

void simgrid(benchmark::State& state) {
  const graph::Graph graph = training_step(static_cast<std::size_t>(state.range(0)), 64);
  double simulated = 0;
  for (auto _ : state) simulated = SimGridRun::instance().run(graph);
  const double ours = engine::run(graph)->makespan().seconds().s();
  if (std::abs(simulated / ours - 1) > 1e-6) state.SkipWithError("SimGrid finds another end time");
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.size()));
}
BENCHMARK(simgrid)
    ->Name("reference/simgrid/64_streams")
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(1);

}  // namespace
}  // namespace rehearse::bench
