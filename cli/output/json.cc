#include "cli/output/json.h"

#include <nlohmann/json.hpp>

#include "sim/base/utf8.h"

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

/// The document as text, in which no character acts on a terminal but the line breaks of the layout.
std::string dumped(const Written& json, int indent) {
  const std::string text = json.dump(indent, ' ', false, Written::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character =
        std::string_view(text).substr(at, utf8_at(std::string_view(text).substr(at, 4)).length);
    at += character.size();
    if (character == "\n" || !acts_on_terminal(character)) {
      safe += character;
    } else {
      const std::string quoted = Written(std::string(character)).dump(-1, ' ', true);
      safe.append(quoted, 1, quoted.size() - 2);
    }
  }
  return safe;
}

}  // namespace

std::string json_text(const Json& json) { return dumped(written(json), 2) + "\n"; }

std::string json_quoted(std::string_view text) { return dumped(Written(std::string(text)), -1); }

}  // namespace rehearse::cli
