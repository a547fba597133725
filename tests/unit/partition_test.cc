// Partitions of GPUs: worked examples, what instances have, what is refused and why, what is
// wasted.
#include "sim/cluster/partition.h"

#include <catch2/catch.hpp>

namespace rehearse::cluster {
namespace {

MigDevice device_of(const char* gpu) {
  const auto found = find_gpu(gpu);
  REQUIRE(found);
  auto device = mig_device(**found);
  REQUIRE(device);
  return std::move(*device);
}

MigSet set_of(const MigDevice& device, const char* names) {
  const auto set = parse_profiles(device, names);
  INFO((set ? "" : to_string(set.error())));
  REQUIRE(set);
  return *set;
}

std::vector<MigLayout> placed(const MigDevice& device, const char* names) {
  const auto layouts = placements(device, set_of(device, names));
  INFO((layouts ? "" : to_string(layouts.error())));
  REQUIRE(layouts);
  return *layouts;
}

std::string refusal(const MigDevice& device, const char* names) {
  const auto layouts = placements(device, set_of(device, names));
  REQUIRE_FALSE(layouts);
  return to_string(layouts.error());
}

/// Waste of the placement of the set that wastes least.
MigWaste least_waste(const MigDevice& device, const char* names) {
  std::optional<MigWaste> least;
  for (const MigLayout& layout : placed(device, names)) {
    const MigWaste waste = waste_of(device, layout);
    if (!least ||
        waste.wasted_compute + waste.wasted_memory < least->wasted_compute + least->wasted_memory)
      least = waste;
  }
  return *least;
}

std::string names(const MigDevice& device, const std::vector<std::uint32_t>& profiles) {
  std::string text;
  for (const std::uint32_t p : profiles) text += device.profile(p).name + " ";
  return text;
}

TEST_CASE("partition: 3g, 2g and 1g have five placements, as drawn by hand") {
  const MigDevice h100 = device_of("h100_sxm5_80");
  const std::uint32_t one = *find_profile(h100, "1g.10gb"), two = *find_profile(h100, "2g.20gb"),
                      three = *find_profile(h100, "3g.40gb");
  const std::vector<MigLayout> layouts = placed(h100, "3g.40gb,2g.20gb,1g.10gb");
  // 3g at 4: 2g at 0 leaves 1g positions 2 and 3, 2g at 2 leaves 0 and 1. 3g at 0: 2g at 4 only,
  // and 1g at 6; position 7 is no start.
  const std::vector<MigLayout> by_hand = {{{one, 0}, {two, 2}, {three, 4}},
                                          {{two, 0}, {one, 2}, {three, 4}},
                                          {{two, 0}, {one, 3}, {three, 4}},
                                          {{three, 0}, {two, 4}, {one, 6}},
                                          {{one, 1}, {two, 2}, {three, 4}}};
  REQUIRE(layouts.size() == by_hand.size());
  for (const MigLayout& layout : by_hand)
    CHECK(std::find(layouts.begin(), layouts.end(), layout) != layouts.end());
}

TEST_CASE("partition: the slices that known sets waste") {
  // Sets, compute and memory slices wasted: NVIDIA, Multi-Instance GPU User Guide.
  struct Row {
    const char* set;
    std::uint32_t compute, memory;
  };
  const MigDevice a100 = device_of("a100_sxm4_80");
  for (const Row& row :
       std::vector<Row>{{"3g.40gb,3g.40gb", 1, 0},
                        {"1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb", 0, 1},
                        {"1g.20gb,1g.20gb,1g.20gb,1g.20gb", 3, 0},
                        {"4g.40gb,3g.40gb", 0, 0},
                        {"3g.40gb,2g.20gb,1g.10gb,1g.10gb", 0, 0},
                        {"2g.20gb,2g.20gb,2g.20gb,1g.10gb", 0, 1},
                        {"4g.40gb,2g.20gb,1g.10gb", 0, 1}}) {
    INFO(row.set);
    const MigWaste waste = least_waste(a100, row.set);
    CHECK(waste.wasted_compute == row.compute);
    CHECK(waste.wasted_memory == row.memory);
    CHECK(waste.unused_compute == row.compute);
    CHECK(waste.unused_memory == row.memory);
  }
}

TEST_CASE("partition: profiles that still fit, and those with free slices but no position") {
  const MigDevice a100 = device_of("a100_sxm4_40");
  const std::uint32_t one = *find_profile(a100, "1g.5gb"), two = *find_profile(a100, "2g.10gb");
  // 1g at 0 and 4: of 6 free memory slices only 1-3 and 5-7 hang together.
  const MigWaste waste = waste_of(a100, {{one, 0}, {one, 4}});
  CHECK(waste.unused_compute == 5);
  CHECK(waste.unused_memory == 6);
  CHECK(names(a100, waste.still_fit) == "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb ");
  CHECK(names(a100, waste.kept_out) == "3g.20gb 4g.20gb ");
  // 2g at 2 and 1g.10gb at 6: with 1g at 1 and 5, 5 compute slices could still be used by
  // 1g at 1, 2g at 2, and 1g at 5 and 6.
  CHECK(waste.wasted_compute == 0);
  const MigWaste empty = waste_of(a100, {});
  CHECK(empty.unused_compute == 7);
  CHECK(empty.wasted_compute == 0);
  CHECK(empty.wasted_memory == 0);
  CHECK(empty.still_fit.size() == a100.profiles.size());
  CHECK(waste_of(a100, {{two, 0}, {two, 2}, {two, 4}}).kept_out.empty());
}

TEST_CASE("partition: an impossible set is refused with the rule and the nearest set") {
  const MigDevice h100 = device_of("h100_sxm5_80");
  CHECK(refusal(h100, "4g.40gb,4g.40gb") ==
        "4g.40gb,4g.40gb cannot be on one h100_sxm5_80: 2 instances of 4g.40gb, but at most 1 are "
        "allowed; nearest: 4g.40gb,3g.40gb");
  CHECK(
      refusal(h100, "3g.40gb,3g.40gb,1g.10gb") ==
      "3g.40gb,3g.40gb,1g.10gb cannot be on one h100_sxm5_80: 9 memory slices, but the device has "
      "8; nearest: 3g.40gb,2g.20gb,1g.10gb");
  CHECK(refusal(h100, "4g.40gb,2g.20gb,2g.20gb") ==
        "4g.40gb,2g.20gb,2g.20gb cannot be on one h100_sxm5_80: 8 compute slices, but the device "
        "has 7; nearest: 3g.40gb,2g.20gb,2g.20gb");
  CHECK(refusal(device_of("a30"), "1g.6gb+me,2g.12gb+me") ==
        "2g.12gb+me,1g.6gb+me cannot be on one a30: 2 instances with media engines, but at most 1 "
        "is allowed; nearest: 2g.12gb+me,1g.6gb");
}

TEST_CASE("partition: unknown profiles and GPUs") {
  const MigDevice h100 = device_of("h100_sxm5_80");
  CHECK(to_string(find_profile(h100, "3g.40g").error()) ==
        "h100_sxm5_80 has no profile '3g.40g'; did you mean '3g.40gb'?");
  CHECK_FALSE(parse_profiles(h100, "3g.40gb,,1g.10gb"));
  CHECK_FALSE(parse_profiles(h100, ""));
  CHECK(to_string(mig_device(**find_gpu("t4")).error()).starts_with("t4 cannot be partitioned"));
  CHECK(to_string(mig_device(**find_gpu("b300")).error()).starts_with("b300 has MIG, but its"));
}

TEST_CASE("partition: the resources of an instance, by hand") {
  const MigDevice a100 = device_of("a100_sxm4_80");
  const std::uint32_t three = *find_profile(a100, "3g.40gb");
  const DeviceShare share = share_of(a100, three);
  CHECK(share.multiprocessors == Approx(42.0 / 108));
  CHECK(share.bandwidth == 0.5);
  CHECK(share.copy_engines == Approx(3.0 / 7));
  const Gpu slice = slice_of(a100, three);
  CHECK(slice.name == "a100_sxm4_80:3g.40gb");
  CHECK(slice.multiprocessors == 42);
  CHECK(slice.memory.gib() == Approx(39.25));
  CHECK(slice.memory_rate.gb_per_s() == Approx(2039.0 / 2));
  CHECK(slice.fp32.flop_per_s() == Approx(19.5e12 * 42 / 108));
  CHECK_FALSE(slice.link);
  CHECK_FALSE(slice.mig_instances);
  // Enabling MIG costs an A100 ten multiprocessors, an H100 none.
  CHECK(slice_of(a100, a100.whole).multiprocessors == 98);
  CHECK(slice_of(device_of("h100_sxm5_80"), device_of("h100_sxm5_80").whole).multiprocessors ==
        132);
  // The listing of GB200 has no count for 3g: three times that of 1g.
  const MigDevice gb200 = device_of("gb200_186");
  CHECK(multiprocessors_of(gb200, *find_profile(gb200, "3g.93gb")) == 3 * 18);
}

}  // namespace
}  // namespace rehearse::cluster
