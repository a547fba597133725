#include "profiler/ingest/jax.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "profiler/ingest/device_calls.h"
#include "profiler/ingest/json_stream.h"
#include "profiler/ingest/numbers.h"
#include "profiler/trace/collective_names.h"

namespace rehearse::ingest {
namespace {

using trace::CopyDirection;
using trace::GpuKind;
using trace::HostMemory;

constexpr std::string_view kGpu = "/device:GPU:";

struct XlaEvent {
  std::string_view phase, name, process, thread, start, duration;
  // args
  std::string_view of_metadata, correlation, step, kernel, copy, set;
};

/// What follows `key` up to the next space: "size:64" in "kind:pinned size:64 dest:0".
std::string_view detail(std::string_view details, std::string_view key) {
  for (std::size_t at = 0; at < details.size();) {
    const std::size_t end = std::min(details.find(' ', at), details.size());
    const std::string_view part = details.substr(at, end - at);
    if (part.starts_with(key)) return part.substr(key.size());
    at = end + 1;
  }
  return {};
}

/// "64,2,1"
bool read_extents(std::string_view text, std::uint32_t (&extents)[3]) {
  for (std::uint32_t& extent : extents) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto number = parse_id(text.substr(0, comma));
    if (!number) return false;
    extent = *number;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

/// A line of the trace: a thread of the host, a stream, or a line that XLA derives from streams.
struct Line {
  enum class Kind { kHost, kStream, kSteps, kModules, kDerived };
  Kind kind = Kind::kHost;
  std::uint16_t device = 0;
  std::uint32_t stream = 0;
};

/// A range from which steps follow.
struct Span {
  std::string name;
  Nanoseconds start, duration;
};

class JaxHandler final : public JsonHandler {
 public:
  explicit JaxHandler(trace::Recorder& recorder) : to_(recorder) {}

  bool streams(std::string_view key) const override { return key == "traceEvents"; }
  void member(std::string_view, JsonValue&) override {}

  bool element(JsonValue& value) override {
    XlaEvent event;
    bool whole = true;
    const bool complete = value.fields([&](std::string_view key, JsonValue& field) {
      if (key == "ph") event.phase = field.text();
      if (key == "name") event.name = field.text();
      if (key == "pid") event.process = field.text();
      if (key == "tid") event.thread = field.text();
      if (key == "ts") event.start = field.text();
      if (key == "dur") event.duration = field.text();
      if (key != "args" || !field.is_object()) return;
      whole = field.fields([&](std::string_view name, JsonValue& argument) {
        if (name == "name") event.of_metadata = argument.text();
        if (name == "correlation_id") event.correlation = argument.text();
        if (name == "step_num") event.step = argument.text();
        if (name == "kernel_details") event.kernel = argument.text();
        if (name == "memcpy_details") event.copy = argument.text();
        if (name == "Memset_details" || name == "memset_details") event.set = argument.text();
      });
    });
    if (!complete || !whole) return false;
    if (event.phase == "M") read_metadata(event);
    if (event.phase == "X") read_complete(event);
    return true;
  }

  /// Without a host, adds XLA's line of steps as marks; else the executions of the module that takes
  /// most of the time.
  void finish() {
    if (to_.host_count() > 0) return;
    if (steps_.empty()) {
      std::map<std::string_view, std::pair<Nanoseconds, std::size_t>> modules;
      for (const Span& span : modules_) {
        auto& [time, count] = modules.try_emplace(span.name, Nanoseconds(0), 0).first->second;
        time += span.duration;
        ++count;
      }
      const auto most = std::max_element(
          modules.begin(), modules.end(),
          [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
      if (most == modules.end() || most->second.second < 2) return;
      for (const Span& span : modules_)
        if (span.name == most->first)
          steps_.push_back({fmt::format("step {}", steps_.size()), span.start, span.duration});
    }
    for (const Span& step : steps_)
      to_.add(trace::HostOp{.name = to_.name(step.name),
                            .thread = to_.thread("0", "0"),
                            .kind = trace::HostKind::kAnnotation,
                            .start = step.start,
                            .duration = step.duration});
  }

 private:
  void read_metadata(const XlaEvent& event) {
    if (event.name == "process_name") processes_[std::string(event.process)] = event.of_metadata;
    if (event.name != "thread_name") return;
    Line& line = lines_[{std::string(event.process), std::string(event.thread)}];
    const std::string_view process = process_of(event);
    if (!process.starts_with("/device:")) return;
    line.kind = Line::Kind::kDerived;
    const auto device = device_of(process);
    if (!device) return;
    line.device = *device;
    // "Stream #14(MemcpyH2D)"
    constexpr std::string_view kStream = "Stream #";
    const std::string_view name = event.of_metadata;
    if (name == "Steps") line.kind = Line::Kind::kSteps;
    if (name == "XLA Modules") line.kind = Line::Kind::kModules;
    if (!name.starts_with(kStream)) return;
    const std::string_view of_stream = name.substr(kStream.size());
    line.kind = Line::Kind::kStream;
    line.stream = parse_id(of_stream.substr(0, of_stream.find('('))).value_or(0);
    if (devices_.insert(line.device).second)
      to_.device({.ordinal = line.device, .name = std::string(process)});
  }

  /// "/device:GPU:0", perhaps with a name after it.
  static std::optional<std::uint16_t> device_of(std::string_view process) {
    if (!process.starts_with(kGpu)) return std::nullopt;
    process.remove_prefix(kGpu.size());
    const auto number = parse_id(process.substr(0, process.find(' ')));
    if (!number || *number > UINT16_MAX) return std::nullopt;
    return static_cast<std::uint16_t>(*number);
  }

  std::string_view process_of(const XlaEvent& event) const {
    const auto found = processes_.find(event.process);
    return found == processes_.end() ? std::string_view() : found->second;
  }

  /// Lines without a name are streams if their events have the details of device work.
  Line line_of(const XlaEvent& event) const {
    const auto found = lines_.find({std::string(event.process), std::string(event.thread)});
    if (found != lines_.end()) return found->second;
    const std::string_view process = process_of(event);
    Line line;
    if (!process.starts_with("/device:")) return line;
    const auto device = device_of(process);
    const bool works = !event.kernel.empty() || !event.copy.empty() || !event.set.empty();
    line.kind = device && works ? Line::Kind::kStream : Line::Kind::kDerived;
    line.device = device.value_or(0);
    line.stream = parse_id(event.thread).value_or(0);
    return line;
  }

  void read_complete(const XlaEvent& event) {
    const auto start = parse_microseconds(event.start),
               duration = parse_microseconds(event.duration.empty() ? "0" : event.duration);
    if (event.name.empty() || event.start.empty())
      return to_.problem(trace::ProblemKind::kMissingField);
    if (!start || !duration) return to_.problem(trace::ProblemKind::kAbsurdNumber);
    const Line line = line_of(event);
    // All GPUs of a process run the same steps.
    const bool first = devices_.empty() || line.device == *devices_.begin();
    switch (line.kind) {
      case Line::Kind::kStream: return read_device(event, line, *start, *duration);
      case Line::Kind::kSteps:
        if (first) steps_.push_back({fmt::format("step {}", event.name), *start, *duration});
        return;
      case Line::Kind::kModules:
        if (first) modules_.push_back({std::string(event.name), *start, *duration});
        return;
      case Line::Kind::kDerived: return;
      case Line::Kind::kHost: return read_host(event, *start, *duration);
    }
  }

  /// Whether a range of the host is a step: with a number, of one name, and not within another.
  bool marks_step(const XlaEvent& event, Nanoseconds start, Nanoseconds end) {
    if (event.step.empty()) return false;
    if (mark_.empty()) mark_ = event.name;
    Nanoseconds& marked = marked_
                              .try_emplace({std::string(event.process), std::string(event.thread)},
                                           Nanoseconds(INT64_MIN))
                              .first->second;
    if (event.name != mark_ || start < marked) return false;
    marked = end;
    return true;
  }

  void read_host(const XlaEvent& event, Nanoseconds start, Nanoseconds duration) {
    const bool step = marks_step(event, start, start + duration);
    trace::HostOp op{
        .name = to_.name(step ? fmt::format("step {}", event.step) : std::string(event.name)),
        .thread = to_.thread(event.process, event.thread),
        .kind = trace::HostKind::kAnnotation,
        .start = start,
        .duration = duration};
    if (event.name.starts_with('$')) op.kind = trace::HostKind::kFrame;  // "$file.py:12 name"
    const bool call = event.name.starts_with("cu") || event.name.starts_with("hip");
    if (call && !event.correlation.empty()) {
      op.kind = event.name.starts_with("cuda") || event.name.starts_with("hip")
                    ? trace::HostKind::kRuntime
                    : trace::HostKind::kDriver;
      op.correlation = parse_id(event.correlation);
    }
    to_.add(op, op.correlation && starts_device_work(event.name));
  }

  void read_device(const XlaEvent& event, const Line& line, Nanoseconds start,
                   Nanoseconds duration) {
    trace::GpuOp op{.name = to_.name(event.name),
                    .kind = GpuKind::kKernel,
                    .device = line.device,
                    .stream = line.stream,
                    .start = start,
                    .duration = duration,
                    .correlation = parse_id(event.correlation)};
    if (event.name.starts_with("Memcpy")) {
      op.kind = GpuKind::kCopy;
      op.bytes = parse_count(detail(event.copy, "size:"));
      const bool up = event.name == "MemcpyH2D", down = event.name == "MemcpyD2H";
      op.direction = up                          ? CopyDirection::kHostToDevice
                     : down                      ? CopyDirection::kDeviceToHost
                     : event.name == "MemcpyD2D" ? CopyDirection::kDeviceToDevice
                     : event.name == "MemcpyP2P" ? CopyDirection::kPeer
                                                 : CopyDirection::kUnknown;
      std::string_view memory = detail(event.copy, down ? "kind_dst:" : "kind_src:");
      if (memory.empty()) memory = detail(event.copy, "kind:");  // before 2022
      if (up || down)
        op.host_memory = memory == "pinned"     ? HostMemory::kPinned
                         : memory == "pageable" ? HostMemory::kPageable
                                                : HostMemory::kUnknown;
    } else if (event.name.starts_with("Memset")) {
      op.kind = GpuKind::kSet;
      op.bytes = parse_count(detail(event.set, "num_bytes:"));
    } else {
      trace::LaunchShape shape{};
      if (read_extents(detail(event.kernel, "grid:"), shape.grid) &&
          read_extents(detail(event.kernel, "block:"), shape.block)) {
        shape.registers = parse_id(detail(event.kernel, "regs:")).value_or(0);
        shape.shared_bytes = parse_id(detail(event.kernel, "static_shared:")).value_or(0) +
                             parse_id(detail(event.kernel, "dynamic_shared:")).value_or(0);
        op.launch_shape = to_.launch_shape(shape);
      }
      if (const auto collective = trace::collective_from_kernel(event.name))
        op.collective = to_.collective({.kind = *collective});
    }
    to_.add(op);
  }

  trace::Recorder& to_;
  std::map<std::string, std::string, std::less<>> processes_;
  std::map<std::pair<std::string, std::string>, Line> lines_;
  std::set<std::uint16_t> devices_;
  std::string mark_;  ///< the name of the ranges that are steps
  std::map<std::pair<std::string, std::string>, Nanoseconds>
      marked_;  ///< the end of the last, by line
  std::vector<Span> steps_, modules_;
};

}  // namespace

bool names_xla_process(std::string_view name) {
  return name.starts_with("/device:") || name.starts_with("/host:");
}

Status read_jax(ByteSource& source, trace::Recorder& recorder, const Progress& progress) {
  JaxHandler handler(recorder);
  recorder.info().format = "jax";
  const std::string file = recorder.info().source;
  const JsonDamage damage = TRY(read_stream(source, handler, recorder, progress));
  handler.finish();
  if (recorder.gpu_count() == 0)
    return fail_in(file, "has no events on streams of a GPU",
                   "a profile with a process /device:GPU:0 and threads 'Stream #…'");
  recorder.finish();
  report_damage(damage, recorder);
  return {};
}

}  // namespace rehearse::ingest
