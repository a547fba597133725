#include "cli/commands/collective_scope.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/commands/catalog_names.h"
#include "cli/commands/options.h"
#include "cli/config/job_file.h"
#include "models/comm/scope_of_cluster.h"
#include "models/comm/transfer.h"
#include "sim/base/text.h"
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
           "or tcp, RATE of all NICs of a node")
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

/// Ranks on the first devices of the cluster.
Result<Scope> scope_on_cluster(const ScopeRequest& request) {
  cluster::Cluster read = TRY(cluster::load_cluster(request.cluster));
  const auto there = static_cast<std::uint32_t>(read.devices().size());
  const std::uint32_t ranks = request.ranks > 0 ? request.ranks : there;
  if (ranks > there)
    return fail_in(request.cluster,
                   fmt::format("has {} for {}", counted(there, "device"), counted(ranks, "rank")),
                   "at least one device per rank");
  std::vector<DeviceId> devices;
  for (std::uint32_t i = 0; i < ranks; ++i) devices.emplace_back(i);
  comm::ClusterScope found = TRY(in_file(request.cluster, comm::scope_of(read, devices)));
  return Scope{.device = found.device,
               .ranks = ranks,
               .nodes = found.nodes,
               .network = found.network,
               .cluster = std::move(read),
               .devices = std::move(devices),
               .notes = std::move(found.notes)};
}

Result<Scope> scope_on_device(const ScopeRequest& request) {
  Scope scope{.device = request.device, .ranks = request.ranks > 0 ? request.ranks : 8, .nodes = 1};
  scope.nodes = (scope.ranks + request.devices_per_node - 1) / request.devices_per_node;
  if (scope.nodes > 1) scope.network = request.network;
  if (scope.nodes > 1 && !scope.network)
    return fail(fmt::format("{} ranks of {} per node need a network between nodes", scope.ranks,
                            request.devices_per_node),
                "--network infiniband,rate=200GB/s,latency=5us");
  return scope;
}

Result<comm::Calibrated> calibration_of(const ScopeRequest& request, const Scope& scope) {
  comm::Calibrated calibrated;
  std::optional<comm::ClusterScope> joined;
  if (scope.cluster) joined = TRY(comm::scope_of(*scope.cluster, scope.devices));
  if (request.calibration.empty()) {
    calibrated = TRY(comm::calibration_for(scope.device, joined ? joined->fabric : std::nullopt));
  } else {
    comm::Calibration own = TRY(comm::load_calibration(request.calibration));
    if (!scope.device.empty() && own.device != scope.device)
      return fail(Diagnostic{.file = request.calibration,
                             .key = "device",
                             .problem = fmt::format("is {}, not {}", own.device, scope.device),
                             .expected = "the calibration of that device"});
    calibrated.calibration = std::move(own);
  }
  if (joined) TRY(comm::suits(calibrated.calibration, *joined));
  if (!request.small_all_reduce) return calibrated;
  return comm::anchored(calibrated,
                        {.kind = CollectiveKind::kAllReduce,
                         .ranks = scope.ranks,
                         .nodes = scope.nodes,
                         .network = scope.network},
                        Bytes::kib(8), *request.small_all_reduce);
}

}  // namespace

Result<Scope> resolve_scope(const ScopeRequest& request, bool must_be_calibrated) {
  Scope scope = TRY(request.cluster.empty() ? scope_on_device(request) : scope_on_cluster(request));
  Result<comm::Calibrated> found = calibration_of(request, scope);
  if (!found && (must_be_calibrated || !request.calibration.empty())) return forward(found);
  if (!found) {
    scope.notes.push_back(found.error().diagnostics.front().problem);
    return scope;
  }
  if (!found->note.empty()) scope.notes.push_back(found->note);
  scope.calibrated = std::move(*found);
  scope.device = scope.calibrated->calibration.device;
  return scope;
}

std::string describe(const Scope& scope) {
  std::string text = fmt::format("{}, {} on {}", scope.device, counted(scope.ranks, "rank"),
                                 counted(scope.nodes, "node"));
  if (scope.network)
    text += fmt::format(" over {} of {} per node", to_string(scope.network->kind),
                        to_string(scope.network->node_rate));
  if (!scope.calibrated) return text + "\nmessages on the links of the cluster\n";
  const comm::Fitted& fitted = scope.calibrated->calibration.fitted;
  return text +
         fmt::format("\nfrom {} rows of NCCL {}, mean error {:.1f} %\n", grouped(fitted.rows),
                     fitted.nccl_version.empty() ? "of unknown version" : fitted.nccl_version,
                     fitted.residual * 100);
}

}  // namespace rehearse::cli
