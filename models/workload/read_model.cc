#include "models/workload/read_model.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "models/workload/hugging_face.h"
#include "models/workload/workload.h"
#include "models/workload/zoo.h"
#include "sim/base/named_file.h"
#include "sim/base/text.h"
#include "sim/base/yaml.h"

namespace rehearse::workload {
namespace {

// 2.5 % to either side, assumed: a file of means does not show how repeated steps differ.
Estimate<Seconds> recorded(Seconds time) {
  return {.value = time,
          .low = time * 0.975,
          .high = time * 1.025,
          .provenance = Provenance::kRecorded};
}

Op timed(std::string_view name, Seconds time, Bytes moved) {
  Op op = {.name = name, .kind = OpKind::kElementwise, .dtype = Dtype::kFp32};
  op.bytes = moved;
  op.samples = Extent::kBytes;
  op.measured = recorded(time);
  return op;
}

/// The list at `layers`: each with name, forward, backward, parameters, output, kept, count and
/// inputs (names of earlier layers). Times are those of `samples` samples, as is the
/// workload. Nothing after an error, which is recorded.
std::optional<Workload> read_measured_layers(const YamlMap& map) {
  Workload w{.name = map.optional<std::string>("name").value_or("layers")};
  w.samples = map.optional<double>("samples").value_or(1);
  w.tokens_per_sample = map.optional<double>("tokens_per_sample").value_or(0);
  if (!(w.samples > 0)) map.report("samples", "is not above zero");
  bool complete = w.samples > 0;
  std::vector<std::string_view> known;
  for (const YamlMap& entry : map.maps("layers")) {
    const std::optional<std::string> name = entry.required<std::string>("name");
    const std::optional<Seconds> forward = entry.required<Seconds>("forward");
    const std::optional<Seconds> backward = entry.optional<Seconds>("backward");
    const std::optional<Bytes> output = entry.required<Bytes>("output");
    const Bytes saved = entry.optional<Bytes>("kept").value_or(output.value_or(Bytes::b(0)));
    const double parameters = entry.optional<double>("parameters").value_or(0);
    const std::int64_t count = entry.optional<std::int64_t>("count").value_or(1);
    const auto check = [&](bool right, std::string_view key, std::string problem) {
      if (!right) entry.report(key, std::move(problem));
      complete = complete && right;
    };
    check(parameters >= 0, "parameters", "is below zero");
    check(count >= 1 && count <= 1'000'000, "count", "is not between 1 and 1000000");
    Layer layer{.name = name.value_or("")};
    for (const std::string& input : entry.list<std::string>("inputs")) {
      std::uint32_t index = 0;
      while (index < known.size() && known[index] != input) ++index;
      if (index == known.size() && complete) {
        entry.report(
            "inputs", fmt::format("no earlier layer '{}'", input),
            known.empty() ? "no inputs, because it is the first layer" : suggest(input, known));
        complete = false;
      }
      layer.inputs.push_back(index);
    }
    entry.no_other_keys();
    complete = complete && name && forward && output;
    if (!complete) continue;
    const std::string_view own = w.names[w.names.intern(*name)];
    known.push_back(own);
    layer.count = static_cast<std::uint32_t>(count);
    layer.forward = {timed(own, *forward, *output)};
    // Twice forward if it was not measured, as for matrix operations.
    layer.backward = {timed(w.names[w.names.intern(*name + ".backward")],
                            backward.value_or(*forward * 2.), *output)};
    layer.weights = {{.count = parameters}};
    layer.saved = {{.name = "output", .bytes = saved, .input = true}};
    layer.output = *output;
    w.layers.push_back(std::move(layer));
  }
  if (!complete) return std::nullopt;
  if (Status ok = verify(w); !ok) {
    map.report("layers", ok.error().diagnostics.front().problem,
               ok.error().diagnostics.front().expected);
    return std::nullopt;
  }
  return w;
}

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
  how.values_are_views = map.optional<bool>("values_are_views").value_or(how.values_are_views);
  how.fused_experts = map.optional<bool>("fused_experts").value_or(how.fused_experts);
  how.channels_last = map.optional<bool>("channels_last").value_or(how.channels_last);
  how.logit_bytes = map.optional<double>("logit_bytes");
  if (how.logit_bytes && !(*how.logit_bytes > 0 && *how.logit_bytes <= 64))
    map.report("logit_bytes", fmt::format("{:g} is out of range", *how.logit_bytes),
               "a number above 0, at most 64");
  return how;
}

/// An error of another file keeps its place there.
void report(const YamlMap& map, std::string_view key, const Error& error) {
  for (Diagnostic d : error.diagnostics) {
    std::string expected = std::exchange(d.expected, ""), nearest = std::exchange(d.nearest, "");
    map.report(key, to_string(d), std::move(expected), std::move(nearest));
  }
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
  if (kind) {
    Named own{"kind", empty_description(*kind)};
    set_name(own.description, std::string(kDescriptionKinds[*kind]));
    return own;
  }
  if (model) {
    Result<Description> found = find_description(*model);
    if (found) return Named{"model", std::move(*found)};
    report(map, "model", found.error());
  }
  if (config) {
    Result<Transformer> read = named_file(folder, *config).and_then(load_hugging_face);
    if (read) return Named{"hugging_face", std::move(*read)};
    report(map, "hugging_face", read.error());
  }
  return std::nullopt;
}

/// The models of a family, which has no dimensions of its own; empty for any other model.
std::string members_of(std::string_view family) {
  if (std::ranges::none_of(
          zoo(), [&](const ZooModel& model) { return model.family && model.name == family; }))
    return "";
  std::vector<std::string_view> members;
  for (const ZooModel& model : zoo())
    if (!model.family && model.name.starts_with(family)) members.push_back(model.name);
  return members.empty() ? "" : fmt::format("a model of this family: {}", join(members, ", "));
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
  Error error = made.error();
  if (std::string members = members_of(map.optional<std::string>("model").value_or(""));
      !members.empty())
    error.diagnostics.front().nearest = std::move(members);
  report(map, model->key, error);
  return std::nullopt;
}

}  // namespace rehearse::workload
