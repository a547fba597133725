// The tables of a store: each column is named once, with the member of a row that it holds. The
// statements that create, write and read the tables follow from this (docs/formats/store.md).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>

#include "profiler/trace/trace.h"
#include "sim/base/result.h"

namespace rehearse::trace {

inline constexpr int kApplicationId = 0x52485253;  // "RHRS", in the header of the file

/// `member`: a pointer to the member, or a function from the row to a reference to it.
template <class Member>
struct Column {
  std::string_view name;
  Member member;

  decltype(auto) of(auto& row) const { return std::invoke(member, row); }
};
template <class Member>
constexpr Column<Member> column(std::string_view name, Member member) {
  return {name, member};
}

template <class Row, class... Members>
struct Table {
  std::string_view name;
  std::string_view keys;  ///< columns before the others: the rank, the index of the row
  Row (*blank)();
  std::tuple<Column<Members>...> columns;
};
template <class Row, class... Members>
constexpr Table<Row, Members...> table(std::string_view name, std::string_view keys, Row (*blank)(),
                                       Column<Members>... columns) {
  return {name, keys, blank, {columns...}};
}

inline constexpr std::string_view kOfRank = "rank_id";
/// Rows of these tables are referred to by their index in the rank.
inline constexpr std::string_view kNumbered = "rank_id, id";

inline constexpr auto kRankTable = table<RankInfo>(
    "rank", "id", [] { return RankInfo{}; }, column("rank", &RankInfo::rank),
    column("world_size", &RankInfo::world_size), column("source", &RankInfo::source),
    column("format", &RankInfo::format), column("host", &RankInfo::host),
    column("clock_base_ns", &RankInfo::clock_base), column("timed", &RankInfo::timed));

inline constexpr auto kThreadTable = table<Thread>(
    "thread", kNumbered,
    [] {
      return Thread{NameId(0), NameId(0)};
    },
    column("process", &Thread::process), column("thread", &Thread::thread));

inline constexpr auto kDeviceTable = table<Device>(
    "device", kOfRank, [] { return Device{}; }, column("ordinal", &Device::ordinal),
    column("name", &Device::name), column("memory_bytes", &Device::memory),
    column("multiprocessors", &Device::multiprocessors),
    column("compute_major", &Device::compute_major),
    column("compute_minor", &Device::compute_minor));

inline constexpr auto kFactTable = table<Fact>(
    "fact", kOfRank, [] { return Fact{}; }, column("key", &Fact::key),
    column("value", &Fact::value));

inline constexpr auto kInputsTable = table<Inputs>(
    "inputs", kNumbered,
    [] {
      return Inputs{NameId(0), NameId(0)};
    },
    column("shapes", &Inputs::shapes), column("types", &Inputs::types));

inline constexpr auto kLaunchShapeTable = table<LaunchShape>(
    "launch_shape", kNumbered, [] { return LaunchShape{}; },
    column(
        "grid_x", [](auto& s) -> auto& { return s.grid[0]; }),
    column(
        "grid_y", [](auto& s) -> auto& { return s.grid[1]; }),
    column(
        "grid_z", [](auto& s) -> auto& { return s.grid[2]; }),
    column(
        "block_x", [](auto& s) -> auto& { return s.block[0]; }),
    column(
        "block_y", [](auto& s) -> auto& { return s.block[1]; }),
    column(
        "block_z", [](auto& s) -> auto& { return s.block[2]; }),
    column("registers", &LaunchShape::registers),
    column("shared_bytes", &LaunchShape::shared_bytes));

inline constexpr auto kCollectiveTable = table<Collective>(
    "collective", kNumbered, [] { return Collective{}; }, column("kind", &Collective::kind),
    column("bytes_in", &Collective::bytes_in), column("bytes_out", &Collective::bytes_out),
    column("group_size", &Collective::group_size), column("group_name", &Collective::group),
    column("ranks", &Collective::ranks), column("dtype", &Collective::dtype),
    column("algorithm", &Collective::algorithm), column("protocol", &Collective::protocol),
    column("channels", &Collective::channels));

inline constexpr auto kBoardTable = table<Board>(
    "board", kNumbered, [] { return Board{}; }, column("uuid", &Board::uuid),
    column("name", &Board::name), column("instance", &Board::instance),
    column("device", &Board::device), column("multiprocessors", &Board::multiprocessors),
    column("all_multiprocessors", &Board::all_multiprocessors));

inline constexpr auto kHostOpTable = table<HostOp>(
    "host_op", kOfRank,
    [] {
      return HostOp{.name = NameId(0),
                    .thread = ThreadId(0),
                    .kind = HostKind::kOperator,
                    .start = Nanoseconds(0),
                    .duration = Nanoseconds(0)};
    },
    column("kind", &HostOp::kind), column("name", &HostOp::name), column("thread", &HostOp::thread),
    column("start_ns", &HostOp::start), column("duration_ns", &HostOp::duration),
    column("correlation", &HostOp::correlation), column("sequence", &HostOp::sequence),
    column("forward_thread", &HostOp::forward_thread),
    column("record_function", &HostOp::record_function), column("inputs", &HostOp::inputs),
    column("collective", &HostOp::collective), column("payload", &HostOp::payload));

inline constexpr auto kGpuOpTable = table<GpuOp>(
    "gpu_op", kOfRank,
    [] {
      return GpuOp{.name = NameId(0),
                   .kind = GpuKind::kKernel,
                   .start = Nanoseconds(0),
                   .duration = Nanoseconds(0)};
    },
    column("kind", &GpuOp::kind), column("name", &GpuOp::name), column("device", &GpuOp::device),
    column("stream", &GpuOp::stream), column("start_ns", &GpuOp::start),
    column("duration_ns", &GpuOp::duration), column("correlation", &GpuOp::correlation),
    column("bytes", &GpuOp::bytes), column("direction", &GpuOp::direction),
    column("host_memory", &GpuOp::host_memory), column("launch_shape", &GpuOp::launch_shape),
    column("collective", &GpuOp::collective),
    column("collective_number", &GpuOp::collective_number));

inline constexpr auto kSyncTable = table<Sync>(
    "sync", kOfRank,
    [] {
      return Sync{.kind = SyncKind::kDevice, .start = Nanoseconds(0), .duration = Nanoseconds(0)};
    },
    column("kind", &Sync::kind), column("start_ns", &Sync::start),
    column("duration_ns", &Sync::duration), column("correlation", &Sync::correlation),
    column("stream", &Sync::stream), column("source_stream", &Sync::source_stream),
    column("event_correlation", &Sync::event_correlation));

inline constexpr auto kDependencyTable = table<Dependency>(
    "dependency", kOfRank, [] { return Dependency{}; },
    column(
        "from_gpu", [](auto& d) -> auto& { return d.from.on_gpu; }),
    column(
        "from_row", [](auto& d) -> auto& { return d.from.index; }),
    column(
        "to_gpu", [](auto& d) -> auto& { return d.to.on_gpu; }),
    column(
        "to_row", [](auto& d) -> auto& { return d.to.index; }));

inline constexpr auto kPowerTable = table<PowerReading>(
    "power", kOfRank, [] { return PowerReading{.board = 0, .time = Nanoseconds(0)}; },
    column("board", &PowerReading::board), column("time_ns", &PowerReading::time),
    column("power_mw", &PowerReading::power), column("energy_mj", &PowerReading::energy),
    column("core_mhz", &PowerReading::core_mhz), column("memory_mhz", &PowerReading::memory_mhz),
    column("celsius", &PowerReading::celsius),
    column("clock_reasons", &PowerReading::clock_reasons));

inline constexpr auto kTimingTable = table<OpTiming>(
    "op_cost", "", [] { return OpTiming{}; }, column("op", &OpTiming::op),
    column("shape", &OpTiming::shape), column("dtype", &OpTiming::dtype),
    column("layout", &OpTiming::layout), column("epilogue", &OpTiming::epilogue),
    column("cold", &OpTiming::cold), column("device", &OpTiming::device),
    column("multiprocessors", &OpTiming::multiprocessors),
    column("partition", &OpTiming::partition),
    column("memory_clock_hz", &OpTiming::memory_clock_hz),
    column("libraries", &OpTiming::libraries), column("median_ns", &OpTiming::median),
    column("mean_ns", &OpTiming::mean), column("min_ns", &OpTiming::min),
    column("p10_ns", &OpTiming::p10), column("p90_ns", &OpTiming::p90),
    column("samples", &OpTiming::samples), column("half_width", &OpTiming::half_width),
    column("dropped", &OpTiming::dropped), column("capped", &OpTiming::capped),
    column("sm_clock_hz", &OpTiming::sm_clock_hz), column("date", &OpTiming::date),
    column("note", &OpTiming::note));

/// Calls `visit` with each table that a rank has few rows of, and with its rows: a member of Rank, or
/// a function to it. References point to rows of an earlier table.
void visit_small_tables(const auto& visit) {
  visit(kThreadTable, &Rank::threads);
  visit(kDeviceTable, &Rank::devices);
  visit(
      kFactTable, [](auto& rank) -> auto& { return rank.info.facts; });
  visit(kInputsTable, &Rank::inputs);
  visit(kLaunchShapeTable, &Rank::launch_shapes);
  visit(kCollectiveTable, &Rank::collectives);
  visit(kBoardTable, &Rank::boards);
}

/// "kind, name, start_ns"
template <class Row, class... Members>
std::string column_names(const Table<Row, Members...>& table) {
  std::string names;
  std::apply(
      [&](const auto&... column) {
        ((names += (names.empty() ? "" : ", ") + std::string(column.name)), ...);
      },
      table.columns);
  return names;
}

/// The statements that make an empty store.
std::string schema();

// --- The checksum at the end of a store, after the pages of SQLite, which ignores it.

/// Appends the checksum of all bytes of a file that is otherwise complete.
Status seal(const std::filesystem::path& path);

enum class Seal { kNone, kIntact, kBroken };
/// Whether the file ends with the checksum of the bytes before. kBroken also if it cannot be read.
Seal seal_of(const std::filesystem::path& path);

}  // namespace rehearse::trace
