#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>
#include <sqlite3.h>

#include "profiler/trace/store.h"
#include "profiler/trace/store_tables.h"
#include "sim/sqlite/sqlite.h"

namespace rehearse::trace {
namespace {

using namespace sqlite;

template <class Enum>
constexpr std::size_t kCount = 0;
template <>
constexpr std::size_t kCount<HostKind> = static_cast<std::size_t>(HostKind::kOverhead) + 1;
template <>
constexpr std::size_t kCount<GpuKind> = static_cast<std::size_t>(GpuKind::kSet) + 1;
template <>
constexpr std::size_t kCount<CopyDirection> = static_cast<std::size_t>(CopyDirection::kHostToHost) +
                                              1;
template <>
constexpr std::size_t kCount<HostMemory> = static_cast<std::size_t>(HostMemory::kPinned) + 1;
template <>
constexpr std::size_t kCount<SyncKind> = static_cast<std::size_t>(SyncKind::kStreamWaitEvent) + 1;
template <>
constexpr std::size_t kCount<CollectiveKind> = kCollectiveNames.size();

/// Reads the tables of a store; refuses indices that point nowhere, so that a damaged file cannot
/// make later code read outside its tables.
class StoreReader {
 public:
  StoreReader(sqlite3* db, Trace& trace) : db_(db), trace_(trace) {}

  bool read() {
    if (!read_names() || !read_ranks()) return false;
    bool ok = true;
    // Stores written before recorders said facts lack their table.
    visit_small_tables([&](const auto& table, const auto& rows) {
      ok = ok && ((table.name == kFactTable.name && !exists(table.name)) || read_rows(table, rows));
    });
    // Those written before operations were measured by themselves lack op_cost.
    return ok && read_rows(kHostOpTable, &Rank::host_ops) &&
           read_rows(kGpuOpTable, &Rank::gpu_ops) && read_rows(kSyncTable, &Rank::syncs) &&
           read_rows(kDependencyTable, &Rank::dependencies) && read_problems() &&
           read_rows(kPowerTable, &Rank::power) && (!exists(kTimingTable.name) || read_timings());
  }
  const std::string& why() const { return why_; }

 private:
  bool bad(std::string why) {
    why_ = std::move(why);
    return false;
  }
  bool done(const Query& query, std::string_view table) {
    return query.ok() || bad(fmt::format("table {}: {}", table, sqlite3_errmsg(db_)));
  }
  bool exists(std::string_view table) {
    return Query(db_,
                 fmt::format("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{}'",
                             table))
        .next();
  }

  // The table that an id refers to.
  std::size_t size_of(const Rank*, NameId) const { return trace_.names.size(); }
  static std::size_t size_of(const Rank* rank, ThreadId) { return rank->threads.size(); }
  static std::size_t size_of(const Rank* rank, InputsId) { return rank->inputs.size(); }
  static std::size_t size_of(const Rank* rank, LaunchShapeId) { return rank->launch_shapes.size(); }
  static std::size_t size_of(const Rank* rank, CollectiveId) { return rank->collectives.size(); }

  template <class Tag>
  bool get(const Query& query, int column, const Rank* rank, Id<Tag>& to) const {
    const auto index = query.optional<std::uint32_t>(column);
    if (!index || *index >= size_of(rank, to)) return false;
    to = Id<Tag>(*index);
    return true;
  }
  template <class T>
  requires(std::is_unsigned_v<T> ||
           std::is_enum_v<T>) static bool get(const Query& query, int column, const Rank*, T& to) {
    using Number = typename std::conditional_t<std::is_enum_v<T>, std::type_identity<std::uint8_t>,
                                               std::type_identity<T>>::type;
    const auto value = query.optional<Number>(column);
    if constexpr (std::is_enum_v<T>)
      if (value && *value >= kCount<T>) return false;
    if (value) to = static_cast<T>(*value);
    return value.has_value();
  }
  static bool get(const Query& query, int column, const Rank*, bool& to) {
    to = query.integer(column) != 0;
    return true;
  }
  static bool get(const Query& query, int column, const Rank*, Nanoseconds& to) {
    to = Nanoseconds(query.integer(column));
    return plausible(to);
  }
  static bool get(const Query& query, int column, const Rank*, double& to) {
    to = query.real(column);
    return std::isfinite(to) && to >= 0;
  }
  static bool get(const Query& query, int column, const Rank*, Seconds& to) {
    const double ns = query.real(column);
    to = Seconds::ns(ns);
    return std::isfinite(ns) && ns >= 0;
  }
  static bool get(const Query& query, int column, const Rank*, std::string& to) {
    to = query.text(column);
    return true;
  }
  /// A value that is out of range counts as absent.
  template <class T>
  bool get(const Query& query, int column, const Rank* rank, std::optional<T>& to) const {
    if constexpr (std::is_constructible_v<T, std::uint32_t>) {
      T value(0U);
      if (get(query, column, rank, value)) to = value;
    } else if (const auto whole = query.optional<std::uint64_t>(column)) {
      const auto number = static_cast<double>(*whole);
      if constexpr (std::is_same_v<T, Bytes>) to = Bytes::b(number);
      if constexpr (std::is_same_v<T, Watts>) to = Watts::w(number * 1e-3);
      if constexpr (std::is_same_v<T, Joules>) to = Joules::j(number * 1e-3);
    }
    return true;
  }

  /// The members of a row, from a column on.
  template <class Row, class... Members>
  bool fill(const Query& query, int at, const Table<Row, Members...>& table, const Rank* rank,
            Row& row) const {
    const bool ok = std::apply(
        [&](const auto&... column) { return (get(query, at++, rank, column.of(row)) && ...); },
        table.columns);
    if constexpr (requires { row.duration; })
      if (row.duration < Nanoseconds(0)) return false;
    return ok && is_sound(rank, row);
  }
  static bool is_sound(const Rank*, const auto&) { return true; }
  static bool is_sound(const Rank* rank, const PowerReading& r) {
    return r.board < rank->boards.size();
  }
  static bool is_sound(const Rank* rank, const Dependency& d) {
    const auto is_there = [&](const RowRef& row) {
      return row.index < (row.on_gpu ? rank->gpu_ops.size() : rank->host_ops.size());
    };
    return is_there(d.from) && is_there(d.to);
  }
  static bool is_sound(const Rank*, const OpTiming& t) { return t.median > Seconds::s(0); }

  bool read_names() {
    Query query(db_, "SELECT id, text FROM name ORDER BY id");
    while (query.next()) {
      if (query.integer(0) != static_cast<std::int64_t>(trace_.names.size()))
        return bad("table name: ids are not dense");
      if (trace_.names.intern(query.text(1)).index() != query.integer(0))
        return bad("table name: a text appears twice");
    }
    return done(query, "name");
  }

  bool read_ranks() {
    Query query(db_, fmt::format("SELECT id, {} FROM rank ORDER BY id", column_names(kRankTable)));
    while (query.next()) {
      if (query.integer(0) != static_cast<std::int64_t>(trace_.ranks.size()))
        return bad("table rank: ids are not dense");
      if (!fill(query, 1, kRankTable, nullptr, trace_.ranks.emplace_back().info))
        return bad("table rank: a time is out of range");
    }
    return done(query, "rank");
  }

  bool read_rows(const auto& table, const auto& rows_of) {
    Query query(db_, fmt::format("SELECT rank_id, {} FROM {} ORDER BY {}", column_names(table),
                                 table.name, table.keys == kNumbered ? kNumbered : "rowid"));
    while (query.next()) {
      const std::int64_t id = query.integer(0);
      Rank* rank = id >= 0 && static_cast<std::uint64_t>(id) < trace_.ranks.size()
                       ? &trace_.ranks[static_cast<std::size_t>(id)]
                       : nullptr;
      auto row = table.blank();
      if (!rank || !fill(query, 1, table, rank, row))
        return bad(fmt::format("table {}: a reference or time is out of range", table.name));
      std::invoke(rows_of, *rank).push_back(std::move(row));
    }
    return done(query, table.name);
  }

  bool read_problems() {
    Query query(db_, "SELECT kind, count, first FROM problem ORDER BY kind");
    while (query.next())
      if (const auto kind = query.optional<std::uint8_t>(0); kind && *kind < kProblemKinds)
        trace_.problems.add(static_cast<ProblemKind>(*kind), query.text(2),
                            query.optional<std::uint64_t>(1).value_or(0));
    return done(query, "problem");
  }

  bool read_timings() {
    Query query(db_,
                fmt::format("SELECT {} FROM op_cost ORDER BY rowid", column_names(kTimingTable)));
    while (query.next())
      if (!fill(query, 0, kTimingTable, nullptr, trace_.timings.emplace_back()))
        return bad("table op_cost: a number is out of range");
    return done(query, "op_cost");
  }

  sqlite3* db_;
  Trace& trace_;
  std::string why_;
};

}  // namespace

bool is_store(const std::filesystem::path& path) {
  // The application id is at byte 68 of the header of an SQLite file, most significant first.
  std::array<unsigned char, 72> header = {};
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return false;
  const std::size_t n = std::fread(header.data(), 1, header.size(), file);
  std::fclose(file);
  if (n != header.size() || std::memcmp(header.data(), "SQLite format 3", 16) != 0) return false;
  const int id = header[68] << 24 | header[69] << 16 | header[70] << 8 | header[71];
  return id == kApplicationId;
}

Result<Trace> read_store(const std::filesystem::path& path) {
  SqlitePtr db = TRY(open_sqlite(path, SqliteAccess::kRead));
  Query version(db.get(), "PRAGMA user_version");
  if (!version.next()) return sqlite_error(db.get(), path, "is not a trace store");
  if (version.integer(0) != kStoreVersion && version.integer(0) != kUncheckedVersion)
    return fail_in(path, fmt::format("is a trace store of version {}", version.integer(0)),
                   fmt::format("version {}", kStoreVersion), "import the recording again");
  const Seal seal = seal_of(path);
  if (seal == Seal::kBroken || (seal == Seal::kNone && version.integer(0) == kStoreVersion))
    return fail_in(path, "is damaged: its checksum is wrong", {}, "import the recording again");
  Trace trace;
  if (seal == Seal::kNone) trace.problems.add(ProblemKind::kUnchecked, path.string());
  StoreReader reader(db.get(), trace);
  if (!reader.read())
    return fail_in(path, "is damaged: " + reader.why(), {}, "import the recording again");
  return trace;
}

}  // namespace rehearse::trace
