// accuracy: compares the program with published measurements. Writes docs/accuracy.md, and fits
// the calibrations again that the program ships.
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/output/document.h"
#include "cli/output/json.h"
#include "sim/base/file.h"
#include "sim/base/named_file.h"
#include "sim/base/text.h"
#include "tests/validation/studies/anchored_accuracy.h"
#include "tests/validation/studies/carried_accuracy.h"
#include "tests/validation/studies/collective_report.h"
#include "tests/validation/studies/gate_accuracy.h"
#include "tests/validation/studies/job_report.h"
#include "tests/validation/studies/layer_accuracy.h"
#include "tests/validation/studies/make_shipped.h"
#include "tests/validation/studies/make_widths.h"
#include "tests/validation/studies/measured_tables.h"
#include "tests/validation/studies/memory_report.h"
#include "tests/validation/studies/operation_report.h"
#include "tests/validation/studies/page.h"
#include "tests/validation/studies/pair_accuracy.h"
#include "tests/validation/studies/replay_report.h"
#include "tests/validation/studies/serving_accuracy.h"
#include "tests/validation/studies/sharing/slice_report.h"
#include "tests/validation/studies/throughput_report.h"
#include "tests/validation/studies/withheld_accuracy.h"

namespace rehearse::cli {
namespace {

struct Options {
  std::vector<std::string> suites;
  std::filesystem::path data, output, into;
  bool json = false;
};

struct Finding {
  std::vector<SuiteSummary> suites;
  std::string markdown;  ///< its section of the page
};

/// Nothing where the folder has no data of this kind.
using Measure = Result<std::optional<Finding>> (*)(const std::filesystem::path& data);

Result<std::optional<Finding>> replays(const std::filesystem::path& data) {
  const ReplayAccuracy replay = TRY(measure_replay_accuracy(data, {}));
  return Finding{summarize(replay), accuracy_page(replay)};
}

Result<std::optional<Finding>> collectives(const std::filesystem::path& data) {
  if (!find_data(data, "nccl_measured.csv")) return std::nullopt;
  const CollectiveAccuracy found = TRY(measure_collective_accuracy(data));
  return Finding{summarize(found), collective_section(found)};
}

Result<std::optional<Finding>> memory_of_jobs(const std::filesystem::path& data) {
  const MemoryAccuracy found = TRY(measure_memory_accuracy(data));
  if (found.cases.empty() && found.fits.empty()) return std::nullopt;
  return Finding{summarize(found), memory_section(found)};
}

Result<std::optional<Finding>> jobs(const std::filesystem::path& data) {
  const std::filesystem::path folder = TRY(converted(data));
  const std::vector<MeasuredJob> measured = TRY(read_job_folder(folder / "jobs"));
  JobAccuracy found = measure_job_accuracy(measured);
  if (found.cases.empty()) return std::nullopt;
  const std::vector<std::string> left_out = TRY(jobs_left_out(data));
  found.left_out.insert(found.left_out.begin(), left_out.begin(), left_out.end());
  return Finding{summarize("jobs", found), job_section(found)};
}

Result<std::optional<Finding>> anchored(const std::filesystem::path& data) {
  const std::filesystem::path folder = TRY(converted(data));
  const std::vector<MeasuredJob> measured = TRY(read_job_folder(folder / "jobs"));
  const AnchoredAccuracy found = measure_anchored_accuracy(measured);
  if (found.suites.empty()) return std::nullopt;
  return Finding{found.suites, anchored_section(found)};
}

Result<std::optional<Finding>> published(const std::filesystem::path&) {
  const std::vector<MeasuredJob> jobs = TRY(kept_jobs("published_jobs.csv"));
  const JobAccuracy found = measure_job_accuracy(jobs);
  return Finding{summarize("published", found), published_section(found)};
}

Result<std::optional<Finding>> recalled(const std::filesystem::path&) {
  const std::vector<MeasuredJob> jobs = TRY(kept_jobs("recalled_jobs.csv"));
  const JobAccuracy found = measure_job_accuracy(jobs);
  return Finding{summarize("recalled", found), recalled_section(found)};
}

Result<std::optional<Finding>> timed(std::string_view suite, const Result<TimedAccuracy>& found,
                                     std::string (*section)(const TimedAccuracy&)) {
  if (!found) return forward(found);
  if (found->cases.empty()) return std::nullopt;
  return Finding{summarize(suite, *found), section(*found)};
}

Result<std::optional<Finding>> layers(const std::filesystem::path& data) {
  return timed("layers", measure_layer_accuracy(data), layer_section);
}

Result<std::optional<Finding>> carried(const std::filesystem::path& data) {
  return timed("carried", measure_carried_accuracy(data), carried_section);
}

Result<std::optional<Finding>> withheld(const std::filesystem::path& data) {
  return timed("withheld", measure_withheld_accuracy(data), withheld_section);
}

Result<std::optional<Finding>> operations(const std::filesystem::path& data) {
  const OperationAccuracy found = TRY(measure_operation_accuracy(data));
  return Finding{summarize(found), operation_section(found)};
}

Result<std::optional<Finding>> pairs(const std::filesystem::path& data) {
  const PairAccuracy found = TRY(measure_pair_accuracy(data));
  if (found.cases.empty()) return std::nullopt;
  return Finding{summarize(found), pair_section(found)};
}

Result<std::optional<Finding>> throughputs(const std::filesystem::path& data) {
  const ThroughputAccuracy found = TRY(measure_throughput_accuracy(data));
  if (found.cases.empty()) return std::nullopt;
  return Finding{summarize(found), throughput_section(found)};
}

Result<std::optional<Finding>> slices(const std::filesystem::path& data) {
  const std::vector<SlicedJob> jobs = TRY(read_sliced_jobs(data));
  if (jobs.empty()) return std::nullopt;
  const SliceAccuracy found = TRY(measure_slice_accuracy(jobs));
  return Finding{summarize(found), slice_section(found)};
}

Result<std::optional<Finding>> servers(const std::filesystem::path& data) {
  const ServingAccuracy found = TRY(measure_serving_accuracy(data));
  if (found.judgement.cases.empty()) return std::nullopt;
  return Finding{summarize(found.judgement), serving_section(found)};
}

/// As `prove` saved it.
Result<std::optional<Finding>> proved(const std::filesystem::path&) {
  const std::string section =
      TRY(read_file(std::filesystem::path(REHEARSE_SOURCE_DIR) / "tests/validation/proved.md"));
  return Finding{{}, section};
}

Result<std::optional<Finding>> gates(const std::filesystem::path&) {
  constexpr std::size_t kPairs = 2000;
  const GateAccuracy found = measure_gate_accuracy(kPairs, 1);
  return Finding{{summarize(found)}, gate_section(found)};
}

struct Suite {
  std::string_view name;
  Measure measure;
  std::string_view data;  ///< that it needs, for people; may be empty
};

/// All suites, in the order in which they are shown. The first two are measured in one go.
constexpr std::array<Suite, 18> kSuites = {
    {{"replay", replays, "recordings"},
     {"replay-pairs", replays, "recordings of one job"},
     {"collectives", collectives, "tables of collectives"},
     {"memory", memory_of_jobs, "tables of peak memory"},
     {"jobs", jobs, "tables of step times of jobs"},
     {"anchored", anchored, "tables of step times of jobs"},
     {"withheld", withheld, "tables of step times of jobs"},
     {"throughput", throughputs, "tables of steps by batch, devices or kind of device"},
     {"pairs", pairs, "pairs of jobs on one GPU"},
     {"layers", layers, "times of layers"},
     {"carried", carried, "recordings of one script on two GPUs"},
     {"sharing", slices, "tables of steps on slices"},
     {"serving", servers, "runs of inference servers"},
     {"operations", operations, "tables of operations"},
     {"published", published, ""},
     {"recalled", recalled, ""},
     {"proved", proved, ""},
     {"check", gates, ""}}};

bool is_wanted(const Options& options, std::string_view suite) {
  return options.suites.empty() ||
         std::find(options.suites.begin(), options.suites.end(), suite) != options.suites.end();
}

Result<std::vector<Finding>> measure(const Options& options) {
  if (!std::filesystem::is_directory(options.data))
    return fail(Diagnostic{.file = options.data.string(),
                           .problem = "is not a folder",
                           .expected = "the folder of published data"});
  std::vector<Finding> findings;
  Measure done = nullptr;
  for (const Suite& suite : kSuites) {
    if (!is_wanted(options, suite.name) || suite.measure == done) continue;
    std::optional<Finding> found = TRY(suite.measure(options.data));
    done = suite.measure;
    if (!found)
      return fail(Diagnostic{.file = options.data.string(),
                             .problem = fmt::format("has no {}", suite.data),
                             .expected = "such as docs/accuracy.md names"});
    findings.push_back(std::move(*found));
  }
  // Recordings give two suites; one of them may be asked for.
  for (Finding& finding : findings)
    std::erase_if(finding.suites, [&](const SuiteSummary& found) {
      return std::any_of(kSuites.begin(), kSuites.end(), [&](const Suite& suite) {
        return suite.name == found.name && !is_wanted(options, suite.name);
      });
    });
  return findings;
}

std::string page_of(const std::vector<SuiteSummary>& suites, const std::vector<Finding>& found) {
  std::string text =
      R"(# Accuracy

`tests/validation/run` generates this page; do not edit it by hand.

- An *error* is predicted ÷ measured − 1. Means, medians and quantiles are of its magnitude.
- *Fitted rows* gave some constant of the program. *Blind rows* gave none.
- *In the interval* is the share of rows inside the 90 % interval. *Median width* is the width of
  that interval relative to the prediction.

)" + suite_table(suites).markdown();
  for (const Finding& finding : found) text += finding.markdown;
  return text;
}

Status write(const Options& options, const std::string& text) {
  if (options.output.empty()) {
    fmt::print("{}", text);
    return {};
  }
  return write_file(options.output, text);
}

Status page(const Options& options) {
  const std::vector<Finding> found = TRY(measure(options));
  std::vector<SuiteSummary> suites;
  for (const Finding& finding : found)
    suites.insert(suites.end(), finding.suites.begin(), finding.suites.end());
  if (!options.json) return write(options, page_of(suites, found));
  Document document{.command = "validate"};
  document["suites"] = json_suites(suites);
  return write(options, json_text(json_of(document)));
}

Status make(const Options& options,
            Result<Table> (*maker)(const std::filesystem::path&, const std::filesystem::path&)) {
  const Table table = TRY(maker(options.data, options.into));
  fmt::print("{}", table.text());
  return {};
}

int run(int argc, char** argv) {
  allow_outside();  // measurements of servers name traces of requests in other folders
  CLI::App app("Compares Rehearse with published measurements.", "accuracy");
  app.require_subcommand(1);
  Options options;
  std::function<Status()> action;
  const auto command = [&](CLI::App& of, const char* name, const char* about) {
    CLI::App* sub = of.add_subcommand(name, about);
    sub->add_option("--data", options.data, "folder of published data")->required();
    return sub;
  };
  CLI::App* pages = command(app, "page", "docs/accuracy.md, or its section of some suites");
  std::vector<std::string> names;
  for (const Suite& suite : kSuites) names.emplace_back(suite.name);
  pages->add_option("SUITE", options.suites)->check(CLI::IsMember(names));
  pages->add_flag("--json", options.json, "the summaries alone");
  pages->add_option("-o", options.output, "file to write");
  pages->callback([&] { action = [&] { return page(options); }; });
  CLI::App* made = app.add_subcommand("make", "fit the calibrations again that the program ships");
  made->require_subcommand(1);
  using Maker = Result<Table> (*)(const std::filesystem::path&, const std::filesystem::path&);
  const std::pair<const char*, Maker> makers[] = {{"collectives", make_collectives},
                                                  {"operations", make_operations},
                                                  {"pairs", make_pairs},
                                                  {"widths", make_widths}};
  for (const auto& [name, maker] : makers) {
    CLI::App* sub = command(*made, name, "one file per device");
    sub->add_option("--into", options.into, "folder to write")->required();
    sub->callback([&, maker = maker] { action = [&, maker] { return make(options, maker); }; });
  }
  CLI11_PARSE(app, argc, argv);
  const Status done = action();
  if (!done) fmt::print(stderr, "accuracy: {}\n", to_string(done.error()));
  return done ? 0 : 1;
}

}  // namespace
}  // namespace rehearse::cli

int main(int argc, char** argv) {
  try {
    return rehearse::cli::run(argc, argv);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "accuracy: %s\n", fault.what());
    return 3;
  }
}
