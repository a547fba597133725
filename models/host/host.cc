#include "models/host/host.h"

#include <algorithm>
#include <vector>

#include "models/host/catalog_files.h"
#include "sim/base/check.h"
#include "sim/base/yaml.h"

namespace rehearse::host {
namespace {

constexpr double kBackwardOverForward = 1.3;

Result<std::vector<Implementation>> parse(std::string_view text) {
  YamlFile file = TRY(YamlFile::parse(std::string(text), "shipped host implementations"));
  const YamlMap root = file.root();
  std::vector<Implementation> all;
  for (const YamlMap& map : root.maps("implementations")) {
    const auto time = [&](std::string_view key) {
      return map.required<Seconds>(key).value_or(Seconds::s(0));
    };
    const auto measured = [&](std::string_view key) {
      return map.optional<Seconds>(key).value_or(Seconds::s(0));
    };
    all.push_back({.name = map.required<std::string>("name").value_or(""),
                   .layer = time("layer"),
                   .layer_tensor = time("layer_tensor"),
                   .layer_pipeline = time("layer_pipeline"),
                   .fastest = map.required<double>("fastest").value_or(1),
                   .slowest = map.required<double>("slowest").value_or(1),
                   .source = map.required<std::string>("source").value_or(""),
                   .computing = map.optional<double>("computing").value_or(1),
                   .rank_over_efa = measured("rank_over_efa"),
                   .divided_update = measured("divided_update"),
                   .stall = measured("stall")});
    map.no_other_keys();
  }
  root.no_other_keys();
  TRY(file.status());
  return all;
}

}  // namespace

std::span<const Implementation> implementations() {
  static const std::vector<Implementation> kAll = [] {
    Result<std::vector<Implementation>> read = parse(catalog_files::implementations_yaml);
    REHEARSE_CHECK(read.has_value(), "{}", to_string(read.error()));
    return std::move(*read);
  }();
  return kAll;
}

const Implementation& implementation_named(std::string_view name) {
  for (const Implementation& each : implementations())
    if (each.name == name) return each;
  REHEARSE_CHECK(false, "no implementation {}", name);
}

Implementation scaled(Implementation implementation, double factor) {
  for (Seconds* time :
       {&implementation.layer, &implementation.layer_tensor, &implementation.layer_pipeline})
    *time = *time * factor;
  return implementation;
}

BlockTimes block_times(const Implementation& implementation, std::uint32_t tensor, Sends sends) {
  const Seconds alone = tensor < 2 ? implementation.layer : implementation.layer_tensor;
  Seconds both = tensor < 2 || sends == Sends::kNone ? alone : implementation.layer_pipeline;
  if (sends == Sends::kEfa) both = std::max(both, alone + implementation.rank_over_efa * tensor);
  const Seconds forward = both * (1 / (1 + kBackwardOverForward));
  return {.forward = forward, .backward = both - forward};
}

}  // namespace rehearse::host
