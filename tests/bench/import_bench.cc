// From a trace file to a store, a graph and a timeline, each compared with the minimum work that it
// must do.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <simdjson.h>
#include <sqlite3.h>
#include <unistd.h>

#include "profiler/ingest/input.h"
#include "profiler/replay/lower.h"
#include "profiler/trace/store.h"
#include "sim/base/check.h"
#include "sim/engine/engine.h"
#include "tests/bench/peak_memory.h"
#include "tests/bench/synthetic_kineto.h"
#include "tests/support/capture_builder.h"

namespace rehearse::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kTraceBytes = 100'000'000;
constexpr std::size_t kRows = 1'000'000;
constexpr std::uint64_t kKernels = 256 * 4000;

/// A process that launched this many kernels, each from an operator of PyTorch, 64 of them per
/// step.
std::string capture_of(std::uint64_t kernels) {
  using namespace capture;
  constexpr std::uint64_t kBase = 1'700'000'000'000'000'000, kBlock = 256;
  test::CaptureBuilder out;
  out.process({.host = "host", .process = 10, .realtime_ns = kBase, .monotonic_ns = 1});
  out.text(1, "cudaLaunchKernel");
  for (std::uint32_t k = 0; k < 64; ++k)
    out.text(10 + k, fmt::format("_ZN2at6native6kernelILi{}EEEvPfi", k));
  std::uint32_t text = 100;
  std::vector<Row> rows(kBlock);
  std::vector<CallRecord> calls(kBlock);
  std::vector<KernelRecord> records(kBlock);
  for (std::uint64_t first = 0; first < kernels; first += kBlock) {
    for (std::uint64_t i = 0; i < kBlock; ++i) {
      const std::uint64_t k = first + i, at = kBase + 20'000 * k;
      out.text(text, fmt::format("aten::op{}, seq = {}, op_id = {}, sizes = [[32, 64], [64, 64]]",
                                 k % 64, k, k));
      rows[i] = {.time = at + 9'000, .span = 9'000, .text = text++};
      calls[i] = {1, at + 2'000, at + 6'000, 70, k + 1, 0, 0};
      records[i] = {10 + k % 64, at + 10'000, at + 25'000, 0, 1, 7,    k + 1, 128, 1, 1, 256,
                    1,           1,           40,          0, 0, 1024, 0,     0,   0, 0, 0};
    }
    out.rows(70, rows).records(70, calls).records(99, records);
    out.clock(kBase + 20'000 * (first + kBlock), 1 + 20'000 * (first + kBlock));
  }
  return out.trailer(kernels, 0).bytes();
}

/// Files of this run, removed at its end.
class Scratch {
 public:
  static const Scratch& instance() {
    static const Scratch scratch;
    return scratch;
  }
  fs::path store(std::string_view name) const { return folder_ / fmt::format("{}.rehearse", name); }

  /// A capture folder of one process, written on first use.
  fs::path capture() const {
    const fs::path folder = folder_ / "capture";
    if (fs::exists(folder)) return folder;
    fs::create_directories(folder);
    std::ofstream(folder / "host-10.cap", std::ios::binary) << capture_of(kKernels);
    return folder;
  }

  /// One synthetic trace, written on first use.
  fs::path trace(std::uint32_t rank) const {
    fs::path path = folder_ / fmt::format("rank{}.json", rank);
    if (fs::exists(path)) return path;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"),
                                                               &std::fclose);
    REHEARSE_CHECK(file != nullptr, "{} cannot be written", path.string());
    write_kineto(file.get(), kTraceBytes, {.rank = rank});
    REHEARSE_CHECK(std::fflush(file.get()) == 0, "{} cannot be written", path.string());
    return path;
  }

 private:
  Scratch() : folder_(fs::temp_directory_path() / fmt::format("rehearse-bench-{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  fs::path folder_;
};

/// Items are bytes of JSON, for every benchmark that reads JSON.
void count_bytes(benchmark::State& state) {
  const auto bytes = static_cast<std::int64_t>(fs::file_size(Scratch::instance().trace(0)));
  state.SetItemsProcessed(state.iterations() * bytes);
}

template <class T>
T value(Result<T> result) {
  REHEARSE_CHECK(result.has_value(), "{}", to_string(result.error()));
  return std::move(*result);
}

ingest::ImportSummary import_trace(const fs::path& trace, const fs::path& store) {
  return value(ingest::import_inputs(std::array{trace}, store, {}));
}

void import_to_store(benchmark::State& state) {
  const fs::path trace = Scratch::instance().trace(0);
  const fs::path store = Scratch::instance().store("import");
  for (auto _ : state) import_trace(trace, store);
  count_bytes(state);
  if (const auto peak = peak_memory([&] { import_trace(trace, store); }))
    state.counters["peak_bytes"] = static_cast<double>(*peak);
  state.counters["store_bytes"] = static_cast<double>(fs::file_size(store));
}
BENCHMARK(import_to_store)->Name("import/json_to_store")->Unit(benchmark::kMillisecond);

/// Items are rows. The file is larger than a real one, whose columns are written as differences.
void capture_to_store(benchmark::State& state) {
  const fs::path folder = Scratch::instance().capture();
  const fs::path store = Scratch::instance().store("capture");
  std::uint64_t rows = 0;
  for (auto _ : state) {
    const ingest::ImportSummary summary = import_trace(folder, store);
    rows = summary.host_ops + summary.gpu_ops;
  }
  REHEARSE_CHECK(rows == 3 * kKernels, "{} rows", rows);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(rows));
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(fs::file_size(folder / "host-10.cap")));
  if (const auto peak = peak_memory([&] { import_trace(folder, store); }))
    state.counters["peak_bytes"] = static_cast<double>(*peak);
}
BENCHMARK(capture_to_store)->Name("import/capture_to_store")->Unit(benchmark::kMillisecond);

void import_to_memory(benchmark::State& state) {
  const fs::path trace = Scratch::instance().trace(0);
  for (auto _ : state) benchmark::DoNotOptimize(ingest::read_inputs(std::array{trace}, {}));
  count_bytes(state);
}
BENCHMARK(import_to_memory)->Name("import/json_to_memory")->Unit(benchmark::kMillisecond);

// Reads every token of a document in memory, in the way that is fastest with simdjson.
std::size_t tokens(simdjson::ondemand::value value) {
  using simdjson::ondemand::json_type;
  std::size_t count = 1;
  switch (value.type().value()) {
    case json_type::object:
      for (auto field : value.get_object().value()) {
        count += field.unescaped_key().value().empty() ? 0 : 1;
        count += tokens(field.value().value());
      }
      break;
    case json_type::array:
      for (auto element : value.get_array().value()) count += tokens(element.value());
      break;
    case json_type::string: count += value.get_string().value().empty() ? 0 : 1; break;
    case json_type::number: count += value.get_double().value() > 0; break;
    default: break;
  }
  return count;
}

void simdjson_tokens(benchmark::State& state) {
  const auto json =
      simdjson::padded_string::load(Scratch::instance().trace(0).string()).take_value();
  simdjson::ondemand::parser parser;
  for (auto _ : state) {
    auto document = parser.iterate(json);
    benchmark::DoNotOptimize(tokens(document.get_value().value()));
  }
  count_bytes(state);
}
BENCHMARK(simdjson_tokens)->Name("reference/simdjson_tokens")->Unit(benchmark::kMillisecond);

void python_json_load(benchmark::State& state) {
  const std::string command = fmt::format(
      "python3 -c 'import json, time; begin = time.process_time(); json.load(open(\"{}\")); "
      "print(time.process_time() - begin)'",
      Scratch::instance().trace(0).string());
  for (auto _ : state) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> python(::popen(command.c_str(), "r"),
                                                                 &::pclose);
    double seconds = 0;
    if (!python || std::fscanf(python.get(), "%lf", &seconds) != 1) {
      state.SkipWithError("python3 does not run");
      return;
    }
    state.SetIterationTime(seconds);
  }
  count_bytes(state);
}
BENCHMARK(python_json_load)
    ->Name("reference/python_json_load")
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

trace::HostOp row(std::size_t i) {
  return {.name = NameId(i % 100),
          .thread = trace::ThreadId(0),
          .kind = trace::HostKind::kRuntime,
          .start = Nanoseconds(static_cast<std::int64_t>(i) * 1000),
          .duration = Nanoseconds(500),
          .correlation = static_cast<std::uint32_t>(i)};
}

void store_rows(benchmark::State& state) {
  trace::Trace trace;
  for (int i = 0; i < 100; ++i) trace.names.intern(std::to_string(i));
  trace::Rank& rank = trace.ranks.emplace_back();
  rank.threads.push_back({NameId(0), NameId(1)});
  for (auto _ : state) {
    trace::StoreWriter writer =
        value(trace::StoreWriter::create(Scratch::instance().store("rows")));
    for (std::size_t i = 0; i < kRows; ++i) writer.rows(0).add(row(i));
    REHEARSE_CHECK(writer.finish(trace).has_value());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}
BENCHMARK(store_rows)->Name("import/store_rows")->Unit(benchmark::kMillisecond);

/// The same rows by one prepared INSERT per row.
void insert_rows(benchmark::State& state) {
  const fs::path path = Scratch::instance().store("inserts");
  for (auto _ : state) {
    fs::remove(path);
    sqlite3* db = nullptr;
    sqlite3_stmt* insert = nullptr;
    REHEARSE_CHECK(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
    sqlite3_exec(db,
                 "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;"
                 "CREATE TABLE host_op(a, b, c, d, e, f, g, h, i, j, k, l, m)",
                 nullptr, nullptr, nullptr);
    sqlite3_prepare_v2(db, "INSERT INTO host_op VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", -1, &insert,
                       nullptr);
    for (std::size_t i = 0; i < kRows; ++i) {
      const trace::HostOp op = row(i);
      sqlite3_bind_int64(insert, 1, 0);
      sqlite3_bind_int64(insert, 2, static_cast<int>(op.kind));
      sqlite3_bind_int64(insert, 3, op.name.index());
      sqlite3_bind_int64(insert, 4, op.thread.index());
      sqlite3_bind_int64(insert, 5, op.start.count());
      sqlite3_bind_int64(insert, 6, op.duration.count());
      sqlite3_bind_int64(insert, 7, *op.correlation);
      REHEARSE_CHECK(sqlite3_step(insert) == SQLITE_DONE);
      sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
    sqlite3_close(db);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}
BENCHMARK(insert_rows)->Name("reference/one_insert_per_row")->Unit(benchmark::kMillisecond);

std::int64_t rows_of(const trace::Trace& trace) {
  std::size_t rows = 0;
  for (const trace::Rank& rank : trace.ranks)
    rows += rank.host_ops.size() + rank.gpu_ops.size() + rank.syncs.size();
  return static_cast<std::int64_t>(rows);
}

void read_store(benchmark::State& state) {
  const fs::path store = Scratch::instance().store("read");
  import_trace(Scratch::instance().trace(0), store);
  std::int64_t rows = 0;
  for (auto _ : state) rows = rows_of(value(trace::read_store(store)));
  state.SetItemsProcessed(state.iterations() * rows);
}
BENCHMARK(read_store)->Name("read/store")->Unit(benchmark::kMillisecond);

/// This many ranks of one job, read, and the data that a replay needs of them.
struct Job {
  explicit Job(std::int64_t ranks) {
    std::vector<fs::path> paths;
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      paths.push_back(Scratch::instance().trace(rank));
    trace = value(ingest::read_inputs(paths, {}));
    for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank)
      recordings.emplace_back(trace, rank);
  }

  trace::Trace trace;
  std::vector<replay::Recording> recordings;
};

void index_recording(benchmark::State& state) {
  const Job job(1);
  for (auto _ : state) benchmark::DoNotOptimize(replay::Recording(job.trace, 0));
  state.SetItemsProcessed(state.iterations() * rows_of(job.trace));
}
BENCHMARK(index_recording)->Name("replay/index")->Unit(benchmark::kMillisecond);

void lower(benchmark::State& state) {
  const Job job(state.range(0));
  std::size_t ops = 0;
  const auto work = [&] { ops = value(replay::to_graph(job.recordings)).graph().size(); };
  for (auto _ : state) work();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ops));
  if (const auto peak = peak_memory(work))
    state.counters["peak_bytes_per_op"] = static_cast<double>(*peak) / static_cast<double>(ops);
}
BENCHMARK(lower)->Name("replay/lower/ranks")->Arg(1)->Arg(2)->Arg(4)->Unit(benchmark::kMillisecond);

void run_replay(benchmark::State& state) {
  const Job job(state.range(0));
  const replay::ReplayGraph lowered = value(replay::to_graph(job.recordings));
  for (auto _ : state) benchmark::DoNotOptimize(value(engine::run(lowered.graph())));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(lowered.graph().size()));
}
BENCHMARK(run_replay)
    ->Name("replay/run/ranks")
    ->Arg(1)
    ->Arg(2)
    ->Arg(4)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::bench
