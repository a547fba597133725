// The section `input` of a job file: the pipeline that feeds each node (docs/formats/job.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cost/step_account.h"
#include "models/input/feed.h"
#include "sim/base/yaml.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

/// The samples that a node requests from its pipeline for a microbatch.
struct Taken {
  double samples;    ///< of all data ranks on the node that has the most
  double per_batch;  ///< in units of the last stage
};
Taken taken_by(const workload::Layout& layout, const cluster::Cluster& cluster,
               const input::Pipeline& pipeline);

/// Returns the pipeline, given in the section or in a file next to the job file that the section
/// names. Returns nothing if there is no section, or if it is wrong, which is recorded in the job's
/// file. Fails with every mistake in a file that it names.
Result<std::optional<input::Pipeline>> read_job_input(const YamlMap& root,
                                                      const std::filesystem::path& folder);

/// If the pipeline does not give the number of cores, it is that of the place's instances: of the
/// smallest one, at one core per two vCPUs.
input::Pipeline on_hosts_of(const cost::Place& place, input::Pipeline pipeline);

/// The cost of a step's storage requests, over all nodes. Ranks of a node that divide a sample
/// among them load it once.
Usd requests_of_step(const workload::Layout& layout, const cluster::Cluster& cluster,
                     const input::Pipeline& pipeline);

/// The time of a step that takes `alone` without waiting, fed by the pipeline; never less than
/// that. REQUIRES: a layout on the cluster. Fails as Feed::time_of does.
Result<Seconds> fed_time(const input::Feed& feed, const cluster::Cluster& cluster,
                         const workload::Layout& layout, Seconds step);

/// Adds the wait for input to a step that was predicted with samples always available: to its time,
/// its interval, Breakdown::input and its counterfactuals (and adds the counterfactual without
/// waiting).
Status feed(const input::Feed& by, const cluster::Cluster& cluster, step::Step& step);

/// The same for a step without counterfactuals; `fed` is the result of fed_time().
void wait_for_samples(step::Step& step, Seconds fed);

/// "input: 8 of batch (4,096 samples) for each microbatch on a node; bounded by host cores: …"
std::string feed_note(const input::Pipeline& pipeline, const cluster::Cluster& cluster,
                      const step::Step& step);

}  // namespace rehearse::cli
