// Published training jobs as the converters leave them (tests/validation/convert/jobs.py): the job
// files of their rows, with the measurements.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/config/job_file.h"
#include "cli/validation/judged.h"
#include "sim/base/result.h"

namespace rehearse::cli {

struct MeasuredJob {
  std::string table;       ///< "mpt"
  std::string name;        ///< unique within the table
  std::string of;          ///< rows of one difficulty: "mpt/fp8"
  std::string group = {};  ///< plans of one job on equal devices share it
  Use use = Use::kSourceLeftOut;
  /// One, or several where the source leaves something open.
  std::vector<JobFile> choices = {};
  /// The cells with numbers, measurements among them: "step_s", "workload.hidden".
  std::map<std::string, double, std::less<>> numbers = {};

  const JobFile& job() const { return choices.front(); }
  std::optional<double> number(std::string_view column) const;
};

/// The files of measurements of a folder of published data, converted once in the life of the
/// process: a folder of its own, removed at exit.
Result<std::filesystem::path> converted(const std::filesystem::path& data);

/// The rows of a file. Fails where one is not a job.
Result<std::vector<MeasuredJob>> read_measured_jobs(const std::filesystem::path& file);
/// Of all files of a folder; none where it is not there.
Result<std::vector<MeasuredJob>> read_job_folder(const std::filesystem::path& folder);

/// Published jobs that are in no table of the data, from a file of tests/validation: of papers, as
/// recalled (recalled_jobs.csv), and of pages that were read (published_jobs.csv).
Result<std::vector<MeasuredJob>> kept_jobs(std::string_view file);
std::filesystem::path kept_file(std::string_view file);

/// Rows of the tables that no job file expresses, and why.
Result<std::vector<std::string>> jobs_left_out(const std::filesystem::path& data);

}  // namespace rehearse::cli
