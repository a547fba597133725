#include "cli/validation/job_tables/reading.h"

#include <cmath>
#include <map>

#include <fmt/core.h>

namespace rehearse::cli {

Result<JobTable> read_job_table(const std::filesystem::path& path, std::string name,
                                const std::function<void(const CsvRow&, JobTable&)>& read) {
  const Result<CsvTable> csv = CsvTable::load(path);
  if (!csv) return forward(csv);
  JobTable table{.name = std::move(name)};
  Error errors;
  for (std::size_t i = 0; i < csv->rows(); ++i) read(CsvRow(*csv, i, errors), table);
  if (!errors.diagnostics.empty()) return tl::unexpected(std::move(errors));
  std::map<std::string, int> seen;
  for (JobRow& row : table.rows) {
    row.table = table.name;
    if (const int before = seen[row.name]++; before > 0)
      row.name += fmt::format(" #{}", before + 1);
  }
  return table;
}

std::optional<std::uint32_t> divided(double total, double by) {
  if (!(by > 0)) return std::nullopt;
  const double quotient = total / by;
  if (quotient < 1 || quotient != std::floor(quotient)) return std::nullopt;
  return static_cast<std::uint32_t>(quotient);
}

bool set_devices(JobRow& row, std::uint32_t devices, std::uint32_t per_node) {
  row.devices_per_node = std::min(devices, per_node);
  row.nodes = row.devices_per_node == 0 ? 0 : devices / row.devices_per_node;
  return devices > 0 && row.devices() == devices;
}

namespace {

double tokens_of(const JobRow& row) { return row.training.global_batch * row.model.sequence; }

}  // namespace

void set_tokens_rate(JobRow& row, double tokens_per_s_per_device) {
  row.tokens_per_s_per_device = tokens_per_s_per_device;
  row.step = Seconds::s(tokens_of(row) / (tokens_per_s_per_device * row.devices()));
}

void set_step(JobRow& row, Seconds step) {
  row.step = step;
  row.tokens_per_s_per_device = tokens_of(row) / (step.s() * row.devices());
}

}  // namespace rehearse::cli
