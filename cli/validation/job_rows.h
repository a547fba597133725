// Rows of a table as jobs: columns such as `plan.tensor` are the keys of a job file.
#pragma once

#include <string>
#include <vector>

#include "cli/config/job_file.h"
#include "sim/base/csv.h"
#include "sim/base/result.h"

namespace rehearse::cli {

class JobRows {
 public:
  /// Uses the columns whose names have a dot. REQUIRES: the table outlives this object.
  explicit JobRows(const CsvTable& table);

  /// The job of a row, from its cells that are not empty; files that it names lie in the folder of
  /// the table. Columns that a job file has no key for are dropped from then on, and added to
  /// `unknown`. Fails as read_job.
  Result<JobFile> job(std::size_t row, std::vector<std::string>& unknown);

 private:
  const CsvTable& table_;
  std::vector<std::string> columns_;
};

}  // namespace rehearse::cli
