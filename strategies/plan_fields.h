// The fields of a training and of its plan, each described once.
//
// Job files are read by these tables. JSON, words, the axes of the search, the keys of launch files
// and the tables of docs/formats/job.md and docs/concepts/planning.md are derived from them, or a
// test checks them against the tables. A new field is a member of Plan, a row here, and the code
// that reads the member.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "models/workload/workload.h"
#include "sim/base/result.h"
#include "strategies/plan.h"

namespace rehearse::strategies {

struct Axes;

/// The frameworks that launch configurations are written for.
enum class Framework : std::uint8_t { kMegatron, kDeepspeed, kTorchtitan };
inline constexpr std::string_view kFrameworkNames[] = {"megatron", "deepspeed", "torchtitan"};

/// The mapping of a job file in which a field is a key.
enum class Section : std::uint8_t { kTraining, kPlan, kParameterServer, kCollectives, kStage };

enum class FieldKind : std::uint8_t { kFlag, kCount, kNumber, kSize, kChoice };

/// A value as a number: 0 or 1 for a flag, the count or number itself, the bytes of a size, the
/// index of a choice. Nothing if the record leaves it open.
using FieldValue = std::optional<double>;

/// The range from `least` to `most`; `above` excludes `least` itself. Flags and choices have none.
struct ValueRange {
  double least = 0;
  double most = 0;
  bool above = false;
};

/// When a field is reported to people.
enum class Said : std::uint8_t {
  kNever,   ///< follows from others, or changes little
  kDegree,  ///< a factor of the number of ranks, reported unless it is 1
  kAlways,
  kIfUnusual,  ///< reported unless it has its usual value
};

/// One member of a Record: Candidate or StagePlan.
template <class Record>
struct Access {
  Section section;
  FieldKind kind;
  std::span<const std::string_view> choices = {};
  FieldValue (*get)(const Record&);
  void (*set)(Record&, double);  ///< REQUIRES: within the range
};

/// How a search uses a field; null pointers if it does not vary it.
struct AxisAccess {
  void (*keep)(Axes&, double value) = nullptr;  ///< searches only that value
  FieldValue (*kept)(const Axes&) = nullptr;    ///< the value, if it is the only one
};

template <class Record>
struct Field {
  std::string_view name;               ///< the key in YAML and JSON
  std::string_view abbreviation = {};  ///< the key in `--plan tp8,pp4`, where it differs
  Access<Record> at;
  ValueRange range = {};
  std::string_view usual = {};  ///< in words, if the default differs from that of the structure
  std::string_view meaning;
  Said said = Said::kNever;
  std::string_view words = {};  ///< with {} for the value; empty: "name value"
  AxisAccess axis = {};
  /// The key of each framework. kUnwritten: there is nothing to write. Empty: the framework has
  /// none.
  std::array<std::string_view, std::size(kFrameworkNames)> launch = {};
  /// Whether the value has any effect; null: always.
  bool (*matters)(const Record&) = nullptr;
};
inline constexpr std::string_view kUnwritten = "-";

/// The mappings within `plan` that hold fields of it.
inline constexpr std::pair<Section, std::string_view> kMappingsOfPlan[] = {
    {Section::kParameterServer, "parameter_server"}, {Section::kCollectives, "collectives"}};

/// In the order in which people read them.
std::span<const Field<Candidate>> plan_fields();
std::span<const Field<StagePlan>> stage_fields();

/// REQUIRES: there is such a field.
const Field<Candidate>& plan_field(std::string_view name);

/// Whether it matters and differs from a default Candidate.
bool is_unusual(const Field<Candidate>& field, const Candidate& candidate);

/// The only key that a framework has for a field. REQUIRES: it has one.
std::string_view launch_key(Framework framework, std::string_view field);

bool is_within(const ValueRange& range, double value);
/// "8", "true", "25.0 MiB", "zero_bubble".
std::string value_words(FieldKind kind, std::span<const std::string_view> choices, double value);
template <class Record>
std::string value_words(const Field<Record>& field, double value) {
  return value_words(field.at.kind, field.at.choices, value);
}
/// "a whole number from 1 to 131,072"; for a choice its names.
std::string expected_words(FieldKind kind, std::span<const std::string_view> choices,
                           const ValueRange& range);
template <class Record>
std::string expected_words(const Field<Record>& field) {
  return expected_words(field.at.kind, field.at.choices, field.range);
}

/// The first value that is out of range, in one line.
Status check_ranges(const Candidate& candidate);

/// The candidate with every open field set to its value for this workload.
Candidate resolved(const workload::Workload& workload, Candidate candidate);

}  // namespace rehearse::strategies
