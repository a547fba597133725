// Steps of models of the zoo on devices of a cluster, data parallel: what `simulate` predicts, and
// `calibrate job` anchors.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/estimate.h"
#include "strategies/step/conditions.h"
#include "tests/validation/studies/throughput/step_tables.h"

namespace rehearse::cli {

struct ZooJob {
  std::string_view model;
  std::uint32_t sequence;  ///< 0: as the zoo has it
  workload::Dtype dtype;
  std::string_view device;
  std::string_view within;  ///< kind of what joins the devices of a node (docs/formats/cluster.md)
};

/// What gradients go over, within a node and between nodes: keys of a cluster file, such as "link:
/// tcp_50g".
struct ClusterLinks {
  std::string within, between;
};

/// PyTorch's own kernels on that device.
Result<step::Conditions> conditions_of(const ZooJob& job);

/// Fails as strategies/step does. REQUIRES: as many devices on each node.
Result<Estimate<Seconds>> zoo_step(const ZooJob& job, const PlacedStep& row,
                                   const ClusterLinks& links, const step::Conditions& conditions);

/// Conditions under which the steps of `rows`, each on one device, come out best. Fails as
/// fit_factors does.
Result<step::Conditions> anchored(const ZooJob& job, std::span<const PlacedStep> rows);

}  // namespace rehearse::cli
