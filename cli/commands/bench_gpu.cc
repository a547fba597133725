// rehearse bench-gpu: measure operations on this machine's GPUs.
#include <algorithm>
#include <ctime>

#include <fmt/chrono.h>

#include "cli/calibrate/op_timings.h"
#include "cli/commands/options.h"
#include "cli/output/document.h"
#include "cli/output/op_timings.h"
#include "models/workload/lift.h"
#include "profiler/bench/session.h"
#include "profiler/bench/shape_file.h"
#include "profiler/ingest/input.h"
#include "profiler/trace/store.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct BenchGpuOptions {
  std::vector<std::string> ops;  ///< families; empty: all
  std::filesystem::path shapes;
  std::vector<std::filesystem::path> from;
};

bool wanted(const BenchGpuOptions& options, bench::Family family) {
  return options.ops.empty() ||
         std::ranges::find(options.ops, bench::to_string(family)) != options.ops.end();
}

Result<std::vector<bench::Shape>> shapes_of_recording(const BenchGpuOptions& options,
                                                      const Globals& globals) {
  const trace::Trace trace = TRY(ingest::read_inputs(
      options.from, {.strict = globals.strict, .progress = globals.progress_of("reading")}));
  const workload::Lifted lifted = TRY(workload::lift(trace, {}));
  if (!lifted.shapes)
    return workload::needs_shapes(trace.ranks.front().info.source, "bench-gpu --from");
  Replan replan = replan_shapes(lifted.workload);
  if (replan.without_shape > 0)
    globals.warn(fmt::format("{} of the recording have no benchmark and are left out",
                             counted(replan.without_shape, "operation")));
  return std::move(replan.shapes);
}

Result<std::vector<bench::Shape>> shapes_of(const BenchGpuOptions& options,
                                            const Globals& globals) {
  std::vector<bench::Shape> shapes;
  if (!options.shapes.empty()) {
    shapes = TRY(bench::read_shapes(options.shapes));
  } else if (!options.from.empty()) {
    shapes = TRY(shapes_of_recording(options, globals));
  } else {
    shapes = bench::default_shapes();
  }
  std::erase_if(shapes,
                [&](const bench::Shape& shape) { return !wanted(options, shape.rule().family); });
  if (shapes.empty())
    return fail("no shapes of the requested operations", "--ops that the shapes have");
  return shapes;
}

/// Adds to an existing store, which may hold a recording, or creates one.
Status save(const std::filesystem::path& path, const std::vector<trace::OpTiming>& timings) {
  trace::Trace trace;
  if (std::error_code none; std::filesystem::exists(path, none))
    trace = TRY(trace::read_store(path));
  trace::merge(trace.timings, timings);
  trace::StoreWriter writer = TRY(trace::StoreWriter::create(path));
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    trace::RowSink& rows = writer.rows(r);
    for (const trace::HostOp& op : trace.ranks[r].host_ops) rows.add(op);
    for (const trace::GpuOp& op : trace.ranks[r].gpu_ops) rows.add(op);
    for (const trace::Sync& sync : trace.ranks[r].syncs) rows.add(sync);
    for (const trace::Dependency& d : trace.ranks[r].dependencies) rows.add(d);
  }
  return writer.finish(trace);
}

std::string reason(const Error& error) {
  const Diagnostic& d = error.diagnostics.front();
  return d.expected.empty() ? d.problem : d.problem + "; " + d.expected;
}

std::string name_of(const bench::GpuInfo& gpu) {
  return fmt::format("{}{}, {} multiprocessors", gpu.name,
                     gpu.partition.empty() ? "" : " (MIG " + gpu.partition + ")",
                     gpu.multiprocessors);
}

Document document_of(const bench::Outcome& outcome, const std::filesystem::path& store) {
  Document d{.command = "bench-gpu", .rows = "rows"};
  d["store"] = store.empty() ? Value() : Value(store.string());
  d["gpus"] = Value::array();
  for (const bench::GpuInfo& gpu : outcome.gpus) {
    d.line(name_of(gpu));
    d["gpus"].push_back({{"name", gpu.name},
                         {"partition", gpu.partition},
                         {"multiprocessors", gpu.multiprocessors}});
  }
  d["rows"] = op_timing_rows(outcome.timings);
  if (!store.empty())
    d.line(fmt::format("{} in {}", counted(outcome.timings.size(), "measurement"), store.string()));
  d["skipped"] = Value::array();
  for (const bench::Skipped& skipped : outcome.skipped)
    d["skipped"].push_back({{"op", skipped.shape.op},
                            {"shape", skipped.shape.text()},
                            {"dtype", skipped.shape.dtype},
                            {"why", skipped.why}});
  d["left_out"] = Value::array();
  for (const bench::LeftOut& left : outcome.left_out)
    d["left_out"].push_back({{"ops", bench::to_string(left.family)},
                             {"shapes", left.shapes},
                             {"why", reason(left.why)}});
  d["interrupted"] = outcome.interrupted;
  return d;
}

void warn_of(const bench::Outcome& outcome, const Globals& globals) {
  if (!outcome.clocks.empty()) globals.warn(outcome.clocks + ": clocks and throttling are unknown");
  for (const bench::LeftOut& left : outcome.left_out)
    globals.warn(fmt::format("--ops {} left out ({}): {}", bench::to_string(left.family),
                             counted(left.shapes, "shape"), reason(left.why)));
  for (const bench::Skipped& skipped : outcome.skipped)
    globals.warn(fmt::format("{} {} {} skipped: {}", skipped.shape.op, skipped.shape.text(),
                             skipped.shape.dtype, skipped.why));
  std::uint64_t dropped = 0;
  for (const trace::OpTiming& t : outcome.timings) dropped += t.dropped;
  if (dropped > 0)
    globals.warn(fmt::format("{} measured while the device was throttled: dropped",
                             dropped == 1 ? "1 batch was" : grouped(dropped) + " batches were"));
}

Result<Exit> run(const BenchGpuOptions& options, const Globals& globals) {
  std::vector<bench::Shape> shapes = TRY(shapes_of(options, globals));
  const std::filesystem::path& store = globals.output;
  if (std::error_code none; !store.empty() && std::filesystem::is_regular_file(store, none) &&
                            std::filesystem::file_size(store, none) > 0 && !trace::is_store(store))
    return fail_in(store, "exists and is not a trace store",
                   "a new file, or a trace store to append to");
  bench::Session session = TRY(bench::Session::open());
  if (!globals.quiet)
    say(fmt::format("{} on {}: about {:.0f} s", counted(shapes.size(), "shape"),
                    name_of(session.gpu(0)), std::max(1.0, bench::estimated_time(shapes).s())));
  const bench::Outcome outcome =
      session.measure({.shapes = std::move(shapes),
                       .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))),
                       .progress = globals.progress_of("measuring")});
  warn_of(outcome, globals);
  if (!store.empty() && !outcome.timings.empty()) TRY(save(store, outcome.timings));
  TRY(write_document(globals.on_stdout(), document_of(outcome, store)));
  if (outcome.interrupted)
    return fail(fmt::format("stopped; {} {}", counted(outcome.timings.size(), "measurement"),
                            store.empty() ? "shown" : "saved"));
  if (outcome.timings.empty()) return fail("nothing could be measured");
  return Exit::kSuccess;
}

}  // namespace

void add_bench_gpu(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchGpuOptions>();
  CLI::App& command = *app.add_subcommand(
      "bench-gpu",
      "Measure single operations on this machine's GPUs, for jobs without a recording");
  CLI::Option* ops =
      add_value(command, "--ops", "NAME,...", options->ops,
                "gemm, conv, attention, elementwise, copy, collective (default: all)");
  accept_names(ops->delimiter(',')->allow_extra_args(false), bench::kFamilyNames, "operations");
  CLI::Option* shapes =
      add_value(command, "--shapes", "FILE", options->shapes,
                "shapes to measure: CSV, or YAML with sweeps (default: those of common models)");
  add_value(command, "--from", "FILE", options->from,
            "measure the shapes of this recording under other plans: tensor parallelism, "
            "other microbatches")
      ->expected(1, -1)
      ->excludes(shapes);
  command.footer(
      "Examples:\n"
      "  rehearse bench-gpu --ops gemm,attention --shapes shapes.yaml -o costs.rehearse\n"
      "  rehearse bench-gpu --from job.rehearse -o job.rehearse\n"
      "-o STORE adds the measurements to a trace store, which a job uses with `op_costs: STORE`.");
  run_by(command, action, options, run);
}

}  // namespace rehearse::cli
