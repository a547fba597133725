// Details of a predicted job for the report page that are not in its document.
#pragma once

#include "cli/commands/step_result.h"
#include "cli/globals.h"
#include "cli/report/report.h"

namespace rehearse::cli {

/// Tries single changes of the job, with progress. Fails if it is interrupted.
Status try_changes(PredictedJob& job, const Globals& globals);

/// REQUIRES: try_changes() was called.
ReportDetails step_details(const PredictedJob& job, const std::filesystem::path& job_file);

}  // namespace rehearse::cli
