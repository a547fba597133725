#include "cli/output/json_value.h"

#include <algorithm>

#include "sim/base/check.h"

namespace rehearse::cli {
namespace {

/// A pair that begins with a text.
bool is_member(const Json& json) {
  const auto* pair = std::get_if<Json::Array>(&json.value());
  return pair != nullptr && pair->size() == 2 &&
         std::holds_alternative<std::string>(pair->front().value());
}

}  // namespace

Json::Json(std::initializer_list<Json> list) {
  if (list.size() == 0 || !std::all_of(list.begin(), list.end(), is_member)) {
    value_ = Array(list);
    return;
  }
  Object object;
  for (const Json& each : list) {
    const Array& pair = std::get<Array>(each.value_);
    object.emplace_back(std::get<std::string>(pair[0].value_), pair[1]);
  }
  value_ = std::move(object);
}

Json& Json::operator[](std::string_view key) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Object();
  auto* object = std::get_if<Object>(&value_);
  REHEARSE_CHECK(object != nullptr);
  for (auto& [name, value] : *object)
    if (name == key) return value;
  return object->emplace_back(std::string(key), Json()).second;
}

void Json::push_back(Json value) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Array();
  auto* array = std::get_if<Array>(&value_);
  REHEARSE_CHECK(array != nullptr);
  array->push_back(std::move(value));
}

}  // namespace rehearse::cli
