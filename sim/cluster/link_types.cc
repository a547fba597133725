#include "sim/cluster/link_types.h"

#include <array>

#include <fmt/core.h>

#include "sim/cluster/catalog.h"

namespace rehearse::cluster {
namespace {

/// Latencies of rows of the catalog that state none: of the device's usual link for direct NVLinks;
/// between sockets a guess.
struct Assumed {
  std::string_view link;
  Seconds latency;
};
constexpr std::array kAssumed = {Assumed{"nvlink3_a100_direct_4gpu_nv4", Seconds::us(2)},
                                 Assumed{"nvlink3_a100_pcie_bridge", Seconds::us(2)},
                                 Assumed{"nvlink4_h100_pcie_bridge", Seconds::us(2)},
                                 Assumed{"qpi_upi_cross_socket_skl", Seconds::us(0.5)}};

}  // namespace

Result<LinkType> link_type_named(std::string_view name) {
  const LinkSpec& spec = *TRY(find_link(name));
  std::string source = spec.origin.source;
  std::optional<Seconds> latency = spec.latency;
  for (const Assumed& assumed : kAssumed)
    if (!latency && assumed.link == name) {
      latency = assumed.latency;
      source += ", latency assumed";
    }
  if (!spec.achieved || !latency)
    return fail(fmt::format("the catalog has no achieved rate and latency of link '{}'", name),
                "another link, or rate and latency");
  return LinkType{.name = spec.name,
                  .rate = *spec.achieved,
                  .latency = *latency,
                  .source = std::move(source),
                  .message = spec.message,
                  .network = spec.network};
}

MessageTimes message_times(NetworkKind kind) {
  const auto& all = links();
  const auto row = std::ranges::find(all, std::optional(kind), &LinkSpec::network);
  return row == all.end() ? MessageTimes{} : row->message;
}

Result<LinkType> network_link(std::string_view kind, ByteRate nominal, std::uint32_t nics) {
  const LinkSpec* nearest = nullptr;
  double distance = 0;
  const auto of_all = [&](const LinkSpec& spec) {
    return nics > 1 && spec.nominal_scope == "per node";
  };
  for (const LinkSpec& spec : links()) {
    if (spec.kind != LinkKind::kInterNode || !spec.name.starts_with(kind) || !spec.per_direction ||
        !spec.achieved || !spec.latency)
      continue;
    const double ratio = nominal * (of_all(spec) ? nics : 1) / *spec.per_direction;
    const double apart = ratio < 1 ? 1 / ratio : ratio;
    if (nearest && apart > distance) continue;  // of two as near the later row: the newer
    nearest = &spec;
    distance = apart;
  }
  if (!nearest) return fail(fmt::format("the catalog has no network link of kind '{}'", kind));
  constexpr double kSame = 1.1;  // nominal rates are rounded
  const bool same = distance < kSame;
  std::string name =
      of_all(*nearest) ? fmt::format("{}, 1 of {}", nearest->name, nics) : nearest->name;
  return LinkType{.name = same ? std::move(name)
                               : fmt::format("{}, scaled to {}", nearest->name, to_string(nominal)),
                  .rate = nominal * (*nearest->achieved / *nearest->per_direction),
                  .latency = *nearest->latency,
                  .source = nearest->origin.source,
                  .message = nearest->message,
                  .network = nearest->network};
}

}  // namespace rehearse::cluster
