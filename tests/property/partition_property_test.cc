// Properties of partitions, on every GPU of the catalog that has profiles. A failure prints the
// seed.
#include <algorithm>
#include <random>
#include <set>

#include <catch2/catch.hpp>

#include "sim/cluster/partition.h"

namespace rehearse::cluster {
namespace {

std::vector<MigDevice> devices() {
  std::vector<MigDevice> all;
  std::set<std::string> families;
  for (const Gpu& gpu : gpus())
    if (!gpu.mig_family.empty() && families.insert(gpu.mig_family).second) {
      auto device = mig_device(gpu);
      REQUIRE(device);
      all.push_back(std::move(*device));
    }
  REQUIRE(all.size() >= 9);
  return all;
}

/// Every pair of profile and start of a device, but those of media engines.
std::vector<MigInstance> plain_pairs(const MigDevice& device) {
  std::vector<MigInstance> pairs;
  for (std::uint32_t i = 0; i < device.profiles.size(); ++i)
    if (!device.profile(i).name.ends_with("+me"))
      for (const std::uint32_t start : device.profile(i).placement_starts)
        pairs.push_back({i, start});
  return pairs;
}

/// The rules once more, plainly.
bool allowed(const MigDevice& device, const std::vector<MigInstance>& pairs, std::uint32_t chosen) {
  std::uint32_t taken = 0, compute = 0;
  std::vector<std::uint32_t> count(device.profiles.size(), 0);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if ((chosen >> i & 1) == 0) continue;
    const MigProfile& p = device.profile(pairs[i].profile);
    for (std::uint32_t s = 0; s < p.placement_size; ++s) {
      const std::uint32_t bit = 1U << (pairs[i].start + s);
      if (taken & bit) return false;
      taken |= bit;
    }
    compute += p.compute_slices;
    if (++count[pairs[i].profile] > p.max_instances) return false;
  }
  return compute <= device.compute_slices;
}

TEST_CASE("maximal layouts are those that brute force over all sets of positions finds") {
  for (const MigDevice& device : devices()) {
    INFO(device.gpu->name);
    const std::vector<MigInstance> pairs = plain_pairs(device);
    REQUIRE(pairs.size() < 22);
    std::vector<bool> good(std::size_t{1} << pairs.size());
    for (std::uint32_t chosen = 0; chosen < good.size(); ++chosen)
      good[chosen] = allowed(device, pairs, chosen);
    std::set<MigLayout> expected;
    for (std::uint32_t chosen = 0; chosen < good.size(); ++chosen) {
      if (!good[chosen]) continue;
      bool maximal = true;
      MigLayout layout;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (chosen >> i & 1) {
          layout.push_back(pairs[i]);
        } else if (good[chosen | 1U << i]) {
          maximal = false;
        }
      }
      std::sort(layout.begin(), layout.end(),
                [](const MigInstance& a, const MigInstance& b) { return a.start < b.start; });
      if (maximal) expected.insert(layout);
    }
    const std::vector<MigLayout> found = maximal_layouts(device);
    CHECK(std::set<MigLayout>(found.begin(), found.end()) == expected);
    CHECK(found.size() == expected.size());
    for (const MigLayout& layout : found) {
      const MigWaste waste = waste_of(device, layout);
      CHECK(waste.wasted_compute == waste.unused_compute);
      CHECK(waste.wasted_memory == waste.unused_memory);
    }
  }
}

TEST_CASE("instances never have more than their device, whatever the set") {
  const std::uint32_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::size_t refused = 0, placed = 0;
  for (const MigDevice& device : devices()) {
    INFO(device.gpu->name);
    for (int round = 0; round < 60; ++round) {
      MigSet set(device.profiles.size(), 0);
      for (auto n = 1 + random() % 6; n > 0; --n) ++set[random() % set.size()];
      INFO(device.name_of(set));
      const auto layouts = placements(device, set);
      if (!layouts) {
        ++refused;
        const MigSet nearest = nearest_placeable(device, set);
        CHECK(nearest != set);
        CHECK(placements(device, nearest));
        CHECK(to_string(layouts.error()).find(device.name_of(nearest)) != std::string::npos);
        continue;
      }
      ++placed;
      CHECK(nearest_placeable(device, set) == set);
      for (const MigLayout& layout : *layouts) {
        std::uint32_t taken = 0;
        for (const MigInstance& i : layout) {
          const MigProfile& p = device.profile(i.profile);
          CHECK(std::count(p.placement_starts.begin(), p.placement_starts.end(), i.start) == 1);
          const std::uint32_t own = ((1U << p.placement_size) - 1) << i.start;
          CHECK((taken & own) == 0);
          taken |= own;
        }
        CHECK(device.set_of(layout) == set);
        DeviceShare sum = {};
        double usable = 0, multiprocessors = 0;
        for (const MigInstance& i : layout) {
          const DeviceShare share = share_of(device, i.profile);
          sum.multiprocessors += share.multiprocessors;
          sum.memory += share.memory;
          sum.bandwidth += share.bandwidth;
          sum.l2 += share.l2;
          sum.copy_engines += share.copy_engines;
          sum.power += share.power;
          const Gpu slice = slice_of(device, i.profile);
          usable += slice.memory.b();
          multiprocessors += slice.multiprocessors;
          CHECK(slice.fp32 <= device.gpu->fp32);
        }
        constexpr double kWhole = 1 + 1e-9;
        for (const double s :
             {sum.multiprocessors, sum.memory, sum.bandwidth, sum.l2, sum.copy_engines, sum.power})
          CHECK(s <= kWhole);
        CHECK(multiprocessors <= device.gpu->multiprocessors);
        // Of what is usable; GPUs without such a figure have the advertised one, which is in GB
        // where their memory is in GiB.
        if (device.profile(device.whole).usable_memory)
          CHECK(usable <= device.profile(device.whole).usable_memory->b() * kWhole);
        const MigWaste waste = waste_of(device, layout);
        CHECK(waste.wasted_compute <= waste.unused_compute);
        for (const std::uint32_t more : waste.still_fit) {
          MigSet larger = set;
          ++larger[more];
          CHECK(placements(device, larger));
        }
      }
    }
  }
  CHECK(refused > 50);
  CHECK(placed > 50);
}

}  // namespace
}  // namespace rehearse::cluster
