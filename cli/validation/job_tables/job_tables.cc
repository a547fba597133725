#include "cli/validation/job_tables/job_tables.h"

#include <algorithm>
#include <fstream>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using Reader = Result<JobTable> (*)(const fs::path&);

struct Kind {
  std::vector<std::string_view> columns;  ///< that no other kind has together
  Reader read;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kinds = {
      {{"params_billion", "micro_batch", "dp", "iteration_ms"},
       [](const fs::path& p) { return read_vtrain(p, strategies::Recompute::kFull); }},
      {{"params_billion", "tflops_per_gpu", "tp", "pp"}, read_sc21_scaling},
      {{"scheme", "model_parallel_size_as_transcribed"}, read_sc21_schemes},
      {{"tensor_par_comm_type", "iteration_s"}, read_seqsel},
      {{"tensor_par_comm_type", "activation_gib"}, read_seqsel},
      {{"tensor_par_comm_type", "activation_pct_of_none"}, read_seqsel},
      {{"microbatchsize", "sharding_strategy", "throughput_t_s_gpu"}, read_mpt},
      {{"local_batch", "parallelism", "activation_ckpt"}, read_torchtitan},
      {{"mbs", "gbs", "tokens_per_s_per_gpu"}, read_nemo},
      {{"late_step_time_s"}, read_mlperf_gpt},
      {{"micro_batch_x_dp", "accum_steps"}, read_dlperf_gpt}};
  return kinds;
}

Reader reader_of(const fs::path& path) {
  std::ifstream file(path);
  std::string heading;
  std::getline(file, heading);
  if (!heading.empty() && heading.back() == '\r') heading.pop_back();
  const std::vector<std::string_view> columns = split(heading, ',');
  for (const Kind& kind : kinds())
    if (std::all_of(kind.columns.begin(), kind.columns.end(), [&](std::string_view wanted) {
          return std::find(columns.begin(), columns.end(), wanted) != columns.end();
        }))
      return kind.read;
  return nullptr;
}

}  // namespace

Result<std::vector<JobTable>> read_job_tables(const fs::path& data) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(data, error), end; !error && at != end;
       at.increment(error))
    if (at->path().extension() == ".csv") files.push_back(at->path());
  if (error)
    return fail(
        Diagnostic{.file = data.string(), .problem = error.message(), .expected = "a folder"});
  std::sort(files.begin(), files.end());
  std::vector<JobTable> tables;
  for (const fs::path& file : files) {
    const Reader read = reader_of(file);
    if (!read) continue;
    Result<JobTable> table = read(file);
    if (!table) return forward(table);
    tables.push_back(std::move(*table));
  }
  return tables;
}

}  // namespace rehearse::cli
