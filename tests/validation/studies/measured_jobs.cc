#include "tests/validation/studies/measured_jobs.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/core.h>
#include <unistd.h>

#include "cli/validation/job_rows.h"
#include "sim/base/csv.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

struct Scratch {
  fs::path path = fs::temp_directory_path() / fmt::format("rehearse-measurements-{}", ::getpid());
  std::map<fs::path, fs::path> folders;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

std::map<std::string, double, std::less<>> numbers_of(const CsvTable& table, std::size_t row) {
  std::map<std::string, double, std::less<>> numbers;
  for (const std::string& column : table.columns()) {
    const std::string_view cell = table.cell(row, column);
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error == std::errc() && end == cell.data() + cell.size()) numbers[column] = value;
  }
  return numbers;
}

Use use_of(const CsvTable& table, std::size_t row) {
  if (!table.has("use")) return Use::kSourceLeftOut;
  const auto found = std::find(std::begin(kUseNames), std::end(kUseNames), table.cell(row, "use"));
  return static_cast<Use>(found - std::begin(kUseNames));
}

}  // namespace

std::optional<double> MeasuredJob::number(std::string_view column) const {
  const auto found = numbers.find(column);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

Result<fs::path> converted(const fs::path& data) {
  static Scratch scratch;
  std::error_code error;
  if (!fs::is_directory(data, error))
    return fail(Diagnostic{.file = data.string(), .problem = "is not a folder"});
  const auto found = scratch.folders.find(data);
  if (found != scratch.folders.end()) return found->second;
  const fs::path into = scratch.path / std::to_string(scratch.folders.size());
  const std::string command = fmt::format(
      "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='{}/tests/validation' python3 -m convert '{}' '{}'",
      REHEARSE_SOURCE_DIR, data.string(), into.string());
  if (std::system(command.c_str()) != 0)
    return fail(Diagnostic{.file = data.string(), .problem = "cannot be converted"});
  return scratch.folders[data] = into;
}

Result<std::vector<MeasuredJob>> read_measured_jobs(const fs::path& file) {
  const CsvTable table = TRY(CsvTable::load(file));
  JobRows rows(table);
  std::vector<MeasuredJob> jobs;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    std::vector<std::string> unknown;
    JobFile job = TRY(rows.job(r, unknown));
    if (!unknown.empty())
      return fail(Diagnostic{.file = file.string(), .key = unknown.front(), .problem = "no key"});
    const std::string of(table.cell(r, "case")), name(table.cell(r, "name"));
    const auto known = std::find_if(jobs.begin(), jobs.end(), [&](const MeasuredJob& other) {
      return other.of == of && other.name == name;
    });
    if (known != jobs.end()) {
      known->choices.push_back(std::move(job));
      continue;
    }
    MeasuredJob measured{.table = of.substr(0, of.find('/')),
                         .name = name,
                         .of = of,
                         .group = std::string(table.has("group") ? table.cell(r, "group") : ""),
                         .use = use_of(table, r),
                         .numbers = numbers_of(table, r)};
    measured.choices.push_back(std::move(job));
    jobs.push_back(std::move(measured));
  }
  return jobs;
}

Result<std::vector<MeasuredJob>> read_job_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<MeasuredJob> all;
  for (const fs::path& file : files) {
    Result<std::vector<MeasuredJob>> jobs = read_measured_jobs(file);
    if (!jobs) return jobs;
    for (MeasuredJob& job : *jobs) all.push_back(std::move(job));
  }
  return all;
}

fs::path kept_file(std::string_view file) {
  return fs::path(REHEARSE_SOURCE_DIR) / "tests/validation" / file;
}

Result<std::vector<MeasuredJob>> kept_jobs(std::string_view file) {
  return read_measured_jobs(kept_file(file));
}

Result<std::vector<std::string>> jobs_left_out(const fs::path& data) {
  const fs::path folder = TRY(converted(data));
  std::vector<std::string> lines;
  const fs::path file = folder / "studies" / "jobs_left_out.txt";
  if (!fs::exists(file)) return lines;
  const std::string text = TRY(read_file(file));
  for (const std::string_view line : split(trim(text), '\n')) lines.emplace_back(line);
  return lines;
}

}  // namespace rehearse::cli
