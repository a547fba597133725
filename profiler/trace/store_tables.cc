#include "profiler/trace/store_tables.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "sim/base/checksum.h"

namespace rehearse::trace {

namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little);  // as the format has it

struct Trailer {
  std::array<char, 8> mark = {'R', 'H', 'R', 'S', 's', 'e', 'a', 'l'};
  std::uint64_t sum = 0;
};

/// The checksum of the first bytes of a file; nothing if it is shorter or cannot be read.
std::optional<std::uint64_t> sum_of(std::ifstream& file, std::uintmax_t bytes) {
  std::vector<char> part(std::min<std::uintmax_t>(bytes, 1 << 20));
  std::uint64_t sum = 0;
  while (bytes > 0) {
    const auto n = static_cast<std::streamsize>(std::min<std::uintmax_t>(bytes, part.size()));
    if (!file.read(part.data(), n)) return std::nullopt;
    sum = checksum(sum, {part.data(), static_cast<std::size_t>(n)});
    bytes -= static_cast<std::uintmax_t>(n);
  }
  return sum;
}

constexpr const char* kTexts = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
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

template <class T>
std::string_view sql_type(const T&) {
  if constexpr (std::is_same_v<T, std::string>) return "TEXT";
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, Seconds>) return "REAL";
  return "INTEGER";
}

template <class Row, class... Members>
std::string create(const Table<Row, Members...>& table) {
  const Row blank = table.blank();
  std::string columns = table.keys == kOfRank     ? "rank_id INTEGER, "
                        : table.keys == kNumbered ? "rank_id INTEGER, id INTEGER, "
                        : table.keys == "id"      ? "id INTEGER PRIMARY KEY, "
                                                  : "";
  std::apply(
      [&](const auto&... column) {
        ((columns += fmt::format("{} {}, ", column.name, sql_type(column.of(blank)))), ...);
      },
      table.columns);
  if (table.keys == kNumbered)
    return fmt::format("CREATE TABLE {}({}PRIMARY KEY(rank_id, id)) WITHOUT ROWID;\n", table.name,
                       columns);
  columns.resize(columns.size() - 2);
  return fmt::format("CREATE TABLE {}({});\n", table.name, columns);
}

}  // namespace

std::string schema() {
  std::string tables = create(kRankTable);
  visit_small_tables([&](const auto& table, const auto&) { tables += create(table); });
  for (const std::string& rows :
       {create(kHostOpTable), create(kGpuOpTable), create(kSyncTable), create(kDependencyTable),
        create(kPowerTable), create(kTimingTable)})
    tables += rows;
  return tables + kTexts;
}

Status seal(const fs::path& path) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(path, failed);
  std::ifstream file(path, std::ios::binary);
  const std::optional<std::uint64_t> sum = failed ? std::nullopt : sum_of(file, size);
  if (!sum) return fail_in(path, "cannot be read");
  Trailer trailer;
  trailer.sum = *sum;
  std::ofstream end(path, std::ios::binary | std::ios::app);
  end.write(reinterpret_cast<const char*>(&trailer), sizeof trailer);
  end.close();
  if (!end) return fail_in(path, "cannot be written");
  return {};
}

Seal seal_of(const fs::path& path) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(path, failed);
  if (failed || size < sizeof(Trailer)) return failed ? Seal::kBroken : Seal::kNone;
  std::ifstream file(path, std::ios::binary);
  const std::optional<std::uint64_t> sum = sum_of(file, size - sizeof(Trailer));
  Trailer trailer;
  if (!sum || !file.read(reinterpret_cast<char*>(&trailer), sizeof trailer)) return Seal::kBroken;
  if (trailer.mark != Trailer().mark) return Seal::kNone;
  return trailer.sum == *sum ? Seal::kIntact : Seal::kBroken;
}

}  // namespace rehearse::trace
