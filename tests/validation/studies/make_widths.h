// The intervals of the program's predictions, by the rule of left_out_width.h.
#pragma once

#include <filesystem>

#include "cli/output/table.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// Of steps of jobs, by what is known of them: writes widths.csv in `into`. The constants of
/// strategies/step are its rows (docs/concepts/intervals.md).
Result<Table> make_widths(const std::filesystem::path& data, const std::filesystem::path& into);

}  // namespace rehearse::cli
