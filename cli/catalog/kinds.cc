// The tables of sim/cluster/catalog and cost/catalog, and the models that jobs can name.
#include <fmt/format.h>

#include "cli/catalog/listing.h"
#include "cost/catalog.h"
#include "cost/catalog_files.h"
#include "models/workload/zoo.h"
#include "sim/base/check.h"
#include "sim/base/csv.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog_files.h"
#include "sim/cluster/partition.h"

namespace rehearse::cli {
namespace {

using Content = Form::Content;
constexpr Form kText{}, kTexts{Content::kTexts}, kCounts{Content::kCounts}, kYesNo{Content::kYesNo},
    kNumber{Content::kNumber};
constexpr Form in_unit(std::string_view unit, std::string_view si, double magnitude) {
  return {Content::kQuantity, unit, si, magnitude};
}
constexpr Form kMhz = in_unit("MHz", "Hz", 1e6), kTflops = in_unit("TFLOP/s", "FLOP/s", 1e12),
               kMb = in_unit("MB", "B", 1e6), kGb = in_unit("GB", "B", 1e9),
               kGib = in_unit("GiB", "B", 1073741824), kMbPerS = in_unit("MB/s", "B/s", 1e6),
               kGbPerS = in_unit("GB/s", "B/s", 1e9), kGbits = in_unit("Gbit/s", "B/s", 1e9 / 8),
               kWatts = in_unit("W", "W", 1), kMs = in_unit("ms", "s", 1e-3),
               kUs = in_unit("us", "s", 1e-6), kPerS = in_unit("1/s", "1/s", 1),
               kUsdPerH = in_unit("USD/h", "USD/h", 1), kOfThousand = in_unit("USD", "USD", 1e-3),
               kGramsPerKwh = in_unit("gCO2e/kWh", "gCO2e/kWh", 1);
/// In the unit that another column of the row names.
constexpr Form kInItsUnit = in_unit("unit", "unit", 1);

/// The columns that say where a row comes from follow its own.
std::vector<CatalogColumn> with_origin(std::vector<CatalogColumn> columns) {
  columns.insert(columns.end(), {{"source", "source", "source"},
                                 {"as_of", "as_of", "as of"},
                                 {"recalled", "recalled", "recalled", kYesNo, kInTables},
                                 {"confidence", "confidence", "confidence", kText, kInTables},
                                 {"notes", "notes", "notes", kText, kInTables}});
  return columns;
}

/// The rows of a file that is compiled into the program; its tests read it.
std::vector<Cells> rows_of(std::string_view text) {
  const Result<CsvTable> table = CsvTable::parse(text, "the catalog");
  REHEARSE_CHECK(table, "{}", to_string(table.error()));
  std::vector<Cells> rows(table->rows());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const std::string& column : table->columns()) rows[i][column] = table->cell(i, column);
    const auto source = rows[i].find("source");
    if (source != rows[i].end())
      rows[i]["recalled"] = cluster::Origin{source->second, {}}.recalled() ? "yes" : "no";
  }
  return rows;
}

template <const std::string_view& kFile>
std::vector<Cells> rows_of() {
  return rows_of(kFile);
}

std::vector<Cells> link_rows() {
  std::vector<Cells> rows = rows_of(cluster::catalog_files::links_csv);
  for (std::size_t i = 0; i < rows.size(); ++i)  // the file's unit is that of the row
    if (const auto& nominal = cluster::links()[i].nominal)
      rows[i]["nominal_rate"] = fmt::format("{}", nominal->gb_per_s());
  return rows;
}

std::vector<Cells> mig_rows() {
  std::vector<Cells> rows = rows_of(cluster::catalog_files::mig_profiles_csv);
  for (Cells& row : rows)
    for (const cluster::Gpu& gpu : cluster::gpus())
      if (gpu.mig_family == row["gpu_family"])
        row["gpus"] += (row["gpus"].empty() ? "" : " ") + gpu.name;
  return rows;
}

std::vector<Cells> price_rows() {
  std::vector<Cells> rows = rows_of(cost::catalog_files::instance_prices_csv);
  const std::vector<cost::InstancePrice>& prices = cost::instance_prices();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double gpus = prices[i].gpu_count();
    rows[i]["gpu"] = prices[i].gpu().value_or("");
    rows[i]["gpu_count"] = fmt::format("{}", gpus);
    if (prices[i].on_demand)
      rows[i]["per_gpu"] = fmt::format("{}", prices[i].on_demand->usd_per_h() / gpus);
  }
  return rows;
}

std::vector<Cells> carbon_rows() {
  std::vector<Cells> rows = rows_of(cost::catalog_files::carbon_regions_csv);
  for (Cells& country : rows_of(cost::catalog_files::carbon_countries_csv)) {
    country["region"] = country["code"];
    country["location"] = country["name"];
    country["basis"] = to_string(cost::CarbonBasis::kLocationBased);
    rows.push_back(std::move(country));
  }
  return rows;
}

/// Models of a family have no numbers: a job gives what they need.
std::vector<Cells> model_rows() {
  std::vector<Cells> rows;
  for (const workload::ZooModel& model : workload::zoo()) {
    Cells& row = rows.emplace_back(Cells{{"name", model.name}, {"origin", model.source}});
    if (model.family) continue;
    const Result<workload::Workload> made = workload::workload_of(model.description, {});
    if (!made) continue;  // it needs what a job gives
    row["parameters"] = fmt::format("{}", made->parameters());
    if (made->tokens_per_sample > 0) row["tokens"] = fmt::format("{}", made->tokens_per_sample);
  }
  return rows;
}

Kind gpu_kind() {
  return {"gpus",
          "accelerators: memory, peak rates, links, power",
          with_origin(
              {{"gpu_id", "name", "name"},
               {"vendor", "vendor", "vendor", kText, kInTables},
               {"architecture", "architecture", "architecture", kText, kInTables},
               {"form_factor", "form_factor", "form factor", kText, kInTables},
               {"release", "release", "release", kText, kInTables},
               {"sm_or_cu_count", "multiprocessors", "multiprocessors", kNumber, kInTables},
               {"boost_mhz", "boost_clock", "boost clock", kMhz, kInTables},
               {"memory_gb", "memory", "memory", kGb},
               {"memory_type", "memory_type", "memory type", kText, kInTables},
               {"memory_bw_gbs", "memory_rate", "memory rate", kGbPerS},
               {"l2_mb", "l2", "L2 cache", kMb, kInTables},
               {"fp64_tflops", "fp64", "fp64", kTflops, kInTables},
               {"fp64_tensor_tflops", "fp64_tensor", "fp64 tensor", kTflops, kInTables},
               {"fp32_tflops", "fp32", "fp32", kTflops},
               {"tf32_tensor_tflops", "tf32_tensor", "tf32 tensor", kTflops, kInTables},
               {"fp16_vector_tflops", "fp16", "fp16", kTflops, kInTables},
               {"fp16_tensor_tflops", "fp16_tensor", "fp16 tensor", kTflops},
               {"bf16_tensor_tflops", "bf16_tensor", "bf16 tensor", kTflops, kInTables},
               {"fp8_tensor_tflops", "fp8_tensor", "fp8 tensor", kTflops, kInTables},
               {"gpu_link", "link", "link", kText, kInTables},
               {"gpu_link_gen", "link_generation", "link generation", kNumber, kInTables},
               {"gpu_link_count", "link_count", "links", kNumber, kInTables},
               {"gpu_link_both_gbs", "link_both_directions", "link, both directions", kGbPerS,
                kInTables},
               {"gpu_link_per_direction_gbs", "link_per_direction", "link, per direction", kGbPerS},
               {"pcie_gen", "pcie_generation", "PCIe generation", kNumber, kInTables},
               {"pcie_lanes", "pcie_lanes", "PCIe lanes", kNumber, kInTables},
               {"tdp_w", "power_limit", "power limit", kWatts, kInTables},
               {"idle_w", "idle_power", "idle power", kWatts, kInTables},
               {"compute_capability", "compute_capability", "compute capability", kText, kInTables},
               {"mig_max_instances", "mig_instances", "MIG instances", kNumber, kInTables},
               {"mig_family", "mig_family", "MIG family", kText, kInTables}}),
          rows_of<cluster::catalog_files::gpus_csv>,
          {{"--gpu", "name"}}};
}

Kind instance_kind() {
  return {
      "instances", "cloud instances",
      with_origin({{"provider", "provider", "provider"},
                   {"instance_type", "name", "instance"},
                   {"family", "family", "family", kText, kInTables},
                   {"gpu_id", "gpu", "GPU"},
                   {"gpu_count", "gpu_count", "GPUs", kNumber},
                   {"vcpus", "vcpus", "vCPUs", kNumber},
                   {"memory_gib", "memory", "memory", kGib},
                   {"local_nvme_gb", "local_storage", "local storage", kGb, kInTables},
                   {"network_gbps", "network", "network", kGbits},
                   {"network_kind", "network_kind", "network kind", kText, kInTables},
                   {"storage_net_gbps", "storage_network", "storage network", kGbits, kInTables},
                   {"gpu_interconnect", "gpu_interconnect", "between GPUs"},
                   {"gpu_link_both_gbs", "gpu_link_both_directions",
                    "link per GPU, both directions", kGbPerS, kInTables},
                   {"host_pcie_gen", "pcie_generation", "PCIe generation", kNumber, kInTables}}),
      rows_of<cluster::catalog_files::instances_csv>};
}

Kind link_kind() {
  return {"links", "links between GPUs, hosts and nodes",
          with_origin({{"link_id", "name", "link"},
                       {"kind", "kind", "kind"},
                       {"nominal_rate", "nominal", "nominal rate", kGbPerS},
                       {"nominal_scope", "nominal_scope", "nominal rate is"},
                       {"per_direction_gbs", "per_direction", "nominal, per direction", kGbPerS},
                       {"achieved_gbs", "achieved", "achieved, per direction", kGbPerS},
                       {"latency_us", "latency", "latency", kUs},
                       {"latency_kind", "latency_kind", "latency is", kText, kInTables}}),
          link_rows};
}

Kind mig_kind() {
  return {"mig",
          "profiles of multi-instance GPUs and their valid positions",
          with_origin(
              {{"gpu_family", "family", "family"},
               {"gpus", "gpus", "GPUs", kTexts, kInTables},
               {"profile", "name", "profile"},
               {"compute_slices", "compute_slices", "compute slices", kNumber},
               {"compute_slices_total", "compute_slices_total", "compute slices of the GPU",
                kNumber, kInTables},
               {"memory_slices", "memory_slices", "memory slices", kNumber},
               {"memory_slices_total", "memory_slices_total", "memory slices of the GPU", kNumber,
                kInTables},
               {"memory_gb_nominal", "memory", "memory", kGb},
               {"memory_gib_usable", "usable_memory", "usable memory", kGib, kInTables},
               {"sm_count", "multiprocessors", "multiprocessors", kNumber, kInTables},
               {"copy_engines", "copy_engines", "copy engines", kNumber, kInTables},
               {"nvml_profile_id", "nvml_id", "NVML profile id", kNumber, kInTables},
               {"max_instances", "max_instances", "instances at most", kNumber, kInTables},
               {"placement_starts", "placement_starts", "placement starts", kCounts},
               {"placement_size", "placement_size", "placement size", kNumber, kInTables},
               {"media_extensions", "media_extensions", "media extensions", kYesNo, kInTables}}),
          mig_rows,
          {{"--gpu", "gpus"}}};
}

Kind storage_kind() {
  return {"storage", "storage for samples",
          with_origin({{"storage_id", "name", "storage"},
                       {"kind", "kind", "kind"},
                       {"latency_ms", "latency", "latency", kMs},
                       {"connection_mb_s", "connection", "of one request", kMbPerS},
                       {"total_mb_s", "total", "in all", kMbPerS},
                       {"requests_per_s", "requests", "requests", kPerS},
                       {"usd_per_1000_requests", "request_price", "1000 requests", kOfThousand}}),
          rows_of<cluster::catalog_files::storage_csv>};
}

Kind price_kind() {
  return {"prices", "prices of instances, by region",
          with_origin({{"provider", "provider", "provider"},
                       {"instance_type", "name", "instance"},
                       {"region", "region", "region"},
                       {"zone", "zone", "zone", kText, kInTables},
                       {"gpu", "gpu", "GPU"},
                       {"gpu_count", "gpu_count", "GPUs", kNumber, kInTables},
                       {"ondemand_usd_per_h", "on_demand", "on demand", kUsdPerH},
                       {"per_gpu", "on_demand_per_gpu", "on demand, per GPU", kUsdPerH, kInTables},
                       {"spot_usd_per_h", "spot", "spot", kUsdPerH}}),
          price_rows};
}

Kind carbon_kind() {
  return {"carbon",
          "carbon of electricity, by region of a cloud or by country",
          with_origin({{"provider", "provider", "provider"},
                       {"region", "region", "region"},
                       {"location", "location", "location"},
                       {"gco2e_per_kwh", "intensity", "intensity", kGramsPerKwh},
                       {"basis", "basis", "basis"},
                       {"data_year", "data_year", "year of the data"}}),
          carbon_rows,
          {{"--name", "location"}}};
}

Kind pue_kind() {
  return {"pue", "power usage effectiveness: energy of a data centre ÷ energy of its computers",
          with_origin({{"provider", "provider", "provider"},
                       {"region", "region", "region"},
                       {"pue", "pue", "PUE", kNumber}}),
          rows_of<cost::catalog_files::pue_csv>};
}

Kind power_kind() {
  return {"power", "power of processors, memory, storage and network",
          with_origin({{"provider", "provider", "provider"},
                       {"component", "component", "component"},
                       {"item", "name", "item"},
                       {"min", "min", "idle", kInItsUnit},
                       {"max", "max", "full load", kInItsUnit},
                       {"unit", "unit", "unit"}}),
          rows_of<cost::catalog_files::power_coefficients_csv>};
}

Kind storage_price_kind() {
  return {"storage-prices", "prices of storage, requests and transfer",
          with_origin({{"provider", "provider", "provider"},
                       {"item", "name", "item"},
                       {"region", "region", "region"},
                       {"kind", "kind", "kind"},
                       {"price", "price", "price", kInItsUnit},
                       {"unit", "unit", "unit"}}),
          rows_of<cost::catalog_files::storage_prices_csv>};
}

Kind function_kind() {
  return {"functions",
          "prices and limits of function services",
          with_origin({{"service", "service", "service"},
                       {"arch", "architecture", "architecture"},
                       {"item", "item", "item"},
                       {"value", "value", "value", kInItsUnit},
                       {"unit", "unit", "unit"},
                       {"scope", "scope", "scope"}}),
          rows_of<cost::catalog_files::function_prices_csv>,
          {{"--name", "service"}}};
}

Kind model_kind() {
  return {"models",
          "models that a job or --model can name",
          {{"name", "name", "name"},
           {"parameters", "parameters", "parameters", {Content::kNumber, "10^9", {}, 1e9}},
           {"tokens", "sequence", "sequence", {Content::kNumber, "tokens"}},
           {"origin", "source", "source"}},
          model_rows};
}

Kind source_kind() {
  return {"sources",
          "sources of the rows",
          {{"source_id", "name", "source"},
           {"how_obtained", "how_obtained", "how obtained"},
           {"as_of", "as_of", "as of"},
           {"where", "where", "where"},
           {"what", "what", "what"}},
          rows_of<cluster::catalog_files::sources_csv>};
}

}  // namespace

std::vector<Kind> catalog_kinds() {
  return {gpu_kind(),           instance_kind(), link_kind(),   mig_kind(), storage_kind(),
          source_kind(),        price_kind(),    carbon_kind(), pue_kind(), power_kind(),
          storage_price_kind(), function_kind(), model_kind()};
}

}  // namespace rehearse::cli
