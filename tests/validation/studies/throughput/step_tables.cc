#include "tests/validation/studies/throughput/step_tables.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/core.h>

#include "sim/base/csv.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// A number above zero.
Result<double> positive(const CsvTable& table, std::size_t row, std::string_view column,
                        std::string expected) {
  const std::optional<double> value = TRY(table.number(row, column));
  if (!value || !(*value > 0))
    return fail(table.problem(row, column,
                              fmt::format("'{}' is no such thing", table.cell(row, column)),
                              std::move(expected)));
  return *value;
}

Result<std::uint32_t> count(const CsvTable& table, std::size_t row, std::string_view column,
                            std::string expected) {
  const double value = TRY(positive(table, row, column, expected));
  constexpr double kMost = 1e6;
  if (value != std::floor(value) || value > kMost)
    return fail(table.problem(row, column, fmt::format("{:g} is not a number of devices", value),
                              std::move(expected)));
  return static_cast<std::uint32_t>(value);
}

Result<std::vector<std::uint32_t>> placement_of(const CsvTable& table, std::size_t row) {
  std::vector<std::uint32_t> devices;
  if (table.has("placement")) {
    for (const char c : table.cell(row, "placement")) {
      if (c < '1' || c > '9') {
        devices.clear();
        break;
      }
      devices.push_back(static_cast<std::uint32_t>(c - '0'));
    }
    if (devices.empty())
      return fail(table.problem(row, "placement",
                                fmt::format("'{}' is no placement", table.cell(row, "placement")),
                                "the devices of each node, a digit from 1 to 9 a node"));
  } else {
    const auto nodes = TRY(count(table, row, "num_nodes", "a number of nodes")),
               ranks = TRY(count(table, row, "num_replicas", "a number of devices"));
    if (ranks < nodes)
      return fail(table.problem(row, "num_replicas",
                                fmt::format("{} devices on {} nodes", ranks, nodes),
                                "a device on each node at least"));
    for (std::uint32_t node = 0; node < nodes; ++node)
      devices.push_back(ranks / nodes + (node < ranks % nodes ? 1 : 0));
  }
  std::sort(devices.begin(), devices.end(), std::greater<>());
  return devices;
}

/// The number in "…_8xH100_…".
std::optional<std::uint32_t> gpus_in(std::string_view name) {
  std::optional<std::uint32_t> found;
  for (std::size_t x = 1; x + 1 < name.size(); ++x) {
    if (name[x] != 'x' || std::isupper(static_cast<unsigned char>(name[x + 1])) == 0) continue;
    std::size_t first = x;
    while (first > 0 && std::isdigit(static_cast<unsigned char>(name[first - 1])) != 0) --first;
    if (first < x && x - first < 4)
      found = static_cast<std::uint32_t>(std::stoul(std::string(name.substr(first, x - first))));
  }
  return found;
}

}  // namespace

std::uint32_t PlacedStep::ranks() const {
  return std::accumulate(devices.begin(), devices.end(), 0U);
}

Result<std::vector<PlacedStep>> read_placed_steps(const std::filesystem::path& path) {
  const CsvTable table = TRY(CsvTable::load(path));
  TRY(table.require({"local_bsz", "step_time"}));
  if (!table.has("placement")) TRY(table.require({"num_nodes", "num_replicas"}));
  std::vector<PlacedStep> rows;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    std::vector<std::uint32_t> devices = TRY(placement_of(table, r));
    const double batch = TRY(positive(table, r, "local_bsz", "samples of a device")),
                 step = TRY(positive(table, r, "step_time", "seconds above zero"));
    rows.push_back({.devices = std::move(devices), .batch = batch, .step = Seconds::s(step)});
  }
  return rows;
}

Result<IsolatedJobs> read_isolated_jobs(const std::filesystem::path& path) {
  const CsvTable table = TRY(CsvTable::load(path));
  TRY(table.require({"file", "gpu", "gpus_on_one_server", "job", "batch_size_per_gpu", "num_gpus",
                     "steps_per_s"}));
  IsolatedJobs jobs;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const auto cell = [&](std::string_view column) { return std::string(table.cell(r, column)); };
    const std::string server = cell("gpus_on_one_server");
    if (server != "yes" && server != "no")
      return fail(table.problem(r, "gpus_on_one_server", fmt::format("'{}'", server), "yes or no"));
    const auto workers = TRY(count(table, r, "num_gpus", "a number of devices"));
    const std::optional<double> rate = TRY(table.number(r, "steps_per_s"));
    if (!rate || *rate < 0)
      return fail(table.problem(r, "steps_per_s",
                                fmt::format("'{}' is no rate", cell("steps_per_s")),
                                "steps a second, 0 where it did not fit"));
    const std::string stated = cell("batch_size_per_gpu");
    const std::string name =
        fmt::format("{} {} {}{}, {}", cell("file"), cell("gpu"), cell("job"),
                    stated.empty() ? "" : " batch " + stated, counted(workers, "worker"));
    if (stated.empty()) {
      jobs.left_out.push_back(name + ": its batch is not stated");
      continue;
    }
    const double batch = TRY(positive(table, r, "batch_size_per_gpu", "samples of a device"));
    if (*rate == 0) {
      jobs.left_out.push_back(name + ": did not fit");
      continue;
    }
    jobs.rows.push_back({.table = cell("file"),
                         .gpu = cell("gpu"),
                         .job = cell("job"),
                         .one_server = server == "yes",
                         .batch = batch,
                         .workers = workers,
                         .step = Seconds::s(workers / *rate)});
  }
  return jobs;
}

Result<std::vector<SystemThroughput>> read_system_throughputs(const std::filesystem::path& path) {
  const CsvTable table = TRY(CsvTable::load(path));
  TRY(table.require({"system"}));
  std::vector<SystemThroughput> rows;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const std::string system(table.cell(r, "system"));
    std::optional<std::uint32_t> gpus = gpus_in(system);
    if (table.has("num_gpu")) {
      gpus = TRY(count(table, r, "num_gpu", "a number of GPUs"));
    }
    if (!gpus)
      return fail(table.problem(r, "system", fmt::format("'{}' does not count its GPUs", system),
                                "a name with, say, 8xH100, or a column num_gpu"));
    for (const std::string& column : table.columns()) {
      if (column == "system" || column == "num_gpu" || column == "watt" || column == "price" ||
          column == "bs")
        continue;
      const Result<std::optional<double>> value = table.number(r, column);
      if (!value) return forward(value);
      if (*value && **value < 0)
        return fail(table.problem(r, column, fmt::format("{:g} is no throughput", **value),
                                  "a number above zero, 0 where it was not measured"));
      if (*value && **value > 0)
        rows.push_back(
            {.system = system, .gpus = *gpus, .job = column, .per_gpu = **value / *gpus});
    }
  }
  return rows;
}

}  // namespace rehearse::cli
