#include "profiler/ingest/input.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "profiler/ingest/byte_source.h"
#include "profiler/ingest/capture.h"
#include "profiler/ingest/chakra.h"
#include "profiler/ingest/execution_trace.h"
#include "profiler/ingest/jax.h"
#include "profiler/ingest/join.h"
#include "profiler/ingest/kineto.h"
#include "profiler/ingest/nsys.h"
#include "profiler/ingest/numbers.h"
#include "profiler/ingest/op_table.h"
#include "profiler/ingest/rocprof.h"
#include "profiler/trace/align.h"
#include "profiler/trace/recorder.h"
#include "profiler/trace/store.h"

namespace rehearse::ingest {
namespace {

namespace fs = std::filesystem;
using namespace trace;

// --- reading

/// Gives rows of names of one pool the names of another.
void rename(Rank& rank, const std::vector<NameId>& names) {
  const auto renamed = [&](NameId& name) { name = names[name.index()]; };
  const auto renamed_if = [&](std::optional<NameId>& name) {
    if (name) renamed(*name);
  };
  for (Thread& thread : rank.threads) {
    renamed(thread.process);
    renamed(thread.thread);
  }
  for (Inputs& inputs : rank.inputs) {
    renamed(inputs.shapes);
    renamed(inputs.types);
  }
  for (Collective& collective : rank.collectives) {
    renamed_if(collective.group);
    renamed_if(collective.ranks);
    renamed_if(collective.dtype);
  }
  for (HostOp& op : rank.host_ops) renamed(op.name);
  for (GpuOp& op : rank.gpu_ops) renamed(op.name);
}

/// Collects the ranks of all inputs in the order of reading.
class Ranks {
 public:
  /// Makes the sink for the rows of the rank with this index.
  using MakeRows =
      std::function<std::unique_ptr<RowSink>(std::size_t index, Rank& rank, const NamePool& names)>;
  explicit Ranks(MakeRows make_rows) : make_rows_(std::move(make_rows)) {}

  Status read(std::span<const Input> inputs, const Progress& progress);

  /// All that was read. Nothing can be read after it.
  Trace take() {
    recorder_.reset();
    rows_.reset();
    Trace trace{.names = std::move(names_),
                .problems = std::move(problems_),
                .timings = std::move(timings_)};
    std::move(ranks_.begin(), ranks_.end(), std::back_inserter(trace.ranks));
    return trace;
  }

 private:
  Status read_one(const Input& input, const Progress& progress);

  Recorder& next(std::string source) {
    recorder_.reset();
    rows_.reset();
    Rank& rank = ranks_.emplace_back();
    rank.info.source = std::move(source);
    rows_ = make_rows_(ranks_.size() - 1, rank, names_);
    return recorder_.emplace(names_, problems_, rank, *rows_);
  }

  void append(Trace stored) {
    std::vector<NameId> names;
    for (std::size_t i = 0; i < stored.names.size(); ++i)
      names.push_back(names_.intern(stored.names[NameId(i)]));
    for (Rank& rank : stored.ranks) {
      rename(rank, names);
      ranks_.push_back(std::move(rank));
    }
    problems_.add(stored.problems);
    merge(timings_, std::move(stored.timings));
  }

  MakeRows make_rows_;
  NamePool names_;
  Problems problems_;
  std::vector<OpTiming> timings_;
  std::deque<Rank> ranks_;  // which does not move them
  std::unique_ptr<RowSink> rows_;
  std::optional<Recorder> recorder_;
};

Status Ranks::read(std::span<const Input> inputs, const Progress& progress) {
  double all = 0, done = 0;
  for (const Input& input : inputs) all += input.bytes;
  for (const Input& input : inputs) {
    const auto share_of_all = [&](double share) {
      return progress((done + share * input.bytes) / std::max(all, 1.0));
    };
    TRY(read_one(input, progress ? Progress(share_of_all) : Progress()));
    done += input.bytes;
  }
  return {};
}

Status Ranks::read_one(const Input& input, const Progress& progress) {
  const NewRank new_rank = [this](std::string source) -> Recorder& {
    return next(std::move(source));
  };
  switch (input.kind) {
    case InputKind::kCapture: return read_capture_folder(input.path, new_rank, progress);
    case InputKind::kNsys: return read_nsys(input.path, new_rank, progress);
    case InputKind::kRocprofCsv: return read_rocprof_csv(input.path, new_rank);
    case InputKind::kStore: {
      Trace stored = TRY(read_store(input.path));
      append(std::move(stored));
      return {};
    }
    default: break;
  }
  const std::unique_ptr<ByteSource> bytes = TRY(open_bytes(input.path));
  if (input.kind == InputKind::kOpTable)
    return read_op_table(*bytes, input.path.string(), new_rank);
  if (input.kind == InputKind::kRocprofJson)
    return read_rocprof_json(*bytes, input.path.string(), new_rank, progress);
  Recorder& recorder = next(input.path.string());
  switch (input.kind) {
    case InputKind::kExecutionTrace: return read_execution_trace(*bytes, recorder, progress);
    case InputKind::kChakra:
      recorder.info().rank = number_before_extension(input.path);
      return read_chakra(*bytes, recorder, progress);
    case InputKind::kJax: return read_jax(*bytes, recorder, progress);
    default: return read_kineto(*bytes, recorder, progress);
  }
}

// --- ranks among each other

/// Gives the ranks that `wants` the lowest numbers that no rank has.
template <class Wants>
void number_rest(std::vector<Rank>& ranks, Wants wants) {
  std::set<std::uint32_t> taken;
  for (const Rank& rank : ranks)
    if (rank.info.rank) taken.insert(*rank.info.rank);
  std::uint32_t next = 0;
  for (Rank& rank : ranks) {
    if (rank.info.rank || !wants(rank)) continue;
    while (taken.contains(next)) ++next;
    rank.info.rank = next++;
  }
}

/// Fails where two recordings claim one rank.
Status check_numbers(const std::vector<Rank>& ranks) {
  std::map<std::uint32_t, const Rank*> claimed;
  Error errors;
  for (const Rank& rank : ranks) {
    if (!rank.info.rank) continue;
    const auto [at, is_new] = claimed.try_emplace(*rank.info.rank, &rank);
    if (!is_new)
      errors.diagnostics.push_back(
          {.file = rank.info.source,
           .problem = fmt::format("is of rank {}, like {}", at->first, at->second->info.source),
           .expected = "one recording per rank"});
  }
  if (!errors.diagnostics.empty()) return tl::unexpected(std::move(errors));
  return {};
}

/// Numbers the ranks and joins execution traces to the ranks they belong to.
Status settle(Trace& trace) {
  TRY(check_numbers(trace.ranks));
  number_rest(trace.ranks, [](const Rank& rank) { return !is_execution_trace(rank); });
  join_execution_traces(trace);
  number_rest(trace.ranks, [](const Rank&) { return true; });
  return {};
}

Status check_strictly(const Trace& trace, const ReadOptions& options) {
  if (!options.strict || trace.problems.worst() == Severity::kInfo) return {};
  std::string kinds;
  for (const Problem& problem : trace.problems.list())
    if (info(problem.kind).severity != Severity::kInfo)
      kinds += fmt::format("{}{} ({}; {})", kinds.empty() ? "" : ", ", info(problem.kind).name,
                           problem.count, problem.first);
  return fail("the recording has problems: " + kinds, "none of severity warning or error");
}

Result<Trace> read_to_memory(std::span<const Input> inputs, const ReadOptions& options) {
  Ranks ranks(
      [](std::size_t, Rank& rank, const NamePool&) { return std::make_unique<RankRows>(rank); });
  TRY(ranks.read(inputs, options.progress));
  Trace trace = ranks.take();
  TRY(settle(trace));
  TRY(check_strictly(trace, options));
  std::stable_sort(trace.ranks.begin(), trace.ranks.end(),
                   [](const Rank& a, const Rank& b) { return a.info.rank < b.info.rank; });
  return trace;
}

// --- importing

/// Counts the rows of one rank on their way into the store.
class CountingRows final : public RowSink {
 public:
  CountingRows(RowSink& rows, const NamePool& names, ImportSummary& summary)
      : rows_(rows), names_(names), summary_(summary) {}
  ~CountingRows() override {
    summary_.steps = std::max(summary_.steps, steps_);
    summary_.devices += devices_.size();
  }
  CountingRows(const CountingRows&) = delete;
  CountingRows& operator=(const CountingRows&) = delete;

  void add(const HostOp& op) override {
    ++summary_.host_ops;
    if (op.kind == HostKind::kAnnotation && is_step_name(names_[op.name])) ++steps_;
    rows_.add(op);
  }
  void add(const GpuOp& op) override {
    ++summary_.gpu_ops;
    devices_.insert(op.device);
    rows_.add(op);
  }
  void add(const Sync& sync) override { rows_.add(sync); }
  void add(const Dependency& dependency) override { rows_.add(dependency); }
  void add(const PowerReading& reading) override { rows_.add(reading); }

 private:
  RowSink& rows_;
  const NamePool& names_;
  ImportSummary& summary_;
  std::set<std::uint16_t> devices_;
  std::uint64_t steps_ = 0;
};

void write_rows(const Trace& trace, StoreWriter& writer, ImportSummary& summary) {
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    const Rank& rank = trace.ranks[r];
    CountingRows rows(writer.rows(r), trace.names, summary);
    for (const HostOp& op : rank.host_ops) rows.add(op);
    for (const GpuOp& op : rank.gpu_ops) rows.add(op);
    for (const Sync& sync : rank.syncs) rows.add(sync);
    for (const Dependency& dependency : rank.dependencies) rows.add(dependency);
    for (const PowerReading& reading : rank.power) rows.add(reading);
  }
}

/// What recordings_read() returns.
struct Reads {
  std::mutex mutex;
  std::vector<ReadRecording> all;
};
Reads& reads() {
  static Reads instance;
  return instance;
}

void note(std::span<const fs::path> paths, const Trace& trace) {
  ReadRecording read;
  read.ranks = trace.ranks.size();
  const auto add = [](std::vector<std::string>& names, const std::string& name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const Rank& rank : trace.ranks) {
    for (const Fact& fact : rank.info.facts)
      if (fact.key == "commit") add(read.commits, fact.value);
    for (const Device& device : rank.devices) add(read.devices, device.name);
  }
  const std::lock_guard lock(reads().mutex);
  for (const fs::path& path : paths) {
    if (std::ranges::find(reads().all, path, &ReadRecording::path) != reads().all.end()) continue;
    read.path = path;
    reads().all.push_back(read);
  }
}

}  // namespace

std::vector<ReadRecording> recordings_read() {
  const std::lock_guard lock(reads().mutex);
  return reads().all;
}

Result<Trace> read_inputs(std::span<const fs::path> paths, const ReadOptions& options) {
  const std::vector<Input> inputs = TRY(find_inputs(paths));
  Trace trace = TRY(read_to_memory(inputs, options));
  if (trace.ranks.empty() && (trace.timings.empty() || !options.timings_suffice))
    return fail_in(paths.front(), "contains no recording", "a store that `rehearse import` wrote");
  align(trace);
  note(paths, trace);
  return trace;
}

Result<ImportSummary> import_inputs(std::span<const fs::path> paths, const fs::path& store,
                                    const ReadOptions& options) {
  const std::vector<Input> inputs = TRY(find_inputs(paths));
  StoreWriter writer = TRY(StoreWriter::create(store));
  ImportSummary summary;
  summary.in_memory = std::any_of(inputs.begin(), inputs.end(), [](const Input& input) {
    return input.kind == InputKind::kExecutionTrace || input.kind == InputKind::kStore;
  });
  Trace trace;
  if (summary.in_memory) {
    trace = TRY(read_to_memory(inputs, options));
    write_rows(trace, writer, summary);
  } else {
    Ranks ranks([&](std::size_t index, Rank&, const NamePool& names) {
      return std::make_unique<CountingRows>(writer.rows(index), names, summary);
    });
    TRY(ranks.read(inputs, options.progress));
    trace = ranks.take();
    TRY(settle(trace));
    TRY(check_strictly(trace, options));
  }
  TRY(writer.finish(trace));
  summary.ranks = trace.ranks.size();
  summary.problems = trace.problems;
  return summary;
}

}  // namespace rehearse::ingest
