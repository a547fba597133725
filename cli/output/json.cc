#include "cli/output/json.h"

#include <nlohmann/json.hpp>

namespace rehearse::cli {
namespace {

using Written = nlohmann::ordered_json;

Written written(const Json& json) {
  const auto of = [](const auto& value) -> Written {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, Json::Array>) {
      Written array = Written::array();
      for (const Json& each : value) array.push_back(written(each));
      return array;
    } else if constexpr (std::is_same_v<T, Json::Object>) {
      Written object = Written::object();
      for (const Entry& field : value)
        if (!field.key.empty()) object[field.key] = written(field.value);
      return object;
    } else if constexpr (std::is_same_v<T, Quantity>) {
      if (value.bare) return value.value;
      Written object = {{"value", value.value}};
      if (value.interval) object["low"] = value.interval->first;
      if (value.interval) object["high"] = value.interval->second;
      object["unit"] = value.unit->si;
      if (value.provenance) object["provenance"] = to_string(*value.provenance);
      return object;
    } else if constexpr (std::is_same_v<T, Json::Absent>) {
      return nullptr;
    } else {
      return value;
    }
  };
  return std::visit(of, json.content());
}

}  // namespace

std::string json_text(const Json& json) {
  return written(json).dump(2, ' ', false, Written::error_handler_t::replace) + "\n";
}

std::string json_quoted(std::string_view text) {
  return Written(std::string(text)).dump(-1, ' ', false, Written::error_handler_t::replace);
}

}  // namespace rehearse::cli
