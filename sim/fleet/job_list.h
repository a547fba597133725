// Lists of jobs: CSV, YAML, and the tables of public cluster traces, found by their columns
// (docs/formats/jobs.md).
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
  bool gpus, memory;  ///< whether the list says them itself
};

struct JobList {
  std::string layout;  ///< "jobs", or the name of a public trace
  std::vector<Job> jobs = {};
  std::vector<ToPredict> to_predict = {};  ///< their work is 0 so far
  std::size_t left_out = 0;                ///< rows of a public trace that hold no GPU or never ran
};

/// Fails with all that is wrong with the list, each with its line; rows of a public trace that are
/// jobs without GPUs, or that never ran, are counted instead.
Result<JobList> load_jobs(const std::filesystem::path& path);
/// The same for text; `name` is the file name in messages.
Result<JobList> parse_jobs_csv(std::string_view text, std::string name);
Result<JobList> parse_jobs_yaml(const std::string& text, std::string name);

/// "2020-06-09 18:41:01" as seconds since 1970, without a time zone; nothing for any other text.
std::optional<std::int64_t> parse_date(std::string_view text);

}  // namespace rehearse::fleet
