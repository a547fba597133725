// The options that describe a job instead of a job file, of simulate, plan and recommend.
#pragma once

#include <filesystem>

#include "cli/commands/commands.h"
#include "cli/config/described_job.h"

namespace rehearse::cli {

/// Adds the options to a command whose job file is the positional JOB, which is then optional.
/// REQUIRES: JOB has been added.
void add_described_job(CLI::App& command, DescribedJob& job, JobUse use);

/// Throws CLI::ValidationError if a job file and --model are both given, if an option that describes
/// the job is missing, and in a search if there is neither.
void check_described_job(const std::filesystem::path& file, const DescribedJob& job, JobUse use);

/// Sets `file` to the described job, if one is described: to the file of --save, else to a text
/// in memory. A job that cannot be read is not saved.
Status use_described_job(const DescribedJob& job, JobUse use, std::filesystem::path& file);
/// The error, with options instead of places in a text in memory.
Error naming_options(Error error);

/// What `run` returns with `file` set to the described job, if one is described.
template <class Run>
auto on_described_job(const DescribedJob& job, JobUse use, std::filesystem::path& file,
                      const Run& run) -> decltype(run()) {
  TRY(use_described_job(job, use, file));
  auto result = run();
  if (!result && !job.model.empty() && job.save.empty())
    return tl::unexpected(naming_options(std::move(result.error())));
  return result;
}

/// Makes the command check and use `file` and `job` as above before it does `run`.
/// REQUIRES: `run` keeps both alive.
void run_on_job(CLI::App& command, Action& action, JobUse use, std::filesystem::path& file,
                const DescribedJob& job, Action run);

}  // namespace rehearse::cli
