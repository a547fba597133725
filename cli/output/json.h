// The shapes that docs/formats/json.md promises.
#pragma once

#include <string>
#include <string_view>

#include "cli/output/json_value.h"
#include "profiler/trace/problems.h"
#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::cli {

/// {"schema": "rehearse/1", "command": …}
Json json_root(std::string_view command);

/// {"value": …, "unit": "s"}
Json json_measured(Seconds value);
/// {"value": …, "low": …, "high": …, "unit": "s", "provenance": …}
Json json_predicted(const Estimate<Seconds>& estimate);
/// The same of a plain number in a unit.
Json json_predicted(const Estimate<double>& estimate, std::string_view unit);

Json json_problems(const trace::Problems& problems);

/// The text of a document, with a newline at its end. Text that is not UTF-8 is replaced, not
/// refused.
std::string json_text(const Json& json);

/// A text between quotes, with what it holds escaped likewise.
std::string json_quoted(std::string_view text);

}  // namespace rehearse::cli
