#include "cli/planning/plan_words.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/output/value.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "strategies/plan_fields.h"

namespace rehearse::cli {

using strategies::Candidate, strategies::Field, strategies::FieldValue, strategies::Figure,
    strategies::Plan, strategies::Said, strategies::Training;

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

/// "tensor 8", "ZeRO-3", "full recomputation".
std::string field_words(const Field<Candidate>& field, const FieldValue& value) {
  const std::string words = value ? value_words(field, *value) : "without bound";
  if (field.words.empty()) return fmt::format("{} {}", field.name, words);
  return fmt::format(fmt::runtime(field.words), words);
}

bool is_named(const Field<Candidate>& field, const Candidate& candidate) {
  return field.said == Said::kAlways ||
         (field.said != Said::kNever && is_unusual(field, candidate));
}

}  // namespace

std::size_t named_settings(const Training& training, const Plan& plan) {
  return static_cast<std::size_t>(
      std::ranges::count_if(strategies::plan_fields(), [&](const Field<Candidate>& field) {
        return is_named(field, {training, plan});
      }));
}

std::string plan_words(const Training& training, const Plan& plan) {
  const Candidate candidate{training, plan};
  std::string text;
  if (!plan.stages.empty()) text = fmt::format("{} stages of their own", plan.stages.size());
  bool degrees = true;  // these come first
  for (const Field<Candidate>& field : strategies::plan_fields()) {
    if (!is_named(field, candidate)) continue;
    if (degrees && field.said != Said::kDegree) {
      if (text.empty()) text = "one rank";
      degrees = false;
    }
    if (!text.empty()) text += degrees ? " × " : ", ";
    text += field_words(field, field.at.get(candidate));
  }
  return text;
}

std::string figure_words(Figure figure, double value) {
  switch (figure) {
    case Figure::kStepTime: return to_string(Seconds::s(value), 4);
    case Figure::kMemory: return to_string(Bytes::b(value));
    case Figure::kCost: return to_string(Usd::usd(value));
    case Figure::kEnergy: return to_string(Joules::j(value));
    case Figure::kCarbon: return significant(value) + " gCO2e";
  }
  return "";
}

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
