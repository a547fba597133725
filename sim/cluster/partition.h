// Partitions of a device: the instances into which NVIDIA's MIG divides a GPU, their possible
// positions, and their shares of the device. The rules are rows of mig_profiles.csv (starts, sizes,
// maximum instances, slices), the same for every family:
//  1. Each profile has at most MigProfile::max_instances; those with media engines
//     ("+me") have at most one in total.
//  2. Compute slices add up to at most those of the device.
//  3. An instance takes placement_size positions from one of its placement_starts; no two overlap.
// Source: NVIDIA, Multi-Instance GPU User Guide (MIGDOC in sources.csv).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/catalog.h"

namespace rehearse::cluster {

/// Resources of one instance, as fractions of the device.
struct DeviceShare {
  double multiprocessors;
  double memory;     ///< by memory slices, as are the next two
  double bandwidth;  ///< memory bandwidth
  double l2;
  double copy_engines;
  /// The share of the power limit, by multiprocessors. MIG does not limit the power of an instance.
  double power;
};

/// An instance at its place.
struct MigInstance {
  std::uint32_t profile;  ///< an index in MigDevice::profiles
  std::uint32_t start;    ///< its first position

  auto operator<=>(const MigInstance&) const = default;
};
using MigLayout = std::vector<MigInstance>;  ///< by start

/// How many instances of each of MigDevice::profiles.
using MigSet = std::vector<std::uint32_t>;

/// A GPU with MIG and its profiles. Keeps pointers into the catalog.
struct MigDevice {
  const Gpu* gpu;
  std::vector<const MigProfile*> profiles;
  std::uint32_t whole;  ///< the profile of all slices
  std::uint32_t compute_slices;
  std::uint32_t positions;  ///< memory slices

  const MigProfile& profile(std::uint32_t index) const { return *profiles[index]; }
  std::string name_of(const MigSet& set) const;  ///< "3g.40gb,2g.20gb,2g.20gb", largest first
  MigSet set_of(const MigLayout& layout) const;
};

/// Fails with one line on a GPU without MIG, and on one whose profiles are not known.
Result<MigDevice> mig_device(const Gpu& gpu);

/// The index of a profile. Fails with the nearest name.
Result<std::uint32_t> find_profile(const MigDevice& device, std::string_view name);

/// A set from "3g.40gb,2g.20gb". Fails as find_profile, and on an empty name.
Result<MigSet> parse_profiles(const MigDevice& device, std::string_view names);

/// As listed; otherwise the number of slices times that of a one-slice instance.
std::uint32_t multiprocessors_of(const MigDevice& device, std::uint32_t profile);
DeviceShare share_of(const MigDevice& device, std::uint32_t profile);

/// The instance as a separate device: its multiprocessors and peaks, memory (the listed usable
/// memory, else its slices of the usable memory of the GPU), bandwidth, L2, share of
/// power; no links, because MIG has none between instances. Its name is "a100_sxm4_80:2g.20gb".
Gpu slice_of(const MigDevice& device, std::uint32_t profile);
/// The same, kept for the life of the program; safe from any thread. Fails as mig_device and
/// find_profile do.
Result<const Gpu*> find_partition(const Gpu& gpu, std::string_view profile);

/// Every way to place the set, in the order of positions; instances of one profile are alike. Fails
/// where there is none, with the rule that forbids it and the nearest set that can be placed.
Result<std::vector<MigLayout>> placements(const MigDevice& device, const MigSet& set);

/// The placeable set with the most instances in common with this one; among those, the one with the
/// most instances up to the same number; then the one whose sums of slices differ least. REQUIRES:
/// an instance in the set.
MigSet nearest_placeable(const MigDevice& device, const MigSet& set);

/// Layouts to which nothing can be added. Profiles of media engines are left out: each takes the
/// same positions as the one without.
std::vector<MigLayout> maximal_layouts(const MigDevice& device);

/// Unused slices of a layout.
struct MigWaste {
  std::uint32_t unused_compute;
  std::uint32_t unused_memory;
  /// Unused slices that remain in the fullest layout: the one with the most compute slices in use,
  /// then the most memory slices.
  std::uint32_t wasted_compute;
  std::uint32_t wasted_memory;
  std::vector<std::uint32_t> still_fit = {};  ///< profiles that one more instance could take
  /// Profiles with enough unused slices and below their maximum, but without a possible position:
  /// the effect of fragmentation.
  std::vector<std::uint32_t> kept_out = {};
};

/// REQUIRES: the layout follows the rules.
MigWaste waste_of(const MigDevice& device, const MigLayout& layout);

}  // namespace rehearse::cluster
