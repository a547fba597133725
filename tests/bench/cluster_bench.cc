// The time of building clusters of thousands of devices, and of finding one route.
#include <benchmark/benchmark.h>

#include "sim/cluster/templates.h"
#include "tests/bench/peak_memory.h"

namespace rehearse::bench {
namespace {

using namespace cluster;

LinkType type(const char* name, double gb_per_s, double latency_us) {
  return {.name = name,
          .rate = ByteRate::gb_per_s(gb_per_s),
          .latency = Seconds::us(latency_us),
          .source = "bench"};
}

ClusterTemplate shape(FabricKind kind, std::uint32_t nodes, std::uint32_t devices) {
  FabricTemplate fabric{.kind = kind, .link = type("net", 47, 1), .links = devices};
  fabric.levels = 3;
  fabric.groups = 16;
  fabric.routers = 8;
  if (kind == FabricKind::kTorus) fabric.dimensions = {16, 16, nodes * devices / 256};
  const NodeTemplate node{.kind = NodeKind::kNvswitch,
                          .device = "h100_sxm5_80",
                          .devices = devices,
                          .link = type("nvlink", 370, 2),
                          .pcie = type("pcie", 52, 1),
                          .sockets = type("sockets", 10, 0.5),
                          .forward = kind == FabricKind::kRails};
  return {.groups = {{node, nodes}}, .fabric = std::move(fabric)};
}

Cluster build(const ClusterTemplate& t) { return *std::move(*make_cluster(t)).build(); }

const char* const kNames[] = {"switch", "rails", "fat_tree", "dragonfly", "torus"};

void build_4096(benchmark::State& state) {
  const auto kind = static_cast<FabricKind>(state.range(0));
  const bool torus = kind == FabricKind::kTorus;
  const ClusterTemplate t = shape(kind, torus ? 4096 : 512, torus ? 1 : 8);
  for (auto _ : state) benchmark::DoNotOptimize(build(t));
  state.SetItemsProcessed(state.iterations() * 4096);
  state.SetLabel(kNames[state.range(0)]);
  if (const auto peak = peak_memory([&] { benchmark::DoNotOptimize(build(t)); }))
    state.counters["MiB"] = static_cast<double>(*peak) / (1 << 20);
}
BENCHMARK(build_4096)
    ->Name("cluster/build_4096_devices")
    ->DenseRange(0, 4)
    ->Unit(benchmark::kMillisecond);

void route_4096(benchmark::State& state) {
  const auto kind = static_cast<FabricKind>(state.range(0));
  const bool torus = kind == FabricKind::kTorus;
  const Cluster c = build(shape(kind, torus ? 4096 : 512, torus ? 1 : 8));
  std::uint32_t a = 1, b = 7;  // the distances to 64 destinations are known after the first round
  for (auto _ : state) {
    a = (a * 29 + 11) % 4096;
    b = (b + 64) % 4096;
    benchmark::DoNotOptimize(c.route(DeviceId(a), DeviceId(b)));
  }
  state.SetItemsProcessed(state.iterations());
  state.SetLabel(kNames[state.range(0)]);
}
BENCHMARK(route_4096)
    ->Name("cluster/route_4096_devices")
    ->DenseRange(0, 4)
    ->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace rehearse::bench
