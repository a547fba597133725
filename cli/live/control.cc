#include "cli/live/control.h"

namespace rehearse::cli {

Json json_of(const std::vector<Control>& controls) {
  Json list = Json::array();
  for (const Control& c : controls) {
    Json one = {{"key", c.key},   {"label", c.label}, {"group", c.group}, {"meaning", c.meaning},
                {"kind", c.kind}, {"value", c.value}, {"main", c.main},   {"matters", c.matters}};
    if (!c.names.empty()) one["names"] = c.names;
    if (c.range.most > 0) {
      one["least"] = c.range.least;
      one["most"] = c.range.most;
      one["above"] = c.range.above;
    }
    list.push_back(std::move(one));
  }
  return list;
}

const std::string* find(const Settings& settings, std::string_view key) {
  for (const auto& [name, value] : settings)
    if (name == key) return &value;
  return nullptr;
}

}  // namespace rehearse::cli
