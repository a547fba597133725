// Values of fields: their ranges, and how they read.
#include <cmath>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "strategies/plan_fields.h"

namespace rehearse::strategies {
namespace {

template <class Record>
Status check_ranges(std::span<const Field<Record>> fields, const Record& record,
                    const std::string& where) {
  for (const Field<Record>& field : fields) {
    if (field.at.kind == FieldKind::kFlag || field.at.kind == FieldKind::kChoice) continue;
    const FieldValue value = field.at.get(record);
    if (value && !is_within(field.range, *value))
      return fail(fmt::format("{} is {}{}", field.name, value_words(field, *value), where),
                  expected_words(field));
  }
  return {};
}

}  // namespace

bool is_within(const ValueRange& range, double value) {
  return std::isfinite(value) && value <= range.most &&
         (range.above ? value > range.least : value >= range.least);
}

std::string value_words(FieldKind kind, std::span<const std::string_view> choices, double value) {
  switch (kind) {
    case FieldKind::kFlag: return value != 0 ? "true" : "false";
    case FieldKind::kCount: return fmt::format("{:.0f}", value);
    case FieldKind::kNumber: return fmt::format("{:g}", value);
    case FieldKind::kSize: return to_string(Bytes::b(value));
    case FieldKind::kChoice: return std::string(choices[static_cast<std::size_t>(value)]);
  }
  return "";
}

std::string expected_words(FieldKind kind, std::span<const std::string_view> choices,
                           const ValueRange& range) {
  switch (kind) {
    case FieldKind::kFlag: return "true or false";
    case FieldKind::kCount:
      return fmt::format("a whole number from {} to {}",
                         grouped(static_cast<std::uint64_t>(range.least)),
                         grouped(static_cast<std::uint64_t>(range.most)));
    case FieldKind::kNumber:
      return fmt::format("a number {} {:g} and at most {:g}", range.above ? "above" : "from",
                         range.least, range.most);
    case FieldKind::kSize:
      return fmt::format("a size from {} to {}", to_string(Bytes::b(range.least)),
                         to_string(Bytes::b(range.most)));
    case FieldKind::kChoice: break;
  }
  return join(choices, ", ");
}

Status check_ranges(const Candidate& candidate) {
  TRY(check_ranges<Candidate>(plan_fields(), candidate, ""));
  for (const StagePlan& stage : candidate.plan.stages)
    TRY(check_ranges<StagePlan>(stage_fields(), stage, fmt::format(" in stage '{}'", stage.name)));
  return {};
}

}  // namespace rehearse::strategies
