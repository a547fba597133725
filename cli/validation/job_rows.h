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
  /// Uses the columns whose names contain a dot. REQUIRES: the table outlives this object.
  explicit JobRows(const CsvTable& table);

  /// Returns the job of a row, from its non-empty cells; paths are relative to the folder of the
  /// table. A column that is not a key of a job file is added to `unknown` and ignored from then
  /// on. Fails as read_job does.
  Result<JobFile> job(std::size_t row, std::vector<std::string>& unknown);

 private:
  const CsvTable& table_;
  std::vector<std::string> columns_;
};

}  // namespace rehearse::cli
