// The tables of cost/catalog.
#include "cli/catalog/listing.h"
#include "cost/catalog.h"

namespace rehearse::cli {
namespace {

using namespace cost;

std::vector<std::string> key(std::string_view value) {
  return value.empty() ? std::vector<std::string>() : std::vector{std::string(value)};
}

Kind price_kind() {
  using P = const InstancePrice&;
  std::vector<CellOf<InstancePrice>> fields = {
      {{"provider", "provider", "", true}, [](P p) { return text(p.provider); }},
      {{"name", "instance", "", true}, [](P p) { return text(p.instance); }},
      {{"region", "region", "", true}, [](P p) { return text(p.region); }},
      {{"zone", "zone", "", false}, [](P p) { return text(p.zone); }},
      {{"gpu", "GPU", "", true}, [](P p) { return text(p.gpu().value_or("")); }},
      {{"gpu_count", "GPUs", "", false}, [](P p) { return number(p.gpu_count()); }},
      {{"on_demand", "on demand", "USD/h", true}, [](P p) { return quantity(p.on_demand); }},
      {{"on_demand_per_gpu", "on demand, per GPU", "USD/h", false},
       [](P p) {
         return quantity(p.on_demand ? std::optional(*p.on_demand / p.gpu_count()) : std::nullopt);
       }},
      {{"spot", "spot", "USD/h", true}, [](P p) { return quantity(p.spot); }}};
  return make_kind<InstancePrice>("prices", "prices of instances, by region", instance_prices,
                                  with_origin(fields),
                                  {.name = [](P p) { return key(p.instance); },
                                   .provider = [](P p) { return key(p.provider); },
                                   .gpu = [](P p) { return key(p.gpu().value_or("")); },
                                   .region = [](P p) { return key(p.region); }});
}

Kind carbon_kind() {
  using C = const GridCarbon&;
  std::vector<CellOf<GridCarbon>> fields = {
      {{"provider", "provider", "", true}, [](C c) { return text(c.provider); }},
      {{"region", "region", "", true}, [](C c) { return text(c.region); }},
      {{"location", "location", "", true}, [](C c) { return text(c.location); }},
      {{"intensity", "intensity", "gCO2e/kWh", true}, [](C c) { return quantity(c.intensity); }},
      {{"basis", "basis", "", true}, [](C c) { return text(to_string(c.basis)); }},
      {{"data_year", "year of the data", "", true}, [](C c) { return text(c.data_year); }}};
  return make_kind<GridCarbon>("carbon",
                               "carbon of electricity, by region of a cloud or by country",
                               grid_carbon, with_origin(fields),
                               {.name = [](C c) { return key(c.location); },
                                .provider = [](C c) { return key(c.provider); },
                                .region = [](C c) { return key(c.region); }});
}

Kind pue_kind() {
  using P = const Pue&;
  std::vector<CellOf<Pue>> fields = {
      {{"provider", "provider", "", true}, [](P p) { return text(p.provider); }},
      {{"region", "region", "", true}, [](P p) { return text(p.region); }},
      {{"pue", "PUE", "", true}, [](P p) { return number(p.pue); }}};
  return make_kind<Pue>(
      "pue", "power usage effectiveness: energy of a data centre ÷ energy of its computers", pues,
      with_origin(fields),
      {.provider = [](P p) { return key(p.provider); },
       .region = [](P p) { return key(p.region); }});
}

Kind power_kind() {
  using P = const PowerCoefficient&;
  std::vector<CellOf<PowerCoefficient>> fields = {
      {{"provider", "provider", "", true}, [](P p) { return text(p.provider); }},
      {{"component", "component", "", true}, [](P p) { return text(p.component); }},
      {{"name", "item", "", true}, [](P p) { return text(p.item); }},
      {{"min", "idle", "unit", true}, [](P p) { return quantity(p.min, p.unit, 1); }},
      {{"max", "full load", "unit", true}, [](P p) { return quantity(p.max, p.unit, 1); }},
      {{"unit", "unit", "", true}, [](P p) { return text(p.unit); }}};
  return make_kind<PowerCoefficient>(
      "power", "power of processors, memory, storage and network", power_coefficients,
      with_origin(fields),
      {.name = [](P p) { return key(p.item); }, .provider = [](P p) { return key(p.provider); }});
}

Kind storage_kind() {
  using P = const StoragePrice&;
  std::vector<CellOf<StoragePrice>> fields = {
      {{"provider", "provider", "", true}, [](P p) { return text(p.provider); }},
      {{"name", "item", "", true}, [](P p) { return text(p.item); }},
      {{"region", "region", "", true}, [](P p) { return text(p.region); }},
      {{"kind", "kind", "", true}, [](P p) { return text(p.kind); }},
      {{"price", "price", "unit", true}, [](P p) { return quantity(p.price, p.unit, 1); }},
      {{"unit", "unit", "", true}, [](P p) { return text(p.unit); }}};
  return make_kind<StoragePrice>("storage-prices", "prices of storage, requests and transfer",
                                 storage_prices, with_origin(fields),
                                 {.name = [](P p) { return key(p.item); },
                                  .provider = [](P p) { return key(p.provider); },
                                  .region = [](P p) { return key(p.region); }});
}

Kind function_kind() {
  using P = const FunctionPrice&;
  std::vector<CellOf<FunctionPrice>> fields = {
      {{"service", "service", "", true}, [](P p) { return text(p.service); }},
      {{"architecture", "architecture", "", true}, [](P p) { return text(p.architecture); }},
      {{"item", "item", "", true}, [](P p) { return text(p.item); }},
      {{"value", "value", "unit", true}, [](P p) { return quantity(p.value, p.unit, 1); }},
      {{"unit", "unit", "", true}, [](P p) { return text(p.unit); }},
      {{"scope", "scope", "", true}, [](P p) { return text(p.scope); }}};
  return make_kind<FunctionPrice>("functions", "prices and limits of function services",
                                  function_prices, with_origin(fields),
                                  {.name = [](P p) { return key(p.service); }});
}

}  // namespace

std::vector<Kind> cost_kinds() {
  return {price_kind(), carbon_kind(), pue_kind(), power_kind(), storage_kind(), function_kind()};
}

}  // namespace rehearse::cli
