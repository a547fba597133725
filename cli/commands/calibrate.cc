// rehearse calibrate: turn measurements into calibration files.

#include <fmt/format.h>

#include "cli/calibrate/nccl_log.h"
#include "cli/commands/catalog_names.h"
#include "cli/commands/options.h"
#include "cli/config/job_file.h"
#include "cli/output/document.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {
namespace {

struct CalibrateOptions {
  std::vector<std::string> logs;
  std::string device;
  std::optional<comm::Fabric> fabric;  ///< absent: the catalog's
};

/// Generation and NVLinks of a device of the catalog.
Result<comm::FitRequest> request_for(const std::string& device,
                                     std::optional<comm::Fabric> fabric) {
  comm::FitRequest request{.device = device};
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(device));
  const std::string& capability = gpu.compute_capability;
  const double version = std::atof(capability.c_str());
  request.generation = version >= 10  ? comm::Generation::kBlackwell
                       : version >= 9 ? comm::Generation::kHopper
                       : version >= 8 ? comm::Generation::kAmpere
                                      : comm::Generation::kVolta;
  const auto& link = gpu.link;
  request.links = link && link->kind == "nvlink" ? link->count : 0;
  request.fabric = request.links == 0
                       ? (link ? comm::Fabric::kBridgedPairs : comm::Fabric::kHostStaged)
                   : link->generation <= 2 ? comm::Fabric::kCubeMesh
                                           : comm::Fabric::kNvswitch;
  if (fabric) request.fabric = *fabric;
  if (fabric == comm::Fabric::kNvswitch && request.links == 0)
    return fail(fmt::format("{} has no NVLinks to connect to a switch", device),
                "--link host_staged or bridged_pairs");
  return request;
}

std::string envelope_text(const comm::Envelope& e) {
  return fmt::format("{} to {}; {} ranks; {}", to_string(e.from), to_string(e.to),
                     fmt::join(e.ranks, ", "),
                     join(e.kinds, ", ", [](CollectiveKind k) { return to_string(k); }));
}

Value calibration_fields(const comm::Calibration& c) {
  Value kinds = Value::array();
  for (const CollectiveKind k : c.fitted.envelope.kinds) kinds.push_back(to_string(k));
  const std::string widths =
      join(c.ring_widths, " / ", [](double width) { return fmt::format("{:.0f}", width * 100); });
  return {{"device", "device", c.device},
          {"fabric", "fabric", to_string(c.fabric)},
          {"rows", "rows", c.fitted.rows},
          {"residual", "residual", share(c.fitted.residual), in::kPercent},
          {"", "interval (%)", widths},
          {"", "measured", envelope_text(c.fitted.envelope), {}, kProse},
          {"envelope",
           {{"from", c.fitted.envelope.from},
            {"to", c.fitted.envelope.to},
            {"ranks", c.fitted.envelope.ranks},
            {"kinds", std::move(kinds)}}},
          {"widths", c.ring_widths}};
}

/// -o names the calibration; the summary goes to stdout.
Result<Exit> report(const comm::Calibration& calibration, const Globals& globals) {
  Document document{.command = "calibrate", .methods = {Method::kFit}};
  document.show("", "", Value::array({calibration_fields(calibration)}));
  const Value fields = calibration_fields(calibration);
  for (const Entry& field : fields.fields())
    document.show(field.key, field.label, field.value, field.scale, kInTables);
  document.line(globals.output.empty() ? comm::to_yaml(calibration)
                                       : "written to " + globals.output.string());
  return answer_with(globals.on_stdout(), document);
}

Result<Exit> run_nccl(const CalibrateOptions& options, const Globals& globals) {
  std::vector<comm::MeasuredRow> rows;
  std::string version, device_text;
  std::vector<std::string> sources;
  for (const std::string& log : options.logs) {
    const std::vector<NcclRun> runs = TRY(read_nccl_log(log));
    for (const NcclRun& run : runs) {
      if (run.nodes > 1)
        return fail_in(
            log, fmt::format("ran on {} nodes", run.nodes),
            "runs on one node; times on several nodes are derived from it and the network");
      rows.insert(rows.end(), run.rows.begin(), run.rows.end());
      if (!run.nccl_version.empty()) version = run.nccl_version;
      if (!run.device.empty()) device_text = run.device;
    }
    sources.push_back(std::filesystem::path(log).filename().string());
  }
  comm::FitRequest request = TRY(request_for(options.device, options.fabric));
  request.source = fmt::format("nccl-tests{}{}: {}", device_text.empty() ? "" : " on ", device_text,
                               join(sources, ", "));
  request.rows_used = "all";
  request.nccl_version = version;
  const comm::Calibration fitted = TRY(in_file(options.logs.front(), comm::fit(request, rows)));
  if (!globals.output.empty()) TRY(write_file(globals.output, comm::to_yaml(fitted)));
  return report(fitted, globals);
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = app.add_subcommand("calibrate", "Fit calibrations to measurements");
  command->require_subcommand(1);

  CLI::App& nccl = *command->add_subcommand(
      "nccl", "Fit the cost of collectives to logs of nccl-tests (text, or JSON of its option -J)");
  add_value(nccl, "LOG", "FILE", options->logs, "logs of one device type on one node")->required();
  offer(add_value(nccl, "--device", "NAME", options->device, "catalog name of the measured device"),
        gpu_names)
      ->required();
  add_choice(nccl, "--link", options->fabric, comm::kFabricNames,
             "nvswitch, cube_mesh, bridged_pairs, host_staged (default: the device's)", "link");
  nccl.footer(
      "Example: rehearse calibrate nccl all_reduce.log alltoall.log --device h100_sxm5_80 -o "
      "mine.yaml\n"
      "-o FILE writes the calibration, which --calibration FILE reads; otherwise it is printed.");
  run_by(nccl, action, options, run_nccl);

  add_calibrate_job(*command, action);
}

}  // namespace rehearse::cli
