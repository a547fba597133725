// The prediction of a step at a fidelity.
#pragma once

#include <span>

#include "models/compute/calibration.h"
#include "strategies/step/fidelity.h"
#include "strategies/step/step.h"

namespace rehearse::step {

struct PredictOptions {
  Fidelity fidelity = Fidelity::kMessage;
  bool unfold = false;          ///< run every rank, even if ranks do the same; always with servers
  bool counterfactuals = true;  ///< make the runs that `Step::counterfactuals` needs
  /// Only one run, without those that the interval of the step needs: `Step::time` is its value
  /// alone and the mean of its stalls; communication, occupancy and the regime are not known.
  bool value_only = false;
  /// The step keeps its run. Without this, one with many microbatches may come from runs with few
  /// (fewer_microbatches.h): to 1e-4 of its length the same step. Only complete() takes the run from
  /// a step that was run as a whole for its value.
  bool timeline = true;
  bool size = false;  ///< count the run with all ranks: Step::size
  bool path = false;  ///< without the timeline: Step::path
  /// The cost of ops; all shipped calibrations, unless a validation withholds some.
  std::span<const compute::Calibration> calibrations = compute::shipped_calibrations();
};

/// Stages, and ranks of one stage, may use several kinds of devices (devices.h). Fails with one
/// line on a plan that does not suit the workload or the cluster, and on a device that is not in
/// the catalog.
Result<Step> predict(const Spec& spec, const cluster::Cluster& cluster,
                     const PredictOptions& options);

/// The program of the step that predict() runs. Fails as predict() does.
Result<program::Program> program_of(const Spec& spec, const cluster::Cluster& cluster);

/// Adds the rest to a step that was predicted as a value only, without running it again; takes its
/// run, unless there is PredictOptions::timeline. REQUIRES: the step has its run.
/// REQUIRES: the same spec, cluster and options, apart from `value_only`; a timeline only if the step
/// has one.
Status complete(Step& step, const Spec& spec, const cluster::Cluster& cluster,
                const PredictOptions& options);

/// The rules under which the program of a step is run.
job::Rules rules_of(const Spec& spec, Fidelity fidelity);

/// The shares of a step in the parts that factors apply to. Bubbles count as computing.
/// Communication within a node has no factor, and neither have stalls and other times of a step that
/// follow from its plan.
ByFactor<double> shares_of(const Step& step, const Conditions& conditions, bool over_nodes);

}  // namespace rehearse::step
