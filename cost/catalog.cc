#include "cost/catalog.h"

#include <array>

#include "cost/catalog_files.h"
#include "sim/base/csv_row.h"

namespace rehearse::cost {
namespace {

using cluster::read_origin;

constexpr std::array<std::string_view, 2> kBases = {"location_based", "cfe_adjusted"};
constexpr std::string_view kAddedGpu = "gpu:";

std::optional<UsdRate> read_price(const CsvRow& row, std::string_view column) {
  const std::optional<double> price = row.number(column);
  return price ? std::optional(UsdRate::usd_per_h(*price)) : std::nullopt;
}

InstancePrice read_price_of(const CsvRow& row, cluster::Origin origin) {
  InstancePrice price{.provider = row.required("provider"),
                      .instance = row.required("instance_type"),
                      .region = row.required("region"),
                      .zone = row.text("zone"),
                      .on_demand = read_price(row, "ondemand_usd_per_h"),
                      .spot = read_price(row, "spot_usd_per_h"),
                      .origin = std::move(origin)};
  if (!price.on_demand && !price.spot)
    row.report("ondemand_usd_per_h", "no price", "an on-demand or a spot price");
  return price;
}

InstancePrice read_instance_price(const CsvRow& row) {
  return read_price_of(row, read_origin(row));
}

/// A price given by the user, which needs a date but no source.
InstancePrice read_given_price(const CsvRow& row) {
  cluster::Origin origin{.source = row.required("source"), .as_of = row.required("as_of")};
  if (!origin.as_of.empty() && !cluster::is_date(origin.as_of))
    row.report("as_of", "'" + origin.as_of + "' is not a date", "such as 2026-03 or 2026-03-25");
  InstancePrice price = read_price_of(row, std::move(origin));
  if (!price.instance.empty() && !price.gpu())
    if (const auto known = cluster::find_instance(price.instance); !known)
      row.report("instance_type", "'" + price.instance + "' is not a GPU instance of the catalog",
                 {}, known.error().diagnostics.front().nearest);
  return price;
}

CarbonIntensity read_intensity(const CsvRow& row) {
  return CarbonIntensity::g_per_kwh(row.required_number("gco2e_per_kwh"));
}

GridCarbon read_region(const CsvRow& row) {
  return {.provider = row.required("provider"),
          .region = row.text("region"),
          .location = row.text("location"),
          .intensity = read_intensity(row),
          .basis = static_cast<CarbonBasis>(row.choice("basis", kBases)),
          .origin = read_origin(row)};
}

GridCarbon read_country(const CsvRow& row) {
  return {.region = row.required("code"),
          .location = row.required("name"),
          .intensity = read_intensity(row),
          .basis = CarbonBasis::kLocationBased,
          .data_year = row.required("data_year"),
          .origin = read_origin(row)};
}

Pue read_pue(const CsvRow& row) {
  Pue pue{.provider = row.required("provider"),
          .region = row.required("region"),
          .pue = row.required_number("pue"),
          .origin = read_origin(row)};
  if (pue.pue < 1) row.report("pue", "is below 1", "total energy ÷ energy of the computers");
  return pue;
}

PowerCoefficient read_power(const CsvRow& row) {
  return {.provider = row.required("provider"),
          .component = row.required("component"),
          .item = row.required("item"),
          .min = row.number("min"),
          .max = row.required_number("max"),
          .unit = row.required("unit"),
          .origin = read_origin(row)};
}

StoragePrice read_storage(const CsvRow& row) {
  return {.provider = row.required("provider"),
          .item = row.required("item"),
          .region = row.required("region"),
          .kind = row.required("kind"),
          .price = row.required_number("price"),
          .unit = row.required("unit"),
          .origin = read_origin(row)};
}

FunctionPrice read_function(const CsvRow& row) {
  return {.service = row.required("service"),
          .architecture = row.required("arch"),
          .item = row.required("item"),
          .value = row.required_number("value"),
          .unit = row.required("unit"),
          .scope = row.text("scope"),
          .origin = read_origin(row)};
}

}  // namespace

std::string_view to_string(CarbonBasis basis) { return kBases[static_cast<std::size_t>(basis)]; }

std::optional<std::string_view> InstancePrice::gpu() const {
  const std::string_view added =
      instance.starts_with(kAddedGpu) ? std::string_view(instance).substr(kAddedGpu.size()) : "";
  if (!added.empty()) {
    const auto gpu = cluster::find_gpu(added);
    return gpu ? std::optional<std::string_view>((*gpu)->name) : std::nullopt;
  }
  const auto known = cluster::find_instance(instance);
  return known ? std::optional<std::string_view>((*known)->gpu) : std::nullopt;
}

double InstancePrice::gpu_count() const {
  const auto known = cluster::find_instance(instance);
  return known ? (*known)->gpu_count : 1;
}

Result<std::vector<InstancePrice>> parse_instance_prices(std::string_view text, std::string name) {
  return read_rows<InstancePrice>(text, std::move(name), read_given_price);
}

const std::vector<InstancePrice>& instance_prices() {
  static const auto kRows = shipped_rows<InstancePrice>(catalog_files::instance_prices_csv,
                                                        "instance_prices.csv", read_instance_price);
  return kRows;
}

const std::vector<GridCarbon>& grid_carbon() {
  static const auto kRows = [] {
    auto rows = shipped_rows<GridCarbon>(catalog_files::carbon_regions_csv, "carbon_regions.csv",
                                         read_region);
    for (GridCarbon& country : shipped_rows<GridCarbon>(catalog_files::carbon_countries_csv,
                                                        "carbon_countries.csv", read_country))
      rows.push_back(std::move(country));
    return rows;
  }();
  return kRows;
}

const std::vector<Pue>& pues() {
  static const auto kRows = shipped_rows<Pue>(catalog_files::pue_csv, "pue.csv", read_pue);
  return kRows;
}
const std::vector<PowerCoefficient>& power_coefficients() {
  static const auto kRows = shipped_rows<PowerCoefficient>(catalog_files::power_coefficients_csv,
                                                           "power_coefficients.csv", read_power);
  return kRows;
}
const std::vector<StoragePrice>& storage_prices() {
  static const auto kRows = shipped_rows<StoragePrice>(catalog_files::storage_prices_csv,
                                                       "storage_prices.csv", read_storage);
  return kRows;
}
const std::vector<FunctionPrice>& function_prices() {
  static const auto kRows = shipped_rows<FunctionPrice>(catalog_files::function_prices_csv,
                                                        "function_prices.csv", read_function);
  return kRows;
}

}  // namespace rehearse::cost
