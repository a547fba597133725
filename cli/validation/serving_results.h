// Results of the benchmarks of vLLM and of SGLang as measurements (docs/formats/measurements.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "sim/base/csv.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// The column of a table that names the result of a row.
inline constexpr std::string_view kResultColumn = "result";

/// Cells of a row of measurements by column: ttft_s, tpot_s, output_tokens_per_s, and the load as serve.load.KEY. Reads what
/// `vllm bench serve --save-result` (JSON) or `sglang.bench_serving --output-file` (a JSON line per run) wrote; `line` counts the
/// runs of a file from 1, and 0 is its only one. Fails on a run in which requests failed, and on one whose load cannot be repeated.
Result<std::map<std::string, std::string>> serving_result(const std::filesystem::path& path,
                                                          std::size_t line);

/// The table with the cells of each result, at the same lines; cells that the table has stay. The cell
/// `FILE`, or `FILE:LINE`, is relative to the folder of the table. Rows without a result that can be read are
/// left out, and `skip` gets their lines and reasons. REQUIRES: the table has the column.
Result<CsvTable> with_serving_results(const CsvTable& table,
                                      const std::function<void(std::uint32_t, const Error&)>& skip);

}  // namespace rehearse::cli
