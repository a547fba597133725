// rehearse validate: predict recorded and published measurements and say how far off.
#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/calibrate/measured_tables.h"
#include "cli/commands/commands.h"
#include "cli/output/result.h"
#include "cli/validation/baseline.h"
#include "cli/validation/carried_accuracy.h"
#include "cli/validation/collective_report.h"
#include "cli/validation/gate_accuracy.h"
#include "cli/validation/job_report.h"
#include "cli/validation/job_tables/job_tables.h"
#include "cli/validation/layer_accuracy.h"
#include "cli/validation/memory_report.h"
#include "cli/validation/operation_report.h"
#include "cli/validation/pair_accuracy.h"
#include "cli/validation/replay_report.h"
#include "cli/validation/sharing/slice_report.h"
#include "cli/validation/throughput_report.h"
#include "cli/validation/withheld_accuracy.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct ValidateOptions {
  std::vector<std::string> suites;
  std::filesystem::path data;
  std::filesystem::path baseline;
};

/// What a suite found, in each form in which it is shown.
struct Finding {
  std::vector<SuiteSummary> suites;
  std::string text;
  std::string markdown;
};

/// Nothing where the folder has no data of this kind.
using Measure = Result<std::optional<Finding>> (*)(const std::filesystem::path& data,
                                                   const Globals& globals);

Result<std::optional<Finding>> replays(const std::filesystem::path& data, const Globals& globals) {
  const Result<ReplayAccuracy> replay =
      measure_replay_accuracy(data, globals.progress_of("validating"));
  if (!replay) return forward(replay);
  for (const auto& [name, why] : replay->unreadable) globals.warn(why);
  return Finding{summarize(*replay), recording_table(*replay).text(48), accuracy_page(*replay)};
}

Result<std::optional<Finding>> collectives(const std::filesystem::path& data, const Globals&) {
  if (!find_data(data, "nccl_measured.csv")) return std::nullopt;
  const Result<CollectiveAccuracy> found = measure_collective_accuracy(data);
  if (!found) return forward(found);
  return Finding{summarize(*found), case_table(*found).text(), collective_section(*found)};
}

Result<std::optional<Finding>> memory_of_jobs(const std::filesystem::path& data, const Globals&) {
  const Result<MemoryAccuracy> found = measure_memory_accuracy(data);
  if (!found) return forward(found);
  if (found->cases.empty() && found->fits.empty()) return std::nullopt;
  return Finding{summarize(*found), case_table(*found).text() + "\n" + fit_table(*found).text(),
                 memory_section(*found)};
}

Result<std::optional<Finding>> jobs(const std::filesystem::path& data, const Globals&) {
  const Result<std::vector<JobTable>> tables = read_job_tables(data);
  if (!tables) return forward(tables);
  const JobAccuracy found = measure_job_accuracy(*tables);
  if (found.cases.empty()) return std::nullopt;
  return Finding{summarize("jobs", found), job_table(found).text(48, 40), job_section(found)};
}

Result<std::optional<Finding>> recalled(const std::filesystem::path&, const Globals&) {
  const JobAccuracy found = measure_job_accuracy(recalled_jobs());
  return Finding{summarize("recalled", found), job_table(found).text(48), recalled_section(found)};
}

Result<std::optional<Finding>> timed(std::string_view suite, const Result<TimedAccuracy>& found,
                                     std::string (*section)(const TimedAccuracy&)) {
  if (!found) return forward(found);
  if (found->cases.empty()) return std::nullopt;
  return Finding{summarize(suite, *found), timed_table(*found).text(48, 48), section(*found)};
}

Result<std::optional<Finding>> layers(const std::filesystem::path& data, const Globals&) {
  return timed("layers", measure_layer_accuracy(data), layer_section);
}

Result<std::optional<Finding>> carried(const std::filesystem::path& data, const Globals&) {
  return timed("carried", measure_carried_accuracy(data), carried_section);
}

Result<std::optional<Finding>> withheld(const std::filesystem::path& data, const Globals&) {
  return timed("withheld", measure_withheld_accuracy(data), withheld_section);
}

Result<std::optional<Finding>> operations(const std::filesystem::path& data, const Globals&) {
  const Result<OperationAccuracy> found = measure_operation_accuracy(data);
  if (!found) return forward(found);
  return Finding{summarize(*found), operation_table(*found).text(), operation_section(*found)};
}

Result<std::optional<Finding>> pairs(const std::filesystem::path& data, const Globals&) {
  const Result<PairAccuracy> found = measure_pair_accuracy(data);
  if (!found) return forward(found);
  if (found->cases.empty()) return std::nullopt;
  return Finding{summarize(*found), pair_table(*found).text(), pair_section(*found)};
}

Result<std::optional<Finding>> throughputs(const std::filesystem::path& data, const Globals&) {
  const Result<ThroughputAccuracy> found = measure_throughput_accuracy(data);
  if (!found) return forward(found);
  if (found->cases.empty()) return std::nullopt;
  return Finding{summarize(*found), throughput_table(*found).text(), throughput_section(*found)};
}

Result<std::optional<Finding>> slices(const std::filesystem::path& data, const Globals&) {
  const Result<std::vector<SlicedJob>> jobs = read_sliced_jobs(data);
  if (!jobs) return forward(jobs);
  if (jobs->empty()) return std::nullopt;
  const Result<SliceAccuracy> found = measure_slice_accuracy(*jobs);
  if (!found) return forward(found);
  return Finding{summarize(*found), slice_table(*found).text(72), slice_section(*found)};
}

Result<std::optional<Finding>> gates(const std::filesystem::path&, const Globals& globals) {
  constexpr std::size_t kPairs = 2000;
  const GateAccuracy found = measure_gate_accuracy(kPairs, globals.seed);
  return Finding{{summarize(found)}, gate_accuracy_text(found), gate_section(found)};
}

struct Suite {
  std::string_view name;
  Measure measure;
  std::string_view data;  ///< what it takes, for people; empty: nothing
  bool unasked = true;    ///< measured also where no suite is named; else it takes minutes
};

/// All suites, in the order in which they are shown. The first two are measured in one go.
constexpr std::array<Suite, 14> kSuites = {
    {{"replay", replays, "recordings"},
     {"replay-pairs", replays, "recordings of one job"},
     {"collectives", collectives, "tables of collectives"},
     {"memory", memory_of_jobs, "tables of peak memory"},
     {"jobs", jobs, "tables of step times of jobs"},
     {"withheld", withheld, "tables of step times of jobs"},
     {"throughput", throughputs, "tables of steps by batch, devices or kind of device"},
     {"pairs", pairs, "pairs of jobs on one GPU"},
     {"layers", layers, "times of layers"},
     {"carried", carried, "recordings of one script on two GPUs"},
     {"sharing", slices, "tables of steps on slices"},
     {"operations", operations, "tables of operations", false},
     {"recalled", recalled, "", false},
     {"check", gates, "", false}}};

bool is_wanted(const ValidateOptions& options, const Suite& suite) {
  if (options.suites.empty()) return options.data.empty() ? suite.data.empty() : suite.unasked;
  return std::find(options.suites.begin(), options.suites.end(), suite.name) !=
         options.suites.end();
}

Result<std::vector<Finding>> measure(const ValidateOptions& options, const Globals& globals) {
  std::error_code ignored;
  if (!options.data.empty() && !std::filesystem::is_directory(options.data, ignored))
    return fail(Diagnostic{.file = options.data.string(),
                           .problem = "is not a folder",
                           .expected = "a folder of recordings or tables"});
  std::vector<Finding> findings;
  Measure done = nullptr;
  for (const Suite& suite : kSuites) {
    if (!is_wanted(options, suite) || suite.measure == done) continue;
    Result<std::optional<Finding>> found = suite.measure(options.data, globals);
    if (!found) return forward(found);
    done = suite.measure;
    if (*found) {
      findings.push_back(std::move(**found));
    } else if (!options.suites.empty()) {
      return fail(Diagnostic{.file = options.data.string(),
                             .problem = fmt::format("has no {}", suite.data),
                             .expected = "such as docs/accuracy.md names"});
    }
  }
  // Recordings give two suites, of which one may be asked for.
  for (Finding& finding : findings)
    std::erase_if(finding.suites, [&](const SuiteSummary& found) {
      return std::any_of(kSuites.begin(), kSuites.end(), [&](const Suite& suite) {
        return suite.name == found.name && !is_wanted(options, suite);
      });
    });
  return findings;
}

Result<Exit> run(const ValidateOptions& options, const Globals& globals) {
  // Before what takes minutes.
  Result<std::vector<SuiteSummary>> before;
  const std::string file = options.baseline.string();
  if (!file.empty()) before = read_baseline(options.baseline);
  if (!before) return forward(before);
  const Result<std::vector<Finding>> found = measure(options, globals);
  if (!found) return forward(found);
  std::vector<SuiteSummary> suites;
  for (const Finding& finding : *found)
    suites.insert(suites.end(), finding.suites.begin(), finding.suites.end());
  std::vector<SuiteDrift> drift;
  if (!file.empty()) drift = drift_of(*before, suites);
  const auto to_json = [&] {
    Json json = json_root("validate");
    json["suites"] = json_suites(suites);
    if (!file.empty()) json["baseline"] = drift_json(drift, file);
    return json;
  };
  const auto to_text = [&] {
    std::string text = suite_table(suites).text();
    if (!file.empty()) text += "\n" + drift_text(drift, file);
    for (const Finding& finding : *found) text += "\n" + finding.text;
    return text;
  };
  const auto to_markdown = [&] {
    std::string text =
        "# Accuracy\n\nGenerated by `rehearse validate SUITE... --data DIR --format markdown`; "
        "not edited by hand. Errors are predicted ÷ measured - 1; means, medians and quantiles are "
        "of their magnitude. *Fitted rows*: their own data gave constants; others are *blind*. "
        "*In the interval*: of 90 %.\n\n" +
        suite_table(suites).markdown();
    if (!file.empty()) text += "\n" + drift_section(drift, file);
    for (const Finding& finding : *found) text += finding.markdown;
    return text;
  };
  const Formats formats = {.text = to_text,
                           .json = to_json,
                           .table = [&] { return suite_table(suites); },
                           .markdown = to_markdown};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return count_of(drift, Drift::kTurnedBad) > 0 ? Exit::kFailed : Exit::kSuccess;
}

bool needs_data(const ValidateOptions& options) {
  return std::any_of(kSuites.begin(), kSuites.end(), [&](const Suite& suite) {
    return is_wanted(options, suite) && !suite.data.empty();
  });
}

std::vector<std::string_view> suite_names() {
  std::vector<std::string_view> names;
  names.reserve(kSuites.size());
  for (const Suite& suite : kSuites) names.push_back(suite.name);
  return names;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = app.add_subcommand(
      "validate", "Predict recorded measurements; errors by suite, with the bad cases");
  std::string known;
  for (const std::string_view name : suite_names()) known += fmt::format("{}, ", name);
  known.replace(known.size() - 2, 2,
                " (default: all but the last three that the folder has data for; without a folder "
                "the last two, which need none)");
  command->add_option("SUITE", options->suites, known)
      ->type_name("NAME")
      ->check(CLI::Validator(
          [](const std::string& name) {
            const std::vector<std::string_view> names = suite_names();
            if (std::find(names.begin(), names.end(), name) != names.end()) return std::string();
            return fmt::format("unknown suite '{}'; {}", name, suggest(name, names));
          },
          "", ""));
  command
      ->add_option("--data", options->data,
                   "folder of recordings and of published tables, searched recursively")
      ->type_name("FOLDER");
  command
      ->add_option("--baseline", options->baseline,
                   "JSON result of an earlier run: say what drifts, and end with 1 where a suite "
                   "turned from good to bad")
      ->type_name("FILE");
  command->footer("Example: rehearse validate --data recordings --format markdown -o accuracy.md");
  command->callback([options, &action] {
    if (options->data.empty() && needs_data(*options)) throw CLI::RequiredError("--data");
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
