#include "sim/cluster/instance_shape.h"

#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "sim/cluster/catalog.h"
#include "sim/cluster/link_types.h"

namespace rehearse::cluster {
namespace {

std::optional<NodeKind> joined_by(std::string_view interconnect) {
  if (interconnect == "none" || interconnect == "pcie") return NodeKind::kPcie;
  if (interconnect.starts_with("nvswitch")) return NodeKind::kNvswitch;
  if (interconnect.starts_with("nvlink_bridge")) return NodeKind::kNvlinkPairs;
  if (interconnect == "infinity_fabric") return NodeKind::kMesh;
  return std::nullopt;
}

struct Nics {
  std::string_view kind;  // how names of such links begin
  std::uint32_t count = 1;
  std::optional<ByteRate> each = {};  // absent: the instance's rate
};

/// "ib_ndr_8x400", "roce_8x400+2x200" (the first are for the devices), "efa_v2_32x100", "efa",
/// "eth", "ena".
Nics nics_of(std::string_view kind) {
  Nics nics{kind};
  const std::string_view counts = kind.substr(kind.rfind('_') + 1);  // all, without one
  const char* const end = counts.data() + counts.size();
  std::uint32_t count = 0;
  double gbit = 0;
  const auto [x, count_read] = std::from_chars(counts.data(), end, count);
  if (count_read == std::errc{} && x != end && *x == 'x' &&
      std::from_chars(x + 1, end, gbit).ec == std::errc{} && count > 0) {
    nics = {kind.substr(0, kind.rfind('_')), count, ByteRate::gbit_per_s(gbit)};
  }
  if (nics.kind == "eth" || nics.kind == "ena") nics.kind = "tcp";
  return nics;
}

}  // namespace

Result<InstanceShape> shape_of_instance(std::string_view name) {
  const Instance& instance = *TRY(find_instance(name));
  const double devices = instance.gpu_count;
  if (devices < 1 || devices != std::floor(devices))
    return fail(fmt::format("instance '{}' has {} of a device", name, devices),
                "an instance with whole devices");
  InstanceShape shape{.device = instance.gpu,
                      .devices = static_cast<std::uint32_t>(devices),
                      .joined = joined_by(instance.gpu_interconnect),
                      .nics = 1,
                      .store = {.memory = instance.memory, .nvme = instance.local_storage}};
  const Nics nics = nics_of(instance.network_kind);
  const std::optional<ByteRate> rate = nics.each ? nics.each : instance.network;
  if (nics.kind.empty() || !rate) return shape;
  LinkType nic = TRY(network_link(nics.kind, *rate, nics.count));
  NodeNics all = striped({std::move(nic), nics.count}, shape.devices);
  shape.nics = all.count;
  shape.nic = std::move(all.link);
  return shape;
}

}  // namespace rehearse::cluster
