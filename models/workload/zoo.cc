#include "models/workload/zoo.h"

#include <fmt/core.h>

#include "models/workload/zoo_files.h"
#include "sim/base/check.h"
#include "sim/base/text.h"

namespace rehearse::workload {
namespace {

const ZooModel* find(const std::vector<ZooModel>& models, std::string_view name) {
  for (const ZooModel& model : models)
    if (model.name == name) return &model;
  return nullptr;
}

// An entry is a kind, or another model (`base`) with changes.
void read_entry(const YamlMap& map, const std::string& source, std::vector<ZooModel>& models) {
  const std::optional<std::string> name = map.required<std::string>("name");
  ZooModel model = {.name = name.value_or(""), .source = source, .family = false};
  if (const std::optional<std::string> base = map.optional<std::string>("base")) {
    if (const ZooModel* found = find(models, *base))
      model.description = found->description;
    else
      map.report("base", fmt::format("'{}' is not defined above", *base));
  } else if (const std::optional<std::size_t> kind = map.choice("kind", kDescriptionKinds)) {
    model.description = empty_description(*kind);
  } else {
    map.report("kind", "is missing");
  }
  if (const std::optional<std::string> own = map.optional<std::string>("source"))
    model.source = *own;
  model.family = map.optional<bool>("family").value_or(false);
  read_description(map, model.description);
  set_name(model.description, model.name);
  map.no_other_keys();
  if (find(models, model.name)) map.report("name", "appears twice");
  models.push_back(std::move(model));
}

// A shipped file that cannot be read is a fault of ours, and no build that passes its tests has
// one.
std::vector<ZooModel> read_shipped() {
  std::vector<ZooModel> models;
  for (const std::string_view text : zoo_files::all()) {
    const Result<YamlFile> file = YamlFile::parse(std::string(text), "shipped models");
    REHEARSE_CHECK(file, "{}", to_string(file.error()));
    const std::string source = file->root().required<std::string>("source").value_or("");
    for (const YamlMap& map : file->root().maps("models")) read_entry(map, source, models);
    const Status status = file->status();
    REHEARSE_CHECK(status, "{}", to_string(status.error()));
  }
  return models;
}

}  // namespace

const std::vector<ZooModel>& zoo() {
  static const std::vector<ZooModel> models = read_shipped();
  return models;
}

std::vector<std::string_view> zoo_names() {
  std::vector<std::string_view> names;
  for (const ZooModel& model : zoo()) names.push_back(model.name);
  return names;
}

Result<Description> find_description(std::string_view name) {
  if (const ZooModel* model = find(zoo(), name)) return model->description;
  return fail(fmt::format("unknown model '{}'", name), suggest_name(name, zoo_names(), "models"));
}

}  // namespace rehearse::workload
