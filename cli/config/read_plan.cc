#include "cli/config/read_plan.h"

#include <fmt/core.h>

#include "strategies/plan_fields.h"

namespace rehearse::cli {
namespace {

using namespace strategies;

/// The value at the key of a field; nothing where it is absent or wrong.
template <class Record>
FieldValue read_value(const YamlMap& map, const Field<Record>& field) {
  FieldValue value;
  switch (field.at.kind) {
    case FieldKind::kFlag:
      if (const auto flag = map.optional<bool>(field.name)) value = *flag ? 1 : 0;
      return value;
    case FieldKind::kChoice:
      if (const auto choice = map.choice(field.name, field.at.choices))
        value = static_cast<double>(*choice);
      return value;
    case FieldKind::kCount:
      if (const auto count = map.optional<std::int64_t>(field.name))
        value = static_cast<double>(*count);
      break;
    case FieldKind::kNumber: value = map.optional<double>(field.name); break;
    case FieldKind::kSize:
      if (const auto size = map.optional<Bytes>(field.name)) value = size->b();
      break;
  }
  if (!value || is_within(field.range, *value)) return value;
  map.report(field.name, fmt::format("{} is out of range", value_words(field, *value)),
             expected_words(field));
  return std::nullopt;
}

/// Every field of the section that the mapping has; others stay as they are.
template <class Record>
void read_fields(const YamlMap& map, std::span<const Field<Record>> fields, Section section,
                 Record& record) {
  for (const Field<Record>& field : fields)
    if (field.at.section == section)
      if (const FieldValue value = read_value(map, field)) field.at.set(record, *value);
}

/// "training.recompute": where a key belongs that is a plan's or a training's.
std::string path_of(std::string_view key) {
  for (const Field<Candidate>& field : plan_fields())
    if (field.name == key)
      for (const auto& [section, name] :
           {std::pair{Section::kTraining, "training"}, std::pair{Section::kPlan, "plan"}})
        if (field.at.section == section) return fmt::format("{}.{}", name, key);
  return "";
}

StagePlan read_stage(const YamlMap& map) {
  StagePlan stage;
  if (const std::optional<std::string> name = map.optional<std::string>("name")) stage.name = *name;
  read_fields(map, stage_fields(), Section::kStage, stage);
  map.no_other_keys();
  return stage;
}

}  // namespace

std::optional<Training> read_training(const YamlMap& map, Training training) {
  if (!map.required<double>("global_batch")) return std::nullopt;
  Candidate candidate = {.training = training};
  read_fields(map, plan_fields(), Section::kTraining, candidate);
  map.no_other_keys(path_of);
  return candidate.training;
}

std::optional<Plan> read_plan(const YamlMap& map) {
  Candidate candidate;
  Plan& plan = candidate.plan;
  for (const YamlMap& stage : map.maps("stages")) plan.stages.push_back(read_stage(stage));
  read_fields(map, plan_fields(), Section::kPlan, candidate);
  for (const auto& [section, key] : kMappingsOfPlan)
    if (const std::optional<YamlMap> mapping = map.map(key)) {
      read_fields(*mapping, plan_fields(), section, candidate);
      mapping->no_other_keys();
    }
  map.no_other_keys(path_of);
  // More chunks than one make the interleaved schedule unless another is named.
  if (plan.interleave > 1 && !map.has("schedule")) plan.schedule = Schedule::kInterleaved;
  return plan;
}

void keep_given(const YamlMap& root, const Candidate& candidate, Axes& axes) {
  const std::optional<YamlMap> training = root.map("training"), plan = root.map("plan");
  for (const Field<Candidate>& field : plan_fields()) {
    if (field.axis.keep == nullptr) continue;
    std::optional<YamlMap> map = field.at.section == Section::kTraining ? training : plan;
    for (const auto& [section, key] : kMappingsOfPlan)
      if (field.at.section == section && map) map = map->map(key);
    if (!map || !map->has(field.name)) continue;
    if (const FieldValue value = field.at.get(candidate)) field.axis.keep(axes, *value);
  }
  // A search keeps tiers that `offload` does not name.
  for (const std::string_view key :
       {"weights_on", "gradients_on", "optimizer_on", "activations_on"})
    axes.tiers_given |= plan && plan->has(key);
  // Chunks run in the interleaved order under both of its names.
  if (!axes.schedule.empty() && candidate.plan.interleave > 1)
    axes.schedule = {Schedule::kInterleaved};
}

}  // namespace rehearse::cli
