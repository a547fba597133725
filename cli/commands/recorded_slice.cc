#include "cli/commands/recorded_slice.h"

#include "cli/calibrate/device_names.h"
#include "models/sharing/kernel_law.h"
#include "profiler/replay/edit.h"
#include "sim/cluster/partition.h"

namespace rehearse::cli {
namespace {

struct RecordedSlice {
  std::string name;
  Bytes memory;
  sharing::KernelSlice slice;
};

double factor_of(const replay::Recording& recording, const trace::GpuOp& op,
                 const RecordedSlice& slice, Bound bound) {
  if (op.kind != trace::GpuKind::kKernel) {
    const bool host =
        op.direction != trace::CopyDirection::kDeviceToDevice && op.kind == trace::GpuKind::kCopy;
    return host || bound == Bound::kLow ? 1 : slice.slice.memory;
  }
  const sharing::Slowdown slowdown = sharing::slowdown_on(
      slice.slice, recording.name(op), op.duration.seconds(), launch_of(recording.rank(), op));
  if (bound == Bound::kLow) return slowdown.low;
  return bound == Bound::kHigh ? slowdown.high : slowdown.value;
}

Result<RecordedSlice> slice_of_rank(const trace::Rank& rank, const std::string& profile) {
  for (const trace::GpuOp& op : rank.gpu_ops)
    if (op.collective)
      return fail(
          "a recording with collectives on slices, which cannot reach each other: MIG has no "
          "peer access over NVLink or PCIe, and NCCL does not run between instances",
          "ranks without collectives");
  if (rank.devices.empty() || rank.devices.front().name.empty())
    return fail("the recording does not name its GPU", "a GPU with MIG");
  const cluster::Gpu& gpu = *TRY(device_named(rank.devices.front().name));
  const cluster::MigDevice device = TRY(cluster::mig_device(gpu));
  const std::uint32_t index = TRY(cluster::find_profile(device, profile));
  const cluster::Gpu instance = cluster::slice_of(device, index);
  RecordedSlice slice = {.name = instance.name,
                         .memory = instance.memory,
                         .slice = sharing::kernel_slice(device, index)};
  if (rank.devices.front().multiprocessors)
    slice.slice.multiprocessors_before = *rank.devices.front().multiprocessors;
  return slice;
}

}  // namespace

std::optional<sharing::KernelLaunch> launch_of(const trace::Rank& rank, const trace::GpuOp& op) {
  if (!op.launch_shape) return std::nullopt;
  const trace::LaunchShape& shape = rank.launch_shapes[op.launch_shape->index()];
  const auto product = [](const std::uint32_t(&sizes)[3]) {
    return static_cast<double>(sizes[0]) * sizes[1] * sizes[2];
  };
  if (product(shape.grid) == 0 || product(shape.block) == 0) return std::nullopt;
  return sharing::KernelLaunch{.blocks = product(shape.grid),
                               .threads_per_block = product(shape.block),
                               .registers_per_thread = static_cast<double>(shape.registers),
                               .shared_bytes = static_cast<double>(shape.shared_bytes)};
}

Result<SliceName> name_slice(const ReplayJob& job, const std::string& profile) {
  RecordedSlice slice = TRY(slice_of_rank(job.recordings.front().rank(), profile));
  return SliceName{std::move(slice.name), slice.memory};
}

Edit on_slice(const ReplayJob& job, const std::string& profile) {
  const auto apply = [&job, profile](replay::RecordedProgram program,
                                     Bound bound) -> Result<replay::RecordedProgram> {
    std::vector<RecordedSlice> slices;  // by rank
    for (const replay::Recording& recording : job.recordings)
      slices.push_back(TRY(slice_of_rank(recording.rank(), profile)));
    return replay::scale_each(job.recordings, std::move(program),
                              [&](const replay::Recording& recording, const trace::GpuOp& op) {
                                return factor_of(recording, op, slices[recording.rank_index()],
                                                 bound);
                              });
  };
  return {apply, "kernels on the slice take their time by the law of slices"};
}

}  // namespace rehearse::cli
