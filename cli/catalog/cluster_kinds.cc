// The tables of sim/cluster/catalog.
#include "cli/catalog/listing.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/storage_kinds.h"

namespace rehearse::cli {
namespace {

using namespace cluster;

constexpr double kMega = 1e6, kGiga = 1e9, kTera = 1e12, kGibi = 1073741824.0, kGbit = 1e9 / 8;
constexpr Align kLeft = Align::kLeft;

Kind gpu_kind() {
  using G = const Gpu&;
  const auto link = [](std::string_view key, std::string_view heading, std::string_view in_table,
                       Value (*value)(const GpuLink&), Align align = Align::kRight) {
    return FieldOf<Gpu>{{key, heading, in_table, align},
                        [value](G g) { return g.link ? value(*g.link) : Value{}; }};
  };
  const auto flops = [](std::string_view key, std::string_view heading, std::string_view in_table,
                        std::optional<FlopRate> Gpu::*rate) {
    return FieldOf<Gpu>{{key, heading, in_table}, [rate](G g) { return quantity(g.*rate, kTera); }};
  };
  std::vector<FieldOf<Gpu>> fields = {
      {{"name", "name", "name", kLeft}, [](G g) { return text(g.name); }},
      {{"vendor", "vendor", "", kLeft}, [](G g) { return text(g.vendor); }},
      {{"architecture", "architecture", "", kLeft}, [](G g) { return text(g.architecture); }},
      {{"form_factor", "form factor", "", kLeft}, [](G g) { return text(g.form_factor); }},
      {{"release", "release", "", kLeft}, [](G g) { return text(g.release); }},
      {{"multiprocessors", "multiprocessors", ""}, [](G g) { return number(g.multiprocessors); }},
      {{"boost_clock", "boost clock (MHz)", ""},
       [](G g) { return quantity(g.boost_hz, "Hz", kMega); }},
      {{"memory", "memory (GB)", "memory (GB)"}, [](G g) { return quantity(g.memory, kGiga); }},
      {{"memory_type", "memory type", "", kLeft}, [](G g) { return text(g.memory_type); }},
      {{"memory_rate", "memory rate (GB/s)", "rate (GB/s)"},
       [](G g) { return quantity(g.memory_rate, kGiga); }},
      {{"l2", "L2 cache (MB)", ""}, [](G g) { return quantity(g.l2, kMega); }},
      flops("fp64", "fp64 (TFLOP/s)", "", &Gpu::fp64),
      flops("fp64_tensor", "fp64 tensor (TFLOP/s)", "", &Gpu::fp64_tensor),
      {{"fp32", "fp32 (TFLOP/s)", "fp32 (TFLOP/s)"}, [](G g) { return quantity(g.fp32, kTera); }},
      flops("tf32_tensor", "tf32 tensor (TFLOP/s)", "", &Gpu::tf32_tensor),
      flops("fp16", "fp16 (TFLOP/s)", "", &Gpu::fp16),
      flops("fp16_tensor", "fp16 tensor (TFLOP/s)", "fp16 tensor (TFLOP/s)", &Gpu::fp16_tensor),
      flops("bf16_tensor", "bf16 tensor (TFLOP/s)", "", &Gpu::bf16_tensor),
      flops("fp8_tensor", "fp8 tensor (TFLOP/s)", "", &Gpu::fp8_tensor),
      link(
          "link", "link", "", [](const GpuLink& l) { return text(l.kind); }, kLeft),
      link("link_generation", "link generation", "",
           [](const GpuLink& l) { return number(l.generation); }),
      link("link_count", "links", "", [](const GpuLink& l) { return number(l.count); }),
      link("link_both_directions", "link, both directions (GB/s)", "",
           [](const GpuLink& l) { return quantity(l.both_directions, kGiga); }),
      link("link_per_direction", "link, per direction (GB/s)", "link (GB/s)",
           [](const GpuLink& l) { return quantity(l.per_direction, kGiga); }),
      {{"pcie_generation", "PCIe generation", ""},
       [](G g) { return g.pcie ? number(g.pcie->generation) : Value{}; }},
      {{"pcie_lanes", "PCIe lanes", ""},
       [](G g) { return g.pcie ? number(g.pcie->lanes) : Value{}; }},
      {{"power_limit", "power limit (W)", ""}, [](G g) { return quantity(g.power_limit); }},
      {{"idle_power", "idle power (W)", ""}, [](G g) { return quantity(g.idle_power); }},
      {{"compute_capability", "compute capability", "", kLeft},
       [](G g) { return text(g.compute_capability); }},
      {{"mig_instances", "MIG instances", ""}, [](G g) { return number(g.mig_instances); }},
      {{"mig_family", "MIG family", "", kLeft}, [](G g) { return text(g.mig_family); }}};
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
  std::vector<FieldOf<MigProfile>> fields = {
      {{"family", "family", "family", kLeft}, [](P p) { return text(p.family); }},
      {{"gpus", "GPUs", "", kLeft}, [](P p) { return texts(gpus_of(p)); }},
      {{"name", "profile", "profile", kLeft}, [](P p) { return text(p.name); }},
      {{"compute_slices", "compute slices", "compute slices"},
       [](P p) { return number(p.compute_slices); }},
      {{"compute_slices_total", "compute slices of the GPU", "of"},
       [](P p) { return number(p.compute_slices_total); }},
      {{"memory_slices", "memory slices", "memory slices"},
       [](P p) { return number(p.memory_slices); }},
      {{"memory_slices_total", "memory slices of the GPU", "of"},
       [](P p) { return number(p.memory_slices_total); }},
      {{"memory", "memory (GB)", "memory (GB)"}, [](P p) { return quantity(p.memory, kGiga); }},
      {{"usable_memory", "usable memory (GiB)", "usable (GiB)"},
       [](P p) { return quantity(p.usable_memory, kGibi); }},
      {{"multiprocessors", "multiprocessors", "SMs"},
       [](P p) { return number(p.multiprocessors); }},
      {{"copy_engines", "copy engines", ""}, [](P p) { return number(p.copy_engines); }},
      {{"nvml_id", "NVML profile id", ""}, [](P p) { return number(p.nvml_id); }},
      {{"max_instances", "instances at most", "at most"},
       [](P p) { return number(p.max_instances); }},
      {{"placement_starts", "placement starts", "starts at", kLeft},
       [](P p) { return counts(p.placement_starts); }},
      {{"placement_size", "placement size", ""}, [](P p) { return number(p.placement_size); }},
      {{"media_extensions", "media extensions", "", kLeft},
       [](P p) { return yes_no(p.media_extensions); }}};
  return make_kind<MigProfile>("mig", "profiles of multi-instance GPUs and where they may lie",
                               mig_profiles, with_origin(fields),
                               {.name = [](P p) { return std::vector{p.name}; }, .gpu = gpus_of});
}

Kind instance_kind() {
  using I = const Instance&;
  std::vector<FieldOf<Instance>> fields = {
      {{"provider", "provider", "provider", kLeft}, [](I i) { return text(i.provider); }},
      {{"name", "instance", "instance", kLeft}, [](I i) { return text(i.name); }},
      {{"family", "family", "", kLeft}, [](I i) { return text(i.family); }},
      {{"gpu", "GPU", "GPU", kLeft}, [](I i) { return text(i.gpu); }},
      {{"gpu_count", "GPUs", "GPUs"}, [](I i) { return number(i.gpu_count); }},
      {{"vcpus", "vCPUs", "vCPUs"}, [](I i) { return number(i.vcpus); }},
      {{"memory", "memory (GiB)", "memory (GiB)"}, [](I i) { return quantity(i.memory, kGibi); }},
      {{"local_storage", "local storage (GB)", ""},
       [](I i) { return quantity(i.local_storage, kGiga); }},
      {{"network", "network (Gbit/s)", "network (Gbit/s)"},
       [](I i) { return quantity(i.network, kGbit); }},
      {{"network_kind", "network kind", "", kLeft}, [](I i) { return text(i.network_kind); }},
      {{"storage_network", "storage network (Gbit/s)", ""},
       [](I i) { return quantity(i.storage_network, kGbit); }},
      {{"gpu_interconnect", "between GPUs", "between GPUs", kLeft},
       [](I i) { return text(i.gpu_interconnect); }},
      {{"gpu_link_both_directions", "link per GPU, both directions (GB/s)", ""},
       [](I i) { return quantity(i.gpu_link_both_directions, kGiga); }},
      {{"pcie_generation", "PCIe generation", ""}, [](I i) { return number(i.pcie_generation); }}};
  return make_kind<Instance>("instances", "machines that clouds rent out", instances,
                             with_origin(fields),
                             {.name = [](I i) { return std::vector{i.name}; },
                              .provider = [](I i) { return std::vector{i.provider}; },
                              .gpu = [](I i) { return std::vector{i.gpu}; }});
}

Kind link_kind() {
  using L = const LinkSpec&;
  std::vector<FieldOf<LinkSpec>> fields = {
      {{"name", "link", "link", kLeft}, [](L l) { return text(l.name); }},
      {{"kind", "kind", "kind", kLeft}, [](L l) { return text(to_string(l.kind)); }},
      {{"nominal", "nominal rate (GB/s)", "nominal (GB/s)"},
       [](L l) { return quantity(l.nominal, kGiga); }},
      {{"nominal_scope", "nominal rate is", "of", kLeft},
       [](L l) { return text(l.nominal_scope); }},
      {{"per_direction", "nominal, per direction (GB/s)", "per direction (GB/s)"},
       [](L l) { return quantity(l.per_direction, kGiga); }},
      {{"achieved", "achieved, per direction (GB/s)", "achieved (GB/s)"},
       [](L l) { return quantity(l.achieved, kGiga); }},
      {{"latency", "latency (us)", "latency (us)"}, [](L l) { return quantity(l.latency, 1e-6); }},
      {{"latency_kind", "latency is", "", kLeft}, [](L l) { return text(l.latency_kind); }}};
  return make_kind<LinkSpec>("links", "links between GPUs, hosts and nodes", links,
                             with_origin(fields),
                             {.name = [](L l) { return std::vector{l.name}; }});
}

Kind storage_kind() {
  using S = const StorageKind&;
  std::vector<FieldOf<StorageKind>> fields = {
      {{"name", "storage", "storage", kLeft}, [](S s) { return text(s.name); }},
      {{"kind", "kind", "kind", kLeft}, [](S s) { return text(s.kind); }},
      {{"latency", "latency (ms)", "latency (ms)"}, [](S s) { return quantity(s.latency, 1e-3); }},
      {{"connection", "of one request (MB/s)", "of one request (MB/s)"},
       [](S s) { return quantity(s.connection, kMega); }},
      {{"total", "in all (MB/s)", "in all (MB/s)"}, [](S s) { return quantity(s.total, kMega); }},
      {{"requests", "requests (1/s)", "requests (1/s)"},
       [](S s) { return quantity(s.requests_per_s, "1/s", 1); }},
      {{"request_price", "1000 requests (USD)", "1000 requests (USD)"}, [](S s) {
         return quantity(s.request_price ? std::optional(s.request_price->usd()) : std::nullopt,
                         "USD", 1e-3);
       }}};
  return make_kind<StorageKind>("storage", "what samples are read from", storage_kinds,
                                with_origin(fields),
                                {.name = [](S s) { return std::vector{s.name}; }});
}

Kind source_kind() {
  using S = const Source&;
  return make_kind<Source>("sources", "what the source of a row stands for", sources,
                           {{{"name", "source", "source", kLeft}, [](S s) { return text(s.id); }},
                            {{"how_obtained", "how obtained", "how obtained", kLeft},
                             [](S s) { return text(s.how_obtained); }},
                            {{"as_of", "as of", "as of", kLeft}, [](S s) { return text(s.as_of); }},
                            {{"where", "where", "where", kLeft}, [](S s) { return text(s.where); }},
                            {{"what", "what", "what", kLeft}, [](S s) { return text(s.what); }}},
                           {.name = [](S s) { return std::vector{s.id}; }});
}

}  // namespace

std::vector<Kind> cluster_kinds() {
  return {gpu_kind(), instance_kind(), link_kind(), mig_kind(), storage_kind(), source_kind()};
}

}  // namespace rehearse::cli
