#include "sim/fleet/public_traces.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/core.h>

#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::fleet {
namespace {

constexpr double kMostGpus = 1e6;

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

/// Nothing for a row that holds no GPU or never ran.
std::optional<Job> trace_row(const Layout& layout, const CsvTable& table, const CsvRow& row,
                             std::size_t index) {
  const auto number = [&](std::string_view column) {
    return trim(table.cell(index, column)).empty() ? std::nullopt : row.number(column);
  };
  const std::optional<double> gpus = number(layout.gpus);
  const std::optional<double> workers =
      layout.workers.empty() ? std::optional(1.0) : number(layout.workers);
  const auto submit = cell_time(table, row, index, layout.submit, layout.dates);
  std::optional<double> duration;
  if (!layout.duration.empty()) {
    duration = number(layout.duration);
  } else if (const auto from = number(layout.start), to = number(layout.end); from && to) {
    duration = *to - *from;
  }
  const double all = gpus.value_or(0) * workers.value_or(0);
  if (all == 0 || !submit || !duration || *duration < 0) return std::nullopt;
  if (all != std::floor(all) || all > kMostGpus) {
    row.report(layout.gpus, fmt::format("{} GPUs", all), "a whole number");
    return std::nullopt;
  }
  if (*duration > kLongestSeconds) {
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

/// A table with the heading that its documentation gives, and how many lines that has put before.
struct Headed {
  CsvTable table;
  std::uint32_t added;
};

void shift(Error& error, std::uint32_t added) {
  for (Diagnostic& d : error.diagnostics)
    if (d.line) *d.line -= std::min(*d.line - 1, added);
}

Result<Headed> parse_headless(std::string_view text, std::string name, std::string_view heading) {
  const bool has = text.starts_with(heading.substr(0, heading.find(',') + 1));
  Result<CsvTable> table =
      CsvTable::parse(has ? std::string(text) : fmt::format("{}\n{}", heading, text), name);
  if (table) return Headed{std::move(*table), has ? 0U : 1U};
  Error error = std::move(table.error());
  if (!has) shift(error, 1);
  return tl::unexpected(std::move(error));
}

constexpr std::string_view kPaiJobs = "job_name,inst_id,user,status,start_time,end_time";
constexpr std::string_view kPaiTasks =
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type";
constexpr const char* kPaiJobFile = "pai_job_table.csv";
constexpr const char* kPaiTaskFile = "pai_task_table.csv";

/// What the tasks of a job that ask for GPUs add up to.
struct PaiTasks {
  double gpus = 0;
  double from = 0, to = 0;
  bool ran = true;  ///< each began and ended
};

/// An instance of part of a GPU holds one.
void add_task(const CsvTable& table, const CsvRow& row, std::size_t index, PaiTasks& tasks) {
  const auto number = [&](std::string_view column) {
    return trim(table.cell(index, column)).empty() ? std::nullopt : row.number(column);
  };
  const double each = std::ceil(number("plan_gpu").value_or(0) / 100);
  const double instances = number("inst_num").value_or(0);
  if (each * instances == 0) return;
  if (instances != std::floor(instances) || each * instances > kMostGpus)
    row.report("inst_num", fmt::format("{} instances of {} GPUs", instances, each),
               "a whole number, of a million GPUs at most");
  const auto from = cell_time(table, row, index, "start_time", false);
  const auto to = cell_time(table, row, index, "end_time", false);
  const bool first = tasks.gpus == 0;
  tasks.gpus += each * instances;
  if (!from || !to || *to < *from) {
    tasks.ran = false;
    return;
  }
  tasks.from = first ? *from : std::min(tasks.from, *from);
  tasks.to = first ? *to : std::max(tasks.to, *to);
}

}  // namespace

/// Seconds of a cell, or a complaint.
std::optional<double> cell_time(const CsvTable& table, const CsvRow& row, std::size_t index,
                                std::string_view column, bool dates) {
  const std::string_view text = trim(table.cell(index, column));
  if (dates) {
    if (const auto date = parse_date(text)) {
      if (*date >= 0 && static_cast<double>(*date) <= kLatestSeconds)
        return static_cast<double>(*date);
      row.report(column, fmt::format("'{}' is out of range", text), "1970 to 2128");
      return std::nullopt;
    }
    if (!text.empty() && text.find('-') != std::string_view::npos) {
      row.report(column, fmt::format("'{}' is no time", text), "such as 2020-06-09 18:41:01");
      return std::nullopt;
    }
  }
  if (text.empty()) return std::nullopt;
  const std::optional<double> time = row.number(column);
  if (time && *time > kLatestSeconds) {
    row.report(column, fmt::format("{} s is out of range", text), "at most 5e9 s");
    return std::nullopt;
  }
  return time;
}

std::optional<Result<JobList>> read_trace_table(const CsvTable& table) {
  const auto found = std::find_if(layouts().begin(), layouts().end(), [&](const Layout& layout) {
    return std::all_of(layout.columns.begin(), layout.columns.end(),
                       [&](std::string_view column) { return table.has(column); });
  });
  if (found == layouts().end()) return std::nullopt;
  JobList list{.layout = std::string(found->name)};
  Error errors;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const CsvRow row(table, i, errors);
    if (std::optional<Job> job = trace_row(*found, table, row, i))
      list.jobs.push_back(std::move(*job));
    else
      ++list.left_out;
  }
  if (!errors.diagnostics.empty()) return tl::unexpected(std::move(errors));
  begin_at_first_arrival(list);
  return list;
}

void begin_at_first_arrival(JobList& list) {
  if (list.jobs.empty()) return;
  Nanoseconds first = list.jobs.front().submit;
  for (const Job& job : list.jobs) first = std::min(first, job.submit);
  for (Job& job : list.jobs) job.submit = job.submit - first;
}

bool is_pai(const std::filesystem::path& path) {
  return path.filename() == kPaiJobFile || path.filename() == kPaiTaskFile;
}

Result<JobList> load_pai(const std::filesystem::path& folder) {
  const Result<std::string> jobs = read_file(folder / kPaiJobFile);
  if (!jobs) return forward(jobs);
  const Result<std::string> tasks = read_file(folder / kPaiTaskFile);
  if (!tasks) return forward(tasks);
  return parse_pai(*jobs, (folder / kPaiJobFile).string(), *tasks,
                   (folder / kPaiTaskFile).string());
}

Result<JobList> parse_pai(std::string_view jobs_text, std::string jobs_name,
                          std::string_view tasks_text, std::string tasks_name) {
  const Result<Headed> tasks = parse_headless(tasks_text, std::move(tasks_name), kPaiTasks);
  if (!tasks) return forward(tasks);
  const Result<Headed> jobs = parse_headless(jobs_text, std::move(jobs_name), kPaiJobs);
  if (!jobs) return forward(jobs);
  if (Status ok =
          tasks->table.require({"job_name", "inst_num", "start_time", "end_time", "plan_gpu"});
      !ok)
    return forward(ok);
  if (Status ok = jobs->table.require({"job_name", "user", "start_time"}); !ok) return forward(ok);

  std::unordered_map<std::string, PaiTasks> by_job;  // never iterated
  Error task_errors, job_errors;
  for (std::size_t i = 0; i < tasks->table.rows(); ++i)
    add_task(tasks->table, CsvRow(tasks->table, i, task_errors), i,
             by_job[std::string(tasks->table.cell(i, "job_name"))]);
  JobList list{.layout = "pai-2020"};
  for (std::size_t i = 0; i < jobs->table.rows(); ++i) {
    const CsvRow row(jobs->table, i, job_errors);
    const std::string name = row.text("job_name");
    const auto found = by_job.find(name);
    const auto submit = cell_time(jobs->table, row, i, "start_time", false);
    const double ran =
        found != by_job.end() && found->second.ran ? found->second.to - found->second.from : -1;
    if (!submit || ran < 0 || found->second.gpus == 0) {
      ++list.left_out;
      continue;
    }
    if (ran > kLongestSeconds || found->second.gpus > kMostGpus) {
      row.report("job_name",
                 fmt::format("'{}' holds {} GPUs for {} s", name, found->second.gpus, ran),
                 "a million for 3e8 s at most");
      continue;
    }
    list.jobs.push_back({.name = name,
                         .user = row.text("user"),
                         .submit = nanoseconds(*submit),
                         .work = nanoseconds(ran),
                         .gpus = static_cast<std::uint32_t>(found->second.gpus)});
  }
  shift(task_errors, tasks->added);
  shift(job_errors, jobs->added);
  for (Diagnostic& d : job_errors.diagnostics) task_errors.diagnostics.push_back(std::move(d));
  if (!task_errors.diagnostics.empty()) return tl::unexpected(std::move(task_errors));
  begin_at_first_arrival(list);
  return list;
}

}  // namespace rehearse::fleet
