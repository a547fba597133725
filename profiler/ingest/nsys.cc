#include "profiler/ingest/nsys.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "profiler/ingest/byte_source.h"
#include "profiler/ingest/nsys_rows.h"
#include "profiler/ingest/nsys_tables.h"
#include "profiler/ingest/numbers.h"
#include "sim/base/file.h"
#include "sim/sqlite/sqlite.h"

namespace rehearse::ingest {
namespace {

using namespace sqlite;
using namespace trace;
using namespace nsys;

constexpr std::string_view kHeader("SQLite format 3\0", 16);

bool begins_with(const std::filesystem::path& file, std::string_view bytes) {
  std::array<char, kHeader.size()> begin = {};
  std::ifstream in(file, std::ios::binary);
  return in.read(begin.data(), static_cast<std::streamsize>(bytes.size())) &&
         std::string_view(begin.data(), bytes.size()) == bytes;
}

bool is_packed(const std::filesystem::path& file) { return begins_with(file, "\x1f\x8b"); }

bool holds_database(const std::filesystem::path& file) {
  if (!is_packed(file)) return begins_with(file, kHeader);
  const Result<std::unique_ptr<ByteSource>> source = open_bytes(file);
  std::array<char, kHeader.size()> begin = {};
  return source && (*source)->read(begin) == begin.size() &&
         std::string_view(begin.data(), begin.size()) == kHeader;
}

/// SQLite reads at any place of a file: the bytes of a gzip file, in a file that goes with the
/// result.
Result<PendingFile> unpacked(const std::filesystem::path& file) {
  static std::atomic<unsigned> count = 0;
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  if (failed) return fail_in(file, "cannot be unpacked: " + failed.message(), "TMPDIR, a folder");
  PendingFile copy = TRY(PendingFile::create(folder / fmt::format("rehearse-{}.sqlite", ++count)));
  std::ofstream out(copy.temporary(), std::ios::binary);
  const std::unique_ptr<ByteSource> source = TRY(open_bytes(file));
  std::vector<char> bytes(std::size_t{1} << 20);
  while (const std::size_t n = source->read(bytes))
    out.write(bytes.data(), static_cast<std::streamsize>(n));
  if (const std::string damage = source->damage(); !damage.empty()) return fail_in(file, damage);
  if (!out.flush())
    return fail_in(file, fmt::format("cannot be unpacked into {}", folder.string()),
                   "free space there, or TMPDIR, another folder");
  return copy;
}

class NsysReader {
 public:
  NsysReader(sqlite3* db, std::string file, const NewRank& new_rank, const Progress& progress)
      : db_(db), tables_(db), file_(std::move(file)), new_rank_(new_rank), progress_(progress) {}

  Status read();

 private:
  void find_processes();
  void read_process(std::int64_t process);
  void read_table(const TableReader& reader, ProcessRows& rows);
  void read_session(ProcessRows& rows);
  void read_devices(ProcessRows& rows);
  void read_rank_number();
  void count_ignored();

  sqlite3* db_;
  Tables tables_;
  std::string file_;
  const NewRank& new_rank_;
  const Progress& progress_;
  std::map<std::int64_t, std::uint64_t> processes_;  // by number: how many rows
  std::uint64_t rows_without_process_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t rows_done_ = 0;
  std::uint64_t records_ = 0;
  bool stopped_ = false;

  // The process that is being read.
  Recorder* recorder_ = nullptr;
  std::int64_t process_ = 0;
  std::string_view table_;
  std::uint64_t row_ = 0;
};

void NsysReader::find_processes() {
  std::uint64_t unsaid = 0;
  for (const std::string_view table : kActivity) {
    if (!tables_.has(table)) continue;
    // Row by row, as a damaged table gives the rows before the damage and no sums.
    Query query(db_, fmt::format("SELECT {} FROM {}", tables_.process_of(table), table));
    while (query.next()) {
      const auto process = number(query, 0);
      ++rows_;
      ++(!process ? rows_without_process_ : *process < 0 ? unsaid : processes_[*process]);
    }
  }
  // No process has the number 0; it is used alone if the export does not distinguish processes.
  if (const auto nobody = processes_.find(0); nobody != processes_.end() && processes_.size() > 1) {
    rows_without_process_ += nobody->second;
    processes_.erase(nobody);
  }
  if (unsaid > 0 && processes_.size() <= 1) {
    (processes_.empty() ? processes_[0] : processes_.begin()->second) += unsaid;
  } else {
    rows_without_process_ += unsaid;
  }
}

Status NsysReader::read() {
  if (!tables_.are_of_an_export())
    return fail_in(file_, "contains no table of an Nsight Systems export",
                   "tables such as CUPTI_ACTIVITY_KIND_KERNEL or NVTX_EVENTS");
  find_processes();
  if (processes_.empty())
    return fail_in(file_, "contains no CUDA and no NVTX activity",
                   "a recording made with --trace=cuda,nvtx");
  for (const auto& [process, rows] : processes_) {
    read_process(process);
    if (stopped_) return fail_in(file_, "stopped");
  }
  if (records_ == 0)
    return fail_in(file_, "contains no readable call, range or device work",
                   "rows with times, names and threads or devices");
  return {};
}

void NsysReader::read_process(std::int64_t process) {
  const std::string source =
      processes_.size() > 1 ? fmt::format("{} (process {})", file_, process) : file_;
  recorder_ = &new_rank_(source);
  process_ = process;
  recorder_->info().format = "nsys";
  recorder_->set_place(
      [this, source] { return fmt::format("{}: {} row {}", source, table_, row_); });
  if (process == processes_.begin()->first) {  // what belongs to the file is counted once
    recorder_->problem(ProblemKind::kMissingField, file_ + ": a row without a process",
                       rows_without_process_);
    count_ignored();
  }
  ProcessRows rows(db_, tables_, process, *recorder_);
  read_session(rows);
  read_devices(rows);
  read_rank_number();
  rows.read_domains();
  for (const TableReader& reader : table_readers()) read_table(reader, rows);
  recorder_->set_place([source] { return source; });
  records_ += recorder_->host_count() + recorder_->gpu_count();
  if (!stopped_) recorder_->finish();
}

void NsysReader::read_table(const TableReader& reader, ProcessRows& rows) {
  constexpr std::uint64_t kRowsPerReport = 4096;
  if (!tables_.has(reader.table) || stopped_) return;
  table_ = reader.table;
  row_ = 0;
  const std::string whose =
      processes_.size() > 1 ? fmt::format("= {}", process_) : fmt::format("IN ({}, -1)", process_);
  Query row(db_, fmt::format("{} WHERE {} {}", tables_.select(reader.table, reader.columns),
                             tables_.process_of(reader.table), whose));
  while (row.next()) {
    ++row_;
    ++rows_done_;
    (rows.*reader.read)(row);
    if (row_ % kRowsPerReport != 0 || !progress_) continue;
    stopped_ =
        !progress_(std::min(1.0, static_cast<double>(rows_done_) / static_cast<double>(rows_)));
    if (stopped_) return;
  }
  if (!row.ok()) recorder_->problem(ProblemKind::kMalformed);
}

void NsysReader::read_session(ProcessRows& rows) {
  constexpr std::string_view kSession = "TARGET_INFO_SESSION_START_TIME";
  if (tables_.has(kSession, "utcEpochNs")) {
    Query query(db_, fmt::format("SELECT utcEpochNs FROM {}", kSession));
    if (query.next())
      if (const auto base = number(query, 0); base && plausible(Nanoseconds(*base)))
        recorder_->info().clock_base = Nanoseconds(*base);
  }
  if (tables_.has("TARGET_INFO_SYSTEM_ENV", "name") &&
      tables_.has("TARGET_INFO_SYSTEM_ENV", "value")) {
    Query query(db_, "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'");
    if (query.next()) recorder_->info().host = rows.sound(query.text(0));
  }
}

void NsysReader::read_devices(ProcessRows& rows) {
  constexpr std::string_view kGpus = "TARGET_INFO_GPU";
  constexpr std::string_view kNumbers = "TARGET_INFO_CUDA_DEVICE";
  // Device 0 of CUDA can be any GPU of the server; the process says which.
  std::map<std::int64_t, std::uint32_t> ordinals;
  if (tables_.has(kNumbers, "gpuId") && tables_.has(kNumbers, "cudaId") &&
      tables_.has(kNumbers, "pid")) {
    Query query(db_,
                fmt::format("SELECT gpuId, cudaId FROM {} WHERE pid = {}", kNumbers, process_));
    while (query.next()) {
      const auto gpu = number(query, 0);
      const auto ordinal = unsigned_number<std::uint32_t>(query, 1);
      if (gpu && ordinal) ordinals[*gpu] = *ordinal;
    }
  }
  if (!tables_.has(kGpus)) return;
  constexpr std::array<std::string_view, 7> kColumns = {
      "id", "cuDevice", "name", "totalMemory", "smCount", "computeMajor", "computeMinor"};
  Query query(db_, tables_.select(kGpus, kColumns));
  while (query.next()) {
    const auto id = unsigned_number<std::uint32_t>(query, 0);
    if (!id) continue;
    const auto mapped = ordinals.find(*id);
    if (!ordinals.empty() && mapped == ordinals.end()) continue;  // not a device of this process
    const std::uint32_t ordinal =
        ordinals.empty() ? unsigned_number<std::uint32_t>(query, 1).value_or(*id) : mapped->second;
    Device device{.ordinal = ordinal,
                  .name = rows.sound(query.text(2)),
                  .multiprocessors = unsigned_number<std::uint32_t>(query, 4),
                  .compute_major = unsigned_number<std::uint32_t>(query, 5),
                  .compute_minor = unsigned_number<std::uint32_t>(query, 6)};
    if (const auto memory = unsigned_number<std::uint64_t>(query, 3))
      device.memory = Bytes::b(static_cast<double>(*memory));
    recorder_->device(std::move(device));
  }
}

void NsysReader::read_rank_number() {
  if (tables_.has("MPI_RANKS", "globalTid") && tables_.has("MPI_RANKS", "rank")) {
    Query query(db_, fmt::format("SELECT rank FROM MPI_RANKS WHERE {} = {}",
                                 tables_.process_of("MPI_RANKS"), process_));
    if (query.next()) recorder_->info().rank = unsigned_number<std::uint32_t>(query, 0);
  }
  if (!recorder_->info().rank && tables_.has("PROCESSES", "globalPid") &&
      tables_.has("PROCESSES", "name")) {
    Query query(db_, fmt::format("SELECT name FROM PROCESSES WHERE {} = {}",
                                 tables_.process_of("PROCESSES"), process_));
    if (query.next()) recorder_->info().rank = number_behind_rank(query.text(0));
  }
}

void NsysReader::count_ignored() {
  for (const std::string_view table : kIgnored) {
    if (!tables_.has(table)) continue;
    Query query(db_, fmt::format("SELECT count(*) FROM {}", table));
    if (query.next())
      recorder_->problem(ProblemKind::kIgnoredCategory, fmt::format("{}: {}", file_, table),
                         query.optional<std::uint64_t>(0).value_or(0));
  }
}

}  // namespace

bool is_nsys(const std::filesystem::path& file) {
  if (!holds_database(file)) return false;
  if (is_packed(file)) return true;  // trace stores are not packed
  const Result<SqlitePtr> db = open_sqlite(file, SqliteAccess::kRead);
  return db && Tables(db->get()).are_of_an_export();
}

Status read_nsys(const std::filesystem::path& file, const NewRank& new_rank,
                 const Progress& progress) {
  std::optional<PendingFile> copy;
  if (is_packed(file)) copy.emplace(TRY(unpacked(file)));
  const SqlitePtr db = TRY(open_sqlite(copy ? copy->temporary() : file, SqliteAccess::kRead));
  if (Query query(db.get(), "SELECT count(*) FROM sqlite_master"); !query.next())
    return sqlite_error(db.get(), file, "cannot be read");
  return NsysReader(db.get(), file.string(), new_rank, progress).read();
}

}  // namespace rehearse::ingest
