#include "sim/cluster/point_to_point.h"

#include <optional>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/base/yaml.h"

namespace rehearse::cluster {
namespace {

constexpr const char* kExample = "such as latency=5us,rate=100GB/s";

std::string out_of_range(const PointToPoint& link) {
  if (link.latency < Seconds::s(0) || link.latency > Seconds::s(1)) return "latency";
  if (!(link.rate >= kLeastLinkRate)) return "rate";
  return {};
}

template <class T>
Status read_once(std::string_view key, std::string_view text, std::optional<T>& value) {
  if (value) return fail(fmt::format("{} is given twice", key), kExample);
  Result<T> read = parse_quantity<T>(text);
  if (!read) {
    read.error().diagnostics.front().key = key;
    return forward(read);
  }
  value = *read;
  return {};
}

}  // namespace

Result<PointToPoint> load_link(const std::filesystem::path& path) {
  YamlFile file = TRY(YamlFile::load(path));
  const YamlMap root = file.root();
  const std::optional<YamlMap> map = root.map("link");
  root.optional<std::string>("source");  // where the numbers come from: for people
  root.no_other_keys();
  if (!map) {
    if (!root.has("link"))
      root.report("link", "is missing", "link: {latency: 5 us, rate: 10 GB/s}");
    return forward(file.status());
  }
  const auto latency = map->required<Seconds>("latency");
  const auto rate = map->required<ByteRate>("rate");
  map->no_other_keys();
  if (latency && rate)
    if (const std::string key = out_of_range({*latency, *rate}); !key.empty())
      map->report(key, "is out of range", "a latency from 0 s to 1 s, a rate of at least 1 kB/s");
  TRY(file.status());
  return PointToPoint{*latency, *rate};
}

Result<PointToPoint> parse_link(std::string_view text) {
  std::optional<Seconds> latency;
  std::optional<ByteRate> rate;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = trim(part.substr(0, equals));
    const std::string_view value = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    if (key == "latency") {
      TRY(read_once(key, value, latency));
    } else if (key == "rate") {
      TRY(read_once(key, value, rate));
    } else {
      return fail(fmt::format("unknown key '{}'", key), kExample);
    }
  }
  if (!latency || !rate) return fail("latency and rate are required", kExample);
  const PointToPoint link{*latency, *rate};
  if (const std::string key = out_of_range(link); !key.empty())
    return fail(key + " is out of range", "a latency from 0 s to 1 s, a rate of at least 1 kB/s");
  return link;
}

}  // namespace rehearse::cluster
