// A plan as the launch configuration of a framework. Keys are those of the frameworks' public
// documentation (docs/concepts/planning.md says of which).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/planning/find_plans.h"
#include "models/workload/transformer.h"

namespace rehearse::cli {

enum class Framework : std::uint8_t { kMegatron, kDeepspeed, kTorchtitan };
inline constexpr std::string_view kFrameworkNames[] = {"megatron", "deepspeed", "torchtitan"};

struct Launch {
  const step::Spec& spec;  ///< with the plan to launch
  const cluster::Cluster& cluster;
  /// Absent: its dimensions are not known, as those of a recording.
  std::optional<workload::Transformer> model;
  bool dropout = false;
  std::string headline = {};  ///< what is launched, in a line
};

struct Emitted {
  std::string text;
  std::vector<std::string> notes;  ///< what has to be said elsewhere, for people
};

/// Axes that the job leaves free get the values that the framework can run.
void keep_to(Framework framework, strategies::Axes& axes);

/// Fails with one line on what the framework has no key for.
Result<Emitted> emit(Framework framework, const Launch& launch);

Result<Emitted> emit_megatron(const Launch& launch);
Result<Emitted> emit_deepspeed(const Launch& launch);
Result<Emitted> emit_torchtitan(const Launch& launch);

/// "Megatron-LM has no key for …".
tl::unexpected<Error> no_key_for(std::string_view framework, std::string_view what,
                                 std::string_view nearest = {});
/// What none of them has a key for.
Status check_common(std::string_view framework, const Launch& launch);

}  // namespace rehearse::cli
