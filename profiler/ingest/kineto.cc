#include "profiler/ingest/kineto.h"

#include <charconv>

#include "profiler/ingest/device_calls.h"
#include "profiler/ingest/json_stream.h"
#include "profiler/ingest/kineto_event.h"
#include "profiler/ingest/numbers.h"
#include "profiler/trace/collective_names.h"
#include "profiler/trace/shapes.h"

namespace rehearse::ingest {
namespace {

using namespace trace;
using kineto::Event;
using kineto::Kind;

/// "[64, 2, 1]" -> three numbers.
bool parse_triple(std::string_view text, std::uint32_t (&triple)[3]) {
  std::size_t at = 0;
  for (std::uint32_t& extent : triple) {
    while (at < text.size() && (text[at] < '0' || text[at] > '9')) ++at;
    const auto [rest, error] = std::from_chars(text.data() + at, text.data() + text.size(), extent);
    if (error != std::errc{}) return false;
    at = static_cast<std::size_t>(rest - text.data());
  }
  return true;
}

class KinetoHandler final : public JsonHandler {
 public:
  explicit KinetoHandler(Recorder& recorder) : recorder_(recorder) {}

  std::uint64_t events() const { return events_; }

  bool streams(std::string_view key) const override { return key == "traceEvents"; }

  void member(std::string_view key, JsonValue& value) override {
    if (key == "deviceProperties") {
      value.elements([this](JsonValue& device) { read_device(device); });
    } else if (key == "distributedInfo") {
      value.fields([this](std::string_view name, JsonValue& field) {
        if (name == "rank") recorder_.info().rank = parse_id(field.text());
        if (name == "world_size") recorder_.info().world_size = parse_id(field.text());
      });
    } else if (key == "baseTimeNanoseconds") {
      if (const auto base = parse_whole(value.text()); base && plausible(Nanoseconds(*base)))
        recorder_.info().clock_base = Nanoseconds(*base);
    } else if (key == "host_name" || key == "hostname") {
      recorder_.info().host = std::string(value.text());
    }
  }

  bool element(JsonValue& value) override {
    Event event;
    bool whole = true;
    const bool complete = value.fields([&](std::string_view key, JsonValue& field) {
      if (const kineto::Field known = kineto::field_named(key)) {
        event.*known = field.text();
      } else if (key == "args" && field.is_object()) {
        whole = field.fields([&](std::string_view name, JsonValue& argument) {
          if (const kineto::Field used = kineto::argument_named(name))
            event.*used = argument.text();
        });
      }
    });
    if (!complete || !whole) return false;
    ++events_;
    read(event);
    return true;
  }

 private:
  struct Times {
    Nanoseconds start;
    Nanoseconds duration;
  };

  void read_device(JsonValue& value) {
    Device device{.ordinal = 0, .name = ""};
    value.fields([&](std::string_view key, JsonValue& field) {
      if (key == "id") device.ordinal = parse_id(field.text()).value_or(0);
      if (key == "name") device.name = std::string(field.text());
      if (key == "totalGlobalMem")
        if (const auto bytes = parse_count(field.text()))
          device.memory = Bytes::b(static_cast<double>(*bytes));
      if (key == "numSms") device.multiprocessors = parse_id(field.text());
      if (key == "computeMajor") device.compute_major = parse_id(field.text());
      if (key == "computeMinor") device.compute_minor = parse_id(field.text());
    });
    recorder_.device(std::move(device));
  }

  void read(const Event& event) {
    const char phase = event.phase.size() == 1 ? event.phase.front() : '?';
    if (phase == 'X') return read_complete(event);
    if (phase == 's' || phase == 'f' || phase == 't') return read_flow(event, phase);
    if (phase == 'B') return begin_range(event);
    if (phase == 'E') return end_range(event);
    // Metadata, instants, counters and asynchronous spans say nothing about when ops ran.
    if (phase != 'M' && phase != 'i' && phase != 'I')
      recorder_.problem(ProblemKind::kIgnoredCategory);
  }

  void read_complete(const Event& event) {
    const Kind kind = kineto::kind_of(event.category);
    switch (kind) {
      case Kind::kSpan:
      case Kind::kFlow: return;
      case Kind::kIgnored: return recorder_.problem(ProblemKind::kIgnoredCategory);
      case Kind::kUnknown: return recorder_.problem(ProblemKind::kUnknownCategory);
      default: break;
    }
    if (event.name.empty() && kind != Kind::kSync)
      return recorder_.problem(ProblemKind::kMissingField);
    const std::optional<Times> times = times_of(event.start, event.duration);
    if (!times) return;
    switch (kind) {
      case Kind::kKernel: return read_gpu(event, *times, GpuKind::kKernel);
      case Kind::kCopy: return read_gpu(event, *times, GpuKind::kCopy);
      case Kind::kSet: return read_gpu(event, *times, GpuKind::kSet);
      case Kind::kSync: return read_sync(event, *times);
      default: return read_host(event, *times, kind);
    }
  }

  std::optional<Times> times_of(std::string_view start_text, std::string_view duration_text) {
    if (start_text.empty() || duration_text.empty()) {
      recorder_.problem(ProblemKind::kMissingField);
      return std::nullopt;
    }
    const auto start = parse_microseconds(start_text);
    const auto duration = parse_microseconds(duration_text);
    if (!start || !duration) {
      recorder_.problem(ProblemKind::kAbsurdNumber);
      return std::nullopt;
    }
    return Times{*start, *duration};
  }

  /// Events of one thread come in runs.
  ThreadId thread_of(const Event& event) {
    if (!last_thread_ || event.thread != last_thread_text_ || event.process != last_process_text_) {
      last_thread_ = recorder_.thread(event.process, event.thread);
      last_process_text_ = event.process;
      last_thread_text_ = event.thread;
    }
    return *last_thread_;
  }

  void read_host(const Event& event, Times times, Kind kind) {
    HostOp op{.name = recorder_.name(event.name),
              .thread = thread_of(event),
              .kind = HostKind::kOperator,
              .start = times.start,
              .duration = times.duration};
    switch (kind) {
      case Kind::kRuntime: op.kind = HostKind::kRuntime; break;
      case Kind::kDriver: op.kind = HostKind::kDriver; break;
      case Kind::kFrame: op.kind = HostKind::kFrame; break;
      case Kind::kOverhead: op.kind = HostKind::kOverhead; break;
      case Kind::kAnnotation: op.kind = HostKind::kAnnotation; break;
      default:
        if ((event.category == "Operator" || event.category.empty()) &&
            kineto::names_a_range(event.name))
          op.kind = HostKind::kAnnotation;
    }
    if (op.kind == HostKind::kRuntime || op.kind == HostKind::kDriver) {
      op.correlation = parse_id(event.correlation);
      recorder_.add(op, starts_device_work(event.name));
      return;
    }
    if (op.kind == HostKind::kOperator || op.kind == HostKind::kAnnotation) {
      op.sequence = parse_id(event.sequence);
      op.forward_thread = parse_id(event.forward_thread);
      op.record_function = parse_id(event.record_function);
      if (!event.shapes.empty()) op.inputs = recorder_.inputs(event.shapes, event.types);
      op.collective = collective_of(event);
    }
    recorder_.add(op);
  }

  /// The collective that the fields of an event describe, on the host or on the device.
  std::optional<CollectiveId> collective_of(const Event& event) {
    std::optional<CollectiveKind> kind;
    if (!event.collective.empty()) {
      kind = collective_from_framework(event.collective);
    } else if (event.name.starts_with("nccl:") || event.name.starts_with("gloo:")) {
      kind = collective_from_framework(event.name);
    }
    if (!kind) return std::nullopt;
    Collective collective{.kind = *kind, .group_size = parse_id(event.group_size)};
    const auto width = element_bytes(event.dtype);
    collective.bytes_in = product(parse_count(event.elements_in), width);
    collective.bytes_out = product(parse_count(event.elements_out), width);
    if (!collective.bytes_in) collective.bytes_in = tensor_bytes(event.shapes, event.types);
    if (!event.group.empty()) collective.group = recorder_.name(event.group);
    if (!event.group_ranks.empty()) collective.ranks = recorder_.name(event.group_ranks);
    if (!event.dtype.empty()) collective.dtype = recorder_.name(event.dtype);
    return recorder_.collective(collective);
  }

  void read_gpu(const Event& event, Times times, GpuKind kind) {
    GpuOp op{.name = recorder_.name(event.name),
             .kind = kind,
             .start = times.start,
             .duration = times.duration};
    const auto device = parse_id(event.device.empty() ? event.process : event.device);
    const auto stream = stream_of(event.stream.empty() ? event.thread : event.stream);
    if (!device || *device > UINT16_MAX || !stream)
      return recorder_.problem(ProblemKind::kMissingField);
    op.device = static_cast<std::uint16_t>(*device);
    op.stream = *stream;
    op.correlation = parse_id(event.correlation);
    op.bytes = parse_count(event.bytes);
    if (kind == GpuKind::kCopy) kineto::parse_copy_name(event.name, op);
    LaunchShape shape{};
    if (kind == GpuKind::kKernel && parse_triple(event.grid, shape.grid) &&
        parse_triple(event.block, shape.block)) {
      shape.registers = parse_id(event.registers).value_or(0);
      shape.shared_bytes = parse_id(event.shared_memory).value_or(0);
      op.launch_shape = recorder_.launch_shape(shape);
    }
    if (kind == GpuKind::kKernel) {
      op.collective = collective_of(event);
      if (!op.collective)
        if (const auto named = collective_from_kernel(event.name))
          op.collective = recorder_.collective({.kind = *named});
    }
    recorder_.add(op);
  }

  /// "7", or "stream 7" in the 2021 dialect.
  static std::optional<std::uint32_t> stream_of(std::string_view text) {
    if (text.starts_with("stream ")) text.remove_prefix(7);
    return parse_id(text);
  }

  void read_sync(const Event& event, Times times) {
    Sync sync{.kind = SyncKind::kDevice, .start = times.start, .duration = times.duration};
    const std::string_view kind = event.sync_kind.empty() ? event.name : event.sync_kind;
    if (kind == "Stream Sync" || kind == "Stream Synchronize") {
      sync.kind = SyncKind::kStream;
    } else if (kind == "Event Sync" || kind == "Event Synchronize") {
      sync.kind = SyncKind::kEvent;
    } else if (kind == "Stream Wait Event") {
      sync.kind = SyncKind::kStreamWaitEvent;
    } else if (kind != "Context Sync" && kind != "Device Sync" && kind != "Context Synchronize") {
      return recorder_.problem(ProblemKind::kUnknownCategory);
    }
    // "No stream" is written as -1 or as 4294967295; parse_id takes neither.
    sync.correlation = parse_id(event.correlation);
    sync.stream = parse_id(event.stream);
    sync.source_stream = parse_id(event.wait_on_stream);
    sync.event_correlation = parse_id(event.event_correlation);
    recorder_.add(sync);
  }

  void read_flow(const Event& event, char phase) {
    const auto id = parse_count(event.id);
    if (!id) return recorder_.problem(ProblemKind::kMissingField);
    if (phase != 't') recorder_.flow(recorder_.name(event.category), *id, phase == 's');
  }

  // Other writers of the format open and close ranges in two events.
  void begin_range(const Event& event) {
    const auto times = times_of(event.start, "0");
    if (!times || event.name.empty()) return;
    const Kind kind = kineto::kind_of(event.category);
    const bool is_operator = kind == Kind::kOperator && !kineto::names_a_range(event.name);
    open_[thread_of(event)].push_back(
        {.name = recorder_.name(event.name),
         .thread = thread_of(event),
         .kind = is_operator ? HostKind::kOperator : HostKind::kAnnotation,
         .start = times->start,
         .duration = Nanoseconds(0)});
  }

  void end_range(const Event& event) {
    const auto times = times_of(event.start, "0");
    if (!times) return;
    std::vector<HostOp>& open = open_[thread_of(event)];
    if (open.empty()) return recorder_.problem(ProblemKind::kUnbalancedRange);
    HostOp op = open.back();
    open.pop_back();
    op.duration = times->start - op.start;
    recorder_.add(op);
  }

 public:
  void finish() {
    for (const auto& [thread, open] : open_)
      if (!open.empty()) recorder_.problem(ProblemKind::kUnbalancedRange, open.size());
  }

 private:
  Recorder& recorder_;
  std::uint64_t events_ = 0;
  std::unordered_map<ThreadId, std::vector<HostOp>> open_;
  std::optional<ThreadId> last_thread_;
  std::string last_process_text_;
  std::string last_thread_text_;
};

}  // namespace

Status read_kineto(ByteSource& source, Recorder& recorder, const Progress& progress) {
  KinetoHandler handler(recorder);
  recorder.info().format = "kineto";
  const std::string file = recorder.info().source;
  const JsonDamage damage = TRY(read_stream(source, handler, recorder, progress));
  handler.finish();
  if (handler.events() == 0)
    return fail_in(
        file,
        damage.truncated.empty() ? "contains no trace events" : "ends before the first trace event",
        "a Kineto or Chrome trace with a 'traceEvents' array");
  if (recorder.host_count() + recorder.gpu_count() == 0)
    return fail_in(file, "contains no operator, no call and no device work",
                   "a trace with events of phase 'X' and a known category");
  recorder.finish();
  report_damage(damage, recorder);
  return {};
}

}  // namespace rehearse::ingest
