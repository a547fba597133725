#include "profiler/bench/shape_file.h"

#include <cmath>

#include <fmt/core.h>

#include "profiler/bench/bench_files.h"
#include "sim/base/check.h"
#include "sim/base/csv.h"
#include "sim/base/text.h"
#include "sim/base/yaml.h"

namespace rehearse::bench {
namespace {

constexpr std::size_t kMostShapes = 10'000;

/// Splits "m: 0 is no extent" into the key and the problem.
std::pair<std::string, std::string> key_and_problem(const Diagnostic& d) {
  const std::size_t colon = d.problem.find(": ");
  if (colon == std::string::npos) return {"op", d.problem};
  return {d.problem.substr(0, colon), d.problem.substr(colon + 2)};
}

bool is_word(std::string_view column) {
  return column == "op" || column == "dtype" || column == "layout" || column == "epilogue";
}

Result<std::vector<Shape>> read_csv(const std::filesystem::path& path) {
  const CsvTable table = TRY(CsvTable::load(path));
  TRY(table.require({"op"}));
  const auto word = [&](std::size_t row, std::string_view column) {
    return table.has(column) ? table.cell(row, column) : std::string_view();
  };
  std::vector<Shape> shapes;
  Error errors;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    NamedExtents extents;
    const std::size_t before = errors.diagnostics.size();
    for (const std::string& column : table.columns()) {
      if (is_word(column)) continue;
      const Result<std::optional<double>> value = table.number(row, column);
      if (!value) {
        errors.diagnostics.push_back(value.error().diagnostics.front());
      } else if (*value) {
        if (**value < 0 || **value > 1e13 || std::floor(**value) != **value)
          errors.diagnostics.push_back(table.problem(
              row, column, fmt::format("'{}' is not an extent", table.cell(row, column)),
              "a whole number above zero"));
        else
          extents.emplace_back(column, static_cast<std::uint64_t>(**value));
      }
    }
    if (errors.diagnostics.size() > before) continue;
    Result<Shape> shape = make_shape(word(row, "op"), extents, word(row, "dtype"),
                                     word(row, "layout"), word(row, "epilogue"));
    if (shape) {
      shapes.push_back(std::move(*shape));
      continue;
    }
    const Diagnostic& d = shape.error().diagnostics.front();
    auto [key, problem] = key_and_problem(d);
    errors.diagnostics.push_back(table.problem(row, table.has(key) ? key : "op",
                                               table.has(key) ? problem : d.problem, d.expected,
                                               d.nearest));
  }
  if (!errors.diagnostics.empty()) return tl::unexpected(std::move(errors));
  return shapes;
}

/// A number, or several.
std::vector<std::uint64_t> extents_at(const YamlMap& map, std::string_view key) {
  std::vector<std::int64_t> values;
  if (map.is_list(key))
    values = map.list<std::int64_t>(key);
  else if (const auto value = map.optional<std::int64_t>(key))
    values = {*value};
  std::vector<std::uint64_t> extents;
  for (const std::int64_t value : values) {
    if (value < 0)
      map.report(key, fmt::format("{} is not an extent", value), "a whole number above zero");
    else
      extents.push_back(static_cast<std::uint64_t>(value));
  }
  return extents;
}

std::vector<std::string> words_at(const YamlMap& map, std::string_view key) {
  if (map.is_list(key)) return map.list<std::string>(key);
  if (const auto word = map.optional<std::string>(key)) return {*word};
  return {""};
}

/// Reads all combinations of the values in one mapping.
void read_sweep(const YamlMap& map, std::vector<Shape>& shapes) {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const OpRule& rule : op_rules()) names.push_back(rule.op);
    return names;
  }();
  const auto op = map.choice("op", kNames);
  if (!op) {
    if (!map.has("op")) map.report("op", "is missing", "the name of an operation");
    return;
  }
  const OpRule& rule = op_rules()[*op];
  std::vector<NamedExtents> sweeps = {{}};
  for (const ExtentRule& extent : rule.extents) {
    const std::vector<std::uint64_t> values = extents_at(map, extent.name);
    if (values.empty()) continue;
    std::vector<NamedExtents> longer;
    for (const std::uint64_t value : values)
      for (NamedExtents sweep : sweeps) {
        sweep.emplace_back(extent.name, value);
        longer.push_back(std::move(sweep));
        if (longer.size() > kMostShapes) break;
      }
    sweeps = std::move(longer);
  }
  for (const std::string& dtype : words_at(map, "dtype"))
    for (const std::string& layout : words_at(map, "layout"))
      for (const std::string& epilogue : words_at(map, "epilogue"))
        for (const NamedExtents& extents : sweeps) {
          Result<Shape> shape = make_shape(std::string(rule.op), extents, dtype, layout, epilogue);
          if (!shape) {
            const Diagnostic& d = shape.error().diagnostics.front();
            const auto [key, problem] = key_and_problem(d);
            map.report(map.has(key) ? key : "op", map.has(key) ? problem : d.problem, d.expected,
                       d.nearest);
            return;
          }
          shapes.push_back(std::move(*shape));
          if (shapes.size() > kMostShapes) return;
        }
}

Result<std::vector<Shape>> read_yaml(const YamlFile& file) {
  const YamlMap root = file.root();
  std::vector<Shape> shapes;
  for (const YamlMap& map : root.maps("shapes")) {
    read_sweep(map, shapes);
    map.no_other_keys();
  }
  if (!root.has("shapes")) root.report("shapes", "is missing", "a list of shapes");
  root.no_other_keys();
  TRY(file.status());
  return shapes;
}

}  // namespace

Result<std::vector<Shape>> read_shapes(const std::filesystem::path& path) {
  std::vector<Shape> shapes =
      TRY(path.extension() == ".csv" ? read_csv(path) : YamlFile::load(path).and_then(read_yaml));
  if (shapes.empty()) return fail_in(path, "has no shape", "one");
  if (shapes.size() > kMostShapes)
    return fail_in(path, fmt::format("has more than {} shapes", grouped(kMostShapes)),
                   "fewer: each takes about half a second");
  return without_repeats(shapes);
}

std::vector<Shape> default_shapes() {
  const Result<std::vector<Shape>> shapes =
      YamlFile::parse(std::string(bench_files::default_shapes_yaml), "default_shapes.yaml")
          .and_then(read_yaml);
  REHEARSE_CHECK(shapes, "{}", to_string(shapes.error()));
  return without_repeats(*shapes);
}

}  // namespace rehearse::bench
