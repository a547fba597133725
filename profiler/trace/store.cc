#include "profiler/trace/store.h"

#include <array>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>
#include <sqlite3.h>

#include "profiler/trace/sqlite.h"
#include "sim/base/file.h"

namespace rehearse::trace {
namespace {

constexpr int kApplicationId = 0x52485253;  // "RHRS", in the header of the file

constexpr const char* kSchema = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE rank(id INTEGER PRIMARY KEY, rank INTEGER, world_size INTEGER, source TEXT NOT NULL,
  format TEXT NOT NULL, host TEXT NOT NULL, clock_base_ns INTEGER NOT NULL, timed INTEGER NOT NULL);
CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE thread(rank_id INTEGER, id INTEGER, process INTEGER, thread INTEGER,
  PRIMARY KEY(rank_id, id)) WITHOUT ROWID;
CREATE TABLE device(rank_id INTEGER, ordinal INTEGER, name TEXT, memory_bytes INTEGER,
  multiprocessors INTEGER, compute_major INTEGER, compute_minor INTEGER);
CREATE TABLE inputs(rank_id INTEGER, id INTEGER, shapes INTEGER, types INTEGER,
  PRIMARY KEY(rank_id, id)) WITHOUT ROWID;
CREATE TABLE launch_shape(rank_id INTEGER, id INTEGER, grid_x INTEGER, grid_y INTEGER,
  grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER, registers INTEGER,
  shared_bytes INTEGER, PRIMARY KEY(rank_id, id)) WITHOUT ROWID;
CREATE TABLE collective(rank_id INTEGER, id INTEGER, kind INTEGER, bytes_in INTEGER,
  bytes_out INTEGER, group_size INTEGER, group_name INTEGER, ranks INTEGER, dtype INTEGER,
  PRIMARY KEY(rank_id, id)) WITHOUT ROWID;
CREATE TABLE host_op(rank_id INTEGER, kind INTEGER, name INTEGER, thread INTEGER, start_ns INTEGER,
  duration_ns INTEGER, correlation INTEGER, sequence INTEGER, forward_thread INTEGER,
  record_function INTEGER, inputs INTEGER, collective INTEGER, payload INTEGER);
CREATE TABLE gpu_op(rank_id INTEGER, kind INTEGER, name INTEGER, device INTEGER, stream INTEGER,
  start_ns INTEGER, duration_ns INTEGER, correlation INTEGER, bytes INTEGER, direction INTEGER,
  host_memory INTEGER, launch_shape INTEGER, collective INTEGER);
CREATE TABLE sync(rank_id INTEGER, kind INTEGER, start_ns INTEGER, duration_ns INTEGER,
  correlation INTEGER, stream INTEGER, source_stream INTEGER, event_correlation INTEGER);
CREATE TABLE dependency(rank_id INTEGER, from_gpu INTEGER, from_row INTEGER, to_gpu INTEGER,
  to_row INTEGER);
CREATE TABLE problem(kind INTEGER PRIMARY KEY, name TEXT, severity TEXT, count INTEGER, first TEXT);
CREATE TABLE kind(of TEXT, id INTEGER, name TEXT, PRIMARY KEY(of, id)) WITHOUT ROWID;
INSERT INTO kind VALUES
  ('host_op', 0, 'operator'), ('host_op', 1, 'runtime'), ('host_op', 2, 'driver'),
  ('host_op', 3, 'annotation'), ('host_op', 4, 'frame'), ('host_op', 5, 'overhead'),
  ('gpu_op', 0, 'kernel'), ('gpu_op', 1, 'copy'), ('gpu_op', 2, 'set'),
  ('sync', 0, 'device'), ('sync', 1, 'stream'), ('sync', 2, 'event'),
  ('sync', 3, 'stream_wait_event');
CREATE VIEW gpu AS SELECT g.rank_id, k.name AS kind, n.text AS name, g.device, g.stream, g.start_ns,
  g.duration_ns, g.correlation, g.bytes FROM gpu_op g JOIN name n ON n.id = g.name
  JOIN kind k ON k.of = 'gpu_op' AND k.id = g.kind;
CREATE VIEW host AS SELECT h.rank_id, k.name AS kind, n.text AS name, h.thread, h.start_ns,
  h.duration_ns, h.correlation, h.sequence FROM host_op h JOIN name n ON n.id = h.name
  JOIN kind k ON k.of = 'host_op' AND k.id = h.kind;
CREATE VIEW kernel_summary AS SELECT rank_id, name, count(*) AS calls,
  sum(duration_ns) / 1e6 AS total_ms, avg(duration_ns) / 1e3 AS mean_us FROM gpu
  WHERE kind = 'kernel' GROUP BY rank_id, name ORDER BY total_ms DESC;
)sql";

using Cell = std::optional<std::int64_t>;

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
  std::optional<IntegerInserter> hosts, gpus, syncs, dependencies;

  void add(const HostOp& op) override {
    hosts->add(std::array<Cell, 13>{rank_id, static_cast<std::int64_t>(op.kind), op.name.index(),
                                    op.thread.index(), op.start.count(), op.duration.count(),
                                    cell(op.correlation), cell(op.sequence),
                                    cell(op.forward_thread), cell(op.record_function),
                                    cell(op.inputs), cell(op.collective), cell(op.payload)});
  }
  void add(const GpuOp& op) override {
    gpus->add(std::array<Cell, 13>{
        rank_id, static_cast<std::int64_t>(op.kind), op.name.index(), op.device, op.stream,
        op.start.count(), op.duration.count(), cell(op.correlation), cell(op.bytes),
        static_cast<std::int64_t>(op.direction), static_cast<std::int64_t>(op.host_memory),
        cell(op.launch_shape), cell(op.collective)});
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

  bool execute(const char* sql) {
    return sqlite3_exec(db.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  }

  /// Inserts one row of texts and numbers; a null pointer stands for NULL.
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
};

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
  Row inputs(db.get(), "INSERT INTO inputs VALUES (?, ?, ?, ?)", ok);
  Row shapes(db.get(), "INSERT INTO launch_shape VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", ok);
  Row collectives(db.get(), "INSERT INTO collective VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", ok);
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
                   << cell(c.ranks) << cell(c.dtype))
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
  database->gpus.emplace(raw, "gpu_op", 13);
  database->syncs.emplace(raw, "sync", 8);
  database->dependencies.emplace(raw, "dependency", 5);
  return StoreWriter(std::move(database));
}

RowSink& StoreWriter::rows(std::size_t rank) {
  database_->rank_id = static_cast<std::int64_t>(rank);
  return *database_;
}

Status StoreWriter::finish(const Trace& trace) {
  Database& d = *database_;
  bool ok = true;
  for (auto* inserter : {&d.hosts, &d.gpus, &d.syncs, &d.dependencies}) {
    (*inserter)->flush();
    ok = ok && (*inserter)->ok();
    inserter->reset();
  }
  ok = ok && d.write_tables(trace) && d.execute("COMMIT");
  if (!ok) return sqlite_error(d.db.get(), d.path, "cannot be written");
  d.db.reset();
  return d.file.commit();
}

bool is_store(const std::filesystem::path& path) {
  // The application id stands at byte 68 of the header of an SQLite file, most significant first.
  std::array<unsigned char, 72> header = {};
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return false;
  const std::size_t n = std::fread(header.data(), 1, header.size(), file);
  std::fclose(file);
  if (n != header.size() || std::memcmp(header.data(), "SQLite format 3", 16) != 0) return false;
  const int id = header[68] << 24 | header[69] << 16 | header[70] << 8 | header[71];
  return id == kApplicationId;
}

namespace {

/// Reads the tables of a store; refuses indices that point nowhere, so that a damaged file cannot
/// make later code read outside its tables.
class StoreReader {
 public:
  StoreReader(sqlite3* db, Trace& trace) : db_(db), trace_(trace) {}

  bool read() {
    return read_names() && read_ranks() && read_tables() && read_host_ops() && read_gpu_ops() &&
           read_rest();
  }
  const std::string& why() const { return why_; }

 private:
  bool bad(std::string why) {
    why_ = std::move(why);
    return false;
  }
  bool done(const Query& query, const char* table) {
    return query.ok() || bad(fmt::format("table {}: {}", table, sqlite3_errmsg(db_)));
  }
  bool in_names(std::int64_t id) const {
    return id >= 0 && static_cast<std::uint64_t>(id) < trace_.names.size();
  }
  Rank* rank(const Query& query) {
    const std::int64_t id = query.integer(0);
    if (id < 0 || static_cast<std::uint64_t>(id) >= trace_.ranks.size()) return nullptr;
    return &trace_.ranks[static_cast<std::size_t>(id)];
  }
  static bool sound_times(const Query& query, int start, int duration) {
    return plausible(Nanoseconds(query.integer(start))) && query.integer(duration) >= 0 &&
           plausible(Nanoseconds(query.integer(duration)));
  }
  template <class AnyId>
  static std::optional<AnyId> reference(const Query& query, int column, std::size_t size) {
    const auto index = query.optional<std::uint32_t>(column);
    if (!index || *index >= size) return std::nullopt;
    return AnyId(*index);
  }

  bool read_names();
  bool read_ranks();
  bool read_tables();
  bool read_host_ops();
  bool read_gpu_ops();
  bool read_rest();

  sqlite3* db_;
  Trace& trace_;
  std::string why_;
};

bool StoreReader::read_names() {
  Query query(db_, "SELECT id, text FROM name ORDER BY id");
  while (query.next()) {
    if (query.integer(0) != static_cast<std::int64_t>(trace_.names.size()))
      return bad("table name: ids are not dense");
    if (trace_.names.intern(query.text(1)).index() != query.integer(0))
      return bad("table name: a text stands twice");
  }
  return done(query, "name");
}

bool StoreReader::read_ranks() {
  Query query(db_,
              "SELECT id, rank, world_size, source, format, host, clock_base_ns, timed FROM rank "
              "ORDER BY id");
  while (query.next()) {
    if (query.integer(0) != static_cast<std::int64_t>(trace_.ranks.size()))
      return bad("table rank: ids are not dense");
    Rank& rank = trace_.ranks.emplace_back();
    rank.info.rank = query.optional<std::uint32_t>(1);
    rank.info.world_size = query.optional<std::uint32_t>(2);
    rank.info.source = query.text(3);
    rank.info.format = query.text(4);
    rank.info.host = query.text(5);
    rank.info.clock_base = Nanoseconds(query.integer(6));
    rank.info.timed = query.integer(7) != 0;
    if (!plausible(rank.info.clock_base)) return bad("table rank: a time is out of range");
  }
  return done(query, "rank");
}

bool StoreReader::read_tables() {
  Query threads(db_, "SELECT rank_id, process, thread FROM thread ORDER BY rank_id, id");
  while (threads.next()) {
    Rank* r = rank(threads);
    if (!r || !in_names(threads.integer(1)) || !in_names(threads.integer(2)))
      return bad("table thread: a reference points nowhere");
    r->threads.push_back({NameId(static_cast<std::uint32_t>(threads.integer(1))),
                          NameId(static_cast<std::uint32_t>(threads.integer(2)))});
  }
  if (!done(threads, "thread")) return false;
  Query devices(db_,
                "SELECT rank_id, ordinal, name, memory_bytes, multiprocessors, compute_major, "
                "compute_minor FROM device ORDER BY rowid");
  while (devices.next()) {
    Rank* r = rank(devices);
    if (!r) return bad("table device: a reference points nowhere");
    Device device{.ordinal = devices.optional<std::uint32_t>(1).value_or(0),
                  .name = std::string(devices.text(2)),
                  .multiprocessors = devices.optional<std::uint32_t>(4),
                  .compute_major = devices.optional<std::uint32_t>(5),
                  .compute_minor = devices.optional<std::uint32_t>(6)};
    if (!devices.is_null(3)) device.memory = Bytes::b(static_cast<double>(devices.integer(3)));
    r->devices.push_back(std::move(device));
  }
  if (!done(devices, "device")) return false;
  Query inputs(db_, "SELECT rank_id, shapes, types FROM inputs ORDER BY rank_id, id");
  while (inputs.next()) {
    Rank* r = rank(inputs);
    if (!r || !in_names(inputs.integer(1)) || !in_names(inputs.integer(2)))
      return bad("table inputs: a reference points nowhere");
    r->inputs.push_back({NameId(static_cast<std::uint32_t>(inputs.integer(1))),
                         NameId(static_cast<std::uint32_t>(inputs.integer(2)))});
  }
  if (!done(inputs, "inputs")) return false;
  Query shapes(db_,
               "SELECT rank_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, "
               "shared_bytes FROM launch_shape ORDER BY rank_id, id");
  while (shapes.next()) {
    Rank* r = rank(shapes);
    if (!r) return bad("table launch_shape: a reference points nowhere");
    const auto number = [&](int column) {
      return shapes.optional<std::uint32_t>(column).value_or(0);
    };
    r->launch_shapes.push_back({{number(1), number(2), number(3)},
                                {number(4), number(5), number(6)},
                                number(7),
                                number(8)});
  }
  if (!done(shapes, "launch_shape")) return false;
  Query collectives(db_,
                    "SELECT rank_id, kind, bytes_in, bytes_out, group_size, group_name, ranks, "
                    "dtype FROM collective ORDER BY rank_id, id");
  while (collectives.next()) {
    Rank* r = rank(collectives);
    const auto kind = collectives.optional<std::uint8_t>(1);
    if (!r || !kind || *kind >= kCollectiveNames.size())
      return bad("table collective: a reference points nowhere");
    const std::size_t names = trace_.names.size();
    r->collectives.push_back({.kind = static_cast<CollectiveKind>(*kind),
                              .bytes_in = collectives.optional<std::uint64_t>(2),
                              .bytes_out = collectives.optional<std::uint64_t>(3),
                              .group_size = collectives.optional<std::uint32_t>(4),
                              .group = reference<NameId>(collectives, 5, names),
                              .ranks = reference<NameId>(collectives, 6, names),
                              .dtype = reference<NameId>(collectives, 7, names)});
  }
  return done(collectives, "collective");
}

bool StoreReader::read_host_ops() {
  Query query(db_, "SELECT * FROM host_op ORDER BY rowid");
  while (query.next()) {
    Rank* r = rank(query);
    const auto kind = query.optional<std::uint8_t>(1);
    const auto thread = r ? reference<ThreadId>(query, 3, r->threads.size()) : std::nullopt;
    if (!r || !thread || !kind || *kind > static_cast<std::uint8_t>(HostKind::kOverhead) ||
        !in_names(query.integer(2)) || !sound_times(query, 4, 5))
      return bad("table host_op: a reference or time is out of range");
    r->host_ops.push_back({.name = NameId(static_cast<std::uint32_t>(query.integer(2))),
                           .thread = *thread,
                           .kind = static_cast<HostKind>(*kind),
                           .start = Nanoseconds(query.integer(4)),
                           .duration = Nanoseconds(query.integer(5)),
                           .correlation = query.optional<std::uint32_t>(6),
                           .sequence = query.optional<std::uint32_t>(7),
                           .forward_thread = query.optional<std::uint32_t>(8),
                           .record_function = query.optional<std::uint32_t>(9),
                           .inputs = reference<InputsId>(query, 10, r->inputs.size()),
                           .collective = reference<CollectiveId>(query, 11, r->collectives.size()),
                           .payload = query.optional<std::uint64_t>(12)});
  }
  return done(query, "host_op");
}

bool StoreReader::read_gpu_ops() {
  Query query(db_, "SELECT * FROM gpu_op ORDER BY rowid");
  while (query.next()) {
    Rank* r = rank(query);
    const auto kind = query.optional<std::uint8_t>(1);
    const auto direction = query.optional<std::uint8_t>(9);
    const auto memory = query.optional<std::uint8_t>(10);
    if (!r || !kind || *kind > static_cast<std::uint8_t>(GpuKind::kSet) || !direction ||
        *direction > static_cast<std::uint8_t>(CopyDirection::kHostToHost) || !memory ||
        *memory > static_cast<std::uint8_t>(HostMemory::kPinned) || !in_names(query.integer(2)) ||
        !sound_times(query, 5, 6))
      return bad("table gpu_op: a reference or time is out of range");
    r->gpu_ops.push_back(
        {.name = NameId(static_cast<std::uint32_t>(query.integer(2))),
         .kind = static_cast<GpuKind>(*kind),
         .direction = static_cast<CopyDirection>(*direction),
         .host_memory = static_cast<HostMemory>(*memory),
         .device = query.optional<std::uint16_t>(3).value_or(0),
         .stream = query.optional<std::uint32_t>(4).value_or(0),
         .start = Nanoseconds(query.integer(5)),
         .duration = Nanoseconds(query.integer(6)),
         .correlation = query.optional<std::uint32_t>(7),
         .launch_shape = reference<LaunchShapeId>(query, 11, r->launch_shapes.size()),
         .collective = reference<CollectiveId>(query, 12, r->collectives.size()),
         .bytes = query.optional<std::uint64_t>(8)});
  }
  return done(query, "gpu_op");
}

bool StoreReader::read_rest() {
  Query syncs(db_, "SELECT * FROM sync ORDER BY rowid");
  while (syncs.next()) {
    Rank* r = rank(syncs);
    const auto kind = syncs.optional<std::uint8_t>(1);
    if (!r || !kind || *kind > static_cast<std::uint8_t>(SyncKind::kStreamWaitEvent) ||
        !sound_times(syncs, 2, 3))
      return bad("table sync: a reference or time is out of range");
    r->syncs.push_back({.kind = static_cast<SyncKind>(*kind),
                        .start = Nanoseconds(syncs.integer(2)),
                        .duration = Nanoseconds(syncs.integer(3)),
                        .correlation = syncs.optional<std::uint32_t>(4),
                        .stream = syncs.optional<std::uint32_t>(5),
                        .source_stream = syncs.optional<std::uint32_t>(6),
                        .event_correlation = syncs.optional<std::uint32_t>(7)});
  }
  if (!done(syncs, "sync")) return false;
  Query dependencies(db_, "SELECT * FROM dependency ORDER BY rowid");
  while (dependencies.next()) {
    Rank* r = rank(dependencies);
    const auto row = [&](int column) -> std::optional<RowRef> {
      const bool on_gpu = dependencies.integer(column) != 0;
      const auto index = dependencies.optional<std::uint32_t>(column + 1);
      if (!index || *index >= (on_gpu ? r->gpu_ops.size() : r->host_ops.size()))
        return std::nullopt;
      return RowRef{on_gpu, *index};
    };
    const auto from = r ? row(1) : std::nullopt;
    const auto to = r ? row(3) : std::nullopt;
    if (!from || !to) return bad("table dependency: a reference points nowhere");
    r->dependencies.push_back({*from, *to});
  }
  if (!done(dependencies, "dependency")) return false;
  Query problems(db_, "SELECT kind, count, first FROM problem ORDER BY kind");
  while (problems.next())
    if (const auto kind = problems.optional<std::uint8_t>(0); kind && *kind < kProblemKinds)
      trace_.problems.add(static_cast<ProblemKind>(*kind), problems.text(2),
                          problems.optional<std::uint64_t>(1).value_or(0));
  return done(problems, "problem");
}

}  // namespace

Result<Trace> read_store(const std::filesystem::path& path) {
  Result<SqlitePtr> db = open_sqlite(path, SqliteAccess::kRead);
  if (!db) return forward(db);
  Query version(db->get(), "PRAGMA user_version");
  if (!version.next()) return sqlite_error(db->get(), path, "is not a trace store");
  if (version.integer(0) != kStoreVersion)
    return fail(
        Diagnostic{.file = path.string(),
                   .problem = fmt::format("is a trace store of version {}", version.integer(0)),
                   .expected = fmt::format("version {}", kStoreVersion),
                   .nearest = "import the recording again"});
  Trace trace;
  StoreReader reader(db->get(), trace);
  if (!reader.read())
    return fail(Diagnostic{.file = path.string(),
                           .problem = "is damaged: " + reader.why(),
                           .nearest = "import the recording again"});
  return trace;
}

}  // namespace rehearse::trace
