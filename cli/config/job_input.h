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

/// What a node takes from its pipeline for a microbatch.
struct Taken {
  double samples;    ///< of the data ranks of the node that has most of them
  double per_batch;  ///< in units of the last stage
};
Taken taken_by(const workload::Layout& layout, const cluster::Cluster& cluster,
               const input::Pipeline& pipeline);

/// The pipeline, or the file beside the job that the section names; nothing without the section, or
/// where it is wrong, which the job's file then says. Fails with every mistake of the file that it
/// names.
Result<std::optional<input::Pipeline>> read_job_input(const YamlMap& root,
                                                      const std::filesystem::path& folder);

/// Where the pipeline does not say how many cores there are, they are those of the instances of the
/// place: of the smallest, one for two vCPUs.
input::Pipeline on_hosts_of(const cost::Place& place, input::Pipeline pipeline);

/// What the requests to storage of a step cost, of all nodes: ranks that divide a sample among them
/// on a node load it once.
Usd requests_of_step(const workload::Layout& layout, const cluster::Cluster& cluster,
                     const input::Pipeline& pipeline);

/// How long a step of so much takes when the pipeline feeds it: no less. REQUIRES: a layout on the
/// cluster. Fails as Feed::time_of does.
Result<Seconds> fed_time(const input::Feed& feed, const cluster::Cluster& cluster,
                         const workload::Layout& layout, Seconds step);

/// The step as predicted with samples that are there, with what it waits for them on top: its time
/// and interval, Breakdown::input, the counterfactuals, to which that without waiting is added.
Status feed(const input::Feed& by, const cluster::Cluster& cluster, step::Step& step);

/// The same of a step without counterfactuals, with what fed_time() says of it.
void wait_for_samples(step::Step& step, Seconds fed);

/// "input: 8 of batch (4,096 samples) for each microbatch on a node; bounded by host cores: …"
std::string feed_note(const input::Pipeline& pipeline, const cluster::Cluster& cluster,
                      const step::Step& step);

}  // namespace rehearse::cli
