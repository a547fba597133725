// The tables of sim/cluster/catalog.
#include "cli/catalog/listing.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/storage_kinds.h"

namespace rehearse::cli {
namespace {

using namespace cluster;

constexpr double kMega = 1e6, kGiga = 1e9, kTera = 1e12, kGibi = 1073741824.0, kGbit = 1e9 / 8;
Kind gpu_kind() {
  using G = const Gpu&;
  const auto link = [](std::string_view key, std::string_view label, std::string_view unit,
                       bool on_screen, Cell (*value)(const GpuLink&)) {
    return CellOf<Gpu>{{key, label, unit, on_screen},
                       [value](G g) { return g.link ? value(*g.link) : Cell{}; }};
  };
  const auto flops = [](std::string_view key, std::string_view label, std::string_view unit,
                        bool on_screen, std::optional<FlopRate> Gpu::*rate) {
    return CellOf<Gpu>{{key, label, unit, on_screen},
                       [rate](G g) { return quantity(g.*rate, kTera); }};
  };
  std::vector<CellOf<Gpu>> fields = {
      {{"name", "name", "", true}, [](G g) { return text(g.name); }},
      {{"vendor", "vendor", "", false}, [](G g) { return text(g.vendor); }},
      {{"architecture", "architecture", "", false}, [](G g) { return text(g.architecture); }},
      {{"form_factor", "form factor", "", false}, [](G g) { return text(g.form_factor); }},
      {{"release", "release", "", false}, [](G g) { return text(g.release); }},
      {{"multiprocessors", "multiprocessors", "", false},
       [](G g) { return number(g.multiprocessors); }},
      {{"boost_clock", "boost clock", "MHz", false},
       [](G g) { return quantity(g.boost_hz, "Hz", kMega); }},
      {{"memory", "memory", "GB", true}, [](G g) { return quantity(g.memory, kGiga); }},
      {{"memory_type", "memory type", "", false}, [](G g) { return text(g.memory_type); }},
      {{"memory_rate", "memory rate", "GB/s", true},
       [](G g) { return quantity(g.memory_rate, kGiga); }},
      {{"l2", "L2 cache", "MB", false}, [](G g) { return quantity(g.l2, kMega); }},
      flops("fp64", "fp64", "TFLOP/s", false, &Gpu::fp64),
      flops("fp64_tensor", "fp64 tensor", "TFLOP/s", false, &Gpu::fp64_tensor),
      {{"fp32", "fp32", "TFLOP/s", true}, [](G g) { return quantity(g.fp32, kTera); }},
      flops("tf32_tensor", "tf32 tensor", "TFLOP/s", false, &Gpu::tf32_tensor),
      flops("fp16", "fp16", "TFLOP/s", false, &Gpu::fp16),
      flops("fp16_tensor", "fp16 tensor", "TFLOP/s", true, &Gpu::fp16_tensor),
      flops("bf16_tensor", "bf16 tensor", "TFLOP/s", false, &Gpu::bf16_tensor),
      flops("fp8_tensor", "fp8 tensor", "TFLOP/s", false, &Gpu::fp8_tensor),
      link("link", "link", "", false, [](const GpuLink& l) { return text(l.kind); }),
      link("link_generation", "link generation", "", false,
           [](const GpuLink& l) { return number(l.generation); }),
      link("link_count", "links", "", false, [](const GpuLink& l) { return number(l.count); }),
      link("link_both_directions", "link, both directions", "GB/s", false,
           [](const GpuLink& l) { return quantity(l.both_directions, kGiga); }),
      link("link_per_direction", "link, per direction", "GB/s", true,
           [](const GpuLink& l) { return quantity(l.per_direction, kGiga); }),
      {{"pcie_generation", "PCIe generation", "", false},
       [](G g) { return g.pcie ? number(g.pcie->generation) : Cell{}; }},
      {{"pcie_lanes", "PCIe lanes", "", false},
       [](G g) { return g.pcie ? number(g.pcie->lanes) : Cell{}; }},
      {{"power_limit", "power limit", "W", false}, [](G g) { return quantity(g.power_limit); }},
      {{"idle_power", "idle power", "W", false}, [](G g) { return quantity(g.idle_power); }},
      {{"compute_capability", "compute capability", "", false},
       [](G g) { return text(g.compute_capability); }},
      {{"mig_instances", "MIG instances", "", false}, [](G g) { return number(g.mig_instances); }},
      {{"mig_family", "MIG family", "", false}, [](G g) { return text(g.mig_family); }}};
  return make_kind<Gpu>("gpus", "accelerators: memory, peak rates, links, power", gpus,
                        with_origin(fields),
                        {.name = [](G g) { return std::vector{g.name}; },
                         .gpu = [](G g) { return std::vector{g.name}; }});
}

std::vector<std::string> gpus_of(const MigProfile& profile) {
  std::vector<std::string> names;
  for (const Gpu& gpu : gpus())
    if (gpu.mig_family == profile.family) names.push_back(gpu.name);
  return names;
}

Kind mig_kind() {
  using P = const MigProfile&;
  std::vector<CellOf<MigProfile>> fields = {
      {{"family", "family", "", true}, [](P p) { return text(p.family); }},
      {{"gpus", "GPUs", "", false}, [](P p) { return texts(gpus_of(p)); }},
      {{"name", "profile", "", true}, [](P p) { return text(p.name); }},
      {{"compute_slices", "compute slices", "", true},
       [](P p) { return number(p.compute_slices); }},
      {{"compute_slices_total", "compute slices of the GPU", "", false},
       [](P p) { return number(p.compute_slices_total); }},
      {{"memory_slices", "memory slices", "", true}, [](P p) { return number(p.memory_slices); }},
      {{"memory_slices_total", "memory slices of the GPU", "", false},
       [](P p) { return number(p.memory_slices_total); }},
      {{"memory", "memory", "GB", true}, [](P p) { return quantity(p.memory, kGiga); }},
      {{"usable_memory", "usable memory", "GiB", false},
       [](P p) { return quantity(p.usable_memory, kGibi); }},
      {{"multiprocessors", "multiprocessors", "", false},
       [](P p) { return number(p.multiprocessors); }},
      {{"copy_engines", "copy engines", "", false}, [](P p) { return number(p.copy_engines); }},
      {{"nvml_id", "NVML profile id", "", false}, [](P p) { return number(p.nvml_id); }},
      {{"max_instances", "instances at most", "", false},
       [](P p) { return number(p.max_instances); }},
      {{"placement_starts", "placement starts", "", true},
       [](P p) { return counts(p.placement_starts); }},
      {{"placement_size", "placement size", "", false},
       [](P p) { return number(p.placement_size); }},
      {{"media_extensions", "media extensions", "", false},
       [](P p) { return yes_no(p.media_extensions); }}};
  return make_kind<MigProfile>("mig", "profiles of multi-instance GPUs and their valid positions",
                               mig_profiles, with_origin(fields),
                               {.name = [](P p) { return std::vector{p.name}; }, .gpu = gpus_of});
}

Kind instance_kind() {
  using I = const Instance&;
  std::vector<CellOf<Instance>> fields = {
      {{"provider", "provider", "", true}, [](I i) { return text(i.provider); }},
      {{"name", "instance", "", true}, [](I i) { return text(i.name); }},
      {{"family", "family", "", false}, [](I i) { return text(i.family); }},
      {{"gpu", "GPU", "", true}, [](I i) { return text(i.gpu); }},
      {{"gpu_count", "GPUs", "", true}, [](I i) { return number(i.gpu_count); }},
      {{"vcpus", "vCPUs", "", true}, [](I i) { return number(i.vcpus); }},
      {{"memory", "memory", "GiB", true}, [](I i) { return quantity(i.memory, kGibi); }},
      {{"local_storage", "local storage", "GB", false},
       [](I i) { return quantity(i.local_storage, kGiga); }},
      {{"network", "network", "Gbit/s", true}, [](I i) { return quantity(i.network, kGbit); }},
      {{"network_kind", "network kind", "", false}, [](I i) { return text(i.network_kind); }},
      {{"storage_network", "storage network", "Gbit/s", false},
       [](I i) { return quantity(i.storage_network, kGbit); }},
      {{"gpu_interconnect", "between GPUs", "", true},
       [](I i) { return text(i.gpu_interconnect); }},
      {{"gpu_link_both_directions", "link per GPU, both directions", "GB/s", false},
       [](I i) { return quantity(i.gpu_link_both_directions, kGiga); }},
      {{"pcie_generation", "PCIe generation", "", false},
       [](I i) { return number(i.pcie_generation); }}};
  return make_kind<Instance>("instances", "cloud instances", instances, with_origin(fields),
                             {.name = [](I i) { return std::vector{i.name}; },
                              .provider = [](I i) { return std::vector{i.provider}; },
                              .gpu = [](I i) { return std::vector{i.gpu}; }});
}

Kind link_kind() {
  using L = const LinkSpec&;
  std::vector<CellOf<LinkSpec>> fields = {
      {{"name", "link", "", true}, [](L l) { return text(l.name); }},
      {{"kind", "kind", "", true}, [](L l) { return text(to_string(l.kind)); }},
      {{"nominal", "nominal rate", "GB/s", true}, [](L l) { return quantity(l.nominal, kGiga); }},
      {{"nominal_scope", "nominal rate is", "", true}, [](L l) { return text(l.nominal_scope); }},
      {{"per_direction", "nominal, per direction", "GB/s", true},
       [](L l) { return quantity(l.per_direction, kGiga); }},
      {{"achieved", "achieved, per direction", "GB/s", true},
       [](L l) { return quantity(l.achieved, kGiga); }},
      {{"latency", "latency", "us", true}, [](L l) { return quantity(l.latency, 1e-6); }},
      {{"latency_kind", "latency is", "", false}, [](L l) { return text(l.latency_kind); }}};
  return make_kind<LinkSpec>("links", "links between GPUs, hosts and nodes", links,
                             with_origin(fields),
                             {.name = [](L l) { return std::vector{l.name}; }});
}

Kind storage_kind() {
  using S = const StorageKind&;
  std::vector<CellOf<StorageKind>> fields = {
      {{"name", "storage", "", true}, [](S s) { return text(s.name); }},
      {{"kind", "kind", "", true}, [](S s) { return text(s.kind); }},
      {{"latency", "latency", "ms", true}, [](S s) { return quantity(s.latency, 1e-3); }},
      {{"connection", "of one request", "MB/s", true},
       [](S s) { return quantity(s.connection, kMega); }},
      {{"total", "in all", "MB/s", true}, [](S s) { return quantity(s.total, kMega); }},
      {{"requests", "requests", "1/s", true},
       [](S s) { return quantity(s.requests_per_s, "1/s", 1); }},
      {{"request_price", "1000 requests", "USD", true}, [](S s) {
         return quantity(s.request_price ? std::optional(s.request_price->usd()) : std::nullopt,
                         "USD", 1e-3);
       }}};
  return make_kind<StorageKind>("storage", "storage for samples", storage_kinds,
                                with_origin(fields),
                                {.name = [](S s) { return std::vector{s.name}; }});
}

Kind source_kind() {
  using S = const Source&;
  return make_kind<Source>(
      "sources", "sources of the rows", sources,
      {{{"name", "source", "", true}, [](S s) { return text(s.id); }},
       {{"how_obtained", "how obtained", "", true}, [](S s) { return text(s.how_obtained); }},
       {{"as_of", "as of", "", true}, [](S s) { return text(s.as_of); }},
       {{"where", "where", "", true}, [](S s) { return text(s.where); }},
       {{"what", "what", "", true}, [](S s) { return text(s.what); }}},
      {.name = [](S s) { return std::vector{s.id}; }});
}

}  // namespace

std::vector<Kind> cluster_kinds() {
  return {gpu_kind(), instance_kind(), link_kind(), mig_kind(), storage_kind(), source_kind()};
}

}  // namespace rehearse::cli
