// The tables of an Nsight Systems SQLite export, which differ from version to version.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "sim/sqlite/sqlite.h"

namespace rehearse::ingest::nsys {

inline constexpr std::string_view kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
inline constexpr std::string_view kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
inline constexpr std::string_view kSets = "CUPTI_ACTIVITY_KIND_MEMSET";
inline constexpr std::string_view kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
inline constexpr std::string_view kRuntimeCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
inline constexpr std::string_view kDriverCalls = "CUPTI_ACTIVITY_KIND_DRIVER";
inline constexpr std::string_view kSyncs = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
inline constexpr std::string_view kEvents = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
inline constexpr std::string_view kCuptiOverhead = "CUPTI_ACTIVITY_KIND_OVERHEAD";
inline constexpr std::string_view kOverhead = "PROFILER_OVERHEAD";
inline constexpr std::string_view kRanges = "NVTX_EVENTS";

/// A process with a row in one of these was recorded.
inline constexpr std::array kActivity = {kKernels,      kCopies,      kSets,  kGraphs,
                                         kRuntimeCalls, kDriverCalls, kSyncs, kRanges};

/// Known tables that a replay does not need: counted, not read.
inline constexpr std::array<std::string_view, 12> kIgnored = {
    "OSRT_API",         "CUDNN_EVENTS",           "CUBLAS_EVENTS",
    "MPI_P2P_EVENTS",   "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS",
    "MPI_OTHER_EVENTS", "CUDA_GRAPH_EVENTS",      "CUDA_GRAPH_NODE_EVENTS",
    "SCHED_EVENTS",     "COMPOSITE_EVENTS",       "CUDA_GPU_MEMORY_USAGE_EVENTS"};

using Columns = std::span<const std::string_view>;

class Tables {
 public:
  /// REQUIRES: the database outlives it.
  explicit Tables(sqlite3* db);

  /// Whether there is a table that only such an export has.
  bool are_of_an_export() const;
  bool has(std::string_view table) const { return columns_.contains(table); }
  bool has(std::string_view table, std::string_view column) const;

  /// "SELECT columns FROM table"; columns that the table lacks read as NULL.
  std::string select(std::string_view table, Columns columns) const;
  /// The expression for the process number of a row: bits 24 to 47 of its
  /// global id; -1 if the table or the row has none, NULL if the value is not an id.
  std::string process_of(std::string_view table) const;

 private:
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> columns_;
};

// A column may hold values of any type; these accept whole numbers only.
std::optional<std::int64_t> number(const sqlite::Query& row, int column);
template <class T>
std::optional<T> unsigned_number(const sqlite::Query& row, int column) {
  return row.is_integer(column) ? row.optional<T>(column) : std::nullopt;
}
/// Ids count from 1; 0 means none.
std::optional<std::uint32_t> id_number(const sqlite::Query& row, int column);

}  // namespace rehearse::ingest::nsys
