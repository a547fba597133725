#include "sim/base/yaml_edit.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include "sim/base/text.h"

namespace rehearse {
namespace {

Status change(const YAML::Node& root, const YamlChange& change) {
  const auto& [path, value] = change;
  const std::vector<std::string_view> keys = split(path, '.');
  YAML::Node at = root;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!at.IsMap()) return fail(fmt::format("{}: its parent is not a mapping", path));
    const std::string key(keys[i]);
    const bool last = i + 1 == keys.size();
    if (last && value.empty()) {
      at.remove(key);
      return {};
    }
    if (last) {
      at[key] = value;
      return {};
    }
    if (!at[key].IsDefined()) {
      if (value.empty()) return {};
      YAML::Node mapping(YAML::NodeType::Map);
      mapping.SetStyle(YAML::EmitterStyle::Flow);
      at[key] = mapping;
    }
    at.reset(at[key]);  // an assignment would replace the node that `at` refers to
  }
  return {};
}

}  // namespace

Result<std::string> with_changes(const std::string& text, const std::vector<YamlChange>& changes) {
  if (changes.empty()) return text;
  try {
    const YAML::Node root = YAML::Load(text);
    for (const YamlChange& each : changes) TRY(change(root, each));
    YAML::Emitter out;
    out << root;
    return std::string(out.c_str()) + "\n";
  } catch (const YAML::Exception& e) {
    return fail(e.what(), "YAML");
  }
}

}  // namespace rehearse
