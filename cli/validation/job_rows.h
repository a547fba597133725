// Rows of a table as jobs: columns such as `plan.tensor` are the keys of a job file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/config/job_file.h"
#include "sim/base/csv.h"
#include "sim/base/result.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {

class JobRows {
 public:
  /// Uses the columns whose names contain a dot. REQUIRES: the table outlives this object.
  explicit JobRows(const CsvTable& table);

  /// Returns the job of a row, from its non-empty cells; paths are relative to the folder of the
  /// table. A column that is not a key of a job file is added to `unknown` and ignored from then
  /// on. Fails as read_job does.
  Result<JobFile> job(std::size_t row, std::vector<std::string>& unknown);

  /// The same for another reader of a job file, which gets the root and the folder of paths.
  template <class File>
  Result<File> read(std::size_t row, std::vector<std::string>& unknown,
                    Result<File> (*reader)(const YamlMap&, const std::filesystem::path&)) {
    for (;;) {
      const YamlFile file = TRY(yaml(row));
      Result<File> job = reader(file.root(), std::filesystem::path(table_.name()).parent_path());
      if (job || !drop_unknown(job.error(), unknown)) return job;
    }
  }

 private:
  Result<YamlFile> yaml(std::size_t row) const;
  /// Ignores the columns that a reader does not know. False if there are none.
  bool drop_unknown(const Error& error, std::vector<std::string>& unknown);

  const CsvTable& table_;
  std::vector<std::string> columns_;
};

}  // namespace rehearse::cli
