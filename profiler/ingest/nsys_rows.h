// The rows of one process in an Nsight Systems export, turned into records.
#pragma once

#include <set>
#include <string>
#include <unordered_map>

#include "profiler/ingest/nsys_tables.h"
#include "profiler/trace/recorder.h"

namespace rehearse::ingest::nsys {

class ProcessRows {
 public:
  /// REQUIRES: all arguments outlive it.
  ProcessRows(sqlite3* db, const Tables& tables, std::int64_t process, trace::Recorder& recorder)
      : db_(db), tables_(tables), process_(process), recorder_(recorder) {}

  /// Finds out which ranges are NCCL's own.
  void read_domains();

  // Each takes a row of its table, with the columns that table_readers() lists for it.
  void read_call(const sqlite::Query& row);
  void read_range(const sqlite::Query& row);
  void read_overhead(const sqlite::Query& row);
  void read_kernel(const sqlite::Query& row);
  void read_copy(const sqlite::Query& row);
  void read_set(const sqlite::Query& row);
  void read_graph(const sqlite::Query& row);
  void read_event(const sqlite::Query& row);
  void read_sync(const sqlite::Query& row);

  /// Text of the export with invalid UTF-8 replaced and counted.
  std::string sound(std::string_view text);

 private:
  struct Call {
    NameId name;
    trace::HostKind kind;
    bool launches;
  };
  struct EventRecord {
    std::optional<std::uint32_t> stream;
    std::optional<std::uint32_t> correlation;
  };
  struct Times {
    Nanoseconds start;
    Nanoseconds duration;
  };

  void add_device_op(const sqlite::Query& row, trace::GpuOp op);
  std::optional<Times> times(const sqlite::Query& row);
  std::optional<trace::ThreadId> thread(std::optional<std::int64_t> global_id);
  std::optional<std::string> string_at(std::int64_t id);
  std::optional<NameId> name(std::optional<std::int64_t> id);
  std::optional<trace::CollectiveId> collective_of(std::string_view range,
                                                   std::optional<std::int64_t> domain);

  sqlite3* db_;
  const Tables& tables_;
  std::int64_t process_;
  trace::Recorder& recorder_;
  std::unordered_map<std::int64_t, std::optional<NameId>> names_;  // by id in StringIds
  std::unordered_map<std::int64_t, std::optional<Call>> calls_;    // by id in StringIds
  std::unordered_map<std::int64_t, trace::ThreadId> threads_;      // by global id
  std::unordered_map<std::int64_t, EventRecord> events_;           // by eventSyncId
  std::set<std::int64_t> nccl_domains_;
};

struct TableReader {
  std::string_view table;
  Columns columns;
  void (ProcessRows::*read)(const sqlite::Query& row);
};

/// The readers of a process, in order: a synchronization needs the records of events.
std::span<const TableReader> table_readers();

}  // namespace rehearse::ingest::nsys
