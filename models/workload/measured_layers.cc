#include "models/workload/measured_layers.h"

#include <fmt/core.h>

#include "sim/base/text.h"

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

}  // namespace

std::optional<Workload> read_measured_layers(const YamlMap& map) {
  Workload w{
      .name = map.optional<std::string>("name").value_or("layers"), .names = {}, .layers = {}};
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
    Layer layer{.name = name.value_or(""), .forward = {}, .backward = {}};
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

}  // namespace rehearse::workload
