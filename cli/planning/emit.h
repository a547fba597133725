// A plan as the launch configuration of a framework. Keys are from the frameworks' public
// documentation (docs/concepts/planning.md names the versions).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/planning/find_plans.h"
#include "models/workload/transformer.h"
#include "strategies/plan_fields.h"

namespace rehearse::cli {

using strategies::Framework;
using strategies::kFrameworkNames;

struct Launch {
  const step::Spec& spec;  ///< with the plan to launch
  const cluster::Cluster& cluster;
  /// Absent if its dimensions are unknown, as for a recording.
  std::optional<workload::Transformer> model;
  bool dropout = false;
  std::string headline = {};  ///< the launched plan in one line
};

struct Emitted {
  std::string text;
  std::vector<std::string> notes;  ///< for people: settings that must be made elsewhere
};

/// Restricts axes that the job leaves free to the values that the framework can run.
void keep_to(Framework framework, strategies::Axes& axes);

/// Fails with one line if the framework has no key for a setting.
Result<Emitted> emit(Framework framework, const Launch& launch);

Result<Emitted> emit_megatron(const Launch& launch);
Result<Emitted> emit_deepspeed(const Launch& launch);
Result<Emitted> emit_torchtitan(const Launch& launch);

/// "Megatron-LM has no key for …".
tl::unexpected<Error> no_key_for(Framework framework, std::string_view what,
                                 std::string_view nearest = {});
/// Fails for the first relevant field that is not at its default and has no key (plan_fields.h).
Status check_keys(Framework framework, const Launch& launch);

}  // namespace rehearse::cli
