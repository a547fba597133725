#include <array>
#include <cmath>

#include <fmt/core.h>
#include <sqlite3.h>

#include "profiler/trace/store.h"
#include "profiler/trace/store_schema.h"
#include "sim/base/file.h"
#include "sim/sqlite/sqlite.h"

namespace rehearse::trace {
namespace {

using namespace sqlite;
using Cell = std::optional<std::int64_t>;

/// No implicit conversion: whole numbers are cells.
struct Real {
  double value;
};

template <class Tag>
Cell cell(const std::optional<Id<Tag>>& id) {
  return id ? Cell(id->index()) : std::nullopt;
}
template <class Integer>
Cell cell(const std::optional<Integer>& value) {
  return value ? Cell(static_cast<std::int64_t>(*value)) : std::nullopt;
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

  void add(const HostOp& op) override {
    hosts->add(std::array<Cell, 13>{rank_id, static_cast<std::int64_t>(op.kind), op.name.index(),
                                    op.thread.index(), op.start.count(), op.duration.count(),
                                    cell(op.correlation), cell(op.sequence),
                                    cell(op.forward_thread), cell(op.record_function),
                                    cell(op.inputs), cell(op.collective), cell(op.payload)});
  }
  void add(const GpuOp& op) override {
    gpus->add(std::array<Cell, 14>{
        rank_id, static_cast<std::int64_t>(op.kind), op.name.index(), op.device, op.stream,
        op.start.count(), op.duration.count(), cell(op.correlation), cell(op.bytes),
        static_cast<std::int64_t>(op.direction), static_cast<std::int64_t>(op.host_memory),
        cell(op.launch_shape), cell(op.collective), cell(op.collective_number)});
  }
  void add(const Sync& sync) override {
    syncs->add(std::array<Cell, 8>{rank_id, static_cast<std::int64_t>(sync.kind),
                                   sync.start.count(), sync.duration.count(),
                                   cell(sync.correlation), cell(sync.stream),
                                   cell(sync.source_stream), cell(sync.event_correlation)});
  }
  void add(const Dependency& d) override {
    dependencies->add(
        std::array<Cell, 5>{rank_id, d.from.on_gpu, d.from.index, d.to.on_gpu, d.to.index});
  }

  void add(const PowerReading& r) override {
    const auto thousandths = [](const auto& value) {
      return value ? Cell(std::llround(value->si() * 1e3)) : std::nullopt;
    };
    power->add(std::array<Cell, 9>{rank_id, r.board, r.time.count(), thousandths(r.power),
                                   thousandths(r.energy), cell(r.core_mhz), cell(r.memory_mhz),
                                   cell(r.celsius), cell(r.clock_reasons)});
  }

  bool execute(const char* sql) {
    return sqlite3_exec(db.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  }

  /// Inserts one row of texts and numbers; a null pointer is NULL.
  class Row {
   public:
    Row(sqlite3* db, const std::string& sql, bool& ok) : ok_(ok) {
      sqlite3_stmt* raw = nullptr;
      ok_ = sqlite3_prepare_v2(db, sql.c_str(), -1, &raw, nullptr) == SQLITE_OK && ok_;
      statement_.reset(raw);
    }
    Row& operator<<(Cell value) {
      ++column_;
      value ? sqlite3_bind_int64(statement_.get(), column_, *value)
            : sqlite3_bind_null(statement_.get(), column_);
      return *this;
    }
    Row& operator<<(std::string_view text) {
      sqlite3_bind_text(statement_.get(), ++column_, text.data(), static_cast<int>(text.size()),
                        SQLITE_TRANSIENT);
      return *this;
    }
    Row& operator<<(Real number) {
      sqlite3_bind_double(statement_.get(), ++column_, number.value);
      return *this;
    }
    void end() {
      ok_ = sqlite3_step(statement_.get()) == SQLITE_DONE && ok_;
      sqlite3_reset(statement_.get());
      column_ = 0;
    }

   private:
    StatementPtr statement_;
    bool& ok_;
    int column_ = 0;
  };

  bool write_tables(const Trace& trace);
  bool write_timings(const Trace& trace);
};

bool StoreWriter::Database::write_timings(const Trace& trace) {
  bool ok = true;
  Row row(db.get(), "INSERT INTO op_cost VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
          ok);
  const auto ns = [](Seconds time) { return Real{time.us() * 1e3}; };
  for (const OpTiming& t : trace.timings)
    (row << std::string_view(t.op) << std::string_view(t.shape) << std::string_view(t.dtype)
         << std::string_view(t.layout) << std::string_view(t.epilogue) << Cell(t.cold)
         << std::string_view(t.device) << Cell(t.multiprocessors) << std::string_view(t.partition)
         << Real{t.memory_clock_hz} << std::string_view(t.libraries) << ns(t.median) << ns(t.mean)
         << ns(t.min) << ns(t.p10) << ns(t.p90) << Cell(static_cast<std::int64_t>(t.samples))
         << Real{t.half_width} << Cell(static_cast<std::int64_t>(t.dropped)) << Real{t.capped}
         << Real{t.sm_clock_hz} << std::string_view(t.date) << std::string_view(t.note))
        .end();
  return ok;
}

bool StoreWriter::Database::write_tables(const Trace& trace) {
  bool ok = true;
  {
    Row row(db.get(), "INSERT INTO meta VALUES (?, ?)", ok);
    (row << "format"
         << "rehearse-trace")
        .end();
    (row << "version" << std::to_string(kStoreVersion)).end();
  }
  {
    Row row(db.get(), "INSERT INTO name VALUES (?, ?)", ok);
    for (std::size_t i = 0; i < trace.names.size(); ++i)
      (row << static_cast<std::int64_t>(i) << trace.names[NameId(i)]).end();
  }
  {
    Row row(db.get(), "INSERT INTO problem VALUES (?, ?, ?, ?, ?)", ok);
    for (const Problem& p : trace.problems.list())
      (row << static_cast<std::int64_t>(p.kind) << info(p.kind).name
           << to_string(info(p.kind).severity) << static_cast<std::int64_t>(p.count) << p.first)
          .end();
  }
  Row ranks(db.get(), "INSERT INTO rank VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ok);
  Row threads(db.get(), "INSERT INTO thread VALUES (?, ?, ?, ?)", ok);
  Row devices(db.get(), "INSERT INTO device VALUES (?, ?, ?, ?, ?, ?, ?)", ok);
  Row facts(db.get(), "INSERT INTO fact VALUES (?, ?, ?)", ok);
  Row inputs(db.get(), "INSERT INTO inputs VALUES (?, ?, ?, ?)", ok);
  Row shapes(db.get(), "INSERT INTO launch_shape VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", ok);
  Row collectives(db.get(), "INSERT INTO collective VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  ok);
  Row boards(db.get(), "INSERT INTO board VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ok);
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    const Rank& rank = trace.ranks[r];
    const Cell id = static_cast<std::int64_t>(r);
    (ranks << id << cell(rank.info.rank) << cell(rank.info.world_size) << rank.info.source
           << rank.info.format << rank.info.host << rank.info.clock_base.count()
           << Cell(rank.info.timed))
        .end();
    for (std::size_t i = 0; i < rank.threads.size(); ++i)
      (threads << id << static_cast<std::int64_t>(i) << rank.threads[i].process.index()
               << rank.threads[i].thread.index())
          .end();
    for (const Device& d : rank.devices)
      (devices << id << d.ordinal << std::string_view(d.name)
               << (d.memory ? Cell(static_cast<std::int64_t>(d.memory->b())) : std::nullopt)
               << cell(d.multiprocessors) << cell(d.compute_major) << cell(d.compute_minor))
          .end();
    for (const Fact& fact : rank.info.facts)
      (facts << id << std::string_view(fact.key) << std::string_view(fact.value)).end();
    for (std::size_t i = 0; i < rank.inputs.size(); ++i)
      (inputs << id << static_cast<std::int64_t>(i) << rank.inputs[i].shapes.index()
              << rank.inputs[i].types.index())
          .end();
    for (std::size_t i = 0; i < rank.launch_shapes.size(); ++i) {
      const LaunchShape& s = rank.launch_shapes[i];
      (shapes << id << static_cast<std::int64_t>(i) << s.grid[0] << s.grid[1] << s.grid[2]
              << s.block[0] << s.block[1] << s.block[2] << s.registers << s.shared_bytes)
          .end();
    }
    for (std::size_t i = 0; i < rank.collectives.size(); ++i) {
      const Collective& c = rank.collectives[i];
      (collectives << id << static_cast<std::int64_t>(i) << static_cast<std::int64_t>(c.kind)
                   << cell(c.bytes_in) << cell(c.bytes_out) << cell(c.group_size) << cell(c.group)
                   << cell(c.ranks) << cell(c.dtype) << cell(c.algorithm) << cell(c.protocol)
                   << cell(c.channels))
          .end();
    }
    for (std::size_t i = 0; i < rank.boards.size(); ++i) {
      const Board& b = rank.boards[i];
      (boards << id << static_cast<std::int64_t>(i) << std::string_view(b.uuid)
              << std::string_view(b.name) << std::string_view(b.instance) << cell(b.device)
              << cell(b.multiprocessors) << cell(b.all_multiprocessors))
          .end();
    }
  }
  return ok;
}

StoreWriter::StoreWriter(std::unique_ptr<Database> database) : database_(std::move(database)) {}
StoreWriter::StoreWriter(StoreWriter&&) noexcept = default;
StoreWriter::~StoreWriter() = default;

Result<StoreWriter> StoreWriter::create(const std::filesystem::path& path) {
  Result<PendingFile> file = PendingFile::create(path);
  if (!file) return forward(file);
  Result<SqlitePtr> db = open_sqlite(file->temporary(), SqliteAccess::kCreate);
  if (!db) return forward(db);
  auto database = std::make_unique<Database>(std::move(*file), std::move(*db), path);
  // The temporary file is thrown away if anything fails, so SQLite need not guard it.
  const std::string setup = fmt::format(
      "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
      "PRAGMA page_size = 32768; PRAGMA cache_size = -16384; PRAGMA application_id = {};"
      "PRAGMA user_version = {}; BEGIN;{}",
      kApplicationId, kStoreVersion, kSchema);
  if (!database->execute(setup.c_str()))
    return sqlite_error(database->db.get(), path, "cannot be written");
  sqlite3* raw = database->db.get();
  database->hosts.emplace(raw, "host_op", 13);
  database->gpus.emplace(raw, "gpu_op", 14);
  database->syncs.emplace(raw, "sync", 8);
  database->dependencies.emplace(raw, "dependency", 5);
  database->power.emplace(raw, "power", 9);
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
  ok = ok && d.write_tables(trace) && d.write_timings(trace) && d.execute("COMMIT");
  if (!ok) return sqlite_error(d.db.get(), d.path, "cannot be written");
  d.db.reset();
  return d.file.commit();
}

}  // namespace rehearse::trace
