// Reading a document that a command has put together, by the keys of docs/formats/json.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/output/json_value.h"

namespace rehearse::cli {

/// The value at a path of keys, "step_time.value"; null where there is none, or where it is null.
const Json* at(const Json& document, std::string_view path);

std::optional<double> number_at(const Json& document, std::string_view path);
/// Empty where there is no text.
std::string text_at(const Json& document, std::string_view path);
/// Whether a path leads to `true`.
bool is_true_at(const Json& document, std::string_view path);
/// What an array holds; nothing where there is none.
const Json::Array& list_at(const Json& document, std::string_view path);

}  // namespace rehearse::cli
