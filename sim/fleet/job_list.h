// Lists of jobs, in CSV and in YAML (docs/formats/jobs.md).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/fleet/fleet.h"

namespace rehearse::fleet {

/// A job of a list whose work is to be predicted: a number of steps of the job in a
/// file. If the list has no step time, the caller predicts that too, and checks that
/// the host's part is at most that.
struct ToPredict {
  std::size_t job;             ///< in the list
  std::filesystem::path file;  ///< relative to the list
  double steps;
  bool gpus, memory;  ///< whether the list states them itself
};

struct JobList {
  std::vector<Job> jobs = {};
  std::vector<ToPredict> to_predict = {};  ///< their work is 0 so far
};

/// Fails with all errors of the list, each with its line.
Result<JobList> load_jobs(const std::filesystem::path& path);
/// The same for text; `name` is the file name in messages.
Result<JobList> parse_jobs_csv(std::string_view text, std::string name);
Result<JobList> parse_jobs_yaml(const std::string& text, std::string name);

}  // namespace rehearse::fleet
