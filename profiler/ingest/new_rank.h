// NewRank: gives a reader one recorder per process of a recording.
#pragma once

#include <functional>
#include <string>

#include "profiler/trace/recorder.h"

namespace rehearse::ingest {

/// Called for each process that a reader finds, with the text that names it in messages; returns
/// the recorder for its rows. A reader finishes one process before it requests the next, because
/// the recorder may be destroyed then.
using NewRank = std::function<trace::Recorder&(std::string source)>;

}  // namespace rehearse::ingest
