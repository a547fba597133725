#include "models/dataflow/read_dataflow.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "models/dataflow/passes.h"
#include "sim/base/file.h"
#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/own_devices.h"

namespace rehearse::dataflow {
namespace {

constexpr double kMostRows = 1e12;
constexpr std::size_t kMostLayers = 200, kMostOperations = 5000;
/// What a file may have an operation compute; the others are those of derivatives.
constexpr std::size_t kReadable = static_cast<std::size_t>(Kind::kWeightGradient);

using Symbols = std::map<std::string, double, std::less<>>;
using Names = std::map<std::string, std::size_t, std::less<>>;

std::vector<std::string_view> keys_of(const auto& named) {
  std::vector<std::string_view> keys;
  for (const auto& [name, value] : named) keys.push_back(name);
  return keys;
}

void read_symbols(const YamlMap& map, Symbols& symbols) {
  for (const std::string& name : map.keys())
    symbols[name] = map.within<double>(name, 1, kMostRows).value_or(1);
  map.no_other_keys();
}

/// "2 * G": a product of numbers and symbols.
std::optional<Extent> read_extent(const YamlMap& map, std::string_view key, std::string_view text,
                                  const Symbols& symbols) {
  Extent extent{.name = "", .size = 1};
  for (std::string_view part : split(text, '*')) {
    part = trim(part);
    const std::optional<double> number = parse_number<double>(part);
    const auto symbol = symbols.find(part);
    if (!number && symbol == symbols.end()) {
      map.report(key, fmt::format("unknown symbol '{}'", part), suggest(part, keys_of(symbols)));
      return std::nullopt;
    }
    extent.size *= number ? *number : symbol->second;
    extent.name += fmt::format("{}{}", extent.name.empty() ? "" : " * ", part);
  }
  if (extent.size >= 1 && extent.size <= kMostRows) return extent;
  map.report(key, fmt::format("'{}' is {:g}", text, extent.size),
             fmt::format("1 to {:g}", kMostRows));
  return std::nullopt;
}

/// Reads one file of a dataflow and the file below it as one: a key is that of the first file that
/// has it.
class Reader {
 public:
  Reader(const YamlMap& own, std::optional<YamlMap> below) : own_(own), below_(std::move(below)) {}

  DataflowJob read() {
    DataflowJob job{.flow = {.name = of("name").optional<std::string>("name").value_or("dataflow")},
                    .device = ""};
    flow_ = &job.flow;
    read_settings(job);
    read_declarations();
    read_layers();
    const auto results = words(of("result"), "result");
    if (results.empty() && !of("result").has("result"))
      own_.report("result", "is missing", "the name of a value");
    // After another mistake values may be missing.
    for (const std::string& name : is_right() ? results : std::vector<std::string>{})
      if (const auto value = find_value(of("result"), "result", name))
        job.flow.results.push_back(*value);
    own_.no_other_keys();
    if (below_) below_->no_other_keys();
    job.symbols.assign(symbols_.begin(), symbols_.end());
    return job;
  }

  /// REQUIRES: everything was read without a mistake.
  void run_passes(DataflowJob& job) const {
    for (const std::string& name : job.passes) {
      const Pass& pass = *std::ranges::find(kPasses, name, &Pass::name);
      if (const Status ok = pass.run(job.flow); !ok) {
        const Diagnostic& d = ok.error().diagnostics.front();
        return of("passes").report("passes", fmt::format("{}: {}", name, d.problem), d.expected);
      }
    }
  }

 private:
  /// The mapping that has the key.
  const YamlMap& of(std::string_view key) const {
    if (below_) below_->has(key) && below_->is_map(key);  // known, and perhaps replaced
    return below_ && !own_.has(key) ? *below_ : own_;
  }

  bool is_right() const { return own_.status() && (!below_ || below_->status()); }

  /// A list, or one text with commas.
  static std::vector<std::string> words(const YamlMap& map, std::string_view key) {
    if (map.is_list(key)) return map.list<std::string>(key);
    std::vector<std::string> found;
    if (const auto text = map.optional<std::string>(key))
      for (const std::string_view word : split(*text, ',')) found.emplace_back(trim(word));
    return found;
  }

  void read_settings(DataflowJob& job) {
    job.device = cluster::read_device(of("device"), "device").value_or("");
    if (!job.device.empty())
      if (const auto gpu = cluster::find_gpu(job.device); !gpu) {
        const Diagnostic& d = gpu.error().diagnostics.front();
        of("device").report("device", d.problem, d.expected, d.nearest);
      }
    of("dtype").choose("dtype", workload::kDtypeNames, job.flow.dtype);
    of("gathers").choose("gathers", kGatherNames, job.flow.gathers);
    of("segments").choose("segments", kSegmentNames, job.flow.segments);
    if (const auto entry = of("index_entry").optional<Bytes>("index_entry")) {
      if (!(entry->b() >= 1 && entry->b() <= 16))
        of("index_entry").report("index_entry", "is out of range", "1 B to 16 B");
      job.flow.index_entry = *entry;
    }
    if (const auto host = of("host").map("host")) {
      const auto read = [&](std::string_view key, Estimate<Seconds>& to) {
        if (const auto time = host->within<Seconds>(key, Seconds::s(0), Seconds::s(10)))
          to = {*time, *time, *time, Provenance::kDatasheet};
      };
      read("operation", job.host.operation);
      read("kernel", job.host.kernel);
      host->no_other_keys();
    }
    job.passes = words(of("passes"), "passes");
    if (job.passes == std::vector<std::string>{"none"}) job.passes.clear();
    std::vector<std::string_view> known;
    for (const Pass& pass : kPasses) known.push_back(pass.name);
    for (const std::string& name : job.passes)
      if (std::ranges::find(known, name) == known.end())
        of("passes").report("passes", fmt::format("unknown pass '{}'", name), suggest(name, known));
    if (below_)
      if (const auto symbols = below_->map("symbols")) read_symbols(*symbols, symbols_);
    if (const auto symbols = own_.map("symbols")) read_symbols(*symbols, symbols_);
  }

  void read_declarations() {
    if (const auto indices = of("indices").map("indices")) {
      // Pairs may name an index that follows.
      for (const std::string& name : indices->keys())
        index_names_.emplace(name, index_names_.size());
      flow_->indices.resize(index_names_.size(), {"", {"", 1}, {"", 1}});
      for (const std::string& name : indices->keys())
        if (const auto index = indices->map(name)) read_index(*index, name);
      indices->no_other_keys();
    }
    if (const auto inputs = of("inputs").map("inputs")) declared(*inputs, Role::kInput, "");
  }

  void read_index(const YamlMap& map, const std::string& name) {
    Index& index = flow_->indices[index_names_[name]];
    index.name = name;
    const std::vector<std::string> via = map.list<std::string>("via");
    if (map.has("via")) {
      const auto first = via.size() == 2 ? find_index(map, "via", via[0]) : std::nullopt;
      const auto second = via.size() == 2 ? find_index(map, "via", via[1]) : std::nullopt;
      if (via.size() != 2) map.report("via", "is not a composition", "[source, type of a node]");
      if (first && second) {
        index.via = {{*first, *second}};
        index.rows = flow_->indices[*first].rows;
        index.of = flow_->indices[*second].of;
        if (flow_->indices[*first].of != flow_->indices[*second].rows)
          map.report("via",
                     fmt::format("{} leads to {}, but {} begins at {}", via[0],
                                 flow_->indices[*first].of.name, via[1],
                                 flow_->indices[*second].rows.name),
                     "two indices, declared above, the second of the rows that the first selects");
      }
    } else {
      for (const auto& [key, extent] : {std::pair("rows", &index.rows), std::pair("of", &index.of)})
        if (const auto text = map.required<std::string>(key))
          if (const auto read = read_extent(map, key, *text, symbols_)) *extent = *read;
    }
    if (const auto pairs = map.map("pairs")) {
      for (const std::string& other : pairs->keys()) {
        const auto found = find_index(*pairs, other, other);
        const auto text = pairs->optional<std::string>(other);
        const auto extent = text ? read_extent(*pairs, other, *text, symbols_) : std::nullopt;
        if (extent && extent->size > index.rows.size)
          pairs->report(other,
                        fmt::format("{:g} pairs in {:g} rows", extent->size, index.rows.size),
                        "at most one pair for each row");
        if (found && extent) index.pairs.emplace_back(*found, *extent);
      }
      pairs->no_other_keys();
    }
    index.longest = map.within<double>("longest", 1, kMostRows);
    if (index.longest && *index.longest > index.rows.size)
      map.report("longest", fmt::format("{:g} of {:g} rows", *index.longest, index.rows.size),
                 "rows of the longest segment");
    map.no_other_keys();
  }

  /// Inputs or weights; those of layer l have the suffix ".l".
  void declared(const YamlMap& map, Role role, const std::string& suffix) {
    for (const std::string& name : map.keys()) {
      Extents extents;
      for (const std::string& text : map.list<std::string>(name))
        if (auto extent = read_extent(map, name, text, symbols_)) extents.push_back(*extent);
      const std::size_t count = map.list<std::string>(name).size();
      if (map.is_list(name) && (count < 2 || count > 3))
        map.report(name, fmt::format("has {} extents", count),
                   "[N, F], or [R, F, G] of typed weights");
      if (extents.size() == count && count >= 2)
        define(map, name, name, flow_->add_value(name + suffix, std::move(extents), role));
    }
    map.no_other_keys();
  }

  void define(const YamlMap& map, std::string_view key, const std::string& name, ValueId value) {
    if (!value_names_.emplace(name, value).second)
      map.report(key, fmt::format("'{}' is defined twice", name), "a unique name");
  }

  std::optional<std::size_t> find(const YamlMap& map, std::string_view key, const Names& names,
                                  const std::string& name, std::string_view what) const {
    if (const auto found = names.find(name); found != names.end()) return found->second;
    map.report(key, fmt::format("unknown {} '{}'", what, name), suggest(name, keys_of(names)));
    return std::nullopt;
  }
  std::optional<ValueId> find_value(const YamlMap& map, std::string_view key,
                                    const std::string& name) const {
    return find(map, key, value_names_, name, "value");
  }
  std::optional<IndexId> find_index(const YamlMap& map, std::string_view key,
                                    const std::string& name) const {
    return find(map, key, index_names_, name, "index");
  }

  void read_layers() {
    const YamlMap& from = of("operations");
    const std::vector<YamlMap> layers = of("layers").maps("layers");
    const std::optional<YamlMap> carried = of("carry").map("carry");
    const std::optional<YamlMap> weights = of("weights").map("weights");
    const std::size_t count = std::max<std::size_t>(layers.size(), 1);
    if (count > kMostLayers)
      of("layers").report("layers", fmt::format("{} layers", count),
                          fmt::format("{} at most", kMostLayers));
    std::vector<YamlMap> operations = from.maps("operations");
    if (operations.empty() && (from.is_list("operations") || !from.has("operations")))
      own_.report("operations", "has no operation", "- {result: y, op: matmul, of: [x, w]}");
    if (operations.size() * count > kMostOperations)
      from.report("operations",
                  fmt::format("{} operations of all layers", operations.size() * count),
                  fmt::format("{} at most", kMostOperations));
    if (!is_right()) return;
    const std::map inputs = value_names_;
    const Symbols shared = symbols_;
    for (std::size_t l = 0; l < count; ++l) {
      const std::string suffix = count > 1 ? fmt::format(".{}", l + 1) : "";
      const Names before = value_names_;
      value_names_ = inputs;
      symbols_ = shared;
      if (l < layers.size()) read_symbols(layers[l], symbols_);
      if (weights) declared(*weights, Role::kWeight, suffix);
      if (l > 0) carry(carried, before);
      for (const YamlMap& operation : operations) {
        read_operation(operation, suffix);
        if (!is_right()) return;  // later ones use its result, and would seem to be wrong too
      }
    }
  }

  /// Values of the layer before instead of inputs.
  void carry(const std::optional<YamlMap>& map, const Names& before) {
    if (!map) {
      if (!of("carry").has("carry"))
        of("layers").report("layers", "nothing connects them", "carry: {INPUT: RESULT}");
      return;
    }
    for (const std::string& name : map->keys()) {
      const auto input = find_value(*map, name, name);
      const auto result = map->optional<std::string>(name);
      const auto value = result ? find(*map, name, before, *result, "value") : std::nullopt;
      if (!input || !value) continue;
      // The input has the extents of this layer.
      Extents expected = flow_->values[*input].extents;
      Value& carried = flow_->values[*value];
      if (const auto inputs = of("inputs").map("inputs"); inputs && inputs->is_list(name)) {
        const std::vector<std::string> texts = inputs->list<std::string>(name);
        for (std::size_t i = 0; i < texts.size() && i < expected.size(); ++i)
          if (const auto extent = read_extent(*inputs, name, texts[i], symbols_))
            expected[i] = *extent;
      }
      bool agree = expected.size() == carried.extents.size();
      for (std::size_t i = 0; agree && i < expected.size(); ++i)
        agree = expected[i].size == carried.extents[i].size;
      if (!agree)
        map->report(name, fmt::format("{} of a layer does not have the extents of {} of the next",
                                      *result, name));
      carried.extents = std::move(expected);
      value_names_[name] = *value;
    }
    map->no_other_keys();
  }

  void read_operation(const YamlMap& map, const std::string& suffix) {
    const auto name = map.required<std::string>("result");
    const auto kind = map.choice("op", std::span(kKindNames).first(kReadable));
    if (!map.has("op")) map.report("op", "is missing", "such as gather or matmul");
    const std::vector<std::string> of = words(map, "of");
    if (of.empty()) map.report("of", "is missing", "the names of values");
    if (!name || !kind || of.empty()) return map.no_other_keys();
    Operation op{.kind = static_cast<Kind>(*kind), .of = {}, .result = 0};
    const bool is_product = op.kind == Kind::kMatmul || op.kind == Kind::kSegmented;
    const bool is_wide = op.kind == Kind::kElementwise || op.kind == Kind::kConcatenate;
    if (!is_wide && of.size() != (is_product ? 2 : 1))
      map.report("of", fmt::format("{} of {}", to_string(op.kind), counted(of.size(), "value")),
                 is_product ? "two values" : "one value");
    for (const std::string& operand : of)
      if (const auto value = find_value(map, "of", operand)) op.of.push_back({*value});
    if (!is_wide && op.kind != Kind::kMatmul)
      if (const auto by = map.required<std::string>("by")) op.by = find_index(map, "by", *by);
    if (op.kind == Kind::kElementwise) {
      if (const auto flops = map.within<double>("flops", 0, 1e6)) op.flops = *flops;
      op.columns = extent(map, "columns");
    }
    op.groups = extent(map, "groups");
    map.no_other_keys();
    if (!map.status()) return;
    const Result<Extents> extents = extents_of(*flow_, op);
    if (!extents) {
      const Diagnostic& d = extents.error().diagnostics.front();
      return map.report("of", d.problem, d.expected);
    }
    op.result = flow_->add_value(*name + suffix, *extents);
    define(map, "result", *name, op.result);
    flow_->operations.push_back(std::move(op));
  }

  std::optional<Extent> extent(const YamlMap& map, std::string_view key) const {
    const auto text = map.optional<std::string>(key);
    return text ? read_extent(map, key, *text, symbols_) : std::nullopt;
  }

  YamlMap own_;
  std::optional<YamlMap> below_;
  Dataflow* flow_ = nullptr;
  Symbols symbols_;
  Names index_names_, value_names_;
};

}  // namespace

Result<DataflowJob> read_dataflow(const YamlMap& map, const std::filesystem::path& folder) {
  std::optional<YamlFile> file;
  if (const auto name = map.optional<std::string>("dataflow")) {
    Result<YamlFile> loaded = YamlFile::load(folder / *name);
    if (!loaded) {
      const Diagnostic& d = loaded.error().diagnostics.front();
      map.report("dataflow", fmt::format("'{}' {}", *name, d.problem), d.expected);
    } else {
      file = std::move(*loaded);
    }
  }
  TRY(map.status());
  /// The mistakes of both files.
  const auto status = [&]() -> Status {
    Status own = map.status();
    const Status below = file ? file->status() : Status{};
    if (own || below) return own ? below : own;
    const auto& more = below.error().diagnostics;
    own.error().diagnostics.insert(own.error().diagnostics.end(), more.begin(), more.end());
    return own;
  };
  Reader reader(map, file ? std::optional(file->root()) : std::nullopt);
  DataflowJob job = reader.read();
  TRY(status());
  reader.run_passes(job);
  TRY(status());
  return job;
}

Result<DataflowJob> load_dataflow(const std::filesystem::path& path) {
  const YamlFile file = TRY(YamlFile::load(path));
  return read_dataflow(file.root(), path.parent_path());
}

bool is_dataflow_file(const std::filesystem::path& path) {
  const Result<YamlFile> file = YamlFile::load(path);
  return file && (file->root().has("operations") || file->root().has("dataflow"));
}

}  // namespace rehearse::dataflow
