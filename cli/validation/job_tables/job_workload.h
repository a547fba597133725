// From a row of a table to what is simulated: the one place that says how each framework computes.
#pragma once

#include "cli/validation/job_tables/job_row.h"
#include "models/workload/layout.h"
#include "models/workload/transformer.h"
#include "sim/base/result.h"

namespace rehearse::cli {

workload::Transformer transformer_of(const JobRow& row);
workload::Implementation implementation_of(const JobRow& row);

/// For one sample. torchtitan's selective recomputation saves attention and every second matrix
/// product: what else a block keeps is marked as its core, so that strategies drop it.
Result<workload::Workload> workload_of(const JobRow& row);

Result<workload::Layout> layout_of(const JobRow& row);

}  // namespace rehearse::cli
