#include "sim/cluster/own_devices.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include <fmt/core.h>

namespace rehearse::cluster {
namespace {

struct OwnDevice {
  Gpu gpu;
  std::string like;
};
struct OwnDevices {
  std::mutex mutex;
  std::map<std::string, OwnDevice, std::less<>> devices;
};
OwnDevices& own_devices() {
  static OwnDevices own;
  return own;
}

/// Everything of a definition that can differ from another of the same name.
auto sheet_of(const OwnDevice& own) {
  const Gpu& g = own.gpu;
  return std::tuple(own.like, g.vendor, g.architecture, g.multiprocessors, g.boost_hz, g.fp32,
                    g.tf32_tensor, g.fp16, g.fp16_tensor, g.bf16_tensor, g.fp8_tensor, g.memory,
                    g.memory_type, g.memory_rate, g.l2, g.power_limit, g.idle_power);
}

/// Adds the device; returns whether none of the name has other values.
bool define(const OwnDevice& device) {
  OwnDevices& own = own_devices();
  const std::lock_guard lock(own.mutex);
  return sheet_of(own.devices.try_emplace(device.gpu.name, device).first->second) ==
         sheet_of(device);
}

template <class Q>
std::optional<Q> within(const YamlMap& map, std::string_view key, double least, double most) {
  return map.within<Q>(key, Q::from_si(least), Q::from_si(most));
}

/// A device with the required values alone.
Gpu unknown_device() {
  Gpu gpu = gpus().front();
  for (std::string* text : {&gpu.vendor, &gpu.architecture, &gpu.form_factor}) *text = "unknown";
  for (std::string* text : {&gpu.release, &gpu.compute_capability, &gpu.mig_family}) text->clear();
  gpu.memory_type = "HBM";
  for (std::optional<FlopRate>* rate : {&gpu.fp64, &gpu.fp64_tensor, &gpu.tf32_tensor, &gpu.fp16,
                                        &gpu.fp16_tensor, &gpu.bf16_tensor, &gpu.fp8_tensor})
    rate->reset();
  gpu.boost_hz.reset();
  gpu.l2.reset();
  gpu.link.reset();
  gpu.pcie.reset();
  gpu.power_limit.reset();
  gpu.idle_power.reset();
  return gpu;
}

/// The device that another one is like, else one without values.
Gpu begin_with(const YamlMap& map) {
  const auto like = map.optional<std::string>("like");
  if (!like) return unknown_device();
  const Result<const Gpu*> found = find_gpu(*like);
  if (found && (*found)->partition_of.empty()) return **found;
  const Diagnostic d = found ? Diagnostic{.problem = "is a partition", .expected = "a whole GPU"}
                             : found.error().diagnostics.front();
  map.report("like", d.problem, d.expected, d.nearest);
  return unknown_device();
}

}  // namespace

const Gpu* own_device(std::string_view name) {
  OwnDevices& own = own_devices();
  const std::lock_guard lock(own.mutex);
  const auto found = own.devices.find(name);
  return found == own.devices.end() ? nullptr : &found->second.gpu;
}

std::string linked_like(std::string_view name) {
  OwnDevices& own = own_devices();
  const std::lock_guard lock(own.mutex);
  const auto found = own.devices.find(name);
  const bool has = found != own.devices.end() && !found->second.like.empty();
  return has ? found->second.like : std::string(name);
}

std::optional<std::string> read_device(const YamlMap& map, std::string_view key) {
  if (!map.is_map(key)) return map.required<std::string>(key);
  const YamlMap sheet = *map.map(key);
  const bool whole = !sheet.has("like");
  Gpu gpu = begin_with(sheet);
  gpu.name = sheet.required<std::string>("name").value_or("");
  // A definition is not the measured device that it is like, and has none of its partitions.
  gpu.mig_instances.reset();
  gpu.mig_family.clear();
  gpu.origin = {};
  const auto rate = [&](std::string_view of, std::optional<FlopRate>& to) {
    if (const auto given = within<FlopRate>(sheet, of, 1e9, 1e18)) to = given;
  };
  const auto required = [&](std::string_view of) {
    if (whole && !sheet.has(of)) sheet.report(of, "is missing", "a value, or like: GPU");
  };
  for (const std::string_view of : {"memory", "memory_rate", "fp32", "multiprocessors"})
    required(of);
  std::optional<FlopRate> fp32 = gpu.fp32;
  rate("fp32", fp32);
  gpu.fp32 = *fp32;
  rate("tf32_tensor", gpu.tf32_tensor);
  rate("fp16", gpu.fp16);
  rate("fp16_tensor", gpu.fp16_tensor);
  rate("bf16_tensor", gpu.bf16_tensor);
  rate("fp8_tensor", gpu.fp8_tensor);
  if (const auto given = within<Bytes>(sheet, "memory", 1e8, 1e14)) gpu.memory = *given;
  if (const auto given = within<ByteRate>(sheet, "memory_rate", 1e9, 1e15))
    gpu.memory_rate = *given;
  if (const auto given = within<Bytes>(sheet, "l2", 1e4, 1e11)) gpu.l2 = given;
  if (const auto given = sheet.within<std::int64_t>("multiprocessors", 1, 100'000))
    gpu.multiprocessors = static_cast<std::uint32_t>(*given);
  if (const auto given = within<Watts>(sheet, "power_limit", 1, 1e5)) gpu.power_limit = given;
  if (const auto given = within<Watts>(sheet, "idle_power", 0, 1e5)) gpu.idle_power = given;
  sheet.no_other_keys();
  const bool is_known = std::ranges::find(gpus(), gpu.name, &Gpu::name) != gpus().end();
  if (is_known)
    sheet.report("name", fmt::format("'{}' is a GPU of the catalog", gpu.name), "another name");
  if (gpu.name.find(':') != std::string::npos)
    sheet.report("name", "has a colon, which a partition has", "a name without one");
  if (gpu.name.empty() || is_known || !map.status()) return std::nullopt;
  if (!define({gpu, sheet.optional<std::string>("like").value_or("")})) {
    sheet.report("name", fmt::format("'{}' has other values elsewhere", gpu.name),
                 "a name for each device");
    return std::nullopt;
  }
  return gpu.name;
}

}  // namespace rehearse::cluster
