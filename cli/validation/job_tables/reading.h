// What the readers of job tables share.
#pragma once

#include <functional>

#include "cli/validation/job_tables/job_row.h"
#include "sim/base/csv_row.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// Share of the peak that attention kernels of a generation get: FlashAttention-2 on Hopper (Shah
/// et al., FlashAttention-3, 2024); the third one and cuDNN's, forward and backward in a recorded
/// step of DeepSeek-V3 on H800.
inline constexpr double kFlash2OnHopper = 0.35, kCudnn = 0.50;

/// Reads each row with `read`: a JobRow, several (one per column of measurements), or none and a
/// line in JobTable::left_out. Errors of cells are collected and fail the table. Names that come
/// twice get a number.
Result<JobTable> read_job_table(const std::filesystem::path& path, std::string name,
                                const std::function<void(const CsvRow&, JobTable&)>& read);

/// Divides with a remainder of zero, or nothing.
std::optional<std::uint32_t> divided(double total, double by);

/// Sets `nodes` and `devices_per_node` for so many devices in all; false where they fill no whole
/// number of nodes.
bool set_devices(JobRow& row, std::uint32_t devices, std::uint32_t per_node);

/// `step` from tokens per second and device, and the other way round.
void set_tokens_rate(JobRow& row, double tokens_per_s_per_device);
void set_step(JobRow& row, Seconds step);

}  // namespace rehearse::cli
