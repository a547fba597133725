#include "sim/fleet/job_list.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/csv_row.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/yaml.h"

namespace rehearse::fleet {
namespace {

constexpr double kLatest = 5e9, kLongest = 3e8;  // seconds: kLatestSubmit, kLongestWork

/// How a table of a public trace says what a job is. Times are seconds.
struct Layout {
  std::string_view name;
  std::vector<std::string_view> columns;  ///< that tell it from the others
  std::string_view job, user, submit;
  std::string_view duration;  ///< or, where empty, the next two
  std::string_view start = {}, end = {};
  std::string_view gpus, workers = {};  ///< GPUs of each worker
  bool dates = false;                   ///< times of day in place of seconds
};

/// Sources: docs/formats/jobs.md.
const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {.name = "helios",
       .columns = {"job_id", "user", "vc", "gpu_num", "submit_time", "duration"},
       .job = "job_id",
       .user = "user",
       .submit = "submit_time",
       .duration = "duration",
       .gpus = "gpu_num",
       .dates = true},
      {.name = "openb",
       .columns = {"name", "num_gpu", "gpu_milli", "creation_time", "scheduled_time",
                   "deletion_time"},
       .job = "name",
       .user = "",
       .submit = "creation_time",
       .duration = "",
       .start = "scheduled_time",
       .end = "deletion_time",
       .gpus = "num_gpu"},
      {.name = "alibaba-spot",
       .columns = {"job_name", "organization", "gpu_request", "worker_num", "submit_time",
                   "duration"},
       .job = "job_name",
       .user = "organization",
       .submit = "submit_time",
       .duration = "duration",
       .gpus = "gpu_request",
       .workers = "worker_num"},
      {.name = "tiresias",
       .columns = {"job_id", "num_gpu", "submit_time", "duration", "interval"},
       .job = "job_id",
       .user = "",
       .submit = "submit_time",
       .duration = "duration",
       .gpus = "num_gpu"}};
  return all;
}

constexpr std::string_view kColumns[] = {"job",  "user",       "submit_s", "duration_s",
                                         "gpus", "memory_gib", "step_ms",  "host_ms"};

Nanoseconds nanoseconds(double s) { return Nanoseconds(std::llround(s * 1e9)); }

/// Seconds of a cell, or a complaint.
std::optional<double> time_in(const CsvTable& table, const CsvRow& row, std::size_t index,
                              std::string_view column, bool dates) {
  const std::string_view text = trim(table.cell(index, column));
  if (dates) {
    if (const auto date = parse_date(text)) return static_cast<double>(*date);
    if (!text.empty() && text.find('-') != std::string_view::npos) {
      row.report(column, fmt::format("'{}' is no time", text), "such as 2020-06-09 18:41:01");
      return std::nullopt;
    }
  }
  if (text.empty()) return std::nullopt;
  const std::optional<double> time = row.number(column);
  if (time && *time > kLatest) {
    row.report(column, fmt::format("{} s is too far away", text), "at most 5e9 s");
    return std::nullopt;
  }
  return time;
}

/// Calls report(whether of the host, problem, expected) where step and host are none.
template <class Report>
void check_step(const Job& job, const Report& report) {
  if (job.step && !(job.step->s() > 0 && job.step->s() <= kLongest))
    report(false, "is no step", "a time above 0");
  else if (job.host && !(job.host->s() >= 0 && job.step && *job.host <= *job.step))
    report(true, "is no part of a step", "at most the step");
}

Job own_row(const CsvTable& table, const CsvRow& row, std::size_t index) {
  Job job{.name = row.required("job")};
  if (table.has("user")) job.user = row.text("user");
  const auto time = [&](std::string_view column) {
    if (trim(table.cell(index, column)).empty()) {
      row.report(column, "is empty", "seconds");
      return Nanoseconds(0);
    }
    return nanoseconds(time_in(table, row, index, column, false).value_or(0));
  };
  job.submit = time("submit_s");
  job.work = time("duration_s");
  if (job.work > kLongestWork) row.report("duration_s", "is too long", "at most 3e8 s");
  job.gpus = row.required_count("gpus");
  if (job.gpus == 0 && row.text("gpus") == "0") row.report("gpus", "is 0", "1 or more");
  if (table.has("memory_gib"))
    if (const auto gib = row.number("memory_gib")) job.memory = Bytes::gib(*gib);
  if (table.has("step_ms")) job.step = row.quantity<Seconds>("step_ms", 1e-3);
  if (table.has("host_ms")) job.host = row.quantity<Seconds>("host_ms", 1e-3);
  check_step(job, [&](bool host, std::string problem, std::string expected) {
    row.report(host ? "host_ms" : "step_ms", std::move(problem), std::move(expected));
  });
  return job;
}

/// Nothing for a row that holds no GPU or never ran.
std::optional<Job> trace_row(const Layout& layout, const CsvTable& table, const CsvRow& row,
                             std::size_t index) {
  const auto number = [&](std::string_view column) {
    return trim(table.cell(index, column)).empty() ? std::nullopt : row.number(column);
  };
  const std::optional<double> gpus = number(layout.gpus);
  const std::optional<double> workers =
      layout.workers.empty() ? std::optional(1.0) : number(layout.workers);
  const auto submit = time_in(table, row, index, layout.submit, layout.dates);
  std::optional<double> duration;
  if (!layout.duration.empty()) {
    duration = number(layout.duration);
  } else if (const auto from = number(layout.start), to = number(layout.end); from && to) {
    duration = *to - *from;
  }
  const double all = gpus.value_or(0) * workers.value_or(0);
  if (all == 0 || !submit || !duration || *duration < 0) return std::nullopt;
  if (all != std::floor(all) || all > 1e6) {
    row.report(layout.gpus, fmt::format("{} GPUs", all), "a whole number");
    return std::nullopt;
  }
  if (*duration > kLongest) {
    row.report(layout.duration.empty() ? layout.end : layout.duration, "is too long",
               "at most 3e8 s");
    return std::nullopt;
  }
  return Job{.name = row.text(layout.job),
             .user = layout.user.empty() ? "" : row.text(layout.user),
             .submit = nanoseconds(*submit),
             .work = nanoseconds(*duration),
             .gpus = static_cast<std::uint32_t>(all)};
}

Result<JobList> read_table(const CsvTable& table) {
  JobList list{.layout = "jobs"};
  const Layout* found = nullptr;
  for (const Layout& layout : layouts())
    if (!found && std::all_of(layout.columns.begin(), layout.columns.end(),
                              [&](std::string_view column) { return table.has(column); }))
      found = &layout;
  Error errors;
  if (!found) {
    if (Status ok = table.require({"job", "submit_s", "duration_s", "gpus"}); !ok)
      return forward(ok);
    for (const std::string& column : table.columns())
      if (std::find(std::begin(kColumns), std::end(kColumns), column) == std::end(kColumns))
        errors.diagnostics.push_back({.file = table.name(),
                                      .line = 1,
                                      .key = column,
                                      .problem = "unknown column",
                                      .nearest = suggest(column, kColumns)});
  } else {
    list.layout = found->name;
  }
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const CsvRow row(table, i, errors);
    if (!found) {
      list.jobs.push_back(own_row(table, row, i));
    } else if (std::optional<Job> job = trace_row(*found, table, row, i)) {
      list.jobs.push_back(std::move(*job));
    } else {
      ++list.left_out;
    }
  }
  if (!errors.diagnostics.empty()) return tl::unexpected(std::move(errors));
  // Traces count from their own origin, and dates from 1970: the first arrival is the origin here.
  if (found && !list.jobs.empty()) {
    Nanoseconds first = list.jobs.front().submit;
    for (const Job& job : list.jobs) first = std::min(first, job.submit);
    for (Job& job : list.jobs) job.submit = job.submit - first;
  }
  return list;
}

Result<JobList> read_yaml(const YamlFile& file) {
  const YamlMap root = file.root();
  JobList list{.layout = "jobs"};
  if (!root.has("jobs")) root.report("jobs", "is missing", "a list of jobs");
  for (const YamlMap& map : root.maps("jobs")) {
    const auto name = map.required<std::string>("job");
    const auto duration = map.required<Seconds>("duration");
    const auto submit = map.optional<Seconds>("submit");
    const auto gpus = map.optional<std::int64_t>("gpus");
    Job job{.name = name.value_or(""), .user = map.optional<std::string>("user").value_or("")};
    const auto time = [&](std::string_view key, std::optional<Seconds> value) {
      if (value && (value->s() < 0 || value->s() > kLongest)) {
        map.report(key, "is out of range", "0 s to 3e8 s");
      } else if (value) {
        return nanoseconds(value->s());
      }
      return Nanoseconds(0);
    };
    job.submit = time("submit", submit);
    job.work = time("duration", duration);
    if (gpus && (*gpus < 1 || *gpus > 1'000'000))
      map.report("gpus", fmt::format("{} GPUs", *gpus), "1 or more");
    else if (gpus)
      job.gpus = static_cast<std::uint32_t>(*gpus);
    job.memory = map.optional<Bytes>("memory");
    job.step = map.optional<Seconds>("step");
    job.host = map.optional<Seconds>("host");
    check_step(job, [&](bool host, std::string problem, std::string expected) {
      map.report(host ? "host" : "step", std::move(problem), std::move(expected));
    });
    map.no_other_keys();
    list.jobs.push_back(std::move(job));
  }
  root.no_other_keys();
  if (Status ok = file.status(); !ok) return forward(ok);
  return list;
}

}  // namespace

std::optional<std::int64_t> parse_date(std::string_view text) {
  // YYYY-MM-DD HH:MM:SS
  constexpr std::string_view kForm = "dddd-dd-dd dd:dd:dd";
  if (text.size() != kForm.size()) return std::nullopt;
  std::int64_t part[6] = {};
  std::size_t at = 0;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const char c = text[i];
    if (kForm[i] != 'd') {
      if (c != kForm[i]) return std::nullopt;
      ++at;
    } else if (c < '0' || c > '9') {
      return std::nullopt;
    } else {
      part[at] = part[at] * 10 + (c - '0');
    }
  }
  const auto [year, month, day, hour, minute, second] = part;
  constexpr std::int64_t kDays[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12 || day < 1 || day > kDays[month - 1] || hour > 23 || minute > 59 ||
      second > 60)
    return std::nullopt;
  // Days since 1970 of the proleptic Gregorian calendar; years begin in March.
  const std::int64_t y = month <= 2 ? year - 1 : year, era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t of_era = y - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t days =
      era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
  return days * 86400 + hour * 3600 + minute * 60 + second;
}

Result<JobList> parse_jobs_csv(std::string_view text, std::string name) {
  const Result<CsvTable> table = CsvTable::parse(text, std::move(name));
  if (!table) return forward(table);
  return read_table(*table);
}

Result<JobList> parse_jobs_yaml(const std::string& text, std::string name) {
  const Result<YamlFile> file = YamlFile::parse(text, std::move(name));
  if (!file) return forward(file);
  return read_yaml(*file);
}

Result<JobList> load_jobs(const std::filesystem::path& path) {
  if (path.extension() != ".yaml" && path.extension() != ".yml") {
    const Result<CsvTable> table = CsvTable::load(path);
    if (!table) return forward(table);
    return read_table(*table);
  }
  const Result<YamlFile> file = YamlFile::load(path);
  if (!file) return forward(file);
  return read_yaml(*file);
}

}  // namespace rehearse::fleet
