#include "profiler/ingest/rocprof.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "profiler/ingest/json_stream.h"
#include "profiler/ingest/numbers.h"
#include "profiler/ingest/rocprof_rows.h"
#include "sim/base/csv.h"
#include "sim/base/text.h"
#include "sim/base/utf8.h"

namespace rehearse::ingest {
namespace {

namespace fs = std::filesystem;
using namespace rocprof;

// --- JSON

/// A record of any table; texts as in the file.
struct Record {
  std::string kind, operation, thread, correlation, start, end;
  std::string agent, from, to, queue, stream, kernel, bytes;
  std::optional<std::uint32_t> grid[3], block[3];
};

struct Agent {
  std::string handle, name, product, node;
  bool gpu = false;
  std::optional<std::uint32_t> units;
};

struct Process {
  std::string id;
  std::vector<Agent> agents;
  std::map<std::string, std::string> kernels;  ///< by id
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds;
  std::map<std::string, std::string> markers;  ///< by correlation id
  std::vector<Record> dispatches, copies, calls, ranges;
};

/// {"handle": 7}
std::string handle_of(JsonValue& value, std::string_view key = "handle") {
  std::string handle;
  value.fields([&](std::string_view name, JsonValue& field) {
    if (name == key) handle = field.text();
  });
  return handle;
}

void read_extents(JsonValue& value, std::optional<std::uint32_t> (&extents)[3]) {
  value.fields([&](std::string_view key, JsonValue& field) {
    if (key.size() == 1 && key[0] >= 'x' && key[0] <= 'z')
      extents[key[0] - 'x'] = parse_id(field.text());
  });
}

Record read_record(JsonValue& value) {
  Record record;
  value.fields([&](std::string_view key, JsonValue& field) {
    if (key == "kind") record.kind = field.text();
    if (key == "operation") record.operation = field.text();
    if (key == "thread_id") record.thread = field.text();
    if (key == "correlation_id") record.correlation = handle_of(field, "internal");
    if (key == "start_timestamp") record.start = field.text();
    if (key == "end_timestamp") record.end = field.text();
    if (key == "stream_id") record.stream = handle_of(field);
    if (key == "src_agent_id") record.from = handle_of(field);
    if (key == "dst_agent_id") record.to = handle_of(field);
    if (key == "bytes") record.bytes = field.text();
    if (key != "dispatch_info") return;
    field.fields([&](std::string_view name, JsonValue& part) {
      if (name == "agent_id") record.agent = handle_of(part);
      if (name == "queue_id") record.queue = handle_of(part);
      if (name == "kernel_id") record.kernel = part.text();
      if (name == "grid_size") read_extents(part, record.grid);
      if (name == "workgroup_size") read_extents(part, record.block);
    });
  });
  return record;
}

Agent read_agent(JsonValue& value) {
  Agent agent;
  value.fields([&](std::string_view key, JsonValue& field) {
    if (key == "id") agent.handle = handle_of(field);
    if (key == "type") agent.gpu = field.text() == "2";
    if (key == "name") agent.name = field.text();
    if (key == "product_name") agent.product = field.text();
    if (key == "logical_node_id") agent.node = field.text();
    if (key == "cu_count") agent.units = parse_id(field.text());
  });
  return agent;
}

void read_strings(JsonValue& value, Process& process) {
  value.fields([&](std::string_view key, JsonValue& field) {
    if (key == "buffer_records")
      field.elements([&](JsonValue& element) {
        auto& kind = process.kinds.emplace_back();
        element.fields([&](std::string_view name, JsonValue& part) {
          if (name == "kind") kind.first = part.text();
          if (name == "operations")
            part.elements([&](JsonValue& one) { kind.second.emplace_back(one.text()); });
        });
      });
    if (key == "marker_api")
      field.elements([&](JsonValue& element) {
        std::string id, text;
        element.fields([&](std::string_view name, JsonValue& part) {
          (name == "key" ? id : text) = part.text();
        });
        process.markers.insert_or_assign(std::move(id), std::move(text));
      });
  });
}

/// False if the text of the process is broken or incomplete.
bool read_process(JsonValue& value, Process& process) {
  return value.fields([&](std::string_view key, JsonValue& field) {
    if (key == "metadata") process.id = handle_of(field, "pid");
    if (key == "strings") read_strings(field, process);
    if (key == "agents")
      field.elements([&](JsonValue& agent) { process.agents.push_back(read_agent(agent)); });
    if (key == "kernel_symbols")
      field.elements([&](JsonValue& symbol) {
        std::string id, name;
        symbol.fields([&](std::string_view of, JsonValue& part) {
          if (of == "kernel_id") id = part.text();
          const bool names =
              of == "kernel_name" || of == "truncated_kernel_name" || of == "formatted_kernel_name";
          if (names && (name.empty() || of == "formatted_kernel_name")) name = part.text();
        });
        if (!name.empty()) process.kernels.insert_or_assign(std::move(id), std::move(name));
      });
    if (key == "buffer_records")
      field.fields([&](std::string_view table, JsonValue& rows) {
        std::vector<Record>* const into = table == "kernel_dispatch" || table == "kernel_dispatches"
                                              ? &process.dispatches
                                          : table == "memory_copy" ? &process.copies
                                          : table == "hip_api"     ? &process.calls
                                          : table == "marker_api"  ? &process.ranges
                                                                   : nullptr;
        if (into) rows.elements([&](JsonValue& row) { into->push_back(read_record(row)); });
      });
  });
}

class ProcessWriter {
 public:
  ProcessWriter(const Process& process, trace::Recorder& to) : process_(process), to_(to) {
    std::uint32_t place = 0;
    for (const Agent& agent : process.agents) {
      const std::uint32_t number = parse_id(agent.node).value_or(place++);
      numbers_[agent.handle] = number;
      if (agent.gpu)
        to.device({.ordinal = number,
                   .name = agent.product.empty() ? agent.name : agent.product,
                   .multiprocessors = agent.units});
    }
  }

  void write() {
    for (const Record& record : process_.ranges)
      if (const auto op = host_op(record)) {
        const auto text = process_.markers.find(record.correlation);
        add_marker(text == process_.markers.end() ? operation_of(record) : text->second, *op, to_);
      }
    for (const Record& record : process_.calls)
      if (const auto op = host_op(record)) add_call(operation_of(record), *op, to_);
    for (const Record& record : process_.dispatches) {
      auto op = device_op(record, record.agent, trace::GpuKind::kKernel);
      if (!op) continue;
      const auto name = process_.kernels.find(record.kernel);
      name_kernel(name == process_.kernels.end() ? "kernel " + record.kernel : name->second, to_,
                  *op);
      set_shape(record.grid, record.block, to_, *op);
      to_.add(*op);
    }
    for (const Record& record : process_.copies) {
      const bool from_gpu =
          std::any_of(process_.agents.begin(), process_.agents.end(),
                      [&](const Agent& agent) { return agent.gpu && agent.handle == record.from; });
      auto op = device_op(record, from_gpu ? record.from : record.to, trace::GpuKind::kCopy);
      if (!op) continue;
      set_direction(operation_of(record), to_, *op);
      op->bytes = parse_count(record.bytes);
      to_.add(*op);
    }
  }

 private:
  struct Times {
    Nanoseconds start, duration;
  };
  std::optional<Times> times_of(const Record& record) {
    if (record.start.empty() || record.end.empty()) {
      to_.problem(trace::ProblemKind::kMissingField);
      return std::nullopt;
    }
    const auto start = parse_whole(record.start), end = parse_whole(record.end);
    if (!start || !end || !trace::plausible(Nanoseconds(*start)) ||
        !trace::plausible(Nanoseconds(*end))) {
      to_.problem(trace::ProblemKind::kAbsurdNumber);
      return std::nullopt;
    }
    return Times{Nanoseconds(*start), Nanoseconds(*end - *start)};
  }
  std::optional<trace::HostOp> host_op(const Record& record) {
    const auto times = times_of(record);
    if (!times) return std::nullopt;
    return trace::HostOp{.name = to_.name(""),
                         .thread = to_.thread(process_.id, record.thread),
                         .kind = trace::HostKind::kRuntime,
                         .start = times->start,
                         .duration = times->duration,
                         .correlation = parse_id(record.correlation)};
  }
  std::optional<trace::GpuOp> device_op(const Record& record, const std::string& agent,
                                        trace::GpuKind kind) {
    const auto times = times_of(record);
    if (!times) return std::nullopt;
    const auto number = numbers_.find(agent);
    const std::uint32_t device = number == numbers_.end() ? 0 : number->second;
    if (device > UINT16_MAX) {
      to_.problem(trace::ProblemKind::kAbsurdNumber);
      return std::nullopt;
    }
    return trace::GpuOp{.name = to_.name(""),
                        .kind = kind,
                        .device = static_cast<std::uint16_t>(device),
                        .stream = streams_.of(!record.stream.empty() ? "stream " + record.stream
                                                                     : "queue " + record.queue),
                        .start = times->start,
                        .duration = times->duration,
                        .correlation = parse_id(record.correlation)};
  }
  std::string_view operation_of(const Record& record) const {
    const auto kind = parse_id(record.kind), operation = parse_id(record.operation);
    if (!kind || *kind >= process_.kinds.size() || !operation ||
        *operation >= process_.kinds[*kind].second.size())
      return "unknown";
    return process_.kinds[*kind].second[*operation];
  }

  const Process& process_;
  trace::Recorder& to_;
  std::map<std::string, std::uint32_t> numbers_;  ///< of agents
  Streams streams_;
};

class Handler final : public JsonHandler {
 public:
  Handler(const std::string& file, const NewRank& new_rank) : file_(file), new_rank_(new_rank) {}

  bool streams(std::string_view key) const override { return key == kRocprofKey; }
  /// Early versions write one process, without a list around it.
  void member(std::string_view key, JsonValue& value) override {
    if (key == kRocprofKey) (void)element(value);
  }
  bool element(JsonValue& value) override {
    Process process;
    if (!read_process(value, process)) return false;
    if (process.dispatches.empty() && process.copies.empty()) return true;
    last_ = &new_rank_(fmt::format("{} process {}", file_, process.id));
    last_->info().format = "rocprofv3";
    last_->set_place([place = last_->info().source] { return place; });
    ProcessWriter(process, *last_).write();
    last_->finish();
    works_ = works_ || last_->gpu_count() > 0;
    return true;
  }
  trace::Recorder* last() const { return last_; }
  bool works() const { return works_; }

 private:
  const std::string& file_;
  const NewRank& new_rank_;
  trace::Recorder* last_ = nullptr;
  bool works_ = false;  ///< whether any process has device work
};

// --- CSV

/// A table, and how its cells are read.
class Table {
 public:
  static Result<std::optional<Table>> at(const fs::path& path, std::uint64_t& replaced) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return std::nullopt;
    const std::unique_ptr<ByteSource> source = TRY(open_bytes(path));
    const std::string bytes = TRY(read_all(*source, path.string()));
    CsvTable table = TRY(CsvTable::parse(sound_text(bytes, replaced), path.string()));
    return Table(std::move(table));
  }

  std::size_t rows() const { return table_.rows(); }
  Status require(std::initializer_list<std::string_view> columns) const {
    return table_.require(columns);
  }
  std::string_view text(std::size_t row, std::string_view column) const {
    return table_.has(column) ? table_.cell(row, column) : std::string_view();
  }
  std::optional<std::uint32_t> id(std::size_t row, std::string_view column) const {
    return parse_id(text(row, column));
  }
  Result<Nanoseconds> time(std::size_t row, std::string_view column) const {
    const auto time = parse_whole(text(row, column));
    if (!time || !trace::plausible(Nanoseconds(*time)))
      return fail(table_.problem(row, column, fmt::format("'{}' is no time", text(row, column)),
                                 "nanoseconds"));
    return Nanoseconds(*time);
  }
  /// "Agent 5", "GPU 3" or 5.
  Result<std::uint16_t> device(std::size_t row, std::string_view column) const {
    std::string_view number = text(row, column);
    if (const std::size_t space = number.rfind(' '); space != std::string_view::npos)
      number.remove_prefix(space + 1);
    const std::optional<std::uint32_t> device = number.empty() ? 0 : parse_id(number);
    if (!device || *device > UINT16_MAX)
      return fail(table_.problem(row, column, fmt::format("'{}' is no agent", text(row, column)),
                                 "Agent 5"));
    return static_cast<std::uint16_t>(*device);
  }

 private:
  explicit Table(CsvTable table) : table_(std::move(table)) {}
  CsvTable table_;
};

Result<trace::HostOp> host_op(const Table& table, std::size_t row, trace::Recorder& to) {
  const Nanoseconds start = TRY(table.time(row, "Start_Timestamp")),
                    end = TRY(table.time(row, "End_Timestamp"));
  return trace::HostOp{
      .name = to.name(""),
      .thread = to.thread(table.text(row, "Process_Id"), table.text(row, "Thread_Id")),
      .kind = trace::HostKind::kRuntime,
      .start = start,
      .duration = end - start,
      .correlation = table.id(row, "Correlation_Id")};
}

Result<trace::GpuOp> device_op(const Table& table, std::size_t row, std::string_view agent,
                               trace::GpuKind kind, Streams& streams, trace::Recorder& to) {
  const Nanoseconds start = TRY(table.time(row, "Start_Timestamp")),
                    end = TRY(table.time(row, "End_Timestamp"));
  const std::uint16_t device = TRY(table.device(row, agent));
  const std::string_view stream = table.text(row, "Stream_Id");
  return trace::GpuOp{
      .name = to.name(""),
      .kind = kind,
      .device = device,
      .stream = streams.of(!stream.empty() ? fmt::format("stream {}", stream)
                                           : fmt::format("queue {}", table.text(row, "Queue_Id"))),
      .start = start,
      .duration = end - start,
      .correlation = table.id(row, "Correlation_Id")};
}

}  // namespace

bool looks_like_rocprof_csv(std::string_view begin) {
  if (begin.starts_with("\xEF\xBB\xBF")) begin.remove_prefix(3);
  const std::string_view heading = begin.substr(0, begin.find_first_of("\r\n"));
  return heading.find("Kernel_Name") != std::string_view::npos &&
         heading.find("Start_Timestamp") != std::string_view::npos &&
         heading.find("End_Timestamp") != std::string_view::npos;
}

Status read_rocprof_json(ByteSource& source, const std::string& file, const NewRank& new_rank,
                         const Progress& progress) {
  Handler handler(file, new_rank);
  JsonStream stream(source, file, handler);
  const JsonDamage damage = TRY(stream.read(progress));
  if (!handler.works())
    return fail_in(file,
                   damage.truncated.empty() && damage.malformed == 0
                       ? "contains no kernel and no copy"
                       : "is damaged before its first kernel",
                   "rocprofv3 --kernel-trace --hip-trace --memory-copy-trace --marker-trace "
                   "--output-format json");
  report_damage(damage, *handler.last());
  return {};
}

Status read_rocprof_csv(const fs::path& path, const NewRank& new_rank) {
  std::uint64_t replaced = 0;
  const auto table_of = [&](std::string_view kind) {
    constexpr std::string_view kTrace = "kernel_trace";
    std::string name = path.filename().string();
    const std::size_t at = name.rfind(kTrace);
    if (at == std::string::npos) return fs::path();
    return path.parent_path() / name.replace(at, kTrace.size(), kind);
  };
  const std::optional<Table> kernels = TRY(Table::at(path, replaced)),
                             copies = TRY(Table::at(table_of("memory_copy_trace"), replaced)),
                             calls = TRY(Table::at(table_of("hip_api_trace"), replaced)),
                             markers = TRY(Table::at(table_of("marker_api_trace"), replaced)),
                             agents = TRY(Table::at(table_of("agent_info"), replaced));
  if (!kernels) return fail_in(path, "cannot be read", "a table of kernels");
  TRY(kernels->require({"Kernel_Name", "Start_Timestamp", "End_Timestamp"}));
  if (kernels->rows() == 0) return fail_in(path, "has no kernels", "rocprofv3 --kernel-trace");
  for (const auto* table : {&copies, &calls, &markers})
    if (*table) TRY((*table)->require({"Start_Timestamp", "End_Timestamp"}));

  trace::Recorder& to = new_rank(path.string());
  to.info().format = "rocprofv3";
  to.set_place([place = path.string()] { return place; });
  if (replaced > 0) to.problem(trace::ProblemKind::kInvalidText, path.string(), replaced);
  for (std::size_t r = 0; agents && r < agents->rows(); ++r)
    if (agents->text(r, "Agent_Type") == "GPU") {
      const std::string_view product = agents->text(r, "Product_Name");
      to.device({.ordinal = agents->id(r, "Logical_Node_Id").value_or(0),
                 .name = std::string(product.empty() ? agents->text(r, "Name") : product),
                 .multiprocessors = agents->id(r, "Cu_Count")});
    }
  for (std::size_t r = 0; markers && r < markers->rows(); ++r) {
    // Names of threads and pauses of the profiler are no ranges.
    if (!markers->text(r, "Domain").starts_with("MARKER_CORE")) continue;
    const trace::HostOp op = TRY(host_op(*markers, r, to));
    add_marker(markers->text(r, "Function"), op, to);
  }
  for (std::size_t r = 0; calls && r < calls->rows(); ++r) {
    const trace::HostOp op = TRY(host_op(*calls, r, to));
    add_call(calls->text(r, "Function"), op, to);
  }
  Streams streams;
  for (std::size_t r = 0; r < kernels->rows(); ++r) {
    const std::string_view kind = kernels->text(r, "Kind");
    if (!kind.empty() && kind != "KERNEL_DISPATCH") continue;
    trace::GpuOp op = TRY(device_op(*kernels, r, "Agent_Id", trace::GpuKind::kKernel, streams, to));
    name_kernel(kernels->text(r, "Kernel_Name"), to, op);
    const std::optional<std::uint32_t> grid[3] = {kernels->id(r, "Grid_Size_X"),
                                                  kernels->id(r, "Grid_Size_Y"),
                                                  kernels->id(r, "Grid_Size_Z")};
    const std::optional<std::uint32_t> block[3] = {kernels->id(r, "Workgroup_Size_X"),
                                                   kernels->id(r, "Workgroup_Size_Y"),
                                                   kernels->id(r, "Workgroup_Size_Z")};
    set_shape(grid, block, to, op);
    to.add(op);
  }
  for (std::size_t r = 0; copies && r < copies->rows(); ++r) {
    const std::string_view direction = copies->text(r, "Direction");
    const bool down = direction.ends_with("DEVICE_TO_HOST");
    trace::GpuOp op = TRY(device_op(*copies, r, down ? "Source_Agent_Id" : "Destination_Agent_Id",
                                    trace::GpuKind::kCopy, streams, to));
    set_direction(direction, to, op);
    to.add(op);
  }
  if (to.gpu_count() == 0)
    return fail_in(path, "has no kernel that can be read", "rocprofv3 --kernel-trace");
  to.finish();
  return {};
}

}  // namespace rehearse::ingest
