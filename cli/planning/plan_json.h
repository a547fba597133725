// A plan in JSON.
#pragma once

#include "cli/output/json.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

/// Every field of the training and of its plan, by the tables of strategies/plan_fields.h; those
/// that are left open as they were used.
Json plan_json(const step::Spec& spec);

}  // namespace rehearse::cli
