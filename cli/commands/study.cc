// rehearse study: published systems, from short files.
#include <algorithm>

#include <fmt/core.h>

#include "cli/commands/options.h"
#include "cli/commands/shared_work.h"
#include "cli/report/report.h"
#include "cli/study/run_study.h"
#include "cli/study/study_result.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

struct StudyOptions {
  std::vector<fs::path> files;
  fs::path journal;
};

/// The files as given; a folder is replaced by its YAML files, in order of name.
Result<std::vector<fs::path>> study_files(const std::vector<fs::path>& given) {
  std::vector<fs::path> files;
  for (const fs::path& path : given) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const auto first = static_cast<std::ptrdiff_t>(files.size());
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
      if (it->path().extension() == ".yaml") files.push_back(it->path());
    if (error || first == static_cast<std::ptrdiff_t>(files.size()))
      return fail_in(path, error ? error.message() : "holds no study", "files that end in .yaml");
    std::sort(files.begin() + first, files.end());
  }
  return files;
}

/// Text and the page of studies show no intervals; a journal serves every format.
bool needs_intervals(const StudyOptions& options, const Globals& globals) {
  return !options.journal.empty() || globals.format == Format::kJson ||
         globals.format == Format::kCsv || !globals.report.empty() || !globals.json.empty();
}

/// All files are read before any is run.
Result<std::vector<StudyResult>> run_all(const StudyOptions& options, bool intervals,
                                         SharedWork& shared) {
  const std::vector<fs::path> files = TRY(study_files(options.files));
  std::vector<Study> studies;
  for (const fs::path& file : files) studies.push_back(TRY(load_study(file)));
  const std::string name = studies.size() == 1 ? "study " + studies.front().name
                                               : fmt::format("{} studies", studies.size());
  const work::ExecutionOptions execution =
      TRY(shared.begin(name, name, [&studies] { return fingerprint_of(studies); }));
  return run_studies(std::move(studies), intervals, execution);
}

Result<Exit> run(const StudyOptions& options, const Globals& globals, SharedWork& shared) {
  const std::vector<StudyResult> results =
      TRY(run_all(options, needs_intervals(options, globals), shared));
  if (!work::leads()) return Exit::kSuccess;
  const Document document = studies_document(results);
  if (globals.format == Format::kMarkdown) {
    TRY(write_report(globals, document));
    TRY(write_text(globals, study_page(results)));
  } else {
    TRY(write_document(globals, document));
  }
  const bool missed = std::ranges::any_of(
      results, [](const StudyResult& result) { return result.verdict == StudyVerdict::kMissed; });
  return missed ? Exit::kFailed : Exit::kSuccess;
}

}  // namespace

void add_study(CLI::App& app, Action& action) {
  auto options = std::make_shared<StudyOptions>();
  CLI::App* command = app.add_subcommand(
      "study",
      "Simulate published systems from short files, and compare with the published numbers");
  add_value(*command, "STUDY", "FILE", options->files,
            "study files, or folders of them: jobs, a sweep, measures and expected values")
      ->required();
  add_value(*command, "--journal", "FILE", options->journal, kJournalHelp);
  command->footer(
      "Example: rehearse study studies/mig-collocation.yaml\n"
      "Exits with 1 if a study misses. Under mpirun, all ranks share the work.");
  command->callback([options, &action] { action = shared_action(options, run); });
}

}  // namespace rehearse::cli
