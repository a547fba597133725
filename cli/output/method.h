// Method: how the numbers of an answer were computed, and what would change them. A document names
// one or more; every format shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/output/value.h"
#include "strategies/step/fidelity.h"

namespace rehearse::cli {

/// REQUIRES: the first three are step::Fidelity, in its order.
enum class Method : std::uint8_t {
  kClosed,
  kMessages,
  kSimgrid,
  kRecordedTimes,
  kEdits,
  kSearch,
  kServerSearch,
  kOffers,
  kServer,
  kScheduler,
  kPacking,
  kSlices,
  kTenants,
  kPipeline,
  kDataflow,
  kMemory,
  kOperations,
  kPairs,
  kRecordedSteps,
  kProof,
  kLayouts,
  kFit
};

inline Method method_of(step::Fidelity fidelity) { return static_cast<Method>(fidelity); }
/// The method that a document of an earlier run names; none if the name is unknown.
std::optional<Method> method_named(std::string_view name);

/// [{name, meaning, changes: [{change, effect}]}]: the changes are those that the command offers.
Value method_fields(const std::vector<Method>& methods, std::string_view command);
/// The same as lines for people, the changes below their method.
std::vector<std::string> method_lines(const std::vector<Method>& methods, std::string_view command);

}  // namespace rehearse::cli
