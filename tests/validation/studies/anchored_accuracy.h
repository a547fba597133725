// Steps and plan choice after `rehearse calibrate job`: some measured steps of a job are given, and
// the others predicted.
//
// A job is a model on equal GPUs, as the tables of jobs group their plans. The given rows are drawn
// at random with a seed. Rows are predicted once; a factor on a part of a step then counts by the
// share of that part, so that the factors of a draw are fitted to hundreds of rows in no time.
#pragma once

#include <vector>

#include "cli/validation/plan_choice.h"
#include "tests/validation/studies/measured_jobs.h"
#include "tests/validation/studies/page.h"

namespace rehearse::cli {

struct AnchoredAccuracy {
  std::vector<SuiteSummary> suites;  ///< "anchored/nanotron, 1 given": rows of all draws
  std::vector<PlanChoice> choices;   ///< of the same rows
};

AnchoredAccuracy measure_anchored_accuracy(const std::vector<MeasuredJob>& jobs);

/// The section of docs/accuracy.md.
std::string anchored_section(const AnchoredAccuracy& accuracy);

}  // namespace rehearse::cli
