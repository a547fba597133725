#include "sim/cluster/partition.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cluster {
namespace {

/// Positions as bits.
std::uint32_t bits_of(const MigProfile& p, std::uint32_t start) {
  return ((1U << p.placement_size) - 1) << start;
}

/// The resources that a set or layout uses.
struct Use {
  std::uint32_t compute = 0;
  std::uint32_t memory = 0;
  std::uint32_t media = 0;  ///< instances with media engines of their own choice
};

/// Whole instances have all media engines without asking for them.
bool asks_for_media(const MigProfile& p) { return p.name.ends_with("+me"); }

Use use_of(const MigDevice& device, const MigSet& set) {
  Use use;
  for (std::uint32_t i = 0; i < set.size(); ++i) {
    const MigProfile& p = device.profile(i);
    use.compute += set[i] * p.compute_slices;
    use.memory += set[i] * p.memory_slices;
    use.media += asks_for_media(p) ? set[i] : 0;
  }
  return use;
}

/// The rule of counts and sums that a set breaks, wherever its instances lie; empty: none.
std::string broken_rule(const MigDevice& device, const MigSet& set) {
  for (std::uint32_t i = 0; i < set.size(); ++i)
    if (set[i] > device.profile(i).max_instances)
      return fmt::format("{} of {}, but at most {} are allowed", counted(set[i], "instance"),
                         device.profile(i).name, device.profile(i).max_instances);
  const Use use = use_of(device, set);
  if (use.media > 1)
    return fmt::format("{} with media engines, but at most 1 is allowed",
                       counted(use.media, "instance"));
  if (use.compute > device.compute_slices)
    return fmt::format("{} compute slices, but the device has {}", use.compute,
                       device.compute_slices);
  if (use.memory > device.positions)
    return fmt::format("{} memory slices, but the device has {}", use.memory, device.positions);
  return {};
}

bool may_add(const MigDevice& device, MigSet set, std::uint32_t profile) {
  ++set[profile];
  return broken_rule(device, set).empty();
}

/// Calls `found` once with every layout that follows the rules and has at most `most` of each
/// profile.
void each_layout(const MigDevice& device, const MigSet& most,
                 const std::function<void(const MigLayout&)>& found) {
  MigLayout layout;
  MigSet set(device.profiles.size(), 0);
  const std::function<void(std::uint32_t)> from = [&](std::uint32_t position) {
    if (position >= device.positions) return found(layout);
    for (std::uint32_t i = 0; i < set.size(); ++i) {
      const MigProfile& p = device.profile(i);
      const bool starts_here =
          std::ranges::find(p.placement_starts, position) != p.placement_starts.end();
      if (!starts_here || set[i] == most[i] || !may_add(device, set, i)) continue;
      ++set[i];
      layout.push_back({i, position});
      from(position + p.placement_size);
      layout.pop_back();
      --set[i];
    }
    from(position + 1);
  };
  from(0);
}

MigSet most_of_each(const MigDevice& device) {
  MigSet most;
  for (const MigProfile* p : device.profiles) most.push_back(p->max_instances);
  return most;
}

std::uint32_t size_of(const MigSet& set) { return std::accumulate(set.begin(), set.end(), 0U); }

std::uint32_t taken_bits(const MigDevice& device, const MigLayout& layout) {
  std::uint32_t taken = 0;
  for (const MigInstance& i : layout) taken |= bits_of(device.profile(i.profile), i.start);
  return taken;
}

/// Whether one more of the profile can be placed.
bool has_place(const MigDevice& device, std::uint32_t taken, std::uint32_t profile) {
  const MigProfile& p = device.profile(profile);
  return std::ranges::any_of(p.placement_starts,
                             [&](std::uint32_t start) { return (taken & bits_of(p, start)) == 0; });
}

}  // namespace

std::string MigDevice::name_of(const MigSet& set) const {
  std::string name;
  for (std::size_t i = set.size(); i-- > 0;)
    for (std::uint32_t n = 0; n < set[i]; ++n)
      name += (name.empty() ? "" : ",") + profiles[i]->name;
  return name;
}

MigSet MigDevice::set_of(const MigLayout& layout) const {
  MigSet set(profiles.size(), 0);
  for (const MigInstance& i : layout) ++set[i.profile];
  return set;
}

Result<MigDevice> mig_device(const Gpu& gpu) {
  if (!gpu.mig_instances)
    return fail(fmt::format("{} cannot be partitioned: it has no MIG", gpu.name), {},
                "a GPU listed by rehearse catalog mig");
  MigDevice device = {.gpu = &gpu,
                      .profiles = mig_profiles_of(gpu),
                      .whole = 0,
                      .compute_slices = 0,
                      .positions = 0};
  if (device.profiles.empty())
    return fail(fmt::format("{} has MIG, but its profiles are unknown", gpu.name), {},
                "a GPU listed by rehearse catalog mig");
  for (std::uint32_t i = 0; i < device.profiles.size(); ++i)
    if (device.profile(i).memory_slices == device.profile(i).memory_slices_total) device.whole = i;
  device.compute_slices = device.profile(device.whole).compute_slices_total;
  device.positions = device.profile(device.whole).memory_slices_total;
  return device;
}

Result<std::uint32_t> find_profile(const MigDevice& device, std::string_view name) {
  std::vector<std::string_view> names;
  for (std::uint32_t i = 0; i < device.profiles.size(); ++i) {
    if (device.profile(i).name == name) return i;
    names.push_back(device.profile(i).name);
  }
  return fail(fmt::format("{} has no profile '{}'", device.gpu->name, name), {},
              suggest(name, names));
}

Result<MigSet> parse_profiles(const MigDevice& device, std::string_view names) {
  MigSet set(device.profiles.size(), 0);
  for (const std::string_view name : split(names, ',')) {
    const std::uint32_t profile = TRY(find_profile(device, trim(name)));
    ++set[profile];
  }
  return set;
}

std::uint32_t multiprocessors_of(const MigDevice& device, std::uint32_t profile) {
  const MigProfile& p = device.profile(profile);
  if (p.multiprocessors) return *p.multiprocessors;
  if (profile == device.whole) return device.gpu->multiprocessors;
  std::uint32_t of_one = device.gpu->multiprocessors / device.compute_slices;
  for (const MigProfile* other : device.profiles)
    if (other->compute_slices == 1 && other->multiprocessors)
      of_one = std::min(of_one, *other->multiprocessors);
  return of_one * p.compute_slices;
}

DeviceShare share_of(const MigDevice& device, std::uint32_t profile) {
  const MigProfile& p = device.profile(profile);
  const double compute =
      static_cast<double>(multiprocessors_of(device, profile)) / device.gpu->multiprocessors;
  const double memory = static_cast<double>(p.memory_slices) / p.memory_slices_total;
  return {.multiprocessors = compute,
          .memory = memory,
          .bandwidth = memory,
          .l2 = memory,
          .copy_engines =
              static_cast<double>(p.copy_engines) / device.profile(device.whole).copy_engines,
          .power = compute};
}

Gpu slice_of(const MigDevice& device, std::uint32_t profile) {
  const MigProfile& p = device.profile(profile);
  const DeviceShare share = share_of(device, profile);
  Gpu slice = *device.gpu;
  slice.name = fmt::format("{}:{}", device.gpu->name, p.name);
  slice.multiprocessors = multiprocessors_of(device, profile);
  for (std::optional<FlopRate>* rate :
       {&slice.fp64, &slice.fp64_tensor, &slice.tf32_tensor, &slice.fp16, &slice.fp16_tensor,
        &slice.bf16_tensor, &slice.fp8_tensor})
    if (*rate) **rate = **rate * share.multiprocessors;
  slice.fp32 = slice.fp32 * share.multiprocessors;
  // "80 GB" are 80 GiB less 1 %, as of whole GPUs.
  slice.memory = p.usable_memory.value_or(Bytes::gib(slice.memory.b() / 1e9 * 0.99) * share.memory);
  slice.memory_rate = slice.memory_rate * share.bandwidth;
  if (slice.l2) *slice.l2 = *slice.l2 * share.l2;
  if (slice.power_limit) *slice.power_limit = *slice.power_limit * share.power;
  if (slice.idle_power) *slice.idle_power = *slice.idle_power * share.power;
  slice.link = std::nullopt;
  slice.mig_instances = std::nullopt;
  slice.mig_family.clear();
  slice.partition_of = device.gpu->name;
  return slice;
}

Result<const Gpu*> find_partition(const Gpu& gpu, std::string_view profile) {
  static std::mutex mutex;
  static std::map<std::string, Gpu> known;
  const MigDevice device = TRY(mig_device(gpu));
  const std::uint32_t index = TRY(find_profile(device, profile));
  Gpu slice = slice_of(device, index);
  const std::lock_guard lock(mutex);
  return &known.try_emplace(slice.name, slice).first->second;
}

Result<std::vector<MigLayout>> placements(const MigDevice& device, const MigSet& set) {
  std::vector<MigLayout> layouts;
  std::string rule = broken_rule(device, set);
  if (rule.empty()) {
    each_layout(device, set, [&](const MigLayout& layout) {
      if (layout.size() == size_of(set)) layouts.push_back(layout);
    });
    rule = "placements that do not overlap";
  }
  if (!layouts.empty()) return layouts;
  return fail(
      fmt::format("{} cannot be on one {}: {}", device.name_of(set), device.gpu->name, rule), {},
      "nearest: " + device.name_of(nearest_placeable(device, set)));
}

MigSet nearest_placeable(const MigDevice& device, const MigSet& set) {
  const Use wanted = use_of(device, set);
  MigSet best;
  std::array<std::int64_t, 3> best_score = {};
  each_layout(device, most_of_each(device), [&](const MigLayout& layout) {
    if (layout.empty() || layout.size() > size_of(set)) return;
    MigSet candidate = device.set_of(layout);
    std::uint32_t common = 0;
    for (std::size_t i = 0; i < set.size(); ++i) common += std::min(set[i], candidate[i]);
    const Use use = use_of(device, candidate);
    const std::int64_t off = std::abs(std::int64_t{use.compute} - wanted.compute) +
                             std::abs(std::int64_t{use.memory} - wanted.memory);
    const std::array<std::int64_t, 3> score = {common, size_of(candidate), -off};
    if (!best.empty() && score <= best_score) return;
    best = std::move(candidate);
    best_score = score;
  });
  return best;
}

std::vector<MigLayout> maximal_layouts(const MigDevice& device) {
  MigSet plain = most_of_each(device);
  for (std::uint32_t i = 0; i < plain.size(); ++i)
    if (asks_for_media(device.profile(i))) plain[i] = 0;
  std::vector<MigLayout> layouts;
  each_layout(device, plain, [&](const MigLayout& layout) {
    if (waste_of(device, layout).still_fit.empty()) layouts.push_back(layout);
  });
  // The fewest and largest instances first.
  std::ranges::stable_sort(layouts, {}, &MigLayout::size);
  return layouts;
}

MigWaste waste_of(const MigDevice& device, const MigLayout& layout) {
  const MigSet set = device.set_of(layout);
  const Use use = use_of(device, set);
  const std::uint32_t taken = taken_bits(device, layout);
  MigWaste waste = {.unused_compute = device.compute_slices - use.compute,
                    .unused_memory = device.positions - use.memory,
                    .wasted_compute = 0,
                    .wasted_memory = 0};
  for (std::uint32_t i = 0; i < device.profiles.size(); ++i) {
    if (!may_add(device, set, i)) continue;
    (has_place(device, taken, i) ? waste.still_fit : waste.kept_out).push_back(i);
  }
  // Fillings add instances from the lowest free position upwards, so that each is tried once.
  std::pair<std::uint32_t, std::uint32_t> most = {use.compute, use.memory};
  const std::function<void(std::uint32_t, std::uint32_t, MigSet&)> fill =
      [&](std::uint32_t position, std::uint32_t now, MigSet& with) {
        const Use filled = use_of(device, with);
        most = std::max(most, {filled.compute, filled.memory});
        for (std::uint32_t at = position; at < device.positions; ++at)
          for (std::uint32_t i = 0; i < with.size(); ++i) {
            const MigProfile& p = device.profile(i);
            if ((now & bits_of(p, at)) != 0 || asks_for_media(p) || !may_add(device, with, i) ||
                std::ranges::find(p.placement_starts, at) == p.placement_starts.end())
              continue;
            ++with[i];
            fill(at + p.placement_size, now | bits_of(p, at), with);
            --with[i];
          }
      };
  MigSet with = set;
  fill(0, taken, with);
  waste.wasted_compute = device.compute_slices - most.first;
  waste.wasted_memory = device.positions - most.second;
  return waste;
}

}  // namespace rehearse::cluster
