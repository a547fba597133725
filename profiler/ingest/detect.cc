#include "profiler/ingest/detect.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <fmt/core.h>

#include "profiler/ingest/byte_source.h"
#include "profiler/ingest/capture.h"
#include "profiler/ingest/chakra_messages.h"
#include "profiler/ingest/jax.h"
#include "profiler/ingest/json_stream.h"
#include "profiler/ingest/nsys.h"
#include "profiler/ingest/op_table.h"
#include "profiler/ingest/rocprof.h"
#include "profiler/trace/store.h"
#include "sim/base/file.h"

namespace rehearse::ingest {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAccepted =
    "a trace store (.rehearse), a capture folder, Kineto JSON, a PyTorch execution trace, Chakra "
    "(.et), an Nsight Systems export (SQLite), rocprofv3's JSON or table of kernels (CSV), a "
    "trace of JAX's profiler, or an op table (CSV)";

// --- the kind of an input

/// The keys at the top of a JSON document, from its first bytes.
class TopKeys final : public JsonHandler {
 public:
  bool has(std::string_view key) const { return keys_.contains(key); }
  bool is_array_of_objects() const { return is_array_of_objects_; }
  bool is_of_xla() const { return is_of_xla_; }

  bool streams(std::string_view key) const override {
    keys_.emplace(key);
    return true;
  }
  void member(std::string_view key, JsonValue&) override { keys_.emplace(key); }
  bool element(JsonValue& value) override {
    const bool whole = value.fields([this](std::string_view key, JsonValue& field) {
      if (key != "args") return;
      field.fields([this](std::string_view name, JsonValue& argument) {
        if (name == "name" && names_xla_process(argument.text())) is_of_xla_ = true;
      });
    });
    if (whole && keys_.empty()) is_array_of_objects_ = true;
    return whole;
  }

 private:
  mutable std::set<std::string, std::less<>> keys_;
  bool is_array_of_objects_ = false;
  bool is_of_xla_ = false;
};

std::optional<InputKind> json_kind(std::string_view begin) {
  const std::unique_ptr<ByteSource> bytes = bytes_in_memory(begin);
  TopKeys keys;
  // Being cut off is all that is wrong with most documents here.
  (void)JsonStream(*bytes, "", keys).read({});
  if (keys.has(kRocprofKey)) return InputKind::kRocprofJson;
  if (keys.has("traceEvents") && keys.is_of_xla()) return InputKind::kJax;
  if (keys.has("traceEvents") || keys.is_array_of_objects()) return InputKind::kKineto;
  if (keys.has("nodes") && keys.has("schema")) return InputKind::kExecutionTrace;
  return std::nullopt;
}

tl::unexpected<Error> unknown(const fs::path& path, std::string problem) {
  const fs::path extension = path.extension();
  const bool is_report = extension == ".nsys-rep" || extension == ".qdrep";
  return fail_in(path, std::move(problem), std::string(kAccepted),
                 is_report ? "export it with nsys export --type sqlite" : "");
}

Result<InputKind> file_kind(const fs::path& path) {
  constexpr std::size_t kBegin = std::size_t{1} << 18;
  // A recording is read more than once, and a pipe or a device may have no end.
  std::error_code ignored;
  if (const fs::file_status status = fs::status(path, ignored);
      fs::exists(status) && !fs::is_regular_file(status))
    return unknown(path, "is a pipe or a device");
  // Of the kernel's files, which have no size, some are without an end.
  if (fs::file_size(path, ignored) == 0) return unknown(path, "is empty");
  note_input(path);
  if (trace::is_store(path)) return InputKind::kStore;
  if (is_nsys(path)) return InputKind::kNsys;
  const std::unique_ptr<ByteSource> source = TRY(open_bytes(path));
  std::string begin(kBegin, '\0');
  begin.resize(source->read(begin));
  if (begin.empty()) {
    const std::string damage = source->damage();
    return unknown(path, damage.empty() ? "is empty" : damage);
  }
  if (begin.starts_with("SQLite format 3"))
    return unknown(path,
                   "is an SQLite database, but neither a trace store nor an Nsight Systems export");
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  const auto first = std::find_if_not(begin.begin(), begin.end(), is_space);
  if (first != begin.end() && (*first == '{' || *first == '[')) {
    if (const auto kind = json_kind(begin)) return *kind;
    return unknown(path, "is JSON, but no recording");
  }
  if (looks_like_op_table(begin)) return InputKind::kOpTable;
  if (looks_like_rocprof_csv(begin)) return InputKind::kRocprofCsv;
  if (looks_like_chakra(begin)) return InputKind::kChakra;
  return unknown(path, "is not a readable recording");
}

// --- which inputs there are

Input make_input(const fs::path& path, InputKind kind) {
  std::error_code failed;
  const std::uintmax_t bytes = fs::file_size(path, failed);
  return {path, kind, failed ? 1.0 : static_cast<double>(bytes)};
}

/// "rank2" before "rank10".
bool natural_less(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const auto take_number = [&](std::string_view& text) {
        text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
        const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
        text.remove_prefix(digits.size());
        return digits;
      };
      const std::string_view x = take_number(a), y = take_number(b);
      if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

Result<std::vector<Input>> inputs_at(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    const InputKind kind = TRY(file_kind(path));
    return std::vector{make_input(path, kind)};
  }
  if (is_capture_folder(path)) return std::vector{make_input(path, InputKind::kCapture)};
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator at(path, failed), end; !failed && at != end; at.increment(failed))
    if (at->is_regular_file(ignored)) files.push_back(at->path());
  if (failed) return fail_in(path, fmt::format("cannot be read: {}", failed.message()));
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    if (natural_less(a.string(), b.string())) return true;
    return !natural_less(b.string(), a.string()) && a < b;
  });
  std::vector<Input> inputs;
  for (const fs::path& file : files)
    if (const Result<InputKind> kind = file_kind(file)) inputs.push_back(make_input(file, *kind));
  if (inputs.empty()) return unknown(path, "is a folder without a recording");
  return inputs;
}

}  // namespace

Result<InputKind> detect_input(const fs::path& path) {
  const std::vector<Input> inputs = TRY(inputs_at(path));
  return inputs.front().kind;
}

Result<std::vector<Input>> find_inputs(std::span<const fs::path> paths) {
  std::vector<Input> all;
  Error errors;
  for (const fs::path& path : paths) {
    const Result<std::vector<Input>> inputs = inputs_at(path);
    if (inputs) {
      all.insert(all.end(), inputs->begin(), inputs->end());
    } else {
      const auto& found = inputs.error().diagnostics;
      errors.diagnostics.insert(errors.diagnostics.end(), found.begin(), found.end());
    }
  }
  if (!errors.diagnostics.empty()) return tl::unexpected(std::move(errors));
  if (all.empty()) return fail("no recording is given", std::string(kAccepted));
  return all;
}

}  // namespace rehearse::ingest
