#include "tests/validation/studies/convnet_times.h"

#include <algorithm>
#include <charconv>
#include <span>

#include <fmt/core.h>

#include "models/workload/lift.h"
#include "profiler/ingest/input.h"
#include "sim/base/csv.h"
#include "tests/support/zoo_model.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using workload::Layer;
using workload::Op;

/// As PyTorch multiplies where nothing else is asked for: convolutions in TF32, matrices in FP32.
Result<workload::Workload> described(const std::string& model, double batch) {
  workload::Implementation how;
  how.dtype = workload::Dtype::kTf32;
  how.dropout = true;
  workload::Workload one = TRY(test::zoo_model(model, how));
  workload::Workload all = workload::with_samples(std::move(one), batch);
  for (Layer& layer : all.layers)
    for (std::vector<Op>* ops : {&layer.forward, &layer.backward})
      for (Op& op : *ops) {
        op.name = "op";
        if (op.kind == workload::OpKind::kGemm) op.dtype = workload::Dtype::kFp32;
      }
  return all;
}

Seconds measured(const std::vector<Op>& ops) {
  Seconds sum = Seconds::s(0);
  for (const Op& op : ops)
    if (op.measured) sum += op.measured->value;
  return sum;
}

void append(std::vector<Op>& to, const std::vector<Op>& ops) {
  to.insert(to.end(), ops.begin(), ops.end());
}

/// Both passes, without what they took.
std::vector<ConvnetPass> passes_of(const workload::Workload& model) {
  std::vector<ConvnetPass> passes = {{"forward", Seconds::s(0)}, {"backward", Seconds::s(0)}};
  for (const Layer& layer : model.layers) {
    append(passes[0].ops, layer.forward);
    append(passes[1].ops, layer.backward);
  }
  return passes;
}

Result<ConvnetTimes> from_recording(const fs::path& path, const std::string& model) {
  const trace::Trace trace = TRY(ingest::read_inputs(std::span(&path, 1), {}));
  const workload::Lifted lifted = TRY(workload::lift(trace, {}));
  const double batch = lifted.workload.samples;
  const workload::Workload zoo = TRY(described(model, batch));
  ConvnetTimes times{.name = model, .batch = batch, .whole = passes_of(zoo)};
  for (const Layer& layer : lifted.workload.layers) {
    times.whole[0].time += measured(layer.forward);
    times.whole[1].time += measured(layer.backward);
  }
  // A module of the recording holds what follows it without parameters of its own:
  // activations and pooling.
  std::vector<Layer> modules;
  for (const Layer& layer : zoo.layers) {
    if (layer.parameters() > 0) {
      modules.push_back(layer);
    } else if (!modules.empty()) {
      append(modules.back().forward, layer.forward);
      append(modules.back().backward, layer.backward);
    }
  }
  if (modules.size() != lifted.workload.layers.size()) return times;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const Layer& layer = lifted.workload.layers[i];
    times.layers.push_back(
        {layer.name + " forward", measured(layer.forward), std::move(modules[i].forward)});
    times.layers.push_back(
        {layer.name + " backward", measured(layer.backward), std::move(modules[i].backward)});
  }
  return times;
}

Result<ConvnetTimes> from_operators(const fs::path& path, const std::string& model, double batch) {
  const CsvTable table = TRY(CsvTable::load(path));
  TRY(table.require({"stage", "Operator_cudatime"}));
  const workload::Workload zoo = TRY(described(model, batch));
  ConvnetTimes times{.name = model, .batch = batch, .whole = passes_of(zoo)};
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const std::optional<double> us = TRY(table.number(r, "Operator_cudatime"));
    for (ConvnetPass& pass : times.whole)
      if (table.cell(r, "stage") == pass.name) pass.time += Seconds::us(us.value_or(0));
  }
  for (const ConvnetPass& pass : times.whole)
    if (!(pass.time > Seconds::s(0)))
      return fail(
          Diagnostic{.file = path.string(),
                     .problem = fmt::format("no operator of stage '{}' took time", pass.name),
                     .expected = "operators of stages 'forward' and 'backward'"});
  return times;
}

}  // namespace

Result<std::vector<ConvnetTimes>> read_convnet_times(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  std::vector<ConvnetTimes> all;
  for (const fs::path& path : entries) {
    const std::string name = path.filename().string();
    std::optional<Result<ConvnetTimes>> times;
    constexpr std::string_view kRaw = "raw_", kProcessed = "processed_bs";
    if (const std::size_t end = name.find("_kineto_");
        name.starts_with(kRaw) && end != std::string::npos)
      times = from_recording(path, name.substr(kRaw.size(), end - kRaw.size()));
    if (name.starts_with(kProcessed)) {
      double batch = 0;
      const char* last = name.data() + name.size();
      const auto [at, wrong] = std::from_chars(name.data() + kProcessed.size(), last, batch);
      if (wrong == std::errc() && at != last && *at == '_' && batch > 0)
        times = from_operators(path / "trace.csv", std::string(at + 1, last), batch);
    }
    if (!times) continue;
    if (!*times) return forward(*times);
    all.push_back(std::move(**times));
  }
  return all;
}

}  // namespace rehearse::cli
