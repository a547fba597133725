#include "strategies/step/referee.h"

#include "models/job/lower.h"
#include "sim/engine/engine.h"
#include "sim/engine/simgrid.h"

namespace rehearse::step {
namespace {

Result<job::LoweredJob> all_ranks(const program::Program& job, const Algorithms& algorithms,
                                  const cluster::Cluster& cluster) {
  return job::lower(job, cluster, {.algorithms = algorithms, .calibrated = true});
}

}  // namespace

Result<Seconds> time_by_messages(const program::Program& job, const Algorithms& algorithms,
                                 const cluster::Cluster& cluster) {
  const job::LoweredJob all = TRY(all_ranks(job, algorithms, cluster));
  const graph::Timeline timeline = TRY(engine::run(all.graph));
  return timeline.makespan().seconds();
}

Result<Refereed> referee(const program::Program& job, const Algorithms& algorithms,
                         const cluster::Cluster& cluster) {
  const job::LoweredJob all = TRY(all_ranks(job, algorithms, cluster));
  const graph::Timeline messages = TRY(engine::run(all.graph));
  const graph::Timeline simgrid = TRY(engine::run_on_simgrid(all.graph));
  return Refereed{simgrid.makespan().seconds(), messages.makespan().seconds()};
}

}  // namespace rehearse::step
