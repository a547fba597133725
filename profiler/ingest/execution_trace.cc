#include "profiler/ingest/execution_trace.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include <fmt/core.h>

#include "profiler/ingest/json_stream.h"
#include "profiler/ingest/numbers.h"
#include "profiler/trace/collective_names.h"
#include "profiler/trace/shapes.h"

namespace rehearse::ingest {
namespace {

using namespace trace;

/// The fields of one operator that are used, as in the file.
struct Operator {
  std::string_view name, record_function, sequence, thread, forward_thread;
  std::string_view values, shapes, types, output_shapes, output_types;
  // of collectives, from schema 1.1.0 on
  std::string_view collective, dtype, elements_in, elements_out, group, group_size;
};

using Field = std::string_view Operator::*;

struct NamedField {
  std::string_view name;
  Field field;
};

// Schema 1.0.1 has them all side by side; later ones nest tensors and list the rest as attributes.
constexpr NamedField kFields[] = {
    {"name", &Operator::name},
    {"inputs", &Operator::values},
    {"input_shapes", &Operator::shapes},
    {"input_types", &Operator::types},
    {"output_shapes", &Operator::output_shapes},
    {"output_types", &Operator::output_types},
};
constexpr NamedField kAttributes[] = {
    {"rf_id", &Operator::record_function},
    {"seq_id", &Operator::sequence},
    {"tid", &Operator::thread},
    {"fw_tid", &Operator::forward_thread},
    {"collective_name", &Operator::collective},
    {"dtype", &Operator::dtype},
    {"in_msg_nelems", &Operator::elements_in},
    {"out_msg_nelems", &Operator::elements_out},
    {"pg_name", &Operator::group},
    {"pg_size", &Operator::group_size},
    {"group_size", &Operator::group_size},
};

Field find(std::span<const NamedField> fields, std::string_view name) {
  for (const NamedField& entry : fields)
    if (entry.name == name) return entry.field;
  return nullptr;
}

/// The text within the next quotes at or after `at`; moves `at` past them.
std::optional<std::string_view> take_quoted(std::string_view text, std::size_t& at) {
  const std::size_t open = text.find('"', at);
  if (open == std::string_view::npos) return std::nullopt;
  const std::size_t close = text.find('"', open + 1);
  if (close == std::string_view::npos) return std::nullopt;
  at = close + 1;
  return text.substr(open + 1, close - open - 1);
}

/// Whether the schema is one that this reader knows: "1.0.1", "1.1.0-chakra.0.0.4".
bool is_known_schema(std::string_view schema) { return schema == "1" || schema.starts_with("1."); }

/// The part of a schema's text that is safe to print.
std::string_view printable(std::string_view schema) {
  constexpr std::string_view kAllowed = "0123456789.-_abcdefghijklmnopqrstuvwxyz";
  return schema.substr(0, std::min<std::size_t>(schema.find_first_not_of(kAllowed), 32));
}

class ExecutionTraceHandler final : public JsonHandler {
 public:
  explicit ExecutionTraceHandler(Recorder& recorder) : recorder_(recorder) {}

  /// Empty until it is read.
  const std::optional<std::string>& schema() const { return schema_; }

  bool streams(std::string_view key) const override { return key == "nodes"; }

  void member(std::string_view key, JsonValue& value) override {
    if (key == "schema") schema_ = std::string(value.text());
    if (key == "pid") process_ = std::string(value.text());
  }

  bool element(JsonValue& value) override {
    Operator op;
    bool whole = true;
    const bool complete = value.fields([&](std::string_view key, JsonValue& field) {
      if (key == "attrs") {
        whole = read_attributes(field, op) && whole;
      } else if (key == "inputs" && field.is_object()) {
        whole = read_tensors(field, op.values, op.shapes, op.types) && whole;
      } else if (key == "outputs" && field.is_object()) {
        std::string_view values;
        whole = read_tensors(field, values, op.output_shapes, op.output_types) && whole;
      } else if (const Field known = find(kFields, key)) {
        op.*known = field.text();
      } else if (const Field attribute = find(kAttributes, key)) {
        op.*attribute = field.text();
      }
    });
    if (!complete || !whole) return false;
    read(op);
    return true;
  }

 private:
  bool read_attributes(JsonValue& value, Operator& op) {
    bool whole = true;
    const bool complete = value.elements([&](JsonValue& attribute) {
      Field known = nullptr;
      std::string_view text;
      whole = attribute.fields([&](std::string_view key, JsonValue& field) {
        if (key == "name") known = find(kAttributes, field.text());
        if (key == "value") text = field.text();
      }) && whole;
      if (known) op.*known = text;
    });
    return complete && whole;
  }

  static bool read_tensors(JsonValue& value, std::string_view& values, std::string_view& shapes,
                           std::string_view& types) {
    return value.fields([&](std::string_view key, JsonValue& field) {
      if (key == "values") values = field.text();
      if (key == "shapes") shapes = field.text();
      if (key == "types") types = field.text();
    });
  }

  void read(const Operator& op) {
    if (op.name.starts_with("[pytorch|")) return;  // the roots of the tree, no operators
    if (op.name.empty() || op.thread.empty()) return recorder_.problem(ProblemKind::kMissingField);
    HostOp row{.name = recorder_.name(op.name),
               .thread = recorder_.thread(process_, op.thread),
               .kind = HostKind::kOperator,
               .start = Nanoseconds(0),
               .duration = Nanoseconds(0),
               .sequence = parse_id(op.sequence),
               .record_function = parse_id(op.record_function),
               .collective = collective_of(op)};
    if (const auto thread = parse_id(op.forward_thread); thread != 0u) row.forward_thread = thread;
    if (!op.shapes.empty()) row.inputs = recorder_.inputs(op.shapes, op.types);
    recorder_.add(row);
  }

  std::optional<CollectiveId> collective_of(const Operator& op) {
    std::optional<CollectiveKind> kind;
    if (!op.collective.empty()) {
      kind = collective_from_framework(op.collective);
    } else if (op.name == "record_param_comms") {
      // The first text among its inputs: tensors, two numbers, "all_to_allv", ...
      std::size_t at = 0;
      while (const auto text = take_quoted(op.values, at))
        if ((kind = collective_from_framework(*text))) break;
    } else if (op.name.starts_with("nccl:") || op.name.starts_with("gloo:")) {
      kind = collective_from_framework(op.name);
    }
    if (!kind) return std::nullopt;
    Collective collective{.kind = *kind, .group_size = parse_id(op.group_size)};
    const auto width = element_bytes(op.dtype);
    collective.bytes_in = product(parse_count(op.elements_in), width);
    collective.bytes_out = product(parse_count(op.elements_out), width);
    if (!collective.bytes_in) collective.bytes_in = tensor_bytes(op.shapes, op.types);
    if (!collective.bytes_out)
      collective.bytes_out = tensor_bytes(op.output_shapes, op.output_types);
    if (!op.group.empty()) collective.group = recorder_.name(op.group);
    if (!op.dtype.empty()) collective.dtype = recorder_.name(op.dtype);
    return recorder_.collective(collective);
  }

  Recorder& recorder_;
  std::optional<std::string> schema_;
  std::string process_;
};

}  // namespace

Status read_execution_trace(ByteSource& source, Recorder& recorder, const Progress& progress) {
  ExecutionTraceHandler handler(recorder);
  recorder.info().format = "execution_trace";
  recorder.info().timed = false;
  const std::string file = recorder.info().source;
  const auto is_refused = [&] { return handler.schema() && !is_known_schema(*handler.schema()); };
  const Result<JsonDamage> damage = read_stream(source, handler, recorder, [&](double share) {
    return !is_refused() && (!progress || progress(share));
  });
  if (is_refused())
    return fail_in(
        file, fmt::format("is an execution trace of schema '{}'", printable(*handler.schema())),
        "a schema from 1.0.1 to 1.1.1");
  if (!damage) return forward(damage);
  if (!handler.schema())
    return fail_in(file, "does not name its schema",
                   "a PyTorch execution trace with a 'schema' member");
  if (recorder.host_count() == 0)
    return fail_in(
        file,
        damage->truncated.empty() ? "contains no operators" : "ends before the first operator",
        "a PyTorch execution trace with a 'nodes' array");
  recorder.finish();
  report_damage(*damage, recorder);
  return {};
}

}  // namespace rehearse::ingest
