#include "tests/validation/studies/measured_tables.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/base/csv.h"
#include "sim/base/file.h"
#include "sim/base/statistics.h"
#include "tests/validation/studies/inflate.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using comm::MeasuredRow;

constexpr std::string_view kGatheredBy = "2026-08";

std::optional<CollectiveKind> kind_of(std::string_view name) {
  if (name == "alltoall" || name == "all_to_all") return CollectiveKind::kAllToAll;
  const auto found = std::find(kCollectiveNames.begin(), kCollectiveNames.end(), name);
  if (found == kCollectiveNames.end()) return std::nullopt;
  return static_cast<CollectiveKind>(found - kCollectiveNames.begin());
}

/// A cell that must hold a number.
Result<double> number(const CsvTable& table, std::size_t row, std::string_view column) {
  const std::optional<double> cell = TRY(table.number(row, column));
  if (!cell) return fail(table.problem(row, column, "is empty", "a number"));
  return *cell;
}

}  // namespace

std::optional<fs::path> find_data(const fs::path& data, const std::string& name) {
  for (const fs::path& folder : {data, data / ".." / "facts"})
    if (fs::exists(folder / name)) return folder / name;
  return std::nullopt;
}

Result<std::vector<MeasuredTable>> read_measured_csv(const fs::path& path) {
  const CsvTable table = TRY(CsvTable::load(path));
  TRY(table.require(
      {"gpu_id", "nccl_version", "op", "num_gpus", "size_bytes", "time_us", "source", "as_of"}));
  std::vector<MeasuredTable> tables;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const std::string device(table.cell(r, "gpu_id"));
    if (tables.empty() || tables.back().device != device)
      tables.push_back({.device = device,
                        .nccl_version = std::string(table.cell(r, "nccl_version")),
                        .source = fmt::format("nccl_measured.csv ({}): nccl-tests, half precision, "
                                              "out of place",
                                              table.cell(r, "source")),
                        .date = std::string(table.cell(r, "as_of"))});
    const auto kind = kind_of(table.cell(r, "op"));
    if (!kind) return fail(table.problem(r, "op", "is no collective", "such as all_reduce"));
    const double ranks = TRY(number(table, r, "num_gpus")),
                 size = TRY(number(table, r, "size_bytes")),
                 time = TRY(number(table, r, "time_us"));
    tables.back().rows.push_back(
        {*kind, static_cast<std::uint32_t>(ranks), Bytes::b(size), Seconds::us(time)});
  }
  return tables;
}

Result<std::vector<MeasuredTable>> read_element_csv(const fs::path& path, const std::string& device,
                                                    const std::string& type) {
  const CsvTable table = TRY(CsvTable::load(path));
  TRY(table.require({"op_name", "nccl_dtype", "num_gpus", "message_size", "latency"}));
  const double width = type == "int8" ? 1 : 2;
  std::vector<MeasuredTable> tables;
  std::map<std::tuple<CollectiveKind, std::uint32_t, double>, std::size_t> seen;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    if (table.cell(r, "nccl_dtype") != type) continue;
    const auto kind = kind_of(table.cell(r, "op_name"));
    if (!kind) return fail(table.problem(r, "op_name", "is no collective", "such as all_reduce"));
    const double ranks = TRY(number(table, r, "num_gpus")),
                 elements = TRY(number(table, r, "message_size")),
                 time = TRY(number(table, r, "latency"));
    const MeasuredRow row{*kind, static_cast<std::uint32_t>(ranks), Bytes::b(elements * width),
                          Seconds::ms(time)};
    const std::size_t run = seen[{*kind, row.ranks, row.size.b()}]++;
    if (run >= tables.size())
      tables.push_back({.device = device,
                        .nccl_version = "",
                        .source = path.filename().string(),
                        .date = std::string(kGatheredBy)});
    tables[run].rows.push_back(row);
  }
  return tables;
}

Result<MeasuredTable> read_lookup_tables(const fs::path& folder, const std::string& device) {
  MeasuredTable result{
      .device = device,
      .nccl_version = "",
      .source = fmt::format("vTrain {}: nccl-tests all_reduce", folder.filename().string()),
      .date = std::string(kGatheredBy)};
  for (const std::uint32_t ranks : {2U, 4U, 6U, 8U}) {
    const fs::path path = folder / fmt::format("AR_GPU{}_1M_1024M.csv", ranks);
    std::string text = TRY(read_file(path));
    // The heading names two columns alike.
    text.replace(0, text.find('\n'), "size,count,type,time,busbw,in_place_time,in_place_busbw");
    const CsvTable table = TRY(CsvTable::parse(text, path.string()));
    for (std::size_t r = 0; r < table.rows(); ++r) {
      const double size = TRY(number(table, r, "size")), time = TRY(number(table, r, "time"));
      result.rows.push_back({CollectiveKind::kAllReduce, ranks, Bytes::b(size), Seconds::ns(time)});
    }
  }
  return result;
}

Result<MeasuredTable> read_worker_csv(const fs::path& path, CollectiveKind kind,
                                      const std::string& device, std::uint32_t nodes) {
  std::string text = TRY(read_inflated(path));
  if (text.starts_with(',')) text.insert(0, "row");
  const CsvTable table = TRY(CsvTable::parse(text, path.string()));
  const std::string column = fmt::format("time_stats.{}.median", to_string(kind));
  TRY(table.require({column, "num_workers", "devices_per_node", "size"}));
  std::map<std::pair<std::uint32_t, double>, std::vector<double>> times;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const double ranks = TRY(number(table, r, "num_workers")),
                 local = TRY(number(table, r, "devices_per_node")),
                 size = TRY(number(table, r, "size")), time = TRY(number(table, r, column));
    if (std::max(local, ranks) != nodes * local) continue;
    times[{static_cast<std::uint32_t>(ranks), size}].push_back(time);
  }
  MeasuredTable result{.device = device,
                       .nccl_version = "",
                       .source = fmt::format("Vidur {}/{}: {}, median of a job's ranks",
                                             path.parent_path().filename().string(),
                                             path.filename().string(), to_string(kind)),
                       .date = std::string(kGatheredBy)};
  for (const auto& [key, values] : times)
    result.rows.push_back(
        {kind, key.first, Bytes::b(key.second), Seconds::ms(upper_median(values))});
  return result;
}

Result<MeasuredTable> read_size_json(const fs::path& path, const std::string& device) {
  const std::string text = TRY(read_file(path));
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!json.is_object())
    return fail(Diagnostic{.file = path.string(), .problem = "not a JSON object"});
  MeasuredTable result{.device = device,
                       .nccl_version = "",
                       .source = path.filename().string(),
                       .date = std::string(kGatheredBy)};
  for (const auto& [key, value] : json.items()) {
    char name[16] = {};
    unsigned ranks = 0, mib = 0;
    if (!value.is_number() ||
        std::sscanf(key.c_str(), "%15[a-z2]_size_%u_%uMB_time", name, &ranks, &mib) != 3)
      continue;
    result.rows.push_back({std::string_view(name) == "all2all" ? CollectiveKind::kAllToAll
                                                               : CollectiveKind::kAllReduce,
                           ranks, Bytes::mib(mib), Seconds::ms(value.get<double>())});
  }
  if (result.rows.empty())
    return fail(Diagnostic{.file = path.string(), .problem = "has no times by size"});
  return result;
}

Result<MeasuredTable> read_call_log(const fs::path& path, const std::string& device) {
  const std::string text = TRY(read_inflated(path));
  const CsvTable table = TRY(CsvTable::parse(text, path.string()));
  TRY(table.require({"comm_type", "comm_group_size", "msg_size", "_elapsed_time"}));
  std::map<std::tuple<CollectiveKind, std::uint32_t, double>, std::vector<double>> times;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    std::string_view name = table.cell(r, "comm_type");
    if (name.starts_with("CommType.")) name.remove_prefix(9);
    const auto kind = kind_of(name);
    if (!kind || table.cell(r, "comm_group_size") == "None" ||
        table.cell(r, "comm_group_size").empty() || *kind == CollectiveKind::kBroadcast)
      continue;
    const double ranks = TRY(number(table, r, "comm_group_size")),
                 size = TRY(number(table, r, "msg_size")),
                 time = TRY(number(table, r, "_elapsed_time"));
    if (size > 0 && time > 0)
      times[{*kind, static_cast<std::uint32_t>(ranks), size}].push_back(time);
  }
  MeasuredTable result{.device = device,
                       .nccl_version = "",
                       .source = path.filename().string(),
                       .date = std::string(kGatheredBy)};
  for (const auto& [key, values] : times)
    if (values.size() >= 3)  // the first call sets up
      result.rows.push_back({std::get<0>(key), std::get<1>(key), Bytes::b(std::get<2>(key)),
                             Seconds::ms(upper_median(values))});
  return result;
}

std::vector<MeasuredRow> sift(
    const std::vector<MeasuredRow>& rows,
    const std::function<bool(std::size_t place, std::size_t curve)>& keep) {
  std::map<std::pair<CollectiveKind, std::uint32_t>, std::pair<std::size_t, std::size_t>> curves;
  std::vector<MeasuredRow> kept;
  for (const MeasuredRow& r : rows) {
    auto& [number_of_curve, places] =
        curves.try_emplace({r.kind, r.ranks}, curves.size(), 0).first->second;
    if (keep(places++, number_of_curve)) kept.push_back(r);
  }
  return kept;
}

}  // namespace rehearse::cli
