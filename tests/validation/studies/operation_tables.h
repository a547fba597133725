// Published tables of measured operations, as far as this program knows their forms: each row as an
// op with its time, by device. They are data next to the source tree, not part of it.
// Rows of a device that the catalog does not have are passed over.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "tests/validation/studies/fit.h"

namespace rehearse::cli {

/// Rows of one device of one file.
struct OperationTable {
  std::string source;
  std::string kind;  ///< what the file calls it: "linear", "bf16", "convolution", …
  /// Attention alone: whose kernels.
  std::optional<compute::AttentionKernels> kernels = {};
  compute::DeviceRows measured;
};

/// device, gemm_dtype (bfloat16, float16, fp8), m, n, k, latency (ms); repeated rows become their
/// median. Where the file has no device, its name begins with it ("b200_sxm__vllm-0.19.0__").
/// Data types that are not of an op (block-scaled ones) are left out. May be gzipped.
Result<std::vector<OperationTable>> read_gemm_csv(const std::filesystem::path& path);

/// OPName, Latency (ms), Device and either B, M, N, K (matrix products) or B, H (rows and their
/// width, of an elementwise function of one or two operands, ln or softmax), FP32. May be gzipped.
Result<std::vector<OperationTable>> read_kernel_csv(const std::filesystem::path& path);

/// A worksheet of DeepBench: sections that begin with a title, of matrix products (M, N, K, time)
/// and convolutions (shapes, times of forward and both gradients, ms). The device is in the name of
/// the file ("NV_P100__Results_FP32.csv"), as is the format. Rows without a number are left out.
Result<std::vector<OperationTable>> read_deepbench_csv(const std::filesystem::path& path);

/// kernel_source, batch_size, isl, num_heads, num_key_value_heads, latency (ms), and where they
/// differ head_dim (else 128), window_size, attn_dtype and kv_cache_dtype: causal attention of
/// sequences to themselves; or, with `step`, of one query each to step + 1 keys. Heads that share
/// keys are queries of one. The device and the framework's version are in the name of the file.
/// Rows in half precision without a window. May be gzipped.
Result<std::vector<OperationTable>> read_attention_csv(const std::filesystem::path& path);

/// Ends the kind of a table of best rates.
inline constexpr std::string_view kBestOfSearch = "best of a search";

/// dtype, accelerator, mamf_tflops, best_shape_mnk: one row per device and format.
Result<std::vector<OperationTable>> read_matmul_csv(const std::filesystem::path& path);

}  // namespace rehearse::cli
