#include "tests/support/synthetic_job.h"

#include <algorithm>
#include <map>
#include <random>

#include <fmt/core.h>

#include "tests/support/capture_builder.h"

namespace rehearse::test {
namespace {

using namespace trace;

constexpr std::int64_t kBase = 1'700'000'000'000'000'000;
constexpr int kMain = 70, kAutograd = 80;
constexpr std::uint32_t kCompute = 7, kReduction = 20;
constexpr const char* kKernel = "void at::native::kernel<float>(float*, int)";
constexpr const char* kMangled = "_ZN2at6native6kernelIfEEvPT_i";

/// Executes the program and records what a recorder would.
class Machine {
 public:
  explicit Machine(const SyntheticJob& job) : job_(job), random_(job.seed) {
    Rank& rank = trace_.ranks.emplace_back();
    rank.info = {
        .source = "job", .format = "made", .host = "host", .clock_base = Nanoseconds(kBase)};
    for (const int thread : {kMain, kAutograd})
      rank.threads.push_back(
          {trace_.names.intern("10"), trace_.names.intern(std::to_string(thread))});
  }

  Trace play() {
    for (int step = 1; step <= job_.steps; ++step) {
      const std::size_t mark = open(fmt::format("ProfilerStep#{}", step), HostKind::kAnnotation);
      play_step();
      close(mark);
      if (!job_.step_marks && job_.operators) drop_.push_back(mark);
      work(10);
    }
    std::sort(drop_.begin(), drop_.end());
    for (std::size_t k = drop_.size(); k-- > 0;)
      rank().host_ops.erase(rank().host_ops.begin() + static_cast<std::ptrdiff_t>(drop_[k]));
    return std::move(trace_);
  }

 private:
  Rank& rank() { return trace_.ranks[0]; }

  /// Host work of about this many microseconds on the current thread.
  void work(double us) {
    now_ += static_cast<std::int64_t>(us * std::uniform_real_distribution<>(800, 1200)(random_));
  }
  std::int64_t device_time(double us) {
    return static_cast<std::int64_t>(us * std::uniform_real_distribution<>(900, 1100)(random_));
  }

  std::size_t open(const std::string& name, HostKind kind) {
    rank().host_ops.push_back({.name = trace_.names.intern(name),
                               .thread = ThreadId(thread_ == kMain ? 0 : 1),
                               .kind = kind,
                               .start = Nanoseconds(now_),
                               .duration = Nanoseconds(0)});
    return rank().host_ops.size() - 1;
  }
  void close(std::size_t op) {
    HostOp& host = rank().host_ops[op];
    host.duration = Nanoseconds(now_) - host.start;
    if (host.kind != HostKind::kRuntime && !job_.operators) drop_.push_back(op);
  }
  std::size_t open_operator(const std::string& name, const std::string& shapes) {
    const std::size_t op = open(name, HostKind::kOperator);
    HostOp& host = rank().host_ops[op];
    host.record_function = ++functions_;
    if (!shapes.empty()) host.inputs = inputs(shapes);
    work(3);
    return op;
  }
  InputsId inputs(const std::string& shapes) {
    const Inputs wanted{trace_.names.intern(shapes), trace_.names.intern("")};
    auto& all = rank().inputs;
    const auto at = std::find(all.begin(), all.end(), wanted);
    const auto index = static_cast<std::size_t>(at - all.begin());
    if (at == all.end()) all.push_back(wanted);
    return InputsId(index);
  }

  std::uint32_t call(const std::string& name, double us) {
    const std::size_t op = open(name, HostKind::kRuntime);
    rank().host_ops[op].correlation = ++correlation_;
    work(us);
    close(op);
    return correlation_;
  }

  /// A device op that a call starts.
  GpuOp& launch(const std::string& call_name, GpuOp op, double us) {
    const std::int64_t called = now_;
    op.correlation = call(call_name, 4);
    std::int64_t& free = free_[op.stream];
    const std::int64_t start = std::max({called + 8000, free + 1000, allowed_[op.stream]});
    op.start = Nanoseconds(start);
    op.duration = Nanoseconds(device_time(us));
    free = start + op.duration.count();
    rank().gpu_ops.push_back(op);
    work(2);
    return rank().gpu_ops.back();
  }
  void kernel(const std::string& name, double us, std::uint32_t stream = kCompute) {
    GpuOp op{.name = trace_.names.intern(name),
             .kind = GpuKind::kKernel,
             .stream = stream,
             .start = Nanoseconds(0),
             .duration = Nanoseconds(0)};
    op.launch_shape = LaunchShapeId(0);
    if (rank().launch_shapes.empty())
      rank().launch_shapes.push_back({{8, 1, 1}, {128, 1, 1}, 32, 48});
    launch("cudaLaunchKernel", op, us);
  }

  /// `later` waits for the work that is on `earlier` now.
  void stream_wait(std::uint32_t earlier, std::uint32_t later) {
    const std::uint32_t recorded = call("cudaEventRecordWithFlags", 2);
    const std::int64_t at = now_;
    const std::uint32_t waited = call("cudaStreamWaitEvent", 2);
    rank().syncs.push_back({.kind = SyncKind::kStreamWaitEvent,
                            .start = Nanoseconds(at),
                            .duration = Nanoseconds(now_ - at),
                            .correlation = waited,
                            .stream = later,
                            .source_stream = earlier,
                            .event_correlation = recorded});
    allowed_[later] = std::max(allowed_[later], free_[earlier]);
  }

  void play_step() {
    const std::size_t batch = open_operator("aten::copy_", "[[32, 64], [32, 64], []]");
    launch("cudaMemcpyAsync",
           {.name = trace_.names.intern("Memcpy HtoD (Pinned -> Device)"),
            .kind = GpuKind::kCopy,
            .direction = CopyDirection::kHostToDevice,
            .host_memory = HostMemory::kPinned,
            .stream = kCompute,
            .start = Nanoseconds(0),
            .duration = Nanoseconds(0),
            .bytes = 8192},
           20);
    close(batch);
    const std::uint32_t first = sequence_ + 1;
    for (int layer = 0; layer < job_.layers; ++layer) {
      const std::size_t module = open(fmt::format("layers.{}", layer), HostKind::kAnnotation);
      work(5);
      const std::size_t outer = open_operator("aten::linear", "[[32, 64], [64, 64], [64]]");
      const std::size_t inner = open_operator("aten::addmm", "[[64], [32, 64], [64, 64], [], []]");
      numbered(inner, ++sequence_, 0);
      kernel("sgemm_128x64", 60);
      close(inner);
      close(outer);
      kernel(kKernel, 15);
      close(module);
    }
    backward(first);
    const std::size_t optimizer = open("Optimizer.step#SGD.step", HostKind::kAnnotation);
    work(5);
    stream_wait(kReduction, kCompute);
    const std::size_t update = open_operator("aten::_foreach_add_", "[[], [], []]");
    kernel("multi_tensor_apply_kernel", 30);
    close(update);
    const std::size_t zero = open_operator("aten::zero_", "[[64, 64]]");
    launch("cudaMemsetAsync",
           {.name = trace_.names.intern("Memset (Device)"),
            .kind = GpuKind::kSet,
            .stream = kCompute,
            .start = Nanoseconds(0),
            .duration = Nanoseconds(0),
            .bytes = 16384},
           3);
    close(zero);
    close(optimizer);
    wait_device();
  }

  void backward(std::uint32_t first) {
    work(30);
    thread_ = kAutograd;
    for (int layer = job_.layers - 1; layer >= 0; --layer) {
      const std::size_t engine =
          open_operator("autograd::engine::evaluate_function: AddmmBackward0", "");
      const std::size_t node = open_operator("AddmmBackward0", "[[32, 64]]");
      numbered(node, first + static_cast<std::uint32_t>(layer), kMain);
      const std::size_t product = open_operator("aten::mm", "[[64, 32], [32, 64]]");
      kernel("sgemm_128x64", 110);
      close(product);
      close(node);
      close(engine);
      stream_wait(kCompute, kReduction);
      kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 70, kReduction);
    }
    work(20);
    thread_ = kMain;
    work(30);
  }

  void numbered(std::size_t op, std::uint32_t sequence, std::uint32_t forward) {
    rank().host_ops[op].sequence = sequence;
    rank().host_ops[op].forward_thread = forward;
  }

  void wait_device() {
    const std::size_t op = open("cudaDeviceSynchronize", HostKind::kRuntime);
    rank().host_ops[op].correlation = ++correlation_;
    const std::int64_t start = now_;
    now_ = std::max(now_ + 3000, std::max(free_[kCompute], free_[kReduction]) + 6000);
    close(op);
    rank().syncs.push_back({.kind = SyncKind::kDevice,
                            .start = Nanoseconds(start),
                            .duration = Nanoseconds(now_ - start),
                            .correlation = correlation_});
    work(8);
  }

  const SyntheticJob& job_;
  std::mt19937_64 random_;
  Trace trace_;
  int thread_ = kMain;
  std::int64_t now_ = 1000;
  std::map<std::uint32_t, std::int64_t> free_, allowed_;  // by stream
  std::uint32_t correlation_ = 0, sequence_ = 0, functions_ = 0;
  std::vector<std::size_t> drop_;
};

std::string microseconds(Nanoseconds time) {
  return fmt::format("{}.{:03}", time.count() / 1000, time.count() % 1000);
}

bool is_call(const HostOp& op) { return op.kind == HostKind::kRuntime; }

}  // namespace

Trace make_job(const SyntheticJob& job) { return Machine(job).play(); }

std::string as_kineto(const Trace& trace) {
  const Rank& rank = trace.ranks[0];
  std::string events;
  const auto event = [&](std::string_view category, std::string_view name, std::string_view process,
                         std::string_view thread, Nanoseconds start, Nanoseconds duration,
                         const std::string& args) {
    events += fmt::format(
        R"({}{{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
        events.empty() ? "" : ",\n", category, name, process, thread, microseconds(start),
        microseconds(duration), args);
  };
  for (const HostOp& op : rank.host_ops) {
    std::string args;
    const auto add = [&](const std::string& text) { args += (args.empty() ? "" : ",") + text; };
    if (op.correlation) add(fmt::format(R"("correlation":{})", *op.correlation));
    if (op.sequence) add(fmt::format(R"("Sequence number":{})", *op.sequence));
    if (op.forward_thread) add(fmt::format(R"("Fwd thread id":{})", *op.forward_thread));
    if (op.record_function) add(fmt::format(R"("Record function id":{})", *op.record_function));
    if (op.inputs)
      add(fmt::format(R"("Input Dims":{})", trace.names[rank.inputs[op.inputs->index()].shapes]));
    const Thread& thread = rank.threads[op.thread.index()];
    event(is_call(op)                      ? "cuda_runtime"
          : op.kind == HostKind::kOperator ? "cpu_op"
                                           : "user_annotation",
          trace.names[op.name], trace.names[thread.process], trace.names[thread.thread], op.start,
          op.duration, args);
  }
  for (const GpuOp& op : rank.gpu_ops) {
    std::string args =
        fmt::format(R"("device":0,"stream":{},"correlation":{})", op.stream, *op.correlation);
    if (op.bytes) args += fmt::format(R"(,"bytes":{})", *op.bytes);
    if (op.launch_shape) {
      const LaunchShape& s = rank.launch_shapes[op.launch_shape->index()];
      args += fmt::format(R"(,"grid":[{},{},{}],"block":[{},{},{}])", s.grid[0], s.grid[1],
                          s.grid[2], s.block[0], s.block[1], s.block[2]);
      args += fmt::format(R"(,"registers per thread":{},"shared memory":{})", s.registers,
                          s.shared_bytes);
    }
    event(op.kind == GpuKind::kKernel ? "kernel"
          : op.kind == GpuKind::kCopy ? "gpu_memcpy"
                                      : "gpu_memset",
          trace.names[op.name], "0", std::to_string(op.stream), op.start, op.duration, args);
  }
  for (const Sync& sync : rank.syncs) {
    const bool waits = sync.kind == SyncKind::kStreamWaitEvent;
    std::string args = fmt::format(R"("cuda_sync_kind":"{}","correlation":{})",
                                   waits ? "Stream Wait Event" : "Context Sync", *sync.correlation);
    if (waits)
      args +=
          fmt::format(R"(,"stream":{},"wait_on_stream":{},"wait_on_cuda_event_record_corr_id":{})",
                      *sync.stream, *sync.source_stream, *sync.event_correlation);
    event("cuda_sync", "sync", "0", "0", sync.start, sync.duration, args);
  }
  return fmt::format(
      R"({{"schemaVersion":1,"baseTimeNanoseconds":{},"host_name":"host","traceEvents":[{}]}})",
      rank.info.clock_base.count(), events);
}

namespace {

/// In the format of emit_nvtx.
std::string range_text(const Trace& trace, const HostOp& op) {
  std::string text(trace.names[op.name]);
  if (op.sequence) text += fmt::format(", seq = {}", *op.sequence);
  if (op.record_function) text += fmt::format(", op_id = {}", *op.record_function);
  if (op.inputs)
    text +=
        fmt::format(", sizes = {}", trace.names[trace.ranks[0].inputs[op.inputs->index()].shapes]);
  return text;
}

class CaptureWriter {
 public:
  explicit CaptureWriter(const Trace& trace)
      : trace_(trace), base_(static_cast<std::uint64_t>(trace.ranks[0].info.clock_base.count())) {}

  std::string write() {
    out_.process({.host = "host", .process = 10, .realtime_ns = base_, .monotonic_ns = 1});
    // A flush for each fifth of the recording, thread by thread.
    const Rank& rank = trace_.ranks[0];
    Nanoseconds last(0);
    for (const HostOp& op : rank.host_ops) last = std::max(last, op.end());
    for (int flush = 1; flush <= 5; ++flush) {
      const Nanoseconds until(flush == 5 ? INT64_MAX : last.count() * flush / 5);
      for (const int thread : {kAutograd, kMain}) write_thread(thread, until);
      write_device(until);
      flushed_ = until;
      const auto now = static_cast<std::uint64_t>(flush == 5 ? last.count() : until.count());
      out_.clock(base_ + now, 1 + now);
    }
    return out_.trailer(0, 0).bytes();
  }

 private:
  std::uint64_t text(const std::string& content) {
    const auto [at, is_new] =
        texts_.try_emplace(content, static_cast<std::uint32_t>(texts_.size() + 1));
    if (is_new) out_.text(at->second, content);
    return at->second;
  }
  std::uint64_t time(Nanoseconds t) const { return base_ + static_cast<std::uint64_t>(t.count()); }
  bool due(Nanoseconds end, Nanoseconds until) const { return end > flushed_ && end <= until; }

  template <class Record>
  void records(const std::vector<Record>& all) {
    for (std::size_t at = 0; at < all.size(); at += 256)
      out_.records<Record>(
          99, {all.begin() + static_cast<std::ptrdiff_t>(at),
               all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), at + 256))});
  }

  /// Ranges in the order of their ends, and runtime calls with the driver calls inside them.
  void write_thread(int thread, Nanoseconds until) {
    const Rank& rank = trace_.ranks[0];
    std::vector<capture::Row> rows;
    std::vector<capture::CallRecord> calls;
    for (const HostOp& op : rank.host_ops) {
      if (trace_.names[rank.threads[op.thread.index()].thread] != std::to_string(thread) ||
          !due(op.end(), until))
        continue;
      if (!is_call(op)) {
        rows.push_back({.time = time(op.end()),
                        .span = static_cast<std::uint64_t>(op.duration.count()),
                        .text = static_cast<std::uint32_t>(text(range_text(trace_, op)))});
        continue;
      }
      const std::string name(trace_.names[op.name]);
      capture::CallRecord call{.name = text(name),
                               .start = time(op.start),
                               .end = time(op.end()),
                               .thread = static_cast<std::uint64_t>(thread),
                               .correlation = *op.correlation,
                               .driver = 0,
                               .result = 0};
      capture::CallRecord inner = call;
      inner.name = text("cu" + name.substr(4));
      ++inner.start;
      --inner.end;
      inner.driver = 1;
      calls.push_back(inner);
      calls.push_back(call);
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
    for (std::size_t at = 0; at < rows.size(); at += 256)
      out_.rows(static_cast<std::uint32_t>(thread),
                {rows.begin() + static_cast<std::ptrdiff_t>(at),
                 rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), at + 256))});
    records(calls);
  }

  void write_device(Nanoseconds until) {
    const Rank& rank = trace_.ranks[0];
    std::vector<capture::KernelRecord> kernels;
    std::vector<capture::CopyRecord> copies;
    std::vector<capture::SetRecord> sets;
    std::vector<capture::SyncRecord> syncs;
    std::vector<capture::EventRecord> events;
    for (const GpuOp& op : rank.gpu_ops) {
      if (!due(op.end(), until)) continue;
      const std::uint64_t start = time(op.start), end = time(op.end());
      const std::string name(trace_.names[op.name]);
      if (op.kind == GpuKind::kKernel) {
        const LaunchShape& s = rank.launch_shapes[op.launch_shape->index()];
        capture::KernelRecord kernel{};
        kernel.name = text(name == kKernel ? kMangled : name);
        kernel.start = start;
        kernel.end = end;
        kernel.context = 1;
        kernel.stream = op.stream;
        kernel.correlation = *op.correlation;
        kernel.grid_x = s.grid[0];
        kernel.grid_y = s.grid[1];
        kernel.grid_z = s.grid[2];
        kernel.block_x = s.block[0];
        kernel.block_y = s.block[1];
        kernel.block_z = s.block[2];
        kernel.registers = s.registers;
        kernel.dynamic_shared = s.shared_bytes;
        kernels.push_back(kernel);
      } else if (op.kind == GpuKind::kCopy) {
        capture::CopyRecord copy{};
        copy.start = start;
        copy.end = end;
        copy.bytes = *op.bytes;
        copy.context = 1;
        copy.stream = op.stream;
        copy.correlation = *op.correlation;
        copy.direction = 1;
        copy.from = 2;
        copy.to = 3;
        copies.push_back(copy);
      } else {
        capture::SetRecord set{};
        set.start = start;
        set.end = end;
        set.bytes = *op.bytes;
        set.context = 1;
        set.stream = op.stream;
        set.correlation = *op.correlation;
        set.memory = 3;
        sets.push_back(set);
      }
    }
    for (const Sync& sync : rank.syncs) {
      if (!due(sync.start + sync.duration, until)) continue;
      capture::SyncRecord record{};
      record.start = time(sync.start);
      record.end = time(sync.start + sync.duration);
      record.type = sync.kind == SyncKind::kStreamWaitEvent ? 2 : 4;
      record.correlation = *sync.correlation;
      record.context = 1;
      record.stream = sync.stream.value_or(0);
      if (sync.event_correlation) {
        record.event = 5;
        record.event_instant = ++instants_;
        events.push_back({.correlation = *sync.event_correlation,
                          .context = 1,
                          .stream = *sync.source_stream,
                          .event = 5,
                          .instant = instants_});
      }
      syncs.push_back(record);
    }
    records(kernels);
    records(copies);
    records(sets);
    records(syncs);
    records(events);
  }

  const Trace& trace_;
  std::uint64_t base_;
  CaptureBuilder out_;
  std::map<std::string, std::uint32_t> texts_;
  Nanoseconds flushed_{0};
  std::uint64_t instants_ = 0;
};

}  // namespace

std::string as_capture(const Trace& trace) { return CaptureWriter(trace).write(); }

}  // namespace rehearse::test
