// Published tables of measured collectives, as far as this program knows their forms. They are data
// next to the source tree, not part of it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "models/comm/fit.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// Rows of one device and one run.
struct MeasuredTable {
  std::string device;        ///< as in the catalog
  std::string nccl_version;  ///< may be empty
  std::string source;
  std::string date;
  std::vector<comm::MeasuredRow> rows = {};
};

/// A file of the data: `name` below the data folder itself or in the folder `facts` next to it;
/// nothing where it is in neither.
std::optional<std::filesystem::path> find_data(const std::filesystem::path& data,
                                               const std::string& name);

/// nccl_measured.csv: gpu_id, nccl_version, op, num_gpus, size_bytes, time_us. One table per
/// device.
Result<std::vector<MeasuredTable>> read_measured_csv(const std::filesystem::path& path);

/// device, op_name, nccl_dtype, num_gpus, message_size (elements), latency (ms), of one data type.
/// A file that holds two runs gives two tables.
Result<std::vector<MeasuredTable>> read_element_csv(const std::filesystem::path& path,
                                                    const std::string& device,
                                                    const std::string& type);

/// AR_GPU<ranks>_….csv of a folder: size (B), count, type, time (ns), …
Result<MeasuredTable> read_lookup_tables(const std::filesystem::path& folder,
                                         const std::string& device);

/// num_workers, devices_per_node, size, time_stats.OP.median (ms), gzipped: the rows over so many
/// nodes.
Result<MeasuredTable> read_worker_csv(const std::filesystem::path& path, CollectiveKind kind,
                                      const std::string& device, std::uint32_t nodes = 1);

/// allreduce_size_N_MMB_time: ms.
Result<MeasuredTable> read_size_json(const std::filesystem::path& path, const std::string& device);

/// A log of calls of a job: comm_type, comm_group_size, msg_size, _elapsed_time (ms), gzipped. One
/// row per kind, group size and message size: the median of its calls.
Result<MeasuredTable> read_call_log(const std::filesystem::path& path, const std::string& device);

/// Rows in which each curve (kind and number of ranks) keeps those whose place in it `keep` wants.
std::vector<comm::MeasuredRow> sift(
    const std::vector<comm::MeasuredRow>& rows,
    const std::function<bool(std::size_t place, std::size_t curve)>& keep);

}  // namespace rehearse::cli
