#include "cli/commands/networking.h"

#include <fmt/core.h>

#include "models/comm/closed_form.h"
#include "profiler/replay/edit.h"
#include "profiler/replay/gradients.h"
#include "profiler/replay/transfers.h"
#include "sim/engine/engine.h"
#include "strategies/data_parallel.h"
#include "strategies/stragglers.h"

namespace rehearse::cli {

bool is_inline_link(std::string_view text) { return text.find('=') != std::string_view::npos; }

Result<cluster::PointToPoint> parse_network(const std::string& text) {
  if (is_inline_link(text)) return cluster::parse_link(text);
  return cluster::load_link(text);
}

Result<replay::ReplayGraph> data_parallel(const ReplayJob& job, const replay::ReplayGraph& replay,
                                          std::uint32_t ranks, const cluster::PointToPoint& link) {
  const std::string& source = job.recordings.front().rank().info.source;
  if (job.recordings.size() != 1)
    return fail(Diagnostic{.file = source,
                           .problem = fmt::format("is one of {} ranks, so it is data-parallel "
                                                  "already",
                                                  job.recordings.size()),
                           .expected = "the recording of one rank; --ranks picks one"});
  if (const auto& communication = replay.ranks.front().communication; !communication.empty())
    return fail(Diagnostic{
        .file = source,
        .problem = fmt::format("communicates already, in {} device ops", communication.size()),
        .expected = "a recording of a job that runs alone; --network changes "
                    "the collectives of this one"});
  const Result<replay::Gradients> gradients =
      replay::find_gradients(job.recordings.front(), replay.ranks.front());
  if (!gradients) return forward(gradients);
  const Result<graph::Timeline> alone = engine::run(replay.graph);
  if (!alone) return forward(alone);
  const bool overlap = gradients->on_device;
  Result<strategies::DataParallelGraph> parallel = strategies::data_parallel(
      replay.graph, gradients->steps,
      {.ranks = ranks,
       .overlap = overlap,
       .lateness = strategies::lateness(gradients->steps, *alone, ranks, overlap)});
  if (!parallel) return forward(parallel);
  Result<graph::Graph> priced =
      comm::price(std::move(parallel->graph), parallel->collectives, link);
  if (!priced) return forward(priced);
  return replay::with_graph(replay, std::move(*priced));
}

Result<replay::ReplayGraph> on_network(const ReplayJob& job, const replay::ReplayGraph& replay,
                                       const cluster::PointToPoint& link, const Globals& globals) {
  const replay::Transfers transfers = replay::find_transfers(job.recordings, replay);
  if (transfers.known.empty())
    return fail(Diagnostic{
        .file = job.recordings.front().rank().info.source,
        .problem = transfers.unknown > 0
                       ? fmt::format("of its {} collectives neither size nor ranks are recorded",
                                     transfers.unknown)
                       : std::string("has no collectives to put on a network"),
        .expected = "collectives with their size, or --data-parallel N to add them"});
  if (transfers.unknown > 0)
    globals.warn(
        fmt::format("{} collectives keep their recorded time: their size or ranks are not recorded",
                    transfers.unknown));
  Result<graph::Graph> priced = comm::price(replay.graph, transfers.known, link);
  if (!priced) return forward(priced);
  return replay::with_graph(replay, std::move(*priced));
}

}  // namespace rehearse::cli
