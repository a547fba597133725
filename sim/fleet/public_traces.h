// The tables of public cluster traces as lists of jobs. docs/formats/jobs.md has their contents
// and sources.
#pragma once

#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/csv_row.h"
#include "sim/fleet/job_list.h"

namespace rehearse::fleet {

/// Seconds of kLatestSubmit and kLongestWork.
inline constexpr double kLatestSeconds = 5e9, kLongestSeconds = 3e8;

inline Nanoseconds nanoseconds(double s) { return Nanoseconds(std::llround(s * 1e9)); }

/// Seconds of a cell, where `dates` times of day too; nothing of an empty or a wrong one, which is
/// reported.
std::optional<double> cell_time(const CsvTable& table, const CsvRow& row, std::size_t index,
                                std::string_view column, bool dates);

/// By its columns; nothing where they are of no trace that is known.
std::optional<Result<JobList>> read_trace_table(const CsvTable& table);

/// Microsoft's cluster_job_log: an array of jobs, each with its attempts.
bool looks_like_philly(std::string_view text);
/// Fails with one line on text that is no such array, and on the first job that is none.
Result<JobList> parse_philly(std::string_view text, std::string name);

/// Alibaba's PAI of 2020: jobs in one table, their tasks in another, neither with a heading.
bool is_pai(const std::filesystem::path& path);
/// Both tables of the folder.
Result<JobList> load_pai(const std::filesystem::path& folder);
/// The same of text. Each may have the heading of its documentation.
Result<JobList> parse_pai(std::string_view jobs, std::string jobs_name, std::string_view tasks,
                          std::string tasks_name);

/// Traces count from their own origin, and dates from 1970: the first arrival becomes the origin.
void begin_at_first_arrival(JobList& list);

}  // namespace rehearse::fleet
