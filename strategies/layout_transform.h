// The inputs of a transform of a whole layout, and helpers that several of them share.
#pragma once

#include <vector>

#include "strategies/states.h"
#include "strategies/transform.h"

namespace rehearse::strategies {

/// Separates the first or last layer of the run at that end, so that ops can be added to it.
workload::Layer& alone_at_front(std::vector<workload::Layer>& layers);
workload::Layer& alone_at_back(std::vector<workload::Layer>& layers);

struct JobSetting {
  const Training* training;
  const Plan* plan;
};

inline constexpr std::string_view kUpdateName = "update parameters";

/// Appends the optimizer to Layer::step: `held` of the layer's parameters, and the rows of
/// its tables that were looked up. A recorded optimizer keeps its place, for `held` parameters.
void add_update(workload::Layer& layer, double held, std::uint32_t microbatches,
                const JobSetting& setting);

/// Adds a collective of dense parameters and one of experts, each over the ranks that hold the
/// same; none if no other rank holds them.
void add_collectives(std::vector<workload::Op>& ops, std::string_view name, CollectiveKind kind,
                     const Parameters& parameters, double bytes_each,
                     const workload::Degrees& degrees, workload::Issue issue);

/// Adds, at the start of Layer::step, the gathers of row gradients. The rows of tables that were
/// looked up differ from rank to rank, so all ranks that hold the same tables gather their
/// gradients, `bytes_each`.
void add_row_gradients(workload::Layer& layer, double bytes_each, std::uint32_t microbatches,
                       const workload::Degrees& degrees, workload::Issue issue);

}  // namespace rehearse::strategies
