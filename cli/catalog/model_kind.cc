// The models that jobs can name.
#include "cli/catalog/listing.h"
#include "models/workload/zoo.h"

namespace rehearse::cli {
namespace {

struct Model {
  std::string name, source;
  std::optional<double> parameters = {}, tokens = {};  ///< of a family: what the job gives
};

const std::vector<Model>& models() {
  static const std::vector<Model> rows = [] {
    std::vector<Model> all;
    for (const workload::ZooModel& each : workload::zoo()) {
      Model& row = all.emplace_back(Model{.name = each.name, .source = each.source});
      if (each.family) continue;
      const Result<workload::Workload> made = workload::workload_of(each.description, {});
      if (!made) continue;  // it needs what a job gives
      row.parameters = made->parameters();
      if (made->tokens_per_sample > 0) row.tokens = made->tokens_per_sample;
    }
    return all;
  }();
  return rows;
}

}  // namespace

Kind model_kind() {
  using M = const Model&;
  return make_kind<Model>(
      "models", "models that a job or --model can name", models,
      {{{"name", "name", "", true}, [](M m) { return text(m.name); }},
       {{"parameters", "parameters", "10^9", true},
        [](M m) { return Cell{.value = number(m.parameters).value, .shown_as = 1e9}; }},
       {{"sequence", "sequence", "tokens", true}, [](M m) { return number(m.tokens); }},
       {{"source", "source", "", true}, [](M m) { return text(m.source); }}},
      {.name = [](M m) { return std::vector{m.name}; }});
}

}  // namespace rehearse::cli
