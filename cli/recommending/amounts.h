// Amounts on the command line that are not physical quantities: "300e9 tokens", "2 tCO2e".
#pragma once

#include <string_view>

#include "cli/config/job_file.h"

namespace rehearse::cli {

/// "300e9 tokens", "1.2e6 samples", "5000 steps", "90 epochs". Fails with one line that names the
/// units.
Result<Target> parse_target(std::string_view text);

/// "2 tCO2e", "500 kgCO2e"; in grams. Fails likewise.
Result<double> parse_carbon(std::string_view text);

}  // namespace rehearse::cli
