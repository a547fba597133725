#include "cli/commands/recorded_tenants.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/calibrate/device_names.h"
#include "cli/commands/recorded_slice.h"
#include "cli/commands/share_result.h"
#include "cli/output/run_events.h"
#include "models/sharing/kernel_law.h"
#include "profiler/replay/interval.h"

namespace rehearse::cli {
namespace {

using sharing::Tenant;

const trace::Device* device_of(const ReplayJob& job, std::size_t rank) {
  const auto& devices = job.recordings[rank].rank().devices;
  return devices.empty() || devices.front().name.empty() ? nullptr : &devices.front();
}

/// The recorded number, else that of the catalog's GPU with the recorded name.
std::optional<double> multiprocessors_of(const ReplayJob& job, std::size_t rank) {
  const trace::Device* device = device_of(job, rank);
  if (!device) return std::nullopt;
  if (device->multiprocessors) return *device->multiprocessors;
  const Result<const cluster::Gpu*> gpu = device_named(device->name);
  return gpu ? std::optional<double>((*gpu)->multiprocessors) : std::nullopt;
}

sharing::DeviceOp use_of(const replay::Recording& recording, replay::OpIndex number,
                         const trace::GpuOp& op, std::optional<double> multiprocessors) {
  sharing::DeviceOp on{.program = static_cast<std::uint32_t>(recording.rank_index()), .op = number};
  if (op.kind == trace::GpuKind::kKernel) {
    const auto launch = multiprocessors ? launch_of(recording.rank(), op) : std::nullopt;
    const sharing::KernelUse use =
        sharing::use_of(recording.name(op), launch, multiprocessors.value_or(1));
    on.multiprocessors = use.multiprocessors;
    on.bandwidth = use.bandwidth;
    return on;
  }
  const bool within =
      op.kind != trace::GpuKind::kCopy || op.direction == trace::CopyDirection::kDeviceToDevice;
  on.multiprocessors = 0;
  on.bandwidth = within ? 1 : 0;
  on.host_link = within ? 0 : 1;
  return on;
}

/// Whether a rank without a device works in this op. Waiting in a collective is no work.
bool computes_on_core(const replay::Recording& recording, const program::RankProgram& program,
                      replay::OpIndex i) {
  const replay::Recorded& op = program.recorded[i];
  return op.kind == replay::Recorded::Kind::kHost && program.ops[i].duration &&
         *program.ops[i].duration > Picoseconds(0) &&
         !(op.row && recording.host(*op.row).collective);
}

bool has_device(const ReplayJob& job) {
  return std::ranges::any_of(job.recordings,
                             [](const replay::Recording& r) { return !r.streams().empty(); });
}

/// The tenant of a recording. Collectives keep their recorded time. All threads of a rank without a
/// device are on one core.
Result<Tenant> tenant_of(const RecordedTenant& recorded, std::string name) {
  const ReplayJob& job = recorded.job;
  const replay::ReplayGraph& replay = recorded.run.graph;
  std::vector<sharing::DeviceOp> on_device;
  std::vector<std::optional<double>> multiprocessors;
  for (std::size_t r = 0; r < job.recordings.size(); ++r)
    multiprocessors.push_back(multiprocessors_of(job, r));
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const std::vector<replay::Recorded>& ops = replay.program.programs[rank].recorded;
    const bool on_core = !replay.program.replays[rank].has_device;
    for (replay::OpIndex i = 0; i < ops.size(); ++i) {
      if (on_core && computes_on_core(job.recordings[rank], replay.program.programs[rank], i))
        on_device.push_back({.program = rank, .op = i});
      if (ops[i].kind != replay::Recorded::Kind::kDevice) continue;
      const trace::GpuOp& op = job.recordings[rank].gpu(*ops[i].row);
      if (op.collective) continue;
      on_device.push_back(use_of(job.recordings[rank], i, op, multiprocessors[rank]));
    }
  }
  std::vector<program::OpRef> step_bounds;
  for (const replay::StepOps& step : replay.program.replays.front().steps)
    if (step.begins_after) step_bounds.push_back({0, *step.begins_after});
  return sharing::make_tenant(std::move(name), replay.program, std::move(on_device),
                              std::move(step_bounds));
}

Status check_devices(const ReplayJob& own, const ReplayJob& other) {
  const std::size_t ranks = std::min(own.recordings.size(), other.recordings.size());
  for (std::size_t r = 0; r < ranks; ++r) {
    const trace::Device *here = device_of(own, r), *there = device_of(other, r);
    if (here && there && here->name != there->name)
      return fail(fmt::format("the second recording is from '{}', the first from '{}'", there->name,
                              here->name),
                  "recordings of the same GPU model");
  }
  if (has_device(own) == has_device(other)) return {};
  const ReplayJob& without = has_device(own) ? other : own;
  return fail(fmt::format("{} has no GPU work, and the other recording has",
                          without.trace->ranks.front().info.source),
              "two recordings with kernels, or two of CPUs");
}

std::string name_of(const ReplayRequest& request) {
  const std::filesystem::path& input = request.inputs.front();
  return (input.has_filename() ? input : input.parent_path()).filename().string();
}

}  // namespace

Result<Exit> share_recorded(const RecordedTenant& own, const ReplayRequest& request,
                            std::string_view command, const Globals& globals) {
  ReplayRequest its;
  its.inputs = {request.sharing.shared_with};
  its.lower = request.lower;
  const ReplayJob other = TRY(load_job(its, globals));
  TRY(check_devices(own.job, other));
  const RecordedTenant second{other, other.recorded,
                              replay::estimate_step(other.recorded.comparison)};
  const RecordedTenant* both[] = {&own, &second};
  SharedJobs shared{};
  shared.sharing = sharing_of(request.sharing, shared.notes);
  const trace::Device* device = device_of(own.job, 0);
  const bool on_cores = !has_device(own.job);
  shared.devices = on_cores ? "one core per rank" : device ? device->name : "one GPU";
  std::vector<Tenant> tenants;
  for (const RecordedTenant* one : both) {
    Tenant tenant = TRY(tenant_of(*one, name_of(tenants.empty() ? request : its)));
    shared.jobs.push_back({.name = tenant.name, .alone = one->alone});
    tenants.push_back(std::move(tenant));
  }
  shared.notes.push_back(
      "memory: a recording does not contain memory use, so it is not checked that both jobs fit");
  if (on_cores)
    shared.notes.push_back(
        "no device was recorded: rank r of both jobs is on core r with all its threads, and the "
        "interval is that of GPUs");
  else if (!multiprocessors_of(own.job, 0))
    shared.notes.push_back("the GPU is unknown: every kernel is assumed to fill it");
  std::vector<std::filesystem::path> inputs = request.inputs;
  inputs.push_back(request.sharing.shared_with);
  return answer_shared(
      globals, command, request.files, std::move(inputs), std::move(shared), tenants,
      [&](const graph::Timeline& timeline, TimelineSink& sink) {
        show_replay(own.job.recordings, own.run.graph, timeline, sink);
      },
      [&](std::size_t t, const graph::Timeline& period) {
        return replay::compare(both[t]->job.recordings, both[t]->run.graph, period)
            .step_time.simulated;
      });
}

}  // namespace rehearse::cli
