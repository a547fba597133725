// The JSON structures that docs/formats/json.md specifies.
#pragma once

#include <string>
#include <string_view>

#include "cli/output/value.h"

namespace rehearse::cli {

/// The text of a document, with a newline at its end. Text that is not UTF-8 is replaced, not
/// refused.
std::string json_text(const Json& json);

/// A text in quotes, with its special characters escaped likewise.
std::string json_quoted(std::string_view text);

}  // namespace rehearse::cli
