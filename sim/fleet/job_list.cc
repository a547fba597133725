#include "sim/fleet/job_list.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/csv_row.h"
#include "sim/base/file.h"
#include "sim/base/named_file.h"
#include "sim/base/text.h"
#include "sim/base/yaml.h"

namespace rehearse::fleet {
namespace {

/// Seconds of kLatestSubmit and kLongestWork.
constexpr double kLatestSeconds = 5e9, kLongestSeconds = 3e8;

Nanoseconds nanoseconds(double s) { return Nanoseconds(std::llround(s * 1e9)); }

constexpr std::string_view kColumns[] = {"job",  "user",       "submit_s", "duration_s",
                                         "gpus", "memory_gib", "step_ms",  "host_ms"};

/// Calls report(whether it is the host's, problem, expected) if step or host is invalid. A step
/// that is to be predicted is not known yet.
template <class Report>
void check_step(const Job& job, bool predicted, const Report& report) {
  if (job.step && !(job.step->s() > 0 && job.step->s() <= kLongestSeconds))
    report(false, "is not a step", "a time above 0");
  else if (job.host && !(job.host->s() >= 0 && (job.step ? *job.host <= *job.step : predicted)))
    report(true, "is not part of a step", "at most the step");
}

Job job_of(const CsvTable& table, const CsvRow& row) {
  Job job{.name = row.required("job")};
  if (table.has("user")) job.user = row.text("user");
  const auto time = [&](std::string_view column, double most) {
    const double s = row.required_number(column);
    if (s <= most) return nanoseconds(s);
    row.report(column, fmt::format("{} s is too long", row.text(column)),
               fmt::format("at most {:g} s", most));
    return Nanoseconds(0);
  };
  job.submit = time("submit_s", kLatestSeconds);
  job.work = time("duration_s", kLongestSeconds);
  const auto gpus = row.required("gpus").empty() ? std::nullopt : row.count("gpus");
  if (gpus == 0u) row.report("gpus", "is 0", "1 or more");
  job.gpus = gpus.value_or(1);
  if (table.has("memory_gib"))
    if (const auto gib = row.number("memory_gib")) job.memory = Bytes::gib(*gib);
  if (table.has("step_ms")) job.step = row.quantity<Seconds>("step_ms", 1e-3);
  if (table.has("host_ms")) job.host = row.quantity<Seconds>("host_ms", 1e-3);
  check_step(job, false, [&](bool host, std::string problem, std::string expected) {
    row.report(host ? "host_ms" : "step_ms", std::move(problem), std::move(expected));
  });
  return job;
}

Result<JobList> read_table(const CsvTable& table) {
  TRY(table.require({"job", "submit_s", "duration_s", "gpus"}));
  JobList list;
  Error errors;
  for (const std::string& column : table.columns())
    if (std::ranges::find(kColumns, column) == std::end(kColumns))
      errors.diagnostics.push_back({.file = table.name(),
                                    .line = 1,
                                    .key = column,
                                    .problem = "unknown column",
                                    .nearest = suggest(column, kColumns)});
  for (std::size_t i = 0; i < table.rows(); ++i)
    list.jobs.push_back(job_of(table, CsvRow(table, i, errors)));
  if (!errors.diagnostics.empty()) return tl::unexpected(std::move(errors));
  return list;
}

Result<JobList> read_yaml(const YamlFile& file) {
  const YamlMap root = file.root();
  JobList list;
  if (!root.has("jobs")) root.report("jobs", "is missing", "a list of jobs");
  for (const YamlMap& map : root.maps("jobs")) {
    const auto name = map.required<std::string>("job");
    const auto duration = map.optional<Seconds>("duration");
    const auto predict = map.optional<std::string>("predict");
    const auto steps = map.optional<double>("steps");
    if (predict.has_value() == map.has("duration"))
      map.report("duration", predict ? "is given twice" : "is missing",
                 "duration: TIME, or predict: FILE and steps: NUMBER");
    if (predict.has_value() != map.has("steps") || (steps && !(*steps >= 0 && *steps <= 1e15)))
      map.report("steps", "needs predict", "predict: FILE and steps: NUMBER, 0 or more");
    const auto submit = map.optional<Seconds>("submit");
    const auto gpus = map.optional<std::int64_t>("gpus");
    Job job{.name = name.value_or(""), .user = map.optional<std::string>("user").value_or("")};
    const auto time = [&](std::string_view key, std::optional<Seconds> value) {
      if (value && (value->s() < 0 || value->s() > kLongestSeconds)) {
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
    check_step(job, predict.has_value(), [&](bool host, std::string problem, std::string expected) {
      map.report(host ? "host" : "step", std::move(problem), std::move(expected));
    });
    map.no_other_keys();
    if (predict && steps)
      list.to_predict.push_back({.job = list.jobs.size(),
                                 .file = *predict,
                                 .steps = *steps,
                                 .gpus = gpus.has_value(),
                                 .memory = job.memory.has_value()});
    list.jobs.push_back(std::move(job));
  }
  root.no_other_keys();
  TRY(file.status());
  return list;
}

}  // namespace

Result<JobList> parse_jobs_csv(std::string_view text, std::string name) {
  const CsvTable table = TRY(CsvTable::parse(text, std::move(name)));
  return read_table(table);
}

Result<JobList> parse_jobs_yaml(const std::string& text, std::string name) {
  return YamlFile::parse(text, std::move(name)).and_then(read_yaml);
}

Result<JobList> load_jobs(const std::filesystem::path& path) {
  if (path.extension() == ".yaml" || path.extension() == ".yml") {
    const YamlFile file = TRY(YamlFile::load(path));
    Result<JobList> list = read_yaml(file);
    if (list)
      for (ToPredict& job : list->to_predict)
        job.file = TRY(named_file(path.parent_path(), job.file.string()));
    return list;
  }
  const std::string text = TRY(read_file(path));
  return parse_jobs_csv(text, path.string());
}

}  // namespace rehearse::fleet
