#include "tests/fuzz/readers.h"

#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <optional>

#include "cli/calibrate/nccl_log.h"
#include "cli/check/budget.h"
#include "cli/config/pack_file.h"
#include "models/comm/calibration.h"
#include "models/sharing/shipped_pairs.h"
#include "models/workload/hugging_face.h"
#include "models/workload/read_model.h"
#include "profiler/capture/format.h"
#include "profiler/ingest/astra_system.h"
#include "profiler/ingest/capture.h"
#include "profiler/ingest/chakra.h"
#include "profiler/ingest/chakra_messages.h"
#include "profiler/ingest/chakra_program.h"
#include "profiler/ingest/execution_trace.h"
#include "profiler/ingest/input.h"
#include "profiler/ingest/jax.h"
#include "profiler/ingest/join.h"
#include "profiler/ingest/kineto.h"
#include "profiler/ingest/nsys.h"
#include "profiler/ingest/op_table.h"
#include "profiler/ingest/rocprof.h"
#include "profiler/trace/align.h"
#include "profiler/trace/store.h"
#include "profiler/trace/store_tables.h"
#include "sim/base/check.h"
#include "sim/base/csv.h"
#include "sim/base/utf8.h"
#include "sim/cluster/astra_network.h"
#include "sim/cluster/read_cluster.h"
#include "sim/fleet/job_list.h"
#include "tests/fuzz/errors.h"
#include "tests/fuzz/memory_file.h"

namespace rehearse::fuzz {
namespace {

using namespace trace;

template <class Tag>
void check_id(Id<Tag> id, std::size_t size) {
  REHEARSE_CHECK(id.index() < size, "id {} of {}", id.index(), size);
}
template <class Tag>
void check_id(std::optional<Id<Tag>> id, std::size_t size) {
  if (id) check_id(*id, size);
}

void check_times(const Rank& rank, Nanoseconds start, Nanoseconds duration) {
  REHEARSE_CHECK(plausible(start) && duration >= Nanoseconds(0), "{} + {}", start.count(),
                 duration.count());
  REHEARSE_CHECK(plausible(rank.info.clock_base));
}

void check(const Rank& rank, std::size_t names) {
  for (const Thread& thread : rank.threads) {
    check_id(thread.process, names);
    check_id(thread.thread, names);
  }
  for (const Inputs& inputs : rank.inputs) {
    check_id(inputs.shapes, names);
    check_id(inputs.types, names);
  }
  for (const Collective& collective : rank.collectives) {
    check_id(collective.group, names);
    check_id(collective.ranks, names);
    check_id(collective.dtype, names);
  }
  for (const HostOp& op : rank.host_ops) {
    check_id(op.name, names);
    check_id(op.thread, rank.threads.size());
    check_id(op.inputs, rank.inputs.size());
    check_id(op.collective, rank.collectives.size());
    check_times(rank, op.start, op.duration);
  }
  for (const GpuOp& op : rank.gpu_ops) {
    check_id(op.name, names);
    check_id(op.launch_shape, rank.launch_shapes.size());
    check_id(op.collective, rank.collectives.size());
    check_times(rank, op.start, op.duration);
  }
  for (const Sync& sync : rank.syncs) check_times(rank, sync.start, sync.duration);
  for (const Dependency& dependency : rank.dependencies)
    for (const RowRef row : {dependency.from, dependency.to})
      REHEARSE_CHECK(row.index < (row.on_gpu ? rank.gpu_ops.size() : rank.host_ops.size()));
}

/// What the rest of the program relies on.
void check(const Trace& trace) {
  for (const Rank& rank : trace.ranks) check(rank, trace.names.size());
  for (std::size_t i = 0; i < trace.names.size(); ++i) {
    std::uint64_t replaced = 0;
    (void)sound_text(trace.names[NameId(i)], replaced);
    REHEARSE_CHECK(replaced == 0, "name {} is no UTF-8", i);
  }
}

/// A trace that a reader fills, checked at the end.
class Reading {
 public:
  Recorder& next(std::string source) {
    recorder_.reset();
    Rank& rank = ranks_.emplace_back();
    rank.info.source = std::move(source);
    rows_.emplace(rank);
    return recorder_.emplace(trace_.names, trace_.problems, rank, *rows_);
  }

  void finish(const Status& status, bool may_be_empty = false) {
    recorder_.reset();
    trace_.ranks.assign(std::make_move_iterator(ranks_.begin()),
                        std::make_move_iterator(ranks_.end()));
    check(trace_);
    if (!status) return check_error(status.error());
    std::size_t rows = 0;
    for (const Rank& rank : trace_.ranks) rows += rank.host_ops.size() + rank.gpu_ops.size();
    REHEARSE_CHECK(rows > 0 || may_be_empty, "a silent zero");
    align(trace_);
  }

 private:
  Trace trace_;
  std::deque<Rank> ranks_;
  std::optional<RankRows> rows_;
  std::optional<Recorder> recorder_;
};

template <class Read>
void run(Read read, std::string_view bytes) {
  const auto source = ingest::bytes_in_memory(bytes);
  Reading reading;
  reading.finish(read(*source, reading.next(kName), {}));
}

/// Gives a capture file the header and the checksums that its blocks should have.
void put_right(std::string& file) {
  using namespace capture;
  FileHeader header{.magic = {}, .version = kFormatVersion, .reserved = 0};
  if (file.size() < sizeof header) return;
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  std::memcpy(file.data(), &header, sizeof header);
  for (std::size_t at = sizeof header; at + sizeof(BlockHeader) <= file.size();) {
    BlockHeader block;
    std::memcpy(&block, file.data() + at, sizeof block);
    const char* payload = file.data() + at + sizeof block;
    const std::size_t left = file.size() - at - sizeof block;
    block.bytes = static_cast<std::uint32_t>(std::min<std::size_t>(block.bytes, left));
    block.crc = block_crc(static_cast<BlockType>(block.type), payload, block.bytes);
    std::memcpy(file.data() + at, &block, sizeof block);
    at += sizeof block + block.bytes;
  }
}

void check_store(const std::filesystem::path& path) {
  (void)is_store(path);
  Result<Trace> trace = read_store(path);
  if (!trace) return check_error(trace.error());
  // A store of no rows is sound, and its texts are what a reader once gave.
  for (const Rank& rank : trace->ranks) check(rank, trace->names.size());
  align(*trace);
}

}  // namespace

void calibration(std::string_view bytes) {
  const auto read = comm::parse_calibration(std::string(bytes), kName);
  if (!read) return check_error(read.error());
  const std::string text = comm::to_yaml(*read);
  const auto again = comm::parse_calibration(text, kName);
  REHEARSE_CHECK(again.has_value(), "{}", to_string(again.error()));
  REHEARSE_CHECK(comm::to_yaml(*again) == text, "not as it was written:\n{}", text);
}

void capture_file(std::string_view bytes) {
  if (bytes.empty()) return;
  std::string file(bytes.substr(1));
  if (bytes.front() & 1) put_right(file);
  const auto source = ingest::bytes_in_memory(file);
  Reading reading;
  reading.finish(ingest::read_capture(*source, reading.next(kName), {}), true);
}

void chakra(std::string_view bytes) {
  (void)ingest::looks_like_chakra(bytes);
  run(ingest::read_chakra, bytes);
}

void chakra_job(std::string_view bytes) {
  const auto source = ingest::bytes_in_memory(bytes);
  NamePool names;
  const auto read = ingest::read_chakra_program(*source, kName, false, names);
  if (!read) return check_error(read.error());
  const program::RankProgram& program = read->program;
  REHEARSE_CHECK(!program.ops.empty() && read->ids.size() == program.ops.size());
  REHEARSE_CHECK(program.first_dependency.size() == program.ops.size() + 1);
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const program::ProgramOp& op = program.ops[i];
    check_id(op.name, names.size());
    if (op.task == program::Task::kCollective) REHEARSE_CHECK(op.group < read->groups.size());
    if (op.duration) REHEARSE_CHECK(*op.duration >= Picoseconds(0));
    REHEARSE_CHECK(op.bytes >= Bytes::b(0) && op.flops >= Flops::flop(0));
    for (std::uint32_t d = program.first_dependency[i]; d < program.first_dependency[i + 1]; ++d) {
      REHEARSE_CHECK(program.dependencies[d] < i);
      REHEARSE_CHECK(d == program.first_dependency[i] ||
                     program.dependencies[d - 1] < program.dependencies[d]);
    }
  }
}

void budget(std::string_view bytes) {
  const Result<std::vector<cli::Limit>> read = cli::parse_budget(std::string(bytes), kName);
  if (!read) return check_error(read.error());
  for (const cli::Limit& limit : *read) {
    const double value = limit.rise.value_or(limit.most.value_or(-1));
    REHEARSE_CHECK(value > 0 && std::isfinite(value) &&
                   limit.rise.has_value() != limit.most.has_value());
    REHEARSE_CHECK(!cli::describe(limit).empty() && !cli::allowed(limit).empty());
  }
}

void astra_network(std::string_view bytes) {
  const Result<cluster::AstraNetwork> read =
      cluster::parse_astra_network(std::string(bytes), kName);
  if (!read) return check_error(read.error());
  std::size_t devices = 1;
  for (const std::uint32_t size : read->dimensions) devices *= size;
  REHEARSE_CHECK(devices == read->cluster.devices().size());
  const cluster::Route route = read->cluster.route(DeviceId(0), DeviceId(devices - 1));
  REHEARSE_CHECK(!route.hops.empty() && route.path.rate > ByteRate::bytes_per_s(0));
}

void astra_system(std::string_view bytes) {
  const Result<ingest::AstraSystem> read = ingest::parse_astra_system(std::string(bytes), kName);
  if (!read) return check_error(read.error());
  REHEARSE_CHECK(read->collectives.splits >= 1 && read->collectives.splits <= 1024);
  REHEARSE_CHECK(read->endpoint_delay >= Seconds::s(0) &&
                 read->peak.has_value() == read->memory.has_value());
}

void cluster_file(std::string_view bytes) {
  const Result<cluster::Cluster> read = cluster::parse_cluster(std::string(bytes), kName);
  if (!read) return check_error(read.error());
  // The first device to each of some that are spread over the cluster, and to every kind of vertex.
  const std::size_t devices = read->devices().size(), vertices = read->vertices().size();
  for (std::size_t i = 0; i < devices; i += 1 + devices / 16) {
    const cluster::Route route = read->route(DeviceId(0), DeviceId(i));
    for (const HopId hop : route.hops)
      REHEARSE_CHECK(cluster::Cluster::link_of(hop).index() < read->links().size());
    REHEARSE_CHECK(route.path.rate > ByteRate::bytes_per_s(0));
  }
  for (std::size_t i = 0; i < vertices; i += 1 + vertices / 16)
    (void)read->route_to(DeviceId(0), VertexId(i));
}

void csv(std::string_view bytes) {
  const Result<CsvTable> table = CsvTable::parse(bytes, kName);
  if (!table) return check_error(table.error());
  REHEARSE_CHECK(!table->columns().empty());
  std::uint32_t line = 0;
  for (std::size_t row = 0; row < table->rows(); ++row) {
    REHEARSE_CHECK(table->line(row) > line, "line {} after {}", table->line(row), line);
    line = table->line(row);
    for (const std::string& column : table->columns()) {
      REHEARSE_CHECK(table->cell(row, column).size() <= bytes.size());
      if (const auto number = table->number(row, column); !number) check_error(number.error());
    }
  }
}

void execution_trace(std::string_view bytes) { run(ingest::read_execution_trace, bytes); }

void job_list(std::string_view bytes) {
  const auto check_list = [](const Result<fleet::JobList>& list) {
    if (!list) return check_error(list.error());
    for (const fleet::Job& job : list->jobs) {
      REHEARSE_CHECK(job.gpus >= 1);
      REHEARSE_CHECK(job.submit >= Nanoseconds(0) && job.submit <= fleet::kLatestSubmit);
      REHEARSE_CHECK(job.work >= Nanoseconds(0) && job.work <= fleet::kLongestWork);
    }
    if (list->jobs.size() > 100) return;
    const auto outcome = fleet::run({.nodes = 3, .gpus_per_node = 4}, list->jobs,
                                    {.policy = fleet::Policy::kBackfill});
    if (outcome)
      for (std::size_t j = 0; j < list->jobs.size(); ++j)
        REHEARSE_CHECK(outcome->jobs[j].has_value() == (list->jobs[j].gpus <= 12));
  };
  check_list(fleet::parse_jobs_csv(bytes, kName));
  check_list(fleet::parse_jobs_yaml(std::string(bytes), kName));
}

void kineto(std::string_view bytes) { run(ingest::read_kineto, bytes); }

void jax(std::string_view bytes) { run(ingest::read_jax, bytes); }

void rocprof_csv(std::string_view bytes) {
  (void)ingest::looks_like_rocprof_csv(bytes);
  const MemoryFile file(bytes);
  Reading reading;
  reading.finish(ingest::read_rocprof_csv(file.path(), [&](std::string source) -> Recorder& {
    return reading.next(std::move(source));
  }));
}

void rocprof_json(std::string_view bytes) {
  const auto source = ingest::bytes_in_memory(bytes);
  Reading reading;
  reading.finish(ingest::read_rocprof_json(
      *source, kName,
      [&](std::string process) -> Recorder& { return reading.next(std::move(process)); }, {}));
}

void model(std::string_view bytes) {
  if (const Result<workload::Transformer> config =
          workload::parse_hugging_face(std::string(bytes), kName);
      !config)
    check_error(config.error());
  else if (const auto made = workload::transformer(*config, {}))
    REHEARSE_CHECK(workload::verify(*made));
  const Result<YamlFile> file = YamlFile::parse(std::string(bytes), kName);
  if (!file) return check_error(file.error());
  const std::optional<workload::Workload> read = workload::read_model(file->root(), {}, "/absent");
  const Status status = file->status();
  if (!status) check_error(status.error());
  REHEARSE_CHECK(read || !status);
  if (read) REHEARSE_CHECK(workload::verify(*read));
}

void nccl_log(std::string_view bytes) {
  const auto runs = cli::parse_nccl_log(std::string(bytes), kName);
  if (!runs) return check_error(runs.error());
  REHEARSE_CHECK(!runs->empty(), "a silent zero");
  for (const cli::NcclRun& one : *runs) {
    REHEARSE_CHECK(one.ranks >= 2 && one.nodes >= 1 && !one.rows.empty());
    for (const comm::MeasuredRow& row : one.rows) {
      REHEARSE_CHECK(row.ranks == one.ranks && row.kind == one.kind);
      REHEARSE_CHECK(row.size >= Bytes::b(1) && std::isfinite(row.size.b()));
      REHEARSE_CHECK(row.time > Seconds::s(0) && std::isfinite(row.time.s()));
    }
  }
}

void nsys(std::string_view bytes) {
  const MemoryFile file(bytes);
  Reading reading;
  reading.finish(ingest::read_nsys(
      file.path(), [&](std::string source) -> Recorder& { return reading.next(std::move(source)); },
      {}));
}

void op_table(std::string_view bytes) {
  (void)ingest::looks_like_op_table(bytes);
  const auto source = ingest::bytes_in_memory(bytes);
  Reading reading;
  reading.finish(ingest::read_op_table(*source, kName, [&](std::string rank) -> Recorder& {
    return reading.next(std::move(rank));
  }));
}

void pack_file(std::string_view bytes) {
  const Result<cli::PackFile> file = cli::parse_pack(std::string(bytes), kName, "/absent");
  if (!file) return check_error(file.error());
  for (std::size_t a = 0; a < file->jobs.size(); ++a) {
    for (const auto& [kind, rate] : file->jobs[a].slice_rates)
      REHEARSE_CHECK(
          rate.low > 0 && rate.low <= rate.value && rate.value <= rate.high && rate.high <= 1,
          "{}: {} to {}", rate.value, rate.low, rate.high);
    for (std::size_t b = 0; b < a; ++b)
      if (const auto shares = file->pairs->shares(a, b))
        REHEARSE_CHECK(shares->first > 0 && shares->first <= 1 && shares->second > 0 &&
                       shares->second <= 1);
  }
  if (file->jobs.size() > 2 || file->site.gpus > 16) return;
  const auto packed = sharing::pack(file->jobs, file->site, file->goal);
  if (!packed) return;
  for (std::size_t j = 0; j < file->jobs.size(); ++j)
    REHEARSE_CHECK(packed->finish[j] - packed->started[j] >= file->jobs[j].work * (1 - 1e-9));
}

void pair_law(std::string_view bytes) {
  const auto read = sharing::parse_shipped_pairs(std::string(bytes), kName);
  if (!read) return check_error(read.error());
  for (const auto& [family, batches] : read->law->families()) {
    const sharing::Resident job{family, batches.from, Seconds::ms(10)};
    const double share = read->law->share(job, job);
    REHEARSE_CHECK(share > 0 && share <= 1, "{}", share);
  }
}

void store(std::string_view bytes) {
  const MemoryFile file(bytes);
  check_store(file.path());
  // Once more with the checksum that its bytes should have: what its tables hold is reached.
  if (seal(file.path())) check_store(file.path());
}

void input(std::string_view bytes) {
  const MemoryFile file(bytes);
  const std::array paths = {file.path()};
  const Result<Trace> trace = ingest::read_inputs(paths, {});
  if (!trace) return check_error(trace.error());
  for (const Rank& rank : trace->ranks) {
    check(rank, trace->names.size());
    REHEARSE_CHECK(rank.info.rank.has_value());
  }
}

std::span<const Target> targets() {
  static constexpr std::array<Target, 42> kTargets = {{{"astra_network", astra_network},
                                                       {"astra_system", astra_system},
                                                       {"budget", budget},
                                                       {"calibration", calibration},
                                                       {"capture", capture_file},
                                                       {"chakra", chakra},
                                                       {"chakra_job", chakra_job},
                                                       {"cluster", cluster_file},
                                                       {"comm_groups", comm_groups},
                                                       {"csv", csv},
                                                       {"dataflow", dataflow},
                                                       {"edits", edits},
                                                       {"execution_trace", execution_trace},
                                                       {"graph", graph},
                                                       {"history", history},
                                                       {"input", input},
                                                       {"jax", jax},
                                                       {"job", job},
                                                       {"job_list", job_list},
                                                       {"job_table", job_table},
                                                       {"journal", journal},
                                                       {"keys", keys},
                                                       {"kineto", kineto},
                                                       {"link", link},
                                                       {"model", model},
                                                       {"nccl_log", nccl_log},
                                                       {"nsys", nsys},
                                                       {"op_table", op_table},
                                                       {"pack_file", pack_file},
                                                       {"pair", pair},
                                                       {"pair_law", pair_law},
                                                       {"pipeline", pipeline},
                                                       {"rented", rented},
                                                       {"requests", requests},
                                                       {"rocprof_csv", rocprof_csv},
                                                       {"rocprof_json", rocprof_json},
                                                       {"saved", saved},
                                                       {"serve", serve},
                                                       {"serving_result", serving_result},
                                                       {"shapes", shapes},
                                                       {"store", store},
                                                       {"study", study}}};
  return kTargets;
}

}  // namespace rehearse::fuzz
