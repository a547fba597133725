// rehearse simulate of a dataflow file.
#include <vector>

#include <fmt/format.h>

#include "cli/commands/simulate_options.h"
#include "cli/output/document.h"
#include "models/dataflow/read_dataflow.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// The time of the device by kind of operation, and the time in which it waits for the host.
Value breakdown_of(const dataflow::Run& run) {
  std::vector<Seconds> parts(std::size(dataflow::kKindNames), Seconds::s(0));
  for (const dataflow::Kernel& kernel : run.kernels)
    parts[static_cast<std::size_t>(kernel.kind)] += kernel.time.value;
  Value fields = Value::object();
  for (std::size_t kind = 0; kind < parts.size(); ++kind)
    if (parts[kind] > Seconds::s(0)) {
      const std::string_view name = dataflow::kKindNames[kind];
      std::string label(name);
      for (char& c : label)
        if (c == '_') c = ' ';
      fields.show(name, label, parts[kind]);
    }
  fields.show("waiting", "waiting for the host", run.waiting);
  return fields;
}

Value kernels_of(const dataflow::Run& run) {
  Value rows = Value::array();
  for (const dataflow::Kernel& kernel : run.kernels)
    rows.push_back({{"result", "result", kernel.name},
                    {"op", "operation", dataflow::to_string(kernel.kind)},
                    {"kernels", "kernels", kernel.kernels},
                    {"gflop", kernel.flops.flop() / 1e9},
                    {"", "GFLOP", significant(kernel.flops.flop() / 1e9)},
                    {"bytes", "bytes", kernel.bytes, in::kMb},
                    {"time", "time", kernel.time, in::kMs},
                    {"host", "host", kernel.host, in::kMs},
                    {"live", "live", kernel.live, in::kMb}});
  return rows;
}

std::string fit_words(const dataflow::Run& run) {
  const Bytes peak = run.peak.value;
  switch (run.fit) {
    case memory::Fit::kFits:
      return fmt::format("fits with {} to spare", to_string(run.usable - peak));
    case memory::Fit::kBorderline: return "may not fit";
    case memory::Fit::kDoesNotFit: break;
  }
  return fmt::format("does not fit: needs {} of {}", to_string(peak), to_string(run.usable));
}

Document document_of(const dataflow::DataflowJob& job, const dataflow::Run& run) {
  const dataflow::Kernel& fullest = run.kernels[run.peak_at];
  Document d{.command = "simulate", .methods = {Method::kDataflow}};
  d.answer = sentence_of(
      fmt::format("{} on {}: {} per run", job.flow.name, job.device, range_words(run.time)),
      {fit_words(run)});
  d["dataflow"] = {{"name", job.flow.name}, {"device", job.device}};
  d.show("passes", "passes", job.passes.empty() ? "none" : join(job.passes, ", "));
  Value symbols = Value::array();
  for (const auto& [name, size] : job.symbols) symbols.push_back({{"name", name}, {"size", size}});
  d["symbols"] = std::move(symbols);
  d.show("time", "time", run.time);
  d.show("kernels", "kernels", run.kernel_count());
  d["gflop"] = run.flops().flop() / 1e9;
  d.show("", "GFLOP", significant(run.flops().flop() / 1e9));
  d["memory"] = {{"peak", run.peak},
                 {"usable", run.usable},
                 {"fit", memory::kFitNames[static_cast<std::size_t>(run.fit)]},
                 {"at", fullest.name},
                 {"parts",
                  {{"inputs", run.parts.inputs},
                   {"weights", run.parts.weights},
                   {"indices", run.parts.indices},
                   {"computed", run.parts.computed},
                   {"context", run.parts.context}}}};
  d.show("", "peak memory",
         fmt::format("{} while {} is computed; inputs {}, weights {}, indices {}, computed values "
                     "{}, context {}",
                     range_words(run.peak), fullest.name, to_string(run.parts.inputs),
                     to_string(run.parts.weights), to_string(run.parts.indices),
                     to_string(run.parts.computed), to_string(run.parts.context)));
  d.show("breakdown", "Where the time goes", breakdown_of(run), {}, kBars);
  d.show("operations", "Operations", kernels_of(run));
  d.rows = "operations";
  d.rows_title = "Operations";
  return d;
}

}  // namespace

Result<Exit> simulate_dataflow(const SimulateOptions& options, const Globals& globals) {
  if (!options.files.perfetto.empty())
    return fail("--perfetto does not apply to a dataflow", "--report FILE");
  if (options.sharing.asked() || !options.sharing.slice.empty() || !options.cluster.empty())
    return fail("a dataflow runs on its own device", "device: in the file");
  const dataflow::DataflowJob job = TRY(dataflow::load_dataflow(options.job_file));
  const dataflow::Run run = TRY(dataflow::run(job.flow, job.device, job.host));
  return answer_with(globals, document_of(job, run));
}

}  // namespace rehearse::cli
