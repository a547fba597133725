// Recorder: every reader adds the rows of a trace through it.
//
// It interns repeated values, checks each row (and each launch against its device ops), counts the
// problems, and passes the valid rows to a RowSink: memory (TraceRows) or a file (StoreWriter). In
// memory it keeps repeated values, eight bytes per launch call and one per flow arrow, so that a
// recording larger than memory can be read.
#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>

#include "profiler/trace/trace.h"
#include "sim/base/paged_map.h"

namespace rehearse::trace {

/// Receives the rows of one rank, in the order of the recording.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void add(const HostOp&) = 0;
  virtual void add(const GpuOp&) = 0;
  virtual void add(const Sync&) = 0;
  virtual void add(const Dependency&) = 0;
  virtual void add(const PowerReading&) = 0;
};

/// Appends the rows to a Rank. REQUIRES: the rank outlives it.
class RankRows final : public RowSink {
 public:
  explicit RankRows(Rank& rank) : rank_(rank) {}
  void add(const HostOp& op) override { rank_.host_ops.push_back(op); }
  void add(const GpuOp& op) override { rank_.gpu_ops.push_back(op); }
  void add(const Sync& sync) override { rank_.syncs.push_back(sync); }
  void add(const Dependency& dependency) override { rank_.dependencies.push_back(dependency); }
  void add(const PowerReading& reading) override { rank_.power.push_back(reading); }

 private:
  Rank& rank_;
};

/// Whether a time is within 73 years of the Unix epoch. Other values are damaged; within the range,
/// sums and differences of two times cannot overflow.
constexpr bool plausible(Nanoseconds time) {
  constexpr Nanoseconds kLatest{INT64_MAX / 4};
  return -kLatest < time && time < kLatest;
}

/// Whether the name is a step mark of a common framework: "ProfilerStep#12", "step 12",
/// "train_step_12", "step[DECODE bs=32]".
bool is_step_name(std::string_view name);

class Recorder {
 public:
  /// Rows go to `rows`, tables to `rank` (whose rows it does not touch), texts to `names`.
  /// REQUIRES: all of them outlive the recorder.
  Recorder(NamePool& names, Problems& problems, Rank& rank, RowSink& rows);

  /// Sets the function that returns the reader's position in the input; it is called once per kind
  /// of problem.
  void set_place(std::function<std::string()> place) { place_ = std::move(place); }

  RankInfo& info() { return rank_.info; }
  NamePool& names() { return names_; }
  NameId name(std::string_view text);
  ThreadId thread(std::string_view process, std::string_view thread);
  InputsId inputs(std::string_view shapes, std::string_view types);
  LaunchShapeId launch_shape(const LaunchShape& shape);
  CollectiveId collective(const Collective& collective);
  void device(Device device);
  /// Adds a board and returns its index, to which readings refer. Boards are in the order of the
  /// calls.
  std::uint32_t board(Board board);
  std::vector<Board>& boards() { return rank_.boards; }

  /// Each adds one row unless a check drops it, and returns whether it was added. `launches` says
  /// that the call starts device work, so that missing work is noticed.
  bool add(const HostOp& op, bool launches = false);
  bool add(const GpuOp& op);
  bool add(const Sync& sync);
  void add(const Dependency& dependency);
  bool add(const PowerReading& reading);

  /// The start of the call with this correlation id, if it is known by now.
  std::optional<Nanoseconds> call_start(std::uint32_t correlation);

  /// Adds one end of a flow arrow of `family` (interned name). Ends must come in pairs.
  void flow(NameId family, std::uint64_t id, bool starts);
  /// Records that a device op ran at an unknown time: it has no row, but does not count as missing.
  void lost_timing(std::optional<std::uint32_t> correlation);
  void problem(ProblemKind kind, std::uint64_t count = 1);
  void problem(ProblemKind kind, std::string_view place, std::uint64_t count) {
    problems_.add(kind, place, count);
  }

  /// Counts the problems that can be found only when all rows are known.
  void finish();

  std::uint64_t host_count() const { return host_count_; }
  std::uint64_t gpu_count() const { return gpu_count_; }

 private:
  /// State of one correlation id, in eight bytes because every launch has one. While only
  /// device ops are known, the start is their earliest; once the call is known, it is the
  /// call's. It counts from the recording's first start, which sound_times keeps near.
  class Launch {
   public:
    enum Fact : std::int64_t { kCalled = 1, kLaunches = 2, kRan = 4 };
    bool is(Fact fact) const { return (bits_ & fact) != 0; }
    void set(Fact fact) { bits_ |= fact; }
    Nanoseconds start() const { return Nanoseconds(bits_ >> 3); }
    void set_start(Nanoseconds start) { bits_ = (start.count() << 3) | (bits_ & 7); }

   private:
    std::int64_t bits_ = 0;
  };
  struct Flow {
    bool started : 1 = false;
    bool finished : 1 = false;
  };

  bool sound_times(Nanoseconds start, Nanoseconds duration);

  NamePool& names_;
  Problems& problems_;
  Rank& rank_;
  RowSink& rows_;
  std::function<std::string()> place_;
  std::unordered_map<std::uint64_t, ThreadId> thread_ids_;
  std::unordered_map<std::uint64_t, InputsId> input_ids_;
  std::map<LaunchShape, LaunchShapeId> shape_ids_;
  std::map<Collective, CollectiveId> collective_ids_;
  PagedMap<Launch> launches_;
  std::unordered_map<NameId, PagedMap<Flow>> flows_;
  std::optional<Nanoseconds> first_start_;
  std::uint64_t host_count_ = 0;
  std::uint64_t gpu_count_ = 0;
  bool has_steps_ = false;
};

}  // namespace rehearse::trace
