// A job as the subject of a live page.
#pragma once

#include <filesystem>

#include "cli/globals.h"
#include "cli/live/control.h"

namespace rehearse::cli {

/// The job of a file, or of a text that is held under that name. Its controls are the fields of the
/// training and the plan, the parts of a cluster that is given by a device or an instance, and a slice
/// of its device. Fails as reading the job does.
Result<LiveSubject> live_job(const std::filesystem::path& path, const Globals& globals);

}  // namespace rehearse::cli
