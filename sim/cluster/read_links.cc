#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/cluster/link_types.h"
#include "sim/cluster/read_parts.h"

namespace rehearse::cluster {
namespace {

constexpr std::array<std::string_view, 2> kDuplexNames = {"full", "half"};

/// Vertices by name and links by the names of their ends.
class Names {
 public:
  explicit Names(const ClusterBuilder& builder) : builder_(builder) {
    for (std::uint32_t v = 0; v < builder.vertices().size(); ++v)
      vertices_.try_emplace(builder.vertices()[v].name, v);
    for (std::uint32_t i = 0; i < builder.links().size(); ++i) {
      const Link& link = builder.links()[i];
      links_.try_emplace(std::minmax(link.a.index(), link.b.index()), i);
    }
  }

  /// "a-b", where the names may hold hyphens too.
  Result<LinkId> link(std::string_view name) const {
    std::optional<std::string_view> unknown;
    for (std::size_t at = name.find('-'); at != name.npos; at = name.find('-', at + 1)) {
      const auto a = vertices_.find(name.substr(0, at)), b = vertices_.find(name.substr(at + 1));
      if (a == vertices_.end() || b == vertices_.end()) {
        unknown = a == vertices_.end() ? name.substr(0, at) : name.substr(at + 1);
        continue;
      }
      const auto found = links_.find(std::minmax(a->second, b->second));
      if (found != links_.end()) return LinkId(found->second);
      return fail(fmt::format("no link connects '{}' and '{}'", a->first, b->first),
                  "two vertices connected by a link");
    }
    if (!unknown) return fail(fmt::format("'{}' is not a link", name), "its two ends, such as a-b");
    return fail(fmt::format("unknown vertex '{}'", *unknown), near(*unknown));
  }

  Result<DeviceId> device(const std::string& name) const {
    const auto found = vertices_.find(name);
    if (found == vertices_.end()) return fail(fmt::format("unknown vertex '{}'", name), near(name));
    for (std::size_t i = 0; i < builder_.devices().size(); ++i)
      if (builder_.devices()[i].vertex.index() == found->second) return DeviceId(i);
    return fail(fmt::format("'{}' is not a device", name), "the name of a device");
  }

 private:
  std::string near(std::string_view name) const {
    std::vector<std::string_view> names;
    for (const auto& [known, index] : vertices_) names.push_back(known);
    const auto found = nearest(name, names);
    return found ? fmt::format("did you mean '{}'?", *found) : "the name of a vertex";
  }

  const ClusterBuilder& builder_;
  std::map<std::string_view, std::uint32_t> vertices_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> links_;
};

template <class T>
std::optional<T> value_or_report(const YamlMap& map, std::string_view key,
                                 const Result<T>& result) {
  if (result) return *result;
  const Diagnostic& d = result.error().diagnostics.front();
  map.report(key, d.problem, d.expected, d.nearest);
  return std::nullopt;
}

}  // namespace

std::uint32_t read_count(const YamlMap& map, std::string_view key, std::uint32_t otherwise,
                         std::uint32_t least, std::uint32_t most) {
  const std::optional<std::int64_t> count = map.optional<std::int64_t>(key);
  if (!count) return otherwise;
  if (*count >= least && *count <= most) return static_cast<std::uint32_t>(*count);
  map.report(key, fmt::format("{} is out of range", *count), fmt::format("{} to {}", least, most));
  return otherwise;
}

MessageTimes read_message_times(const YamlMap& map, const MessageTimes& usual) {
  const Seconds none = Seconds::s(0);
  return {
      map.within("start_up", none, kMostMessageTime).value_or(usual.start_up),
      map.within("message_cost", none, kMostMessageTime).value_or(usual.cost),
      map.within("half_rate_size", Bytes::b(0), kMostHalfRateSize).value_or(usual.half_rate_size)};
}

void read_network(const YamlMap& map, LinkType& type, bool nic) {
  if (const auto kind = map.choice("network", kNetworkNames))
    type.network = static_cast<NetworkKind>(*kind);
  if (map.has("link") || !map.has("rate") || !map.has("latency")) return;
  MessageTimes usual;
  if (type.network)
    usual = message_times(*type.network);
  else if (nic && type.latency < kKernelBypass)
    usual = message_times(NetworkKind::kRoce);
  if (!map.has("start_up")) type.message.start_up = usual.start_up;
  if (!map.has("message_cost")) type.message.cost = usual.cost;
  if (!map.has("half_rate_size")) type.message.half_rate_size = usual.half_rate_size;
}

std::optional<LinkType> read_link_type(const YamlMap& map, std::string name,
                                       std::string_view usual) {
  const std::optional<std::string> given = map.optional<std::string>("link");
  const auto rate = map.optional<ByteRate>("rate");
  const auto latency = map.optional<Seconds>("latency");
  const auto duplex = map.choice("duplex", kDuplexNames);
  const auto source = map.optional<std::string>("source");
  const bool bad_rate = rate && !(*rate >= kLeastLinkRate);
  const bool bad_latency = latency && !(*latency >= Seconds::s(0) && *latency <= Seconds::s(1));
  if (bad_rate) map.report("rate", "is out of range", std::string(kLinkRates));
  if (bad_latency) map.report("latency", "is out of range", "0 s to 1 s");
  std::optional<LinkType> type;
  if (given)
    type = value_or_report(map, "link", link_type_named(*given));
  else if (!usual.empty())
    type = value_or_report(map, "link", link_type_named(usual));
  if (type) {
    if (rate && latency && !given) type->network.reset();
    if (rate || latency) {
      type->source = rate && latency
                         ? "given"
                         : fmt::format("{} given, {} of {} ({})", rate ? "rate" : "latency",
                                       rate ? "latency" : "rate", type->name, type->source);
      type->name = std::move(name);
    }
  } else if (!given) {
    for (const char* key : {"rate", "latency"})
      if (!map.has(key))
        map.report(
            key, "is missing",
            "rate and latency, or link: NAME of the catalog, which has no default link here");
    if (rate && latency)
      type =
          LinkType{.name = std::move(name), .rate = *rate, .latency = *latency, .source = "given"};
  }
  const MessageTimes message = read_message_times(map, type ? type->message : MessageTimes{});
  if (!type || bad_rate || bad_latency) return std::nullopt;
  type->message = message;
  if (rate) type->rate = *rate;
  if (latency) type->latency = *latency;
  if (duplex) type->duplex = static_cast<Duplex>(*duplex);
  if (source) type->source = *source;
  return type;
}

void read_routes(const YamlMap& section, ClusterBuilder& builder) {
  const std::vector<YamlMap> routes = section.maps("routes");
  if (routes.empty()) return;
  const Names names(builder);
  for (const YamlMap& route : routes) {
    const auto end = [&](const char* key) -> std::optional<DeviceId> {
      const auto name = route.required<std::string>(key);
      return name ? value_or_report(route, key, names.device(*name)) : std::nullopt;
    };
    const std::optional<DeviceId> from = end("from"), to = end("to");
    std::vector<LinkId> links;
    bool whole = route.has("links");
    if (!whole) route.required<std::string>("links");
    for (const std::string& name : route.list<std::string>("links"))
      if (const auto link = value_or_report(route, "links", names.link(name)))
        links.push_back(*link);
      else
        whole = false;
    route.no_other_keys();
    if (!from || !to || !whole) continue;
    if (const Status ok = builder.set_route(*from, *to, links); !ok) {
      const Diagnostic& d = ok.error().diagnostics.front();
      route.report("links", d.problem, d.expected);
    }
  }
}

void read_changes(const YamlMap& section, ClusterBuilder& builder) {
  const std::vector<YamlMap> list = section.maps("changes");
  if (list.empty()) return;
  const Names names(builder);
  std::map<LinkId, std::vector<LinkChange>> changes;
  for (const YamlMap& change : list) {
    const auto name = change.required<std::string>("link");
    const auto at = change.required<Seconds>("at");
    const auto share = change.required<double>("share");
    change.no_other_keys();
    const auto link = name ? value_or_report(change, "link", names.link(*name)) : std::nullopt;
    if (!link || !at || !share) continue;
    std::vector<LinkChange>& of_link = changes[*link];
    if (*share < 0 || *share > 1)
      change.report("share", "is out of range", "0 (down) to 1");
    else if (*at < Seconds::s(0) || (!of_link.empty() && !(of_link.back().at < *at)))
      change.report("at", "is out of order", "ascending times from 0 s");
    else
      of_link.push_back({*at, *share});
  }
  for (auto& [link, of_link] : changes) builder.set_changes(link, std::move(of_link));
}

}  // namespace rehearse::cluster
