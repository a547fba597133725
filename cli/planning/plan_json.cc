#include "cli/planning/plan_json.h"

#include "cli/output/value.h"
#include "strategies/plan_fields.h"

namespace rehearse::cli {
namespace {

using strategies::Candidate, strategies::Field, strategies::FieldKind, strategies::FieldValue,
    strategies::Section;

template <class Record>
Json value_json(const Field<Record>& field, const Record& record) {
  const FieldValue value = field.at.get(record);
  if (!value) return Json();
  switch (field.at.kind) {
    case FieldKind::kFlag: return Json(*value != 0);
    case FieldKind::kCount: return Json(static_cast<std::uint64_t>(*value));
    case FieldKind::kNumber: return Json(*value);
    case FieldKind::kSize: return {{"value", *value}, {"unit", "B"}};
    case FieldKind::kChoice: return Json(field.at.choices[static_cast<std::size_t>(*value)]);
  }
  return Json();
}

Json stage_json(const strategies::StagePlan& stage) {
  Json json = {{"name", stage.name}};
  for (const auto& field : strategies::stage_fields()) json[field.name] = value_json(field, stage);
  return json;
}

}  // namespace

Json plan_json(const step::Spec& spec) {
  const Candidate candidate = strategies::resolved(spec.workload, {spec.training, spec.plan});
  Json json = Json::object();
  const auto add = [&](Section section, Json& to) {
    for (const Field<Candidate>& field : strategies::plan_fields())
      if (field.at.section == section) to[field.name] = value_json(field, candidate);
  };
  for (const Section section : {Section::kTraining, Section::kPlan}) add(section, json);
  for (const auto& [section, key] : strategies::kMappingsOfPlan) add(section, json[key]);
  json["stages"] = Json::array();
  for (const strategies::StagePlan& stage : spec.plan.stages)
    json["stages"].push_back(stage_json(stage));
  return json;
}

}  // namespace rehearse::cli
