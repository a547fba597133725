#include "models/workload/read_model.h"

#include <array>

#include <fmt/core.h>

#include "models/workload/hugging_face.h"
#include "models/workload/measured_layers.h"
#include "models/workload/zoo.h"

namespace rehearse::workload {
namespace {

Implementation read_implementation(const YamlMap& map, Implementation how) {
  map.choose("attention", kAttentionNames, how.attention);
  map.choose("elementwise", kElementwiseNames, how.elementwise);
  map.choose("loss", kLossNames, how.loss);
  map.choose("gathered_inputs", kGatheredInputsNames, how.gathered_inputs);
  how.dropout = map.optional<bool>("dropout").value_or(how.dropout);
  how.fused_accumulation =
      map.optional<bool>("fused_accumulation").value_or(how.fused_accumulation);
  how.expanded_keys = map.optional<bool>("expanded_keys").value_or(how.expanded_keys);
  how.fused_projections = map.optional<bool>("fused_projections").value_or(how.fused_projections);
  how.fused_experts = map.optional<bool>("fused_experts").value_or(how.fused_experts);
  how.logit_bytes = map.optional<double>("logit_bytes");
  if (how.logit_bytes && !(*how.logit_bytes > 0 && *how.logit_bytes <= 64))
    map.report("logit_bytes", fmt::format("{:g} is out of range", *how.logit_bytes),
               "a number above 0, at most 64");
  return how;
}

void report(const YamlMap& map, std::string_view key, const Error& error) {
  for (const Diagnostic& d : error.diagnostics) map.report(key, d.problem, d.expected, d.nearest);
}

struct Named {
  std::string_view key;  // that selects the model
  Description description;
};

// Nothing if no model is named, or a wrong one; `named` tells which.
std::optional<Named> description_at(const YamlMap& map, const std::filesystem::path& folder,
                                    bool& named) {
  const std::optional<std::string> model = map.optional<std::string>("model");
  const std::optional<std::string> config = map.optional<std::string>("hugging_face");
  const std::optional<std::size_t> kind = map.choice("kind", kDescriptionKinds);
  constexpr std::array<std::string_view, 3> kKeys = {"model", "hugging_face", "kind"};
  int given = 0;
  for (const std::string_view key : kKeys) given += map.has(key);
  named = given > 0;
  if (given > 1) {
    map.report(model ? "model" : "hugging_face",
               "cannot be combined with another description of the model",
               "one of model, hugging_face and kind");
    return std::nullopt;
  }
  if (kind) return Named{"kind", empty_description(*kind)};
  if (model) {
    Result<Description> found = find_description(*model);
    if (found) return Named{"model", std::move(*found)};
    report(map, "model", found.error());
  }
  if (config) {
    Result<Transformer> read = load_hugging_face(folder / *config);
    if (read) return Named{"hugging_face", std::move(*read)};
    report(map, "hugging_face", read.error());
  }
  return std::nullopt;
}

/// The model with the dimensions of the mapping instead of its own.
std::optional<Named> described(const YamlMap& map, const std::filesystem::path& folder,
                               bool& named) {
  std::optional<Named> model = description_at(map, folder, named);
  if (!model) return model;
  if (const std::optional<std::string> name = map.optional<std::string>("name"))
    set_name(model->description, *name);
  read_description(map, model->description);
  return model;
}

}  // namespace

std::optional<Description> read_model_description(const YamlMap& map,
                                                  const std::filesystem::path& folder) {
  bool named = false;
  std::optional<Named> model = described(map, folder, named);
  if (!model) return std::nullopt;
  return std::move(model->description);
}

std::optional<Workload> read_model(const YamlMap& map, Implementation how,
                                   const std::filesystem::path& folder) {
  how = read_implementation(map, how);
  bool named = false;
  std::optional<Named> model = described(map, folder, named);
  if (!model) {
    if (named) return std::nullopt;
    if (map.is_list("layers")) return read_measured_layers(map);
    map.report("model", "is missing", "a model, a hugging_face config, a kind, or layers");
    return std::nullopt;
  }
  Result<Workload> made = workload_of(model->description, how);
  if (made) return std::move(*made);
  report(map, model->key, made.error());
  return std::nullopt;
}

}  // namespace rehearse::workload
