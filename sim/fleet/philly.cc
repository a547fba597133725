#include <algorithm>

#include <fmt/core.h>
#include <simdjson.h>

#include "sim/base/text.h"
#include "sim/fleet/public_traces.h"

namespace rehearse::fleet {
namespace {

namespace dom = simdjson::dom;

constexpr std::int64_t kMostGpus = 1'000'000;

std::string text_of(const dom::object& object, const char* key) {
  std::string_view text;
  return object[key].get(text) ? "" : std::string(text);
}

/// Seconds since 1970; nothing for null, for "None" and where it is absent. False on other text.
bool read_time(const dom::object& object, const char* key, std::optional<std::int64_t>& time) {
  const std::string text = text_of(object, key);
  time = parse_date(text);
  return time || text.empty() || text == "None";
}

/// What was wrong with a job; empty: nothing.
struct Wrong {
  std::string key, problem;
};

/// Its GPUs are the most that an attempt had, its work the time of all attempts.
struct Attempts {
  std::int64_t gpus = 0;
  std::int64_t seconds = 0;
  bool ran = false;
};

Wrong add_attempt(const dom::object& attempt, Attempts& all) {
  std::optional<std::int64_t> from, to;
  if (!read_time(attempt, "start_time", from))
    return {"start_time", fmt::format("'{}' is no time", text_of(attempt, "start_time"))};
  if (!read_time(attempt, "end_time", to))
    return {"end_time", fmt::format("'{}' is no time", text_of(attempt, "end_time"))};
  std::int64_t gpus = 0;
  dom::array detail;
  if (!attempt["detail"].get(detail))
    for (const dom::element server : detail) {
      dom::array of_server;
      if (!server["gpus"].get(of_server)) gpus += static_cast<std::int64_t>(of_server.size());
    }
  if (gpus > kMostGpus) return {"detail", fmt::format("{} GPUs", gpus)};
  if (!from || !to || *to < *from || gpus == 0) return {};
  all.gpus = std::max(all.gpus, gpus);
  all.seconds += *to - *from;
  all.ran = true;
  if (static_cast<double>(all.seconds) > kLongestSeconds) return {"end_time", "is too long after"};
  return {};
}

/// Nothing for a job that never ran, or whose attempts are not known.
Wrong read_job(const dom::object& object, std::optional<Job>& job) {
  std::string_view name;
  if (object["jobid"].get(name)) return {"jobid", "is missing"};
  std::optional<std::int64_t> submit;
  if (!read_time(object, "submitted_time", submit))
    return {"submitted_time", fmt::format("'{}' is no time", text_of(object, "submitted_time"))};
  dom::array attempts;
  if (object["attempts"].get(attempts)) return {"attempts", "is not a list"};
  Attempts all;
  std::size_t index = 0;
  for (const dom::element element : attempts) {
    dom::object attempt;
    Wrong wrong = element.get(attempt) ? Wrong{"", "is not an attempt"} : add_attempt(attempt, all);
    if (!wrong.problem.empty()) {
      wrong.key = fmt::format("attempts[{}]{}{}", index, wrong.key.empty() ? "" : ".", wrong.key);
      return wrong;
    }
    ++index;
  }
  if (!submit || !all.ran || *submit < 0) return {};
  if (static_cast<double>(*submit) > kLatestSeconds) return {"submitted_time", "is out of range"};
  job = Job{.name = std::string(name),
            .user = text_of(object, "user"),
            .submit = nanoseconds(static_cast<double>(*submit)),
            .work = nanoseconds(static_cast<double>(all.seconds)),
            .gpus = static_cast<std::uint32_t>(all.gpus)};
  return {};
}

}  // namespace

bool looks_like_philly(std::string_view text) {
  return trim(text.substr(0, 4096)).starts_with('[');
}

Result<JobList> parse_philly(std::string_view text, std::string name) {
  const auto wrong = [&](std::string key, std::string problem, std::string expected) {
    return fail(Diagnostic{.file = name,
                           .key = std::move(key),
                           .problem = std::move(problem),
                           .expected = std::move(expected)});
  };
  dom::parser parser;
  dom::array jobs;
  if (const auto error = parser.parse(text.data(), text.size()).get(jobs))
    return wrong("", fmt::format("is not JSON array ({})", simdjson::error_message(error)),
                 "the cluster_job_log of the Philly traces");
  JobList list{.layout = "philly"};
  std::size_t index = 0;
  for (const dom::element element : jobs) {
    const std::string key = fmt::format("[{}]", index++);
    dom::object object;
    if (element.get(object)) return wrong(key, "is not a job", "an object with jobid and attempts");
    std::optional<Job> job;
    if (const Wrong w = read_job(object, job); !w.problem.empty())
      return wrong(key + "." + w.key, w.problem, "as in the documentation of the Philly traces");
    if (job)
      list.jobs.push_back(std::move(*job));
    else
      ++list.left_out;
  }
  begin_at_first_arrival(list);
  return list;
}

}  // namespace rehearse::fleet
