#include "cli/commands/inspect_workload.h"

#include <fmt/core.h>

#include "cli/output/document.h"
#include "models/workload/lift.h"

namespace rehearse::cli {
namespace {

using workload::Layer, workload::Lifted;

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

Value maybe_time(const std::vector<workload::Op>& ops) {
  return ops.empty() ? Value(std::nullopt) : Value(time_of(ops));
}

Value layer_fields(const Lifted& lifted, const Layer& layer) {
  const bool shapes = lifted.shapes;
  const auto ops = layer.forward.size() + layer.backward.size() + layer.recompute.size();
  Value row = {{"name", "layer", layer.name},
               {"ops", "ops", ops},
               {"parameters", layer.parameters()},
               {"", shapes ? "parameters" : "", static_cast<std::uint64_t>(layer.parameters())},
               {"forward", "forward", time_of(layer.forward), in::kUs},
               {"backward", "backward", time_of(layer.backward), in::kUs},
               {"recomputed", "recomputed", maybe_time(layer.recompute), in::kUs},
               {"optimizer", "optimizer", maybe_time(layer.step), in::kUs},
               {"output_bytes", shapes ? "output" : "", bare(layer.output), in::kMib},
               {"kept_bytes", shapes ? "saved" : "", bare(layer.saved_bytes()), in::kMib}};
  return row;
}

void show_plan(const workload::RecordedPlan& plan, Document& document) {
  if (plan.degrees.empty()) return;
  Value rows = Value::array();
  for (const workload::FoundDegree& degree : plan.degrees)
    rows.push_back({{"name", "plan", std::string(degree.of)},
                    {"degree", "degree", degree.degree},
                    {"evidence", "evidence", degree.evidence, {}, kProse}});
  document.show("plan", "Recorded plan", std::move(rows));
}

Document document_of(const Lifted& lifted, const trace::Problems& problems) {
  const workload::Workload& w = lifted.workload;
  const workload::DeviceTime& device = lifted.device;
  Document d{.command = "inspect", .rows = "layers"};
  d.show("notes", "Notes", lifted.notes);
  if (lifted.plan) show_plan(*lifted.plan, d);
  d["step"] = {{"name", lifted.step_name}, {"of", lifted.steps}, {"time", "step", lifted.step}};
  const auto part = [&](Nanoseconds time) {
    return fmt::format("{} ({:.1f} %)", to_string(time.seconds()), 100 * (time / device.busy));
  };
  d["device"] = {{"busy", "device busy", device.busy.seconds()},
                 {"layers", device.layers.seconds()},
                 {"", "in layers", part(device.layers)},
                 {"copies", device.copies.seconds()},
                 {"", "in copies", part(device.copies)},
                 {"communication", device.communication.seconds()},
                 {"", "in communication", part(device.communication)},
                 {"unknown", device.unknown.seconds()},
                 {"", "unknown", part(device.unknown)},
                 {"overlapped", device.overlapped.seconds()},
                 {"ops", "device ops", lifted.kernels},
                 {"idle_per_op", "idle per device op", lifted.idle_per_kernel}};
  d["microbatches"] = lifted.microbatches;
  d["shapes"] = lifted.shapes;
  d["training"] = lifted.training;
  const auto shown = [&](const char* label) { return lifted.shapes ? label : ""; };
  d.show("samples", shown("samples"), w.samples);
  d.show("tokens_per_sample", w.tokens_per_sample > 0 ? shown("tokens per sample") : "",
         w.tokens_per_sample);
  d["parameters"] = w.parameters();
  if (lifted.shapes) {
    d.show("", "parameters", static_cast<std::uint64_t>(w.parameters()));
    d.show("", "matrix operations", to_string(w.model_flops()));
  }
  d["flops"] = w.model_flops().flop();
  Value layers = Value::array();
  for (const Layer& layer : w.layers) layers.push_back(layer_fields(lifted, layer));
  d.show("layers", "Layers", std::move(layers), {}, first(kLayersShown));
  d.add_problems(problems);
  return d;
}

}  // namespace

void show_recorded_plan(const trace::Trace& trace, Document& document) {
  const Result<Lifted> lifted = workload::lift(trace, {});
  if (!lifted || !lifted->plan)
    document.show("plan_unknown", "plan unknown",
                  to_string(lifted ? lifted->plan.error() : lifted.error()));
  else
    show_plan(*lifted->plan, document);
}

Result<Exit> inspect_workload(const ReplayRequest& request, const Globals& globals) {
  InputTrace input = TRY(load_trace(request, globals));
  const Lifted lifted = TRY(workload::lift(*input.trace, {}));
  return answer_with(globals, document_of(lifted, input.trace->problems));
}

}  // namespace rehearse::cli
