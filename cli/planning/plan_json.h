// A plan in JSON.
#pragma once

#include "strategies/step/step.h"

namespace rehearse::cli {

/// Returns every field of the training and of its plan, by the tables of strategies/plan_fields.h;
/// fields that were left open have the value that was used.
Json plan_json(const step::Spec& spec);

}  // namespace rehearse::cli
