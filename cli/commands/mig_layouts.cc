#include "cli/commands/mig_layouts.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using cluster::MigDevice;
using cluster::MigInstance;
using cluster::MigLayout;
using cluster::MigProfile;
using cluster::MigWaste;

/// Wide enough for the longest name in one slice.
std::size_t cell_width(const MigDevice& device) {
  std::size_t width = 0;
  for (const MigProfile* p : device.profiles)
    if (p->placement_size == 1) width = std::max(width, p->name.size());
  return width;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string names_of(const MigDevice& device, const std::vector<std::uint32_t>& profiles) {
  std::string names;
  for (const std::uint32_t p : profiles) {
    // A profile with media engines fits where the one without does.
    if (device.profile(p).name.ends_with("+me")) continue;
    names += (names.empty() ? "" : " ") + device.profile(p).name;
  }
  return names;
}

Json names_json(const MigDevice& device, const std::vector<std::uint32_t>& profiles) {
  Json names = Json::array();
  for (const std::uint32_t p : profiles) names.push_back(device.profile(p).name);
  return names;
}

/// "0", "1 free", "1 wasted", "1 free, 1 wasted".
std::string left_of(std::uint32_t unused, std::uint32_t wasted) {
  if (wasted == 0) return unused == 0 ? "0" : fmt::format("{} free", unused);
  if (wasted == unused) return fmt::format("{} wasted", wasted);
  return fmt::format("{} free, {} wasted", unused - wasted, wasted);
}

Json instance_json(const MigDevice& device, const MigInstance& instance) {
  const MigProfile& p = device.profile(instance.profile);
  const cluster::DeviceShare share = cluster::share_of(device, instance.profile);
  const cluster::Gpu slice = cluster::slice_of(device, instance.profile);
  return {{"profile", p.name},
          {"start", instance.start},
          {"size", p.placement_size},
          {"compute_slices", p.compute_slices},
          {"memory_slices", p.memory_slices},
          {"multiprocessors", slice.multiprocessors},
          {"memory", {{"value", slice.memory.b()}, {"unit", "B"}}},
          {"memory_rate", {{"value", slice.memory_rate.bytes_per_s()}, {"unit", "B/s"}}},
          {"shares",
           {{"multiprocessors", share.multiprocessors},
            {"memory", share.memory},
            {"bandwidth", share.bandwidth},
            {"l2", share.l2},
            {"copy_engines", share.copy_engines},
            {"power", share.power}}}};
}

}  // namespace

std::string drawing_of(const MigDevice& device, const MigLayout& layout) {
  const std::size_t width = cell_width(device);
  std::string line = "|";
  std::uint32_t position = 0;
  const auto fill = [&](std::string name, std::uint32_t slices) {
    line += padded(std::move(name), slices * (width + 1) - 1) + "|";
    position += slices;
  };
  for (const MigInstance& i : layout) {
    while (position < i.start) fill("", 1);
    fill(device.profile(i.profile).name, device.profile(i.profile).placement_size);
  }
  while (position < device.positions) fill("", 1);
  return line;
}

std::string layouts_text(const MigLayouts& found) {
  const MigDevice& device = found.device;
  std::string ruler = " ";
  for (std::uint32_t p = 0; p < device.positions; ++p)
    ruler += padded(fmt::format("{}", p), cell_width(device) + 1);
  std::string text =
      fmt::format("{}: {}, {} compute slices, {} memory slices\n\n", device.gpu->name,
                  counted(found.layouts.size(), "layout"), device.compute_slices, device.positions);
  Table table({{"", Align::kRight},
               {std::string(trim(ruler)).insert(0, " "), Align::kLeft},
               {"compute left", Align::kLeft},
               {"memory left", Align::kLeft},
               {"still fits", Align::kLeft},
               {"fits but for its place", Align::kLeft}});
  for (std::size_t i = 0; i < found.layouts.size(); ++i) {
    const MigLayout& layout = found.layouts[i];
    const MigWaste waste = cluster::waste_of(device, layout);
    table.add({fmt::format("{}", i + 1), drawing_of(device, layout),
               left_of(waste.unused_compute, waste.wasted_compute),
               left_of(waste.unused_memory, waste.wasted_memory), names_of(device, waste.still_fit),
               names_of(device, waste.kept_out)});
  }
  return text + table.text(160);
}

Json layouts_json(const MigLayouts& found) {
  const MigDevice& device = found.device;
  Json json = json_root("mig layouts");
  json["device"] = device.gpu->name;
  json["compute_slices"] = device.compute_slices;
  json["memory_slices"] = device.positions;
  json["layouts"] = Json::array();
  for (const MigLayout& layout : found.layouts) {
    const MigWaste waste = cluster::waste_of(device, layout);
    Json instances = Json::array();
    for (const MigInstance& i : layout) instances.push_back(instance_json(device, i));
    json["layouts"].push_back(
        {{"instances", std::move(instances)},
         {"unused",
          {{"compute_slices", waste.unused_compute}, {"memory_slices", waste.unused_memory}}},
         {"wasted",
          {{"compute_slices", waste.wasted_compute}, {"memory_slices", waste.wasted_memory}}},
         {"still_fit", names_json(device, waste.still_fit)},
         {"kept_out", names_json(device, waste.kept_out)}});
  }
  return json;
}

Table layouts_table(const MigLayouts& found) {
  const MigDevice& device = found.device;
  Table table({{"layout"},
               {"profile", Align::kLeft},
               {"start"},
               {"size"},
               {"compute slices"},
               {"memory slices"},
               {"multiprocessors"},
               {"memory (GiB)"},
               {"memory rate (GB/s)"},
               {"unused compute slices of the layout"},
               {"unused memory slices of the layout"}});
  for (std::size_t l = 0; l < found.layouts.size(); ++l) {
    const MigWaste waste = cluster::waste_of(device, found.layouts[l]);
    for (const MigInstance& i : found.layouts[l]) {
      const MigProfile& p = device.profile(i.profile);
      const cluster::Gpu slice = cluster::slice_of(device, i.profile);
      table.add({fmt::format("{}", l + 1), p.name, fmt::format("{}", i.start),
                 fmt::format("{}", p.placement_size), fmt::format("{}", p.compute_slices),
                 fmt::format("{}", p.memory_slices), fmt::format("{}", slice.multiprocessors),
                 significant(slice.memory.gib(), 4), significant(slice.memory_rate.gb_per_s(), 4),
                 fmt::format("{}", waste.unused_compute), fmt::format("{}", waste.unused_memory)});
    }
  }
  return table;
}

}  // namespace rehearse::cli
