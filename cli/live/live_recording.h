// A recording as the subject of a live page.
#pragma once

#include <filesystem>

#include "cli/globals.h"
#include "cli/live/control.h"

namespace rehearse::cli {

/// The recording of a file or folder, which is read once. Its controls are the edits of `whatif` that
/// need no file. Fails as reading it does.
Result<LiveSubject> live_recording(const std::filesystem::path& path, const Globals& globals);

}  // namespace rehearse::cli
