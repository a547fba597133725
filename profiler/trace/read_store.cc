#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>
#include <sqlite3.h>

#include "profiler/trace/store.h"
#include "profiler/trace/store_schema.h"
#include "sim/sqlite/sqlite.h"

namespace rehearse::trace {
namespace {

using namespace sqlite;

/// Reads the tables of a store; refuses indices that point nowhere, so that a damaged file cannot
/// make later code read outside its tables.
class StoreReader {
 public:
  StoreReader(sqlite3* db, Trace& trace) : db_(db), trace_(trace) {}

  bool read() {
    return read_names() && read_ranks() && read_tables() && read_host_ops() && read_gpu_ops() &&
           read_rest() && read_power() && read_facts() && read_timings();
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
  bool read_power();
  bool read_facts();
  bool read_timings();

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
      return bad("table name: a text appears twice");
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
                    "dtype, algorithm, protocol, channels FROM collective ORDER BY rank_id, id");
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
                              .dtype = reference<NameId>(collectives, 7, names),
                              .algorithm = reference<NameId>(collectives, 8, names),
                              .protocol = reference<NameId>(collectives, 9, names),
                              .channels = collectives.optional<std::uint32_t>(10)});
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
         .bytes = query.optional<std::uint64_t>(8),
         .collective_number = query.optional<std::uint64_t>(13)});
  }
  return done(query, "gpu_op");
}

bool StoreReader::read_power() {
  Query boards(db_,
               "SELECT rank_id, uuid, name, instance, device, multiprocessors, all_multiprocessors "
               "FROM board ORDER BY rank_id, id");
  while (boards.next()) {
    Rank* r = rank(boards);
    if (!r) return bad("table board: a reference points nowhere");
    r->boards.push_back({.uuid = std::string(boards.text(1)),
                         .name = std::string(boards.text(2)),
                         .instance = std::string(boards.text(3)),
                         .device = boards.optional<std::uint32_t>(4),
                         .multiprocessors = boards.optional<std::uint32_t>(5),
                         .all_multiprocessors = boards.optional<std::uint32_t>(6)});
  }
  if (!done(boards, "board")) return false;
  Query power(db_, "SELECT * FROM power ORDER BY rowid");
  while (power.next()) {
    Rank* r = rank(power);
    const auto board = power.optional<std::uint32_t>(1);
    if (!r || !board || *board >= r->boards.size() || !plausible(Nanoseconds(power.integer(2))))
      return bad("table power: a reference or time is out of range");
    PowerReading reading{.board = *board,
                         .time = Nanoseconds(power.integer(2)),
                         .core_mhz = power.optional<std::uint32_t>(5),
                         .memory_mhz = power.optional<std::uint32_t>(6),
                         .celsius = power.optional<std::uint32_t>(7),
                         .clock_reasons = power.optional<std::uint64_t>(8)};
    if (const auto mw = power.optional<std::uint64_t>(3))
      reading.power = Watts::w(static_cast<double>(*mw) * 1e-3);
    if (const auto mj = power.optional<std::uint64_t>(4))
      reading.energy = Joules::j(static_cast<double>(*mj) * 1e-3);
    r->power.push_back(reading);
  }
  return done(power, "power");
}

bool StoreReader::read_facts() {
  // Stores written before recorders said facts lack the table.
  Query table(db_, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'fact'");
  if (!table.next()) return done(table, "sqlite_master");
  Query query(db_, "SELECT rank_id, key, value FROM fact ORDER BY rowid");
  while (query.next()) {
    Rank* r = rank(query);
    if (!r) return bad("table fact: a reference points nowhere");
    r->info.facts.push_back({std::string(query.text(1)), std::string(query.text(2))});
  }
  return done(query, "fact");
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

bool StoreReader::read_timings() {
  // Stores written before operations were measured by themselves lack the table.
  Query table(db_, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'op_cost'");
  if (!table.next()) return done(table, "sqlite_master");
  Query query(db_,
              "SELECT op, shape, dtype, layout, epilogue, cold, device, multiprocessors, "
              "partition, memory_clock_hz, libraries, median_ns, mean_ns, min_ns, p10_ns, p90_ns, "
              "samples, half_width, dropped, capped, sm_clock_hz, date, note FROM op_cost "
              "ORDER BY rowid");
  bool sound = true;
  const auto number = [&](int column) {
    const double value = query.real(column);
    sound = sound && std::isfinite(value) && value >= 0;
    return value;
  };
  const auto text = [&](int column) { return std::string(query.text(column)); };
  const auto count = [&](int column) { return query.optional<std::uint64_t>(column).value_or(0); };
  while (query.next()) {
    OpTiming& t = trace_.timings.emplace_back();
    t.op = text(0);
    t.shape = text(1);
    t.dtype = text(2);
    t.layout = text(3);
    t.epilogue = text(4);
    t.cold = query.integer(5) != 0;
    t.device = text(6);
    t.multiprocessors = query.optional<std::uint32_t>(7).value_or(0);
    t.partition = text(8);
    t.memory_clock_hz = number(9);
    t.libraries = text(10);
    int column = 11;
    for (Seconds* time : {&t.median, &t.mean, &t.min, &t.p10, &t.p90})
      *time = Seconds::ns(number(column++));
    t.samples = count(16);
    t.half_width = number(17);
    t.dropped = count(18);
    t.capped = number(19);
    t.sm_clock_hz = number(20);
    t.date = text(21);
    t.note = text(22);
    if (!sound || !(t.median > Seconds::s(0)))
      return bad("table op_cost: a number is out of range");
  }
  return done(query, "op_cost");
}

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
