#include "cli/report/read_json.h"

#include <variant>

namespace rehearse::cli {

const Json* at(const Json& document, std::string_view path) {
  const Json* here = &document;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string_view key = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    const auto* object = std::get_if<Json::Object>(&here->value());
    if (object == nullptr) return nullptr;
    here = nullptr;
    for (const auto& [name, value] : *object)
      if (name == key) here = &value;
    if (here == nullptr) return nullptr;
  }
  return std::holds_alternative<std::nullptr_t>(here->value()) ? nullptr : here;
}

std::optional<double> number_at(const Json& document, std::string_view path) {
  const Json* found = at(document, path);
  if (found == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<double>(&found->value())) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&found->value()))
    return static_cast<double>(*value);
  if (const auto* value = std::get_if<std::uint64_t>(&found->value()))
    return static_cast<double>(*value);
  return std::nullopt;
}

std::string text_at(const Json& document, std::string_view path) {
  const Json* found = at(document, path);
  const auto* text = found ? std::get_if<std::string>(&found->value()) : nullptr;
  return text ? *text : std::string();
}

bool is_true_at(const Json& document, std::string_view path) {
  const Json* found = at(document, path);
  const auto* flag = found ? std::get_if<bool>(&found->value()) : nullptr;
  return flag && *flag;
}

const Json::Array& list_at(const Json& document, std::string_view path) {
  static const Json::Array kNone;
  const Json* found = at(document, path);
  const auto* list = found ? std::get_if<Json::Array>(&found->value()) : nullptr;
  return list ? *list : kNone;
}

}  // namespace rehearse::cli
