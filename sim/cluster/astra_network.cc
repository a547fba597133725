#include "sim/cluster/astra_network.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/base/yaml.h"
#include "sim/cluster/templates.h"

namespace rehearse::cluster {
namespace {

enum class Block : std::uint8_t { kRing, kFullyConnected, kSwitch };
constexpr std::string_view kBlockNames[] = {"Ring", "FullyConnected", "Switch"};

struct Dimension {
  Block block;
  std::uint32_t size;
  ByteRate rate;
  Seconds latency;
};

constexpr std::size_t kMostDimensions = 8;
constexpr double kMostLinks = 1e6;

/// The numbers of a key. Each must be within the range.
std::vector<double> numbers(const YamlMap& map, std::string_view key, std::size_t count,
                            double least, double most) {
  std::vector<double> values = map.list<double>(key);
  if (values.size() != count && (map.is_list(key) || !map.has(key)))
    map.report(key, fmt::format("has {} values for {} dimensions", values.size(), count),
               "one for each topology");
  for (const double value : values)
    if (!(value >= least && value <= most))
      map.report(key, fmt::format("{:g} is out of range", value),
                 fmt::format("{:g} to {:g}", least, most));
  return values;
}

/// Nothing after an error; the file's status then has it.
std::vector<Dimension> read_dimensions(const YamlMap& map) {
  std::vector<Block> blocks;
  for (const std::string& name : map.list<std::string>("topology")) {
    const auto* block = std::ranges::find(kBlockNames, name);
    if (block == std::end(kBlockNames))
      map.report("topology", fmt::format("'{}' is not supported", name),
                 "Ring, FullyConnected or Switch", suggest(name, kBlockNames));
    else
      blocks.push_back(static_cast<Block>(block - std::begin(kBlockNames)));
  }
  if (blocks.empty() || blocks.size() > kMostDimensions)
    map.report("topology", fmt::format("{} dimensions", blocks.size()),
               fmt::format("a list of 1 to {} names", kMostDimensions));
  const std::size_t n = blocks.size();
  const std::vector<double> sizes = numbers(map, "npus_count", n, 2, kMostDevices);
  const std::vector<double> rates = numbers(map, "bandwidth", n, 1e-6, 1e9);
  const std::vector<double> latencies = numbers(map, "latency", n, 0, 1e9);
  map.no_other_keys();
  if (!map.status()) return {};
  std::vector<Dimension> dimensions;
  double npus = 1, links = 0;
  for (std::size_t d = 0; d < n; ++d) {
    if (sizes[d] != static_cast<double>(static_cast<std::uint32_t>(sizes[d])))
      map.report("npus_count", fmt::format("{:g} is not a whole number", sizes[d]));
    dimensions.push_back({blocks[d], static_cast<std::uint32_t>(sizes[d]),
                          ByteRate::bytes_per_s(rates[d] * 0x1p30), Seconds::ns(latencies[d])});
    npus *= sizes[d];
    links += blocks[d] == Block::kFullyConnected ? (sizes[d] - 1) / 2 : 1;  // per NPU
  }
  if (npus > kMostDevices)
    map.report("npus_count", fmt::format("{:.0f} NPUs in all", npus),
               fmt::format("up to {}", kMostDevices));
  else if (links * npus > kMostLinks)
    map.report("npus_count", fmt::format("{:.0f} links in all", links * npus),
               fmt::format("up to {:.0f}", kMostLinks));
  return dimensions;
}

Result<Cluster> build(const std::vector<Dimension>& dimensions) {
  ClusterBuilder builder;
  std::uint32_t npus = 1;
  for (const Dimension& dimension : dimensions) npus *= dimension.size;
  std::vector<VertexId> vertices;
  for (std::uint32_t i = 0; i < npus; ++i) {
    const std::string name = fmt::format("npu{}", i);
    const DeviceId device =
        builder.add_device(builder.add_node(name), name + "/device", std::string(kNpu));
    builder.set_forwards(device, true);
    vertices.push_back(builder.vertex_of(device));
  }
  std::uint32_t stride = 1;
  for (std::size_t d = 0; d < dimensions.size(); stride *= dimensions[d++].size) {
    const auto& [block, size, rate, latency] = dimensions[d];
    const std::uint32_t type = builder.add(LinkType{
        .name = fmt::format("dimension {} ({})", d, kBlockNames[static_cast<std::size_t>(block)]),
        .rate = rate,
        .latency = latency,
        .source = "given"});
    for (std::uint32_t first = 0; first < npus; ++first) {
      if (first / stride % size != 0) continue;  // not the first along this dimension
      const auto at = [&](std::uint32_t i) { return vertices[first + i * stride]; };
      std::optional<VertexId> middle;
      if (block == Block::kSwitch)
        middle = builder.add(
            Vertex{.name = fmt::format("switch{}.{}", d, first), .kind = VertexKind::kSwitch});
      for (std::uint32_t i = 0; i < size; ++i) {
        if (middle)
          builder.connect(at(i), *middle, type);
        else if (block == Block::kRing && (i + 1 < size || size > 2))
          builder.connect(at(i), at((i + 1) % size), type);
        else if (block == Block::kFullyConnected)
          for (std::uint32_t j = i + 1; j < size; ++j) builder.connect(at(i), at(j), type);
      }
    }
  }
  return std::move(builder).build();
}

Result<AstraNetwork> read(const YamlFile& file) {
  const std::vector<Dimension> dimensions = read_dimensions(file.root());
  TRY(file.status());
  AstraNetwork network{TRY(build(dimensions)), {}};
  for (const Dimension& dimension : dimensions) network.dimensions.push_back(dimension.size);
  return network;
}

}  // namespace

Result<AstraNetwork> load_astra_network(const std::filesystem::path& path) {
  return read(TRY(YamlFile::load(path)));
}
Result<AstraNetwork> parse_astra_network(const std::string& text, std::string name) {
  return read(TRY(YamlFile::parse(text, std::move(name))));
}

}  // namespace rehearse::cluster
