// NewRank: how a reader that may find several processes in one recording gets a recorder for each.
#pragma once

#include <functional>
#include <string>

#include "profiler/trace/recorder.h"

namespace rehearse::ingest {

/// Called for each process that a reader finds, with the text that names it in messages; gives the
/// recorder to put its rows into. A reader finishes one process before it asks for the next: the
/// recorder may be gone after that.
using NewRank = std::function<trace::Recorder&(std::string source)>;

}  // namespace rehearse::ingest
