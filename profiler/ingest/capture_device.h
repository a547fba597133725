// The device tables of a capture: kernels, copies, calls, synchronisations and the profiler's own
// overhead, turned into rows of the trace.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "profiler/ingest/capture_collectives.h"
#include "profiler/ingest/capture_texts.h"
#include "profiler/trace/recorder.h"
#include "sim/base/paged_map.h"

namespace rehearse::ingest {

class CaptureDevice {
 public:
  /// REQUIRES: all arguments outlive it.
  CaptureDevice(trace::Recorder& recorder, CaptureTexts& texts, const CaptureClock& clock,
                CaptureCollectives& collectives)
      : recorder_(recorder), texts_(texts), clock_(clock), nccl_(collectives) {}

  /// Reads the records of a block. False if it does not read their table.
  bool read(const capture::RecordsBlock& block);
  /// Call it when all threads have been written out once more since the last call.
  void turn();
  void finish();

 private:
  struct Call {
    trace::HostKind kind;
    bool launches;
  };
  struct Event {
    std::uint64_t context;
    std::uint64_t stream;
    std::optional<std::uint32_t> correlation;
  };
  struct DriverCall {
    trace::HostOp op;
    bool launches;
  };
  struct Allocation {
    Nanoseconds time;
    std::int64_t bytes;  ///< negative if freed
  };
  struct Span {
    Nanoseconds start;
    Nanoseconds duration;
  };

  // One for each table, found by the type of its record.
  void read(const capture::KernelRecord& record);
  void read(const capture::CopyRecord& record);
  void read(const capture::SetRecord& record);
  void read(const capture::CallRecord& record);
  void read(const capture::SyncRecord& record);
  void read(const capture::EventRecord& record);
  void read(const capture::GraphLaunchRecord& record);
  void read(const capture::MemoryRecord& record);
  void read(const capture::JitRecord& record);
  void read(const capture::OverheadRecord& record);
  void read(const capture::DeviceRecord& record);
  void read(const capture::ContextRecord& record);
  void read(const capture::FactRecord& record);
  template <class Record>
  bool read_all(const capture::RecordsBlock& block);

  /// A device op from the fields that all such records share.
  template <class Record>
  void add(const Record& record, trace::GpuOp op);
  /// Returns nothing, and counts a problem, if the times were lost or are damaged.
  std::optional<Span> span(std::uint64_t start, std::uint64_t end, bool may_be_empty);
  std::optional<std::uint32_t> stream(std::uint64_t device, std::uint64_t context,
                                      std::uint64_t stream);
  std::optional<trace::CollectiveId> collective_of(NameId kernel);
  void add(trace::Sync sync, const capture::SyncRecord& record);
  void settle(std::vector<DriverCall>& calls);
  void settle(std::vector<capture::SyncRecord>& syncs);
  void fact(std::string key, std::string value);
  void report_memory();

  trace::Recorder& recorder_;
  CaptureTexts& texts_;
  const CaptureClock& clock_;
  CaptureCollectives& nccl_;
  std::unordered_map<NameId, std::optional<trace::CollectiveId>> collectives_;  ///< by kernel
  std::unordered_map<NameId, bool> launches_;                                   ///< by call
  PagedMap<bool> runtime_;  ///< by correlation: whether a runtime call has it
  // Rows that wait: driver calls may be part of runtime calls that come later, and synchronizations
  // may name later events.
  std::vector<DriverCall> young_calls_, old_calls_;
  std::vector<capture::SyncRecord> young_syncs_, old_syncs_;
  std::unordered_map<std::uint64_t, Event> instants_;  ///< by number of the recording of an event
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<Event>> events_;  ///< by context
  std::map<std::uint64_t, std::uint64_t> device_of_context_;
  /// By device and stream number: the context that has that number, and the numbers that other
  /// streams were given.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> context_of_stream_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, std::uint32_t> streams_;
  std::set<std::uint64_t> devices_;
  std::map<std::uint64_t, std::vector<Allocation>> memory_;  ///< by device
  std::unordered_map<std::uint64_t, std::uint64_t> taken_;   ///< bytes by address
  std::uint64_t compilations_ = 0;
  Nanoseconds compiling_{0};
};

}  // namespace rehearse::ingest
