// NewRank: gives a reader one recorder per process of a recording.
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
