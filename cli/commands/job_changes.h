// What-ifs on a job that was never run: parts of its work that take another time, and another network.
#pragma once

#include <string>
#include <vector>

#include "cli/config/job_file.h"
#include "models/workload/layout.h"

namespace rehearse::cli {

struct JobChanges {
  std::vector<std::string> scale;  ///< TARGET[=PATTERN]:FACTOR
  std::string network;             ///< a link, on one line or as a file; empty: the job's

  bool any() const { return !scale.empty() || !network.empty(); }
};

/// Whether an edit of `scale` can be read.
Status check_scale(const std::string& text);
/// Changes the job. Fails on a link that cannot be read, and where the job has no network.
Status apply(const JobChanges& changes, JobFile& file);
/// Fails if a pattern names no operation of the layout.
Status match(const JobChanges& changes, const workload::Layout& layout);

}  // namespace rehearse::cli
