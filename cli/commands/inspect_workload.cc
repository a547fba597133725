#include "cli/commands/inspect_workload.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cli/output/result.h"
#include "models/workload/lift.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using workload::Layer;
using workload::Lifted;

constexpr std::size_t kLayersShown = 60;

Estimate<Seconds> time_of(const std::vector<workload::Op>& ops) {
  const Seconds none = Seconds::s(0);
  Estimate<Seconds> sum{none, none, none, Provenance::kRecorded};
  for (const workload::Op& op : ops) {
    sum.value += op.measured->value;
    sum.low += op.measured->low;
    sum.high += op.measured->high;
  }
  return sum;
}

std::string microseconds(const std::vector<workload::Op>& ops) {
  return ops.empty() ? "" : fmt::format("{:.1f}", time_of(ops).value.us());
}

Table layer_table(const Lifted& lifted) {
  Table table({{"layer", Align::kLeft},
               {"ops"},
               {"parameters"},
               {"forward (us)"},
               {"backward (us)"},
               {"recomputed (us)"},
               {"optimizer (us)"},
               {"output (MiB)"},
               {"kept (MiB)"}});
  for (const Layer& layer : lifted.workload.layers)
    table.add(
        {layer.name, grouped(layer.forward.size() + layer.backward.size() + layer.recompute.size()),
         lifted.shapes ? grouped(static_cast<std::uint64_t>(layer.parameters())) : "",
         microseconds(layer.forward), microseconds(layer.backward), microseconds(layer.recompute),
         microseconds(layer.step), lifted.shapes ? fmt::format("{:.3f}", layer.output.mib()) : "",
         lifted.shapes ? fmt::format("{:.3f}", layer.kept_bytes().mib()) : ""});
  return table;
}

std::string to_text(const Lifted& lifted) {
  const workload::Workload& w = lifted.workload;
  const workload::DeviceTime& device = lifted.device;
  std::string text;
  for (const std::string& note : lifted.notes) text += note + "\n";
  text += fmt::format(
      "step {}; device busy {}: {:.1f} % in layers, {:.1f} % copies, {:.1f} % "
      "communication, {:.1f} % unknown\n",
      to_string(lifted.step), to_string(device.busy.seconds()), 100 * device.share(),
      100 * (device.copies / device.busy), 100 * (device.communication / device.busy),
      100 * (device.unknown / device.busy));
  text += fmt::format("idle {} for each of {}\n", to_string(lifted.idle_per_kernel),
                      counted(static_cast<std::uint64_t>(lifted.kernels), "device op"));
  if (lifted.shapes) {
    const std::string tokens =
        w.tokens_per_sample > 0 ? fmt::format(" of {:g} tokens", w.tokens_per_sample) : "";
    text += fmt::format("{:g} samples{}; {} parameters; {} GFLOP of matrix operations\n", w.samples,
                        tokens, grouped(static_cast<std::uint64_t>(w.parameters())),
                        significant(w.model_flops().flop() * 1e-9));
  }
  return text + "\n" + layer_table(lifted).text(60, kLayersShown);
}

Json to_json(const Lifted& lifted, const trace::Problems& problems) {
  const workload::Workload& w = lifted.workload;
  const workload::DeviceTime& device = lifted.device;
  Json json = json_root("inspect");
  json["step"] = {
      {"name", lifted.step_name}, {"of", lifted.steps}, {"time", json_measured(lifted.step)}};
  json["device"] = {{"busy", json_measured(device.busy.seconds())},
                    {"layers", json_measured(device.layers.seconds())},
                    {"copies", json_measured(device.copies.seconds())},
                    {"communication", json_measured(device.communication.seconds())},
                    {"unknown", json_measured(device.unknown.seconds())},
                    {"overlapped", json_measured(device.overlapped.seconds())},
                    {"ops", lifted.kernels},
                    {"idle_per_op", json_measured(lifted.idle_per_kernel)}};
  json["microbatches"] = lifted.microbatches;
  json["shapes"] = lifted.shapes;
  json["training"] = lifted.training;
  json["samples"] = w.samples;
  json["tokens_per_sample"] = w.tokens_per_sample;
  json["parameters"] = w.parameters();
  json["flops"] = w.model_flops().flop();
  json["layers"] = Json::array();
  for (const Layer& layer : w.layers) {
    Json row = {{"name", layer.name},
                {"ops", layer.forward.size() + layer.backward.size() + layer.recompute.size()},
                {"parameters", layer.parameters()},
                {"forward", json_predicted(time_of(layer.forward))},
                {"backward", json_predicted(time_of(layer.backward))}};
    if (!layer.recompute.empty()) row["recomputed"] = json_predicted(time_of(layer.recompute));
    if (!layer.step.empty()) row["optimizer"] = json_predicted(time_of(layer.step));
    row["output_bytes"] = layer.output.b();
    row["kept_bytes"] = layer.kept_bytes().b();
    json["layers"].push_back(std::move(row));
  }
  json["notes"] = lifted.notes;
  json["problems"] = json_problems(problems);
  return json;
}

}  // namespace

Result<Exit> inspect_workload(const ReplayRequest& request, const Globals& globals) {
  Result<InputTrace> input = load_trace(request, globals);
  if (!input) return forward(input);
  const Result<Lifted> lifted = workload::lift(*input->trace, {});
  if (!lifted) return forward(lifted);
  const Formats formats = {.text = [&] { return to_text(*lifted); },
                           .json = [&] { return to_json(*lifted, input->trace->problems); },
                           .table = [&] { return layer_table(*lifted); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace rehearse::cli
