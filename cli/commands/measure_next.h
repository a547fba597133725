// Which plan to measure next, so that measured steps tell more about the parts of a step.
#pragma once

#include <string>
#include <vector>

#include "cli/config/job_file.h"
#include "strategies/step/fit_factors.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {

using step::ByFactor;

/// The job with factors on the parts of its step, except for the network.
step::Spec with_factors(const step::Spec& spec, const ByFactor<double>& factors);

/// The step of a job with these factors.
Result<Seconds> step_with(const JobFile& job, const ByFactor<double>& factors);

struct NextMeasurement {
  std::string change;  ///< for people: "microbatch 4"
  Seconds step = Seconds::s(0);
  step::Information information = {};
};

/// At most three plans that differ from the job in one respect and fit into memory: those that say
/// most, for each factor the best one, the best first. Steps are predicted by closed forms. A plan
/// whose step the fit already knows as well as any step can be known is left out.
std::vector<NextMeasurement> measure_next(const JobFile& job, const step::FactorFit& fit);

}  // namespace rehearse::cli
