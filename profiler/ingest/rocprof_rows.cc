#include "profiler/ingest/rocprof_rows.h"

#include "profiler/ingest/device_calls.h"
#include "profiler/trace/collective_names.h"

namespace rehearse::ingest::rocprof {

using trace::CopyDirection;

void set_direction(std::string_view text, trace::Recorder& to, trace::GpuOp& op) {
  struct Known {
    std::string_view text, name;
    CopyDirection direction;
  };
  constexpr Known kKnown[] = {
      {"HOST_TO_DEVICE", "Memcpy HtoD", CopyDirection::kHostToDevice},
      {"DEVICE_TO_HOST", "Memcpy DtoH", CopyDirection::kDeviceToHost},
      {"DEVICE_TO_DEVICE", "Memcpy DtoD", CopyDirection::kDeviceToDevice},
      {"HOST_TO_HOST", "Memcpy HtoH", CopyDirection::kHostToHost},
  };
  op.name = to.name("Memcpy");
  for (const Known& known : kKnown)
    if (text.ends_with(known.text)) {
      op.name = to.name(known.name);
      op.direction = known.direction;
    }
}

void name_kernel(std::string_view name, trace::Recorder& to, trace::GpuOp& op) {
  op.name = to.name(name);
  if (const auto collective = trace::collective_from_kernel(name))
    op.collective = to.collective({.kind = *collective});
}

void set_shape(const std::optional<std::uint32_t> (&grid)[3],
               const std::optional<std::uint32_t> (&block)[3], trace::Recorder& to,
               trace::GpuOp& op) {
  trace::LaunchShape shape{};
  for (int i = 0; i < 3; ++i) {
    if (!grid[i] || !block[i] || *block[i] == 0) return;
    shape.block[i] = *block[i];
    shape.grid[i] = *grid[i] / *block[i] + (*grid[i] % *block[i] != 0 ? 1 : 0);
  }
  op.launch_shape = to.launch_shape(shape);
}

void add_call(std::string_view name, trace::HostOp op, trace::Recorder& to) {
  op.name = to.name(name);
  op.kind = trace::HostKind::kRuntime;
  to.add(op, starts_device_work(name));
}

void add_marker(std::string_view name, trace::HostOp op, trace::Recorder& to) {
  if (op.duration == Nanoseconds(0) || name.empty()) return;
  op.name = to.name(name);
  op.kind = trace::HostKind::kAnnotation;
  to.add(op);
}

}  // namespace rehearse::ingest::rocprof
