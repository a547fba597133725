#include "models/serving/formats.h"

#include <array>
#include <charconv>
#include <string>

#include <fmt/format.h>

namespace rehearse::serving {
namespace {

/// The least capability for weights in each format, in their order, and for a cache of FP8.
struct Least {
  std::array<double, kWeightFormats> weights;
  double cache;
};

Least least(Framework framework, std::string_view version) {
  switch (framework) {
    case Framework::kVllm:
      // Marlin's kernels for Turing are newer than the table of 0.14.
      if (has_reached(version, "0.15")) return {{7.0, 7.5, 7.5, 7.5, 8.0, 7.5}, 7.5};
      return {{7.0, 8.0, 8.0, 8.0, 8.0, 7.0}, 7.5};
    case Framework::kSglang: return {{7.5, 8.0, 8.0, 10.0, 8.0, 7.5}, 8.0};
    case Framework::kTrtllm: return {{8.0, 8.9, 9.0, 10.0, 9.0, 8.0}, 8.9};
  }
  return {};
}

double capability_of(const cluster::Gpu& gpu) {
  double capability = 0;
  const std::string& text = gpu.compute_capability;
  std::from_chars(text.data(), text.data() + text.size(), capability);
  return capability;
}

bool runs(Framework framework, const Least& least, Weights weights, const cluster::Gpu& gpu) {
  if (gpu.vendor != "nvidia") return framework != Framework::kTrtllm && weights != Weights::kNvfp4;
  return capability_of(gpu) >= least.weights[static_cast<std::size_t>(weights)];
}

}  // namespace

Status check_formats(Framework framework, std::string_view version, const Precision& precision,
                     const cluster::Gpu& gpu) {
  const Least need = least(framework, version);
  const std::string server =
      version.empty()
          ? std::string(kFrameworkNames[static_cast<std::size_t>(framework)])
          : fmt::format("{} {}", kFrameworkNames[static_cast<std::size_t>(framework)], version);
  if (!runs(framework, need, precision.weights, gpu)) {
    std::string others;
    for (std::size_t i = 0; i < kWeightFormats; ++i)
      if (runs(framework, need, static_cast<Weights>(i), gpu))
        others += fmt::format("{}{}", others.empty() ? "" : ", ", kWeightsNames[i]);
    if (others.empty())
      return fail(fmt::format("{} does not run on {}", server, gpu.name),
                  "another framework, or a newer device");
    return fail(fmt::format("{} has no {} weights on {}", server,
                            kWeightsNames[static_cast<std::size_t>(precision.weights)], gpu.name),
                fmt::format("precision: {{weights: …}} with one of {}", others));
  }
  if (precision.cache == CacheFormat::kFp8 && gpu.vendor == "nvidia" &&
      capability_of(gpu) < need.cache)
    return fail(fmt::format("{} has no fp8 cache on {}", server, gpu.name),
                "precision: {cache: bf16}");
  return {};
}

}  // namespace rehearse::serving
