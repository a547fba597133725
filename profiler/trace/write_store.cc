#include <array>
#include <cmath>

#include <fmt/core.h>

#include "profiler/trace/store.h"
#include "profiler/trace/store_tables.h"
#include "sim/base/file.h"
#include "sim/sqlite/sqlite.h"

namespace rehearse::trace {
namespace {

using namespace sqlite;
using Cell = std::optional<std::int64_t>;

template <class Tag>
Cell cell(Id<Tag> id) {
  return id.index();
}
template <class Integer>
requires(std::is_integral_v<Integer> || std::is_enum_v<Integer>) Cell cell(Integer value) {
  return static_cast<std::int64_t>(value);
}
Cell cell(Nanoseconds time) { return time.count(); }
Cell cell(Bytes size) { return std::llround(size.b()); }
Cell cell(Watts power) { return std::llround(power.w() * 1e3); }
Cell cell(Joules energy) { return std::llround(energy.j() * 1e3); }
template <class T>
Cell cell(const std::optional<T>& value) {
  return value ? cell(*value) : std::nullopt;
}

/// A row of whole numbers, which follow its rank.
template <class Row, class... Members>
std::array<Cell, sizeof...(Members) + 1> cells(const Table<Row, Members...>& table, Cell rank,
                                               const Row& row) {
  return std::apply(
      [&](const auto&... column) {
        return std::array<Cell, sizeof...(Members) + 1>{rank, cell(column.of(row))...};
      },
      table.columns);
}

template <class T>
void add_value(Insert& insert, const T& value) {
  if constexpr (std::is_same_v<T, std::string>)
    insert.add(std::string_view(value));
  else if constexpr (std::is_same_v<T, double>)
    insert.add(value);
  else if constexpr (std::is_same_v<T, Seconds>)
    insert.add(value.us() * 1e3);
  else if (const Cell number = cell(value))
    insert.add(*number);
  else
    insert.add_null();
}

template <class Row, class... Members>
Insert insert_into(sqlite3* db, const Table<Row, Members...>& table) {
  const std::string keys =
      fmt::format("{}{}", table.keys, table.keys.empty() ? "" : ", ") + column_names(table);
  std::string marks = "?";
  for (const char c : keys) marks += c == ',' ? ",?" : "";
  return {db, fmt::format("INSERT INTO {} VALUES ({})", table.name, marks)};
}

template <class Row, class... Members>
bool add_row(Insert& insert, const Table<Row, Members...>& table, const Row& row) {
  std::apply([&](const auto&... column) { (add_value(insert, column.of(row)), ...); },
             table.columns);
  return insert.run();
}

}  // namespace

struct StoreWriter::Database final : RowSink {
  Database(PendingFile pending, SqlitePtr opened, std::filesystem::path target)
      : file(std::move(pending)), db(std::move(opened)), path(std::move(target)) {}

  PendingFile file;
  SqlitePtr db;
  std::filesystem::path path;
  std::int64_t rank_id = 0;
  std::optional<IntegerInserter> hosts, gpus, syncs, dependencies, power;

  void add(const HostOp& op) override { hosts->add(cells(kHostOpTable, rank_id, op)); }
  void add(const GpuOp& op) override { gpus->add(cells(kGpuOpTable, rank_id, op)); }
  void add(const Sync& sync) override { syncs->add(cells(kSyncTable, rank_id, sync)); }
  void add(const Dependency& d) override { dependencies->add(cells(kDependencyTable, rank_id, d)); }
  void add(const PowerReading& r) override { power->add(cells(kPowerTable, rank_id, r)); }

  template <class Row, class... Members>
  void open(std::optional<IntegerInserter>& rows, const Table<Row, Members...>& table) {
    rows.emplace(db.get(), std::string(table.name), sizeof...(Members) + 1);
  }
  bool write_tables(const Trace& trace);
};

bool StoreWriter::Database::write_tables(const Trace& trace) {
  Insert meta(db.get(), "INSERT INTO meta VALUES (?, ?)");
  bool ok = meta.add("format").add("rehearse-trace").run() &&
            meta.add("version").add(std::to_string(kStoreVersion)).run();
  Insert names(db.get(), "INSERT INTO name VALUES (?, ?)");
  for (std::size_t i = 0; i < trace.names.size(); ++i)
    ok = names.add(static_cast<std::int64_t>(i)).add(trace.names[NameId(i)]).run() && ok;
  Insert problems(db.get(), "INSERT INTO problem VALUES (?, ?, ?, ?, ?)");
  for (const Problem& p : trace.problems.list())
    ok = problems.add(static_cast<std::int64_t>(p.kind))
             .add(info(p.kind).name)
             .add(to_string(info(p.kind).severity))
             .add(static_cast<std::int64_t>(p.count))
             .add(p.first)
             .run() &&
         ok;
  Insert ranks = insert_into(db.get(), kRankTable);
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    const auto id = static_cast<std::int64_t>(r);
    ranks.add(id);
    ok = add_row(ranks, kRankTable, trace.ranks[r].info) && ok;
    visit_small_tables([&](const auto& table, const auto& rows_of) {
      const auto& rows = std::invoke(rows_of, trace.ranks[r]);
      Insert insert = insert_into(db.get(), table);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        insert.add(id);
        if (table.keys == kNumbered) insert.add(static_cast<std::int64_t>(i));
        ok = add_row(insert, table, rows[i]) && ok;
      }
    });
  }
  Insert timings = insert_into(db.get(), kTimingTable);
  for (const OpTiming& timing : trace.timings) ok = add_row(timings, kTimingTable, timing) && ok;
  return ok;
}

StoreWriter::StoreWriter(std::unique_ptr<Database> database) : database_(std::move(database)) {}
StoreWriter::StoreWriter(StoreWriter&&) noexcept = default;
StoreWriter::~StoreWriter() = default;

Result<StoreWriter> StoreWriter::create(const std::filesystem::path& path) {
  PendingFile file = TRY(PendingFile::create(path));
  SqlitePtr db = TRY(open_sqlite(file.temporary(), SqliteAccess::kCreate));
  auto database = std::make_unique<Database>(std::move(file), std::move(db), path);
  // The temporary file is thrown away if anything fails, so SQLite need not guard it.
  const std::string setup = fmt::format(
      "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
      "PRAGMA page_size = 32768; PRAGMA cache_size = -16384; PRAGMA application_id = {};"
      "PRAGMA user_version = {}; BEGIN;{}",
      kApplicationId, kStoreVersion, schema());
  if (!execute(database->db.get(), setup))
    return sqlite_error(database->db.get(), path, "cannot be written");
  database->open(database->hosts, kHostOpTable);
  database->open(database->gpus, kGpuOpTable);
  database->open(database->syncs, kSyncTable);
  database->open(database->dependencies, kDependencyTable);
  database->open(database->power, kPowerTable);
  return StoreWriter(std::move(database));
}

RowSink& StoreWriter::rows(std::size_t rank) {
  database_->rank_id = static_cast<std::int64_t>(rank);
  return *database_;
}

Status StoreWriter::finish(const Trace& trace) {
  Database& d = *database_;
  bool ok = true;
  for (auto* inserter : {&d.hosts, &d.gpus, &d.syncs, &d.dependencies, &d.power}) {
    (*inserter)->flush();
    ok = ok && (*inserter)->ok();
    inserter->reset();
  }
  ok = ok && d.write_tables(trace) && execute(d.db.get(), "COMMIT");
  if (!ok) return sqlite_error(d.db.get(), d.path, "cannot be written");
  d.db.reset();
  TRY(seal(d.file.temporary()));
  return d.file.commit();
}

}  // namespace rehearse::trace
