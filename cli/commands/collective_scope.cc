#include "cli/commands/collective_scope.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "cli/commands/catalog_names.h"
#include "cli/commands/options.h"
#include "cli/config/job_file.h"
#include "models/comm/scope_of_cluster.h"
#include "models/comm/transfer.h"
#include "models/job/calibrated.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"

namespace rehearse::cli {

namespace {

/// "infiniband,rate=200GB/s,latency=5us": kind, nominal rate of all NICs of a node, one-way
/// latency.
Result<comm::Network> parse_node_network(const std::string& text) {
  constexpr std::array<std::string_view, 2> kKeys = {"rate", "latency"};
  std::optional<comm::NetworkKind> kind;
  std::optional<ByteRate> rate;
  std::optional<Seconds> latency;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = trim(part.substr(0, equals));
    if (equals == std::string_view::npos) {
      const std::size_t index = index_of(comm::kNetworkNames, key);
      if (index == comm::kNetworkNames.size())
        return fail(fmt::format("unknown kind '{}'", key), suggest(key, comm::kNetworkNames));
      kind = static_cast<comm::NetworkKind>(index);
    } else if (key == "rate") {
      rate = TRY(parse_quantity<ByteRate>(part.substr(equals + 1)));
    } else if (key == "latency") {
      latency = TRY(parse_quantity<Seconds>(part.substr(equals + 1)));
    } else {
      return fail(fmt::format("unknown key '{}'", key), suggest(key, kKeys));
    }
  }
  if (!kind || !rate || !latency)
    return fail("kind, rate and latency are required", "infiniband,rate=200GB/s,latency=5us");
  if (!(*rate >= cluster::kLeastLinkRate) || !(*latency >= Seconds::s(0)) ||
      !(*latency <= Seconds::s(1)))
    return fail("out of range", "a rate of at least 1 kB/s, a latency from 0 s to 1 s");
  return comm::Network{*kind, *rate, *latency};
}

}  // namespace

void add_scope_options(CLI::App& command, ScopeRequest& request) {
  CLI::Option* cluster = add_value(command, "--cluster", "FILE", request.cluster,
                                   "cluster file, with a section `cluster:`");
  offer(add_value(command, "--device", "NAME", request.device,
                  "instead of a cluster: name in the catalog, such as h100_sxm5_80"),
        gpu_names)
      ->excludes(cluster);
  add_value(command, "--calibration", "FILE", request.calibration,
            "file of 'rehearse calibrate nccl' instead of the device's own");
  add_number(command, "--ranks", request.ranks, 2U, 1U << 20,
             "ranks, one per device (default: all of the cluster, else 8)");
  add_number(command, "--devices-per-node", request.devices_per_node, 1U, 1024U,
             "participating devices per node (default 8)")
      ->excludes(cluster);
  add_read(command, "--network", "NETWORK", request.network, parse_node_network,
           "between nodes: KIND,rate=RATE,latency=TIME; KIND is infiniband, roce, efa, omni_path "
           "or tcp, RATE of all NICs of a node, TIME from device to device")
      ->excludes(cluster);
  add_read(command, "--small-all-reduce", "TIME", request.small_all_reduce, parse_quantity<Seconds>,
           "measured time of an all_reduce of 8 KiB on these ranks, which scales the latencies");
}

void check_scope_options(const ScopeRequest& request) {
  if (request.cluster.empty() && request.device.empty() && request.calibration.empty())
    throw CLI::ValidationError(
        "a device is missing; give --cluster FILE, --device NAME or --calibration FILE");
}

namespace {

/// Ranks on the first devices of a cluster. Where no calibration can cover them, the scope has their
/// number alone.
Scope scope_on(cluster::Cluster cluster, std::uint32_t ranks) {
  std::vector<DeviceId> devices;
  std::set<NodeId> nodes;
  for (std::uint32_t i = 0; i < ranks; ++i) {
    devices.emplace_back(i);
    nodes.insert(cluster.devices()[i].node);
  }
  Result<comm::ClusterScope> found = comm::scope_of(cluster, devices);
  Result<comm::Calibrated> calibrated =
      found ? job::calibration_on(*found) : Result<comm::Calibrated>(forward(found));
  comm::ClusterScope on =
      found ? std::move(*found)
            : comm::ClusterScope{.device = cluster.devices().front().model,
                                 .ranks = ranks,
                                 .nodes = static_cast<std::uint32_t>(nodes.size())};
  return {.on = std::move(on),
          .calibrated = std::move(calibrated),
          .cluster = std::move(cluster),
          .devices = std::move(devices)};
}

Result<Scope> scope_on_cluster(const ScopeRequest& request) {
  cluster::Cluster read = TRY(cluster::load_cluster(request.cluster));
  const auto there = static_cast<std::uint32_t>(read.devices().size());
  const std::uint32_t ranks = request.ranks > 0 ? request.ranks : there;
  if (ranks < 2)
    return fail_in(request.cluster, "a collective on 1 rank has no communication", "2 devices");
  if (ranks > there)
    return fail_in(request.cluster,
                   fmt::format("has {} for {}", counted(there, "device"), counted(ranks, "rank")),
                   "at least one device per rank");
  return scope_on(std::move(read), ranks);
}

/// As a cluster file joins the devices of a node that a calibration was measured on. A card without
/// another for its bridge leaves all on PCIe.
std::string_view intra_node(comm::Fabric fabric, std::uint32_t devices) {
  switch (fabric) {
    case comm::Fabric::kNvswitch: return "nvswitch";
    case comm::Fabric::kCubeMesh: return "hybrid_cube_mesh";
    case comm::Fabric::kBridgedPairs: return devices % 2 == 0 ? "nvlink_pairs" : "pcie";
    case comm::Fabric::kHostStaged: break;
  }
  return "pcie";
}

/// Nodes that have the participating devices alone, joined as those of the device's calibration.
Result<Scope> scope_on_device(const ScopeRequest& request,
                              const std::optional<comm::Calibration>& own) {
  const std::uint32_t ranks = request.ranks > 0 ? request.ranks : 8,
                      local = std::min(ranks, request.devices_per_node);
  comm::ClusterScope on{.device = own ? own->device : request.device,
                        .ranks = ranks,
                        .nodes = (ranks + local - 1) / local};
  if (on.nodes > 1) on.network = request.network;
  if (on.nodes > 1 && !on.network)
    return fail(fmt::format("{} ranks of {} per node need a network between nodes", ranks, local),
                "--network infiniband,rate=200GB/s,latency=5us");
  Result<comm::Calibrated> usual = comm::calibration_for(on.device);
  if (const Result<const cluster::Gpu*> gpu = cluster::find_gpu(on.device); !gpu) {
    if (!own && !usual) return forward(gpu);
    return Scope{.on = std::move(on), .calibrated = std::move(usual)};
  }
  const auto joined = [&](Seconds from_nic_to_nic) {
    std::string text = fmt::format("cluster: {{device: \"{}\", devices_per_node: {}, nodes: {}",
                                   on.device, local, on.nodes);
    if (local > 1 && (own || usual))
      text += fmt::format(", intra_node: {}",
                          intra_node(own ? own->fabric : usual->calibration.fabric, local));
    if (on.network) {
      // TCP is one NIC per node.
      const std::uint32_t nics = on.network->kind == comm::NetworkKind::kTcp ? 1 : local;
      text += fmt::format(", inter_node: {{network: {}, links: {}, rate: {} B/s, latency: {} s}}",
                          to_string(on.network->kind), nics,
                          on.network->node_rate.bytes_per_s() / nics, from_nic_to_nic.s());
    }
    return cluster::parse_cluster(text + "}\n", on.device);
  };
  cluster::Cluster cluster = TRY(joined(Seconds::s(0)));
  if (on.network) {
    const Seconds within = cluster.route(DeviceId(0), DeviceId(local)).path.latency;
    cluster = TRY(joined(std::max(Seconds::s(0), on.network->latency - within)));
  }
  return scope_on(std::move(cluster), ranks);
}

}  // namespace

Result<Scope> resolve_scope(const ScopeRequest& request) {
  std::optional<comm::Calibration> own;
  if (!request.calibration.empty()) {
    own = TRY(comm::load_calibration(request.calibration));
    if (!request.device.empty() && own->device != request.device)
      return fail(Diagnostic{.file = request.calibration,
                             .key = "device",
                             .problem = fmt::format("is {}, not {}", own->device, request.device),
                             .expected = "the calibration of that device"});
  }
  Scope scope =
      TRY(request.cluster.empty() ? scope_on_device(request, own) : scope_on_cluster(request));
  if (own) {
    if (own->device != scope.on.device)
      return fail(Diagnostic{.file = request.calibration,
                             .key = "device",
                             .problem = fmt::format("is {}, not {}", own->device, scope.on.device),
                             .expected = "the calibration of that device"});
    TRY(comm::suits(*own, scope.on));
    scope.calibrated = comm::Calibrated{.calibration = std::move(*own)};
  }
  if (request.small_all_reduce)
    scope.calibrated = comm::anchored(TRY(std::move(scope.calibrated)),
                                      {.kind = CollectiveKind::kAllReduce,
                                       .ranks = scope.on.ranks,
                                       .nodes = scope.on.nodes,
                                       .network = scope.on.network},
                                      Bytes::kib(8), *request.small_all_reduce);
  scope.named = !request.calibration.empty() || request.small_all_reduce;
  if (!scope.calibrated && (scope.named || !scope.cluster)) return forward(scope.calibrated);
  return scope;
}

std::string describe(const Scope& scope) {
  std::string text = fmt::format("{}, {} on {}", scope.on.device, counted(scope.on.ranks, "rank"),
                                 counted(scope.on.nodes, "node"));
  if (scope.on.network)
    text += fmt::format(" over {} of {} per node", to_string(scope.on.network->kind),
                        to_string(scope.on.network->node_rate));
  if (!scope.calibrated) return text + "\nmessages on the links of the cluster\n";
  const comm::Fitted& fitted = scope.calibrated->calibration.fitted;
  return text +
         fmt::format("\nfrom {} rows of NCCL {}, mean error {:.1f} %\n", grouped(fitted.rows),
                     fitted.nccl_version.empty() ? "of unknown version" : fitted.nccl_version,
                     fitted.residual * 100);
}

}  // namespace rehearse::cli
