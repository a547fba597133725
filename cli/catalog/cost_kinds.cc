// The tables of cost/catalog.
#include "cli/catalog/listing.h"
#include "cost/catalog.h"

namespace rehearse::cli {
namespace {

using namespace cost;

constexpr Align kLeft = Align::kLeft;

std::vector<std::string> key(std::string_view value) {
  return value.empty() ? std::vector<std::string>() : std::vector{std::string(value)};
}

Kind price_kind() {
  using P = const InstancePrice&;
  std::vector<FieldOf<InstancePrice>> fields = {
      {{"provider", "provider", "provider", kLeft}, [](P p) { return text(p.provider); }},
      {{"name", "instance", "instance", kLeft}, [](P p) { return text(p.instance); }},
      {{"region", "region", "region", kLeft}, [](P p) { return text(p.region); }},
      {{"zone", "zone", "zone", kLeft}, [](P p) { return text(p.zone); }},
      {{"gpu", "GPU", "GPU", kLeft}, [](P p) { return text(p.gpu().value_or("")); }},
      {{"gpu_count", "GPUs", "GPUs"}, [](P p) { return number(p.gpu_count()); }},
      {{"on_demand", "on demand (USD/h)", "USD/h"}, [](P p) { return quantity(p.on_demand); }},
      {{"on_demand_per_gpu", "on demand, per GPU (USD/h)", "USD/h per GPU"},
       [](P p) {
         return quantity(p.on_demand ? std::optional(*p.on_demand / p.gpu_count()) : std::nullopt);
       }},
      {{"spot", "spot (USD/h)", "spot USD/h"}, [](P p) { return quantity(p.spot); }}};
  return make_kind<InstancePrice>("prices", "what instances cost, by region", instance_prices,
                                  with_origin(fields),
                                  {.name = [](P p) { return key(p.instance); },
                                   .provider = [](P p) { return key(p.provider); },
                                   .gpu = [](P p) { return key(p.gpu().value_or("")); },
                                   .region = [](P p) { return key(p.region); }});
}

Kind carbon_kind() {
  using C = const GridCarbon&;
  std::vector<FieldOf<GridCarbon>> fields = {
      {{"provider", "provider", "provider", kLeft}, [](C c) { return text(c.provider); }},
      {{"region", "region", "region", kLeft}, [](C c) { return text(c.region); }},
      {{"location", "location", "location", kLeft}, [](C c) { return text(c.location); }},
      {{"intensity", "intensity (gCO2e/kWh)", "gCO2e/kWh"},
       [](C c) { return quantity(c.intensity); }},
      {{"basis", "basis", "basis", kLeft}, [](C c) { return text(to_string(c.basis)); }},
      {{"data_year", "year of the data", "of year", kLeft}, [](C c) { return text(c.data_year); }}};
  return make_kind<GridCarbon>("carbon",
                               "carbon of electricity, by region of a cloud or by country",
                               grid_carbon, with_origin(fields),
                               {.name = [](C c) { return key(c.location); },
                                .provider = [](C c) { return key(c.provider); },
                                .region = [](C c) { return key(c.region); }});
}

Kind pue_kind() {
  using P = const Pue&;
  std::vector<FieldOf<Pue>> fields = {
      {{"provider", "provider", "provider", kLeft}, [](P p) { return text(p.provider); }},
      {{"region", "region", "region", kLeft}, [](P p) { return text(p.region); }},
      {{"pue", "PUE", "PUE"}, [](P p) { return number(p.pue); }}};
  return make_kind<Pue>("pue", "energy of a data centre over that of its computers", pues,
                        with_origin(fields),
                        {.name = {},
                         .provider = [](P p) { return key(p.provider); },
                         .region = [](P p) { return key(p.region); }});
}

Kind power_kind() {
  using P = const PowerCoefficient&;
  std::vector<FieldOf<PowerCoefficient>> fields = {
      {{"provider", "provider", "provider", kLeft}, [](P p) { return text(p.provider); }},
      {{"component", "component", "component", kLeft}, [](P p) { return text(p.component); }},
      {{"name", "item", "item", kLeft}, [](P p) { return text(p.item); }},
      {{"min", "idle", "idle"}, [](P p) { return quantity(p.min, p.unit, 1); }},
      {{"max", "full load", "full load"}, [](P p) { return quantity(p.max, p.unit, 1); }},
      {{"unit", "unit", "unit", kLeft}, [](P p) { return text(p.unit); }}};
  return make_kind<PowerCoefficient>(
      "power", "power of processors, memory, storage and network", power_coefficients,
      with_origin(fields),
      {.name = [](P p) { return key(p.item); }, .provider = [](P p) { return key(p.provider); }});
}

Kind storage_kind() {
  using P = const StoragePrice&;
  std::vector<FieldOf<StoragePrice>> fields = {
      {{"provider", "provider", "provider", kLeft}, [](P p) { return text(p.provider); }},
      {{"name", "item", "item", kLeft}, [](P p) { return text(p.item); }},
      {{"region", "region", "region", kLeft}, [](P p) { return text(p.region); }},
      {{"kind", "kind", "kind", kLeft}, [](P p) { return text(p.kind); }},
      {{"price", "price", "price"}, [](P p) { return quantity(p.price, p.unit, 1); }},
      {{"unit", "unit", "unit", kLeft}, [](P p) { return text(p.unit); }}};
  return make_kind<StoragePrice>("storage-prices", "prices of storage, requests and transfer",
                                 storage_prices, with_origin(fields),
                                 {.name = [](P p) { return key(p.item); },
                                  .provider = [](P p) { return key(p.provider); },
                                  .region = [](P p) { return key(p.region); }});
}

Kind function_kind() {
  using P = const FunctionPrice&;
  std::vector<FieldOf<FunctionPrice>> fields = {
      {{"service", "service", "service", kLeft}, [](P p) { return text(p.service); }},
      {{"architecture", "architecture", "architecture", kLeft},
       [](P p) { return text(p.architecture); }},
      {{"item", "item", "item", kLeft}, [](P p) { return text(p.item); }},
      {{"value", "value", "value"}, [](P p) { return quantity(p.value, p.unit, 1); }},
      {{"unit", "unit", "unit", kLeft}, [](P p) { return text(p.unit); }},
      {{"scope", "scope", "scope", kLeft}, [](P p) { return text(p.scope); }}};
  return make_kind<FunctionPrice>("functions", "prices and limits of function services",
                                  function_prices, with_origin(fields),
                                  {.name = [](P p) { return key(p.service); }});
}

}  // namespace

std::vector<Kind> cost_kinds() {
  return {price_kind(), carbon_kind(), pue_kind(), power_kind(), storage_kind(), function_kind()};
}

}  // namespace rehearse::cli
