// rehearse calibrate: turn measurements into calibration files.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/calibrate/framework_calls.h"
#include "cli/calibrate/nccl_log.h"
#include "cli/calibrate/operation_fits.h"
#include "cli/calibrate/shipped.h"
#include "cli/commands/calibrate_job.h"
#include "cli/commands/commands.h"
#include "cli/output/document.h"
#include "cli/validation/pair_accuracy.h"
#include "models/comm/transfer.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {
namespace {

struct CalibrateOptions {
  std::vector<std::string> logs;
  std::string device;
  std::string fabric;
  std::filesystem::path file;
  std::filesystem::path data;
};

/// Generation and NVLinks of a device of the catalog.
Result<comm::FitRequest> request_for(const std::string& device, const std::string& fabric) {
  comm::FitRequest request{.device = device};
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu(device);
  if (!gpu) return forward(gpu);
  const std::string& capability = (*gpu)->compute_capability;
  const double version = std::atof(capability.c_str());
  request.generation = version >= 10  ? comm::Generation::kBlackwell
                       : version >= 9 ? comm::Generation::kHopper
                       : version >= 8 ? comm::Generation::kAmpere
                                      : comm::Generation::kVolta;
  const auto& link = (*gpu)->link;
  request.links = link && link->kind == "nvlink" ? link->count : 0;
  request.fabric = request.links == 0
                       ? (link ? comm::Fabric::kBridgedPairs : comm::Fabric::kHostStaged)
                   : link->generation <= 2 ? comm::Fabric::kCubeMesh
                                           : comm::Fabric::kNvswitch;
  if (!fabric.empty()) {
    const auto found = std::find(comm::kFabricNames.begin(), comm::kFabricNames.end(), fabric);
    request.fabric = static_cast<comm::Fabric>(found - comm::kFabricNames.begin());
    if (request.fabric == comm::Fabric::kNvswitch && request.links == 0)
      return fail(fmt::format("{} has no NVLinks that a switch could join", device),
                  "--link host_staged or bridged_pairs");
  }
  return request;
}

std::string envelope_text(const comm::Envelope& e) {
  std::string ranks, kinds;
  for (const std::uint32_t n : e.ranks) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", n);
  for (const CollectiveKind k : e.kinds)
    kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", to_string(k));
  return fmt::format("{} to {}; {} ranks; {}", to_string(e.from), to_string(e.to), ranks, kinds);
}

Value calibration_fields(const comm::Calibration& c) {
  Value ranks = Value::array(), kinds = Value::array();
  for (const std::uint32_t n : c.fitted.envelope.ranks) ranks.push_back(n);
  for (const CollectiveKind k : c.fitted.envelope.kinds) kinds.push_back(to_string(k));
  std::string widths;
  for (const double w : c.ring_widths)
    widths += fmt::format("{}{:.0f}", widths.empty() ? "" : " / ", w * 100);
  return {{"device", "device", c.device},
          {"fabric", "fabric", to_string(c.fabric)},
          {"rows", "rows", c.fitted.rows},
          {"residual", "residual", share(c.fitted.residual), in::kPercent},
          {"", "interval (%)", widths},
          {"", "measured", envelope_text(c.fitted.envelope), {}, kProse},
          {"envelope",
           {{"from", c.fitted.envelope.from},
            {"to", c.fitted.envelope.to},
            {"ranks", std::move(ranks)},
            {"kinds", std::move(kinds)}}},
          {"widths", c.ring_widths}};
}

Status save(const std::filesystem::path& path, const std::string& text) {
  Result<PendingFile> file = PendingFile::create(path);
  if (!file) return forward(file);
  if (Status ok = file->write(text); !ok) return ok;
  return file->commit();
}

/// -o names the calibration; the summary goes to stdout.
Result<Exit> report(const std::vector<comm::Calibration>& calibrations, const Globals& globals) {
  Globals to_stdout = globals;
  to_stdout.output.clear();
  Document document{.command = "calibrate", .rows = "calibrations"};
  Value rows = Value::array();
  for (const comm::Calibration& c : calibrations) rows.push_back(calibration_fields(c));
  const std::string written = globals.output.empty()
                                  ? comm::to_yaml(calibrations.front())
                                  : "written to " + globals.output.string();
  if (calibrations.size() > 1) {
    document["calibrations"] = std::move(rows);
  } else {  // the keys of the only one stand in the document itself
    document.rows.clear();
    document.show("", "", rows);
    for (const Field& field : rows.list().front().fields())
      document.show(field.key, field.label, field.value, field.scale, kInTables);
  }
  document.line(written);
  if (Status ok = write_document(to_stdout, document); !ok) return forward(ok);
  return Exit::kSuccess;
}

Result<Exit> run_nccl(const CalibrateOptions& options, const Globals& globals) {
  std::vector<comm::MeasuredRow> rows;
  std::string version, device_text;
  std::vector<std::string> sources;
  for (const std::string& log : options.logs) {
    const Result<std::vector<NcclRun>> runs = read_nccl_log(log);
    if (!runs) return forward(runs);
    for (const NcclRun& run : *runs) {
      if (run.nodes > 1)
        return fail(Diagnostic{.file = log,
                               .problem = fmt::format("ran on {} nodes", run.nodes),
                               .expected = "runs on one node; several nodes are priced from it and "
                                           "the network"});
      rows.insert(rows.end(), run.rows.begin(), run.rows.end());
      if (!run.nccl_version.empty()) version = run.nccl_version;
      if (!run.device.empty()) device_text = run.device;
    }
    sources.push_back(std::filesystem::path(log).filename().string());
  }
  Result<comm::FitRequest> request = request_for(options.device, options.fabric);
  if (!request) return forward(request);
  const std::vector<std::string_view> views(sources.begin(), sources.end());
  request->source = fmt::format("nccl-tests{}{}: {}", device_text.empty() ? "" : " on ",
                                device_text, join(views, ", "));
  request->rows_used = "all";
  request->nccl_version = version;
  const Result<comm::Calibration> fitted = comm::fit(*request, rows);
  if (!fitted) {
    Error error = fitted.error();
    for (Diagnostic& d : error.diagnostics)
      if (d.file.empty()) d.file = options.logs.front();
    return tl::unexpected(std::move(error));
  }
  if (!globals.output.empty())
    if (Status ok = save(globals.output, comm::to_yaml(*fitted)); !ok) return forward(ok);
  return report({*fitted}, globals);
}

Result<Exit> run_shipped(const CalibrateOptions& options, const Globals& globals) {
  const Result<std::vector<Dealt>> dealt = deal_shipped(options.data);
  if (!dealt) return forward(dealt);
  std::vector<comm::Calibration> all;
  for (const Dealt& d : *dealt) {
    Result<comm::Calibration> fitted = comm::fit(d.request, d.fitted);
    if (!fitted) return forward(fitted);
    if (Status ok = save(options.file / (fitted->device + ".yaml"), comm::to_yaml(*fitted)); !ok)
      return forward(ok);
    all.push_back(std::move(*fitted));
  }
  const Result<std::vector<FrameworkCalls>> calls = read_framework_calls(options.data);
  if (!calls) return forward(calls);
  const auto a100 = std::find_if(all.begin(), all.end(), [](const comm::Calibration& c) {
    return c.device == "a100_sxm4_80";
  });
  if (a100 == all.end()) return fail("nccl_measured.csv has no rows of a100_sxm4_80");
  const Result<comm::FrameworkTiming> timing = fit_framework_calls(*calls, *a100);
  if (!timing) return forward(timing);
  if (Status ok = save(options.file / "framework_timing.yaml", comm::to_yaml(*timing)); !ok)
    return forward(ok);
  return report(all, globals);
}

/// What was fitted, where the result is the files.
Result<Exit> report_files(Value rows, const Globals& globals) {
  Document document{.command = "calibrate", .rows = "fitted"};
  document["fitted"] = std::move(rows);
  if (Status ok = write_document(globals, document); !ok) return forward(ok);
  return Exit::kSuccess;
}

/// What pairs of jobs keep of their speed, one file per device.
Result<Exit> run_pairs(const CalibrateOptions& options, const Globals& globals) {
  const Result<std::vector<sharing::ShippedPairs>> fitted = fit_shipped_pairs(options.data);
  if (!fitted) return forward(fitted);
  Value rows = Value::array();
  for (const sharing::ShippedPairs& pairs : *fitted) {
    if (Status ok = save(options.file / (pairs.device + ".yaml"), sharing::to_yaml(pairs)); !ok)
      return forward(ok);
    rows.push_back({{"device", "device", pairs.device},
                    {"rows", "rows", pairs.rows},
                    {"residual", "residual", share(pairs.law->residual()), in::kPercent},
                    {"left_out", "left out", share(pairs.left_out), in::kPercent}});
  }
  return report_files(std::move(rows), globals);
}

/// Calibrations of operations, one file per device.
Result<Exit> run_operations(const CalibrateOptions& options, const Globals& globals) {
  const Result<std::vector<DealtOperations>> dealt = deal_operations(options.data);
  if (!dealt) return forward(dealt);
  OperationFits fits = fit_operations(*dealt);
  set_widths(fits, *dealt);
  Value rows = Value::array();
  for (const compute::Calibration& c : fits.calibrations) {
    if (Status ok = save(options.file / (c.device + ".yaml"), compute::to_yaml(c)); !ok)
      return forward(ok);
    const auto add = [&](std::string_view what, const compute::FittedTo& f) {
      rows.push_back({{"device", "device", c.device},
                      {"what", "what", what},
                      {"rows", "rows", f.rows},
                      {"residual", "residual", share(f.residual), in::kPercent}});
    };
    for (const auto& m : c.matrix) add(compute::to_string(m.arithmetic), m.fitted);
    if (c.memory) add("memory", c.memory->fitted);
  }
  return report_files(std::move(rows), globals);
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = app.add_subcommand("calibrate", "Turn measurements into calibration files");
  command->require_subcommand(1);

  CLI::App* nccl = command->add_subcommand(
      "nccl", "What collectives cost, from logs of nccl-tests (text, or JSON of its option -J)");
  nccl->add_option("LOG", options->logs, "logs of one kind of device on one node")
      ->type_name("FILE")
      ->required();
  nccl->add_option("--device", options->device,
                   "name in the catalog of the device that was measured")
      ->type_name("NAME")
      ->required();
  nccl->add_option("--link", options->fabric,
                   "nvswitch, cube_mesh, bridged_pairs, host_staged (default: as the device has)")
      ->type_name("NAME")
      ->check(CLI::Validator(
          [](const std::string& name) {
            if (std::find(comm::kFabricNames.begin(), comm::kFabricNames.end(), name) !=
                comm::kFabricNames.end())
              return std::string();
            return fmt::format("unknown link '{}'; {}", name, suggest(name, comm::kFabricNames));
          },
          "", ""));
  nccl->footer(
      "-o FILE writes the calibration, which --calibration FILE takes; without it, it is printed.\n"
      "Example: rehearse calibrate nccl all_reduce.log alltoall.log --device h100_sxm5_80 -o "
      "mine.yaml");
  nccl->callback([options, &action] {
    action = [options](const Globals& globals) { return run_nccl(*options, globals); };
  });

  add_calibrate_job(*command, action);

  CLI::App* shipped = command->add_subcommand(
      "shipped", "Fit the calibrations of this program again, from the published tables");
  shipped->add_option("--data", options->data, "folder of the published tables")
      ->type_name("FOLDER")
      ->required();
  shipped->add_option("--into", options->file, "folder for the files")
      ->type_name("FOLDER")
      ->required();
  shipped->footer(
      "Example: rehearse calibrate shipped --data data --into models/comm/calibrations");
  shipped->callback([options, &action] {
    action = [options](const Globals& globals) { return run_shipped(*options, globals); };
  });

  CLI::App* operations = command->add_subcommand(
      "operations",
      "What operations cost on a device: fit the shipped calibrations again, from the published "
      "tables");
  operations->add_option("--data", options->data, "folder of the published tables")
      ->type_name("FOLDER")
      ->required();
  operations->add_option("--into", options->file, "folder for the files")
      ->type_name("FOLDER")
      ->required();
  operations->footer(
      "Example: rehearse calibrate operations --data data --into models/compute/calibrations");
  operations->callback([options, &action] {
    action = [options](const Globals& globals) { return run_operations(*options, globals); };
  });

  CLI::App* pairs = command->add_subcommand(
      "pairs",
      "What two jobs on one GPU keep of their speed: fit the shipped laws again, from the "
      "published tables");
  pairs->add_option("--data", options->data, "folder of the published tables")
      ->type_name("FOLDER")
      ->required();
  pairs->add_option("--into", options->file, "folder for the files")
      ->type_name("FOLDER")
      ->required();
  pairs->footer("Example: rehearse calibrate pairs --data data --into models/sharing/pairs");
  pairs->callback([options, &action] {
    action = [options](const Globals& globals) { return run_pairs(*options, globals); };
  });
}

}  // namespace rehearse::cli
