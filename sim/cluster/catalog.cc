#include "sim/cluster/catalog.h"

#include <array>

#include <fmt/core.h>

#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog_files.h"
#include "sim/cluster/own_devices.h"
#include "sim/cluster/partition.h"

namespace rehearse::cluster {
namespace {

constexpr double kMega = 1e6, kGiga = 1e9, kTera = 1e12, kGibi = 1073741824.0, kGbit = 1e9 / 8;
constexpr std::array<std::string_view, 2> kNoYes = {"no", "yes"};
constexpr std::array<std::string_view, 3> kLinkKinds = {"intra_node", "host", "inter_node"};
constexpr std::array<std::string_view, 3> kRateUnits = {"", "GB/s", "Gbit/s"};
constexpr std::array<double, 3> kRateMagnitudes = {0, kGiga, kGbit};

std::optional<GpuLink> read_gpu_link(const CsvRow& row) {
  std::string kind = row.text("gpu_link");
  if (kind.empty()) return std::nullopt;
  return GpuLink{
      .kind = std::move(kind),
      .generation = row.required_count("gpu_link_gen"),
      .count = row.required_count("gpu_link_count"),
      .both_directions = row.required_quantity<ByteRate>("gpu_link_both_gbs", kGiga),
      .per_direction = row.required_quantity<ByteRate>("gpu_link_per_direction_gbs", kGiga)};
}

std::optional<Pcie> read_pcie(const CsvRow& row) {
  const std::optional<std::uint32_t> generation = row.count("pcie_gen");
  if (!generation) return std::nullopt;
  return Pcie{.generation = *generation, .lanes = row.required_count("pcie_lanes")};
}

Gpu read_gpu(const CsvRow& row) {
  const std::optional<double> boost_mhz = row.number("boost_mhz");
  const auto flops = [&](std::string_view column) { return row.quantity<FlopRate>(column, kTera); };
  const bool mig = row.choice("mig_supported", kNoYes) == 1;
  return {
      .name = row.required("gpu_id"),
      .vendor = row.required("vendor"),
      .architecture = row.required("architecture"),
      .form_factor = row.required("form_factor"),
      .release = row.required("release"),
      .multiprocessors = row.required_count("sm_or_cu_count"),
      .boost_hz = boost_mhz ? std::optional(*boost_mhz * kMega) : std::nullopt,
      .fp64 = flops("fp64_tflops"),
      .fp64_tensor = flops("fp64_tensor_tflops"),
      .fp32 = row.required_quantity<FlopRate>("fp32_tflops", kTera),
      .tf32_tensor = flops("tf32_tensor_tflops"),
      .fp16 = flops("fp16_vector_tflops"),
      .fp16_tensor = flops("fp16_tensor_tflops"),
      .bf16_tensor = flops("bf16_tensor_tflops"),
      .fp8_tensor = flops("fp8_tensor_tflops"),
      .memory = row.required_quantity<Bytes>("memory_gb", kGiga),
      .memory_type = row.required("memory_type"),
      .memory_rate = row.required_quantity<ByteRate>("memory_bw_gbs", kGiga),
      .l2 = row.quantity<Bytes>("l2_mb", kMega),
      .link = read_gpu_link(row),
      .pcie = read_pcie(row),
      .power_limit = row.quantity<Watts>("tdp_w", 1),
      .idle_power = row.quantity<Watts>("idle_w", 1),
      .compute_capability = row.text("compute_capability"),
      .mig_instances = mig ? std::optional(row.required_count("mig_max_instances")) : std::nullopt,
      .mig_family = row.text("mig_family"),
      .origin = read_origin(row)};
}

/// "0 2 4", rising.
std::vector<std::uint32_t> read_starts(const CsvRow& row, std::string_view column) {
  std::vector<std::uint32_t> starts;
  const std::string text = row.required(column);
  for (const std::string_view word : split(text, ' ')) {
    const auto start = parse_number<std::uint32_t>(word);
    if (start && (starts.empty() || *start > starts.back())) {
      starts.push_back(*start);
    } else {
      row.report(column, fmt::format("'{}' is not a list of positions", text),
                 "ascending numbers from 0, such as '0 2 4'");
      break;
    }
  }
  return starts;
}

MigProfile read_mig_profile(const CsvRow& row) {
  return {.family = row.required("gpu_family"),
          .name = row.required("profile"),
          .compute_slices = row.required_count("compute_slices"),
          .compute_slices_total = row.required_count("compute_slices_total"),
          .memory_slices = row.required_count("memory_slices"),
          .memory_slices_total = row.required_count("memory_slices_total"),
          .memory = row.required_quantity<Bytes>("memory_gb_nominal", kGiga),
          .usable_memory = row.quantity<Bytes>("memory_gib_usable", kGibi),
          .multiprocessors = row.count("sm_count"),
          .copy_engines = row.required_count("copy_engines"),
          .nvml_id = row.required_count("nvml_profile_id"),
          .max_instances = row.required_count("max_instances"),
          .placement_starts = read_starts(row, "placement_starts"),
          .placement_size = row.required_count("placement_size"),
          .media_extensions = row.choice("media_extensions", kNoYes) == 1,
          .origin = read_origin(row)};
}

Instance read_instance(const CsvRow& row) {
  return {
      .provider = row.required("provider"),
      .name = row.required("instance_type"),
      .family = row.text("family"),
      .gpu = row.required("gpu_id"),
      .gpu_count = row.required_number("gpu_count"),
      .vcpus = row.count("vcpus"),
      .memory = row.quantity<Bytes>("memory_gib", kGibi),
      .local_storage = row.quantity<Bytes>("local_nvme_gb", kGiga),
      .network = row.quantity<ByteRate>("network_gbps", kGbit),
      .network_kind = row.text("network_kind"),
      .storage_network = row.quantity<ByteRate>("storage_net_gbps", kGbit),
      .gpu_interconnect = row.required("gpu_interconnect"),
      .gpu_link_both_directions = row.quantity<ByteRate>("gpu_link_both_gbs", kGiga),
      .pcie_generation = row.count("host_pcie_gen"),
      .origin = read_origin(row),
  };
}

LinkSpec read_link(const CsvRow& row) {
  const std::size_t unit = row.choice("nominal_unit", kRateUnits);
  if (unit == 0 && row.number("nominal")) row.report("nominal_unit", "is empty", "GB/s or Gbit/s");
  std::optional<NetworkKind> network;
  if (!row.text("network").empty())
    network = static_cast<NetworkKind>(row.choice("network", kNetworkNames));
  return {.name = row.required("link_id"),
          .kind = static_cast<LinkKind>(row.choice("kind", kLinkKinds)),
          .nominal = row.quantity<ByteRate>("nominal", kRateMagnitudes[unit]),
          .nominal_scope = row.text("nominal_scope"),
          .per_direction = row.quantity<ByteRate>("per_direction_gbs", kGiga),
          .achieved = row.quantity<ByteRate>("achieved_gbs", kGiga),
          .latency = row.quantity<Seconds>("latency_us", 1e-6),
          .latency_kind = row.text("latency_kind"),
          .message = {row.quantity<Seconds>("start_up_us", 1e-6).value_or(Seconds::s(0)),
                      row.quantity<Seconds>("message_cost_us", 1e-6).value_or(Seconds::s(0)),
                      row.quantity<Bytes>("half_rate_kib", 1024).value_or(Bytes::b(0))},
          .network = network,
          .origin = read_origin(row)};
}

template <class T>
Result<const T*> find(const std::vector<T>& rows, std::string_view name, std::string_view what,
                      std::string_view kind) {
  for (const T& row : rows)
    if (row.name == name) return &row;
  std::vector<std::string_view> names;
  names.reserve(rows.size());
  for (const T& row : rows) names.push_back(row.name);
  return fail(fmt::format("unknown {} '{}'", what, name), {}, suggest_name(name, names, kind));
}

}  // namespace

std::string_view to_string(LinkKind kind) { return kLinkKinds[static_cast<std::size_t>(kind)]; }

Result<std::vector<LinkSpec>> parse_links(std::string_view text, std::string name) {
  return read_rows<LinkSpec>(text, std::move(name), read_link);
}

const std::vector<Gpu>& gpus() {
  static const auto kRows = shipped_rows<Gpu>(catalog_files::gpus_csv, "gpus.csv", read_gpu);
  return kRows;
}
const std::vector<MigProfile>& mig_profiles() {
  static const auto kRows = shipped_rows<MigProfile>(catalog_files::mig_profiles_csv,
                                                     "mig_profiles.csv", read_mig_profile);
  return kRows;
}
const std::vector<Instance>& instances() {
  static const auto kRows =
      shipped_rows<Instance>(catalog_files::instances_csv, "instances.csv", read_instance);
  return kRows;
}
const std::vector<LinkSpec>& links() {
  static const auto kRows =
      shipped_rows<LinkSpec>(catalog_files::links_csv, "links.csv", read_link);
  return kRows;
}

Result<const Gpu*> find_gpu(std::string_view name) {
  if (const Gpu* own = own_device(name)) return own;
  const std::size_t colon = name.find(':');
  const Result<const Gpu*> whole = find(gpus(), name.substr(0, colon), "GPU", "gpus");
  if (!whole || colon == std::string_view::npos) return whole;
  return find_partition(**whole, name.substr(colon + 1));
}
Result<const Instance*> find_instance(std::string_view name) {
  return find(instances(), name, "instance", "instances");
}
Result<const LinkSpec*> find_link(std::string_view name) {
  return find(links(), name, "link", "links");
}

const LinkSpec* link_named(std::string_view name) {
  for (const LinkSpec& row : links())
    if (row.name == name) return &row;
  return nullptr;
}

std::vector<const MigProfile*> mig_profiles_of(const Gpu& gpu) {
  std::vector<const MigProfile*> profiles;
  for (const MigProfile& profile : mig_profiles())
    if (!gpu.mig_family.empty() && profile.family == gpu.mig_family) profiles.push_back(&profile);
  return profiles;
}

}  // namespace rehearse::cluster
