// From a member of Plan, Training, ParameterServer or StagePlan to the functions of its row in the
// table of fields (plan_fields.cc).
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

#include "sim/base/units.h"
#include "strategies/plan_fields.h"
#include "strategies/search/space.h"

namespace rehearse::strategies {

/// The member, wherever in the record its structure is.
template <auto kMember, class Record>
auto& member_of(Record& r) {
  if constexpr (requires { r.training.*kMember; })
    return r.training.*kMember;
  else if constexpr (requires { r.plan.*kMember; })
    return r.plan.*kMember;
  else if constexpr (requires { r.plan.parameter_server.*kMember; })
    return r.plan.parameter_server.*kMember;
  else
    return r.*kMember;
}

/// The mapping of a job file in which the member is a key.
template <auto kMember>
constexpr Section kSectionOf = requires(Candidate c) {
  c.training.*kMember;
}
? Section::kTraining : requires(Candidate c) { c.plan.*kMember; }
? Section::kPlan : requires(Candidate c) { c.plan.parameter_server.*kMember; }
? Section::kParameterServer : Section::kStage;

template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<std::optional<T>> {
  using type = T;
};

template <class T>
constexpr FieldKind kKindOf = std::is_same_v<T, bool>     ? FieldKind::kFlag
                              : std::is_same_v<T, Bytes>  ? FieldKind::kSize
                              : std::is_same_v<T, double> ? FieldKind::kNumber
                              : std::is_enum_v<T>         ? FieldKind::kChoice
                                                          : FieldKind::kCount;

template <class T>
double number_of(const T& value) {
  if constexpr (std::is_same_v<T, Bytes>)
    return value.b();
  else
    return static_cast<double>(value);
}
template <class T>
T value_of(double number) {
  if constexpr (std::is_same_v<T, Bytes>)
    return Bytes::b(number);
  else if constexpr (std::is_same_v<T, bool>)
    return number != 0;
  else
    return static_cast<T>(number);
}

template <class Record, auto kMember>
constexpr Access<Record> at(std::span<const std::string_view> choices = {}) {
  using Member = std::remove_cvref_t<decltype(member_of<kMember>(std::declval<Record&>()))>;
  using Value = typename Plain<Member>::type;
  return {.section = kSectionOf<kMember>,
          .kind = kKindOf<Value>,
          .choices = choices,
          .get = [](const Record& record) -> FieldValue {
            const Member& value = member_of<kMember>(record);
            if constexpr (std::is_same_v<Member, Value>)
              return number_of(value);
            else
              return value ? FieldValue(number_of(*value)) : std::nullopt;
          },
          .set = [](Record& record,
                    double number) { member_of<kMember>(record) = value_of<Value>(number); }};
}
template <auto kMember>
constexpr auto in(std::span<const std::string_view> choices = {}) {
  return at<Candidate, kMember>(choices);
}
template <auto kMember>
constexpr auto in_stage(std::span<const std::string_view> choices = {}) {
  return at<StagePlan, kMember>(choices);
}

/// The tier of a kind of state, and its share there.
template <Kept StateTiers::*kState>
struct KeptOf {
  static constexpr Access<Candidate> tier() {
    return {.section = Section::kPlan,
            .kind = FieldKind::kChoice,
            .choices = kTierNames,
            .get = [](const Candidate& c) -> FieldValue {
              return static_cast<double>((c.plan.tiers.*kState).tier);
            },
            .set = [](Candidate& c,
                      double at) { (c.plan.tiers.*kState).tier = static_cast<Tier>(at); }};
  }
  static constexpr Access<Candidate> share() {
    return {.section = Section::kPlan,
            .kind = FieldKind::kNumber,
            .get = [](const Candidate& c) -> FieldValue { return (c.plan.tiers.*kState).share; },
            .set = [](Candidate& c, double share) { (c.plan.tiers.*kState).share = share; }};
  }
};

/// The name of usual tiers; nothing where they have none.
constexpr Access<Candidate> named_tiers() {
  return {
      .section = Section::kPlan,
      .kind = FieldKind::kChoice,
      .choices = kOffloadNames,
      .get = [](const Candidate& c) -> FieldValue {
        for (std::size_t i = 0; i < std::size(kOffloadNames); ++i)
          if (c.plan.tiers == tiers_of(static_cast<Offload>(i))) return static_cast<double>(i);
        return std::nullopt;
      },
      .set = [](Candidate& c, double at) { c.plan.tiers = tiers_of(static_cast<Offload>(at)); }};
}

/// The names of some algorithms, after the one of no choice.
template <Algorithm... kSome>
inline constexpr std::array kNamesOf = {std::string_view("automatic"), to_string(kSome)...};

/// The algorithm of a kind of collective, one of `kSome`.
template <CollectiveKind kKind, Algorithm... kSome>
struct AlgorithmOf {
  static constexpr std::array kChoices = {std::optional<Algorithm>(),
                                          std::optional<Algorithm>(kSome)...};
  static double number(std::optional<Algorithm> algorithm) {
    return static_cast<double>(std::find(kChoices.begin(), kChoices.end(), algorithm) -
                               kChoices.begin());
  }
  static std::optional<Algorithm> value(double number) {
    return kChoices[static_cast<std::size_t>(number)];
  }
  static constexpr Access<Candidate> access() {
    return {
        .section = Section::kCollectives,
        .kind = FieldKind::kChoice,
        .choices = kNamesOf<kSome...>,
        .get = [](const Candidate& c) -> FieldValue { return number(c.plan.collectives[kKind]); },
        .set = [](Candidate& c, double at) { c.plan.collectives[kKind] = value(at); }};
  }
  template <auto kAxis>
  static constexpr AxisAccess axis() {
    return {.keep = [](Axes& axes, double at) { axes.*kAxis = {value(at)}; },
            .kept = [](const Axes& axes) -> FieldValue {
              const auto& values = axes.*kAxis;
              return values.size() == 1 ? FieldValue(number(values.front())) : std::nullopt;
            }};
  }
};

template <auto kAxis>
constexpr AxisAccess axis() {
  using Values = std::remove_cvref_t<decltype(std::declval<Axes&>().*kAxis)>;
  using Value = typename Values::value_type;
  return {.keep = [](Axes& axes, double number) { axes.*kAxis = {value_of<Value>(number)}; },
          .kept = [](const Axes& axes) -> FieldValue {
            const Values& values = axes.*kAxis;
            if constexpr (std::is_same_v<Values, std::optional<Value>>)
              return values ? FieldValue(number_of(*values)) : std::nullopt;
            else
              return values.size() == 1 ? FieldValue(number_of(values.front())) : std::nullopt;
          }};
}

}  // namespace rehearse::strategies
