// Readers of published tables of training jobs: rows to JobRows. The tables are data that stand
// beside the source tree; docs/accuracy.md says where each comes from. Columns are found by name,
// so that another file of the same form reads too. A row that cannot be expressed is left out, with
// its reason; a table that cannot be read is an error.
#pragma once

#include <filesystem>
#include <vector>

#include "cli/validation/job_tables/job_row.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// vTrain (Bang et al.): Megatron-DeepSpeed on A100. `recompute` is not a column. Among the tables
/// of a folder are those with params_billion, which recompute everything.
Result<JobTable> read_vtrain(const std::filesystem::path& path, strategies::Recompute recompute);

/// Narayanan et al., SC21 (arXiv:2104.04473), tables 1 and 2. Interleaving is in neither, the
/// microbatch not in table 1: JobRow::choices.
Result<JobTable> read_sc21_scaling(const std::filesystem::path& path);
Result<JobTable> read_sc21_schemes(const std::filesystem::path& path);

/// Korthikanti et al. (arXiv:2205.05198): table 5 (iteration_s), figure 1 (param_grad_opt_gib,
/// activation_gib) and figure 7 (activation_pct_of_none) share their columns; what is measured of
/// the memory stands in the rows of read_seqsel_memory.
Result<JobTable> read_seqsel(const std::filesystem::path& path);

/// llm-foundry's MPT: FSDP on A100 and H100.
Result<JobTable> read_mpt(const std::filesystem::path& path);

/// torchtitan's Llama 3 with up to four kinds of parallelism.
Result<JobTable> read_torchtitan(const std::filesystem::path& path);

/// NVIDIA NeMo and Megatron-Bridge performance summaries.
Result<JobTable> read_nemo(const std::filesystem::path& path);

/// GPT-3 175B of MLPerf Training.
Result<JobTable> read_mlperf_gpt(const std::filesystem::path& path);

/// DLPerf's GPT on V100: a row per framework.
Result<JobTable> read_dlperf_gpt(const std::filesystem::path& path);

/// Published jobs that stand in no table beside the source tree: recalled from the papers that each
/// row names, with what they do not say in `assumed`. No constant or form was chosen
/// by them.
/// One table per paper.
std::vector<JobTable> recalled_jobs();

/// All tables at any depth below `data` whose columns are those of one of the above, in the order
/// of their paths. A folder with other tables is read by the first line of each.
Result<std::vector<JobTable>> read_job_tables(const std::filesystem::path& data);

}  // namespace rehearse::cli
