#include "cli/commands/recorded_input.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>

#include "models/input/feed.h"
#include "models/input/limits.h"
#include "models/input/lower.h"
#include "profiler/replay/batch_requests.h"
#include "profiler/replay/compare.h"
#include "sim/base/text.h"
#include "sim/engine/engine.h"

namespace rehearse::cli {
namespace {

using graph::Category;
using graph::GraphBuilder;
using graph::Op;

constexpr double kMostOps = 5e6;

/// The ranks of each host, by its name.
std::map<std::string, std::vector<std::uint32_t>> ranks_of_hosts(
    const std::vector<replay::Recording>& recordings) {
  std::map<std::string, std::vector<std::uint32_t>> hosts;
  for (std::size_t rank = 0; rank < recordings.size(); ++rank)
    hosts[recordings[rank].rank().info.host].push_back(static_cast<std::uint32_t>(rank));
  return hosts;
}

/// A request for a batch, as ops of the graph.
struct Asked {
  std::uint32_t rank;
  OpId ask, wait;
};

/// The program's run when samples are always available.
struct Unfed {
  replay::ReplayGraph graph;
  graph::Timeline timeline;
};

/// The requests in the order in which they occur when nothing waits for input: in this order, none
/// waits for a later one.
std::vector<Asked> in_order(const Unfed& unfed) {
  std::vector<Asked> batch_requests;
  const auto op = [&](const replay::BatchRequest& request, replay::OpIndex index) {
    return unfed.graph.lowered.op(request.rank, index);
  };
  for (const replay::BatchRequest& request : unfed.graph.program.batch_requests)
    batch_requests.push_back({request.rank, op(request, request.ask), op(request, request.wait)});
  std::stable_sort(batch_requests.begin(), batch_requests.end(), [&](const auto& a, const auto& b) {
    return unfed.timeline[a.wait].end < unfed.timeline[b.wait].end;
  });
  return batch_requests;
}

/// Mean time between requests of a rank; for ranks with one request, a step.
Picoseconds between_batches(const Unfed& unfed, const std::vector<Asked>& batch_requests,
                            Seconds step) {
  std::map<std::uint32_t, std::vector<Picoseconds>> times;
  for (const Asked& batch_request : batch_requests)
    times[batch_request.rank].push_back(unfed.timeline[batch_request.wait].end);
  Seconds sum = Seconds::s(0);
  double gaps = 0;
  for (const auto& [rank, at] : times) {
    sum += (at.back() - at.front()).seconds();
    gaps += static_cast<double>(at.size() - 1);
  }
  return Picoseconds::from(gaps > 0 ? sum / gaps : step);
}

std::vector<OpId> roots_of(const graph::Graph& graph) {
  std::vector<OpId> roots;
  for (std::size_t i = 0; i < graph.size(); ++i)
    if (graph.need(OpId(i)) == 0) roots.emplace_back(i);
  return roots;
}

/// Adds requests of `each` units, in order. A unit that two requests share leaves the queue with
/// the first of them.
Status put_in_front(const input::Pipeline& pipeline, double each,
                    const std::vector<Asked>& batch_requests, GraphBuilder& builder) {
  const auto units_before = [&](std::size_t take) {
    return static_cast<std::size_t>(std::ceil(static_cast<double>(take) * each - 1e-9));
  };
  std::vector<OpId> asked;
  for (std::size_t k = 0; k < batch_requests.size(); ++k)
    asked.resize(units_before(k + 1), batch_requests[k].ask);
  const Result<input::Lowered> lowered =
      input::lower(pipeline, asked.size(), input::Start::kSpread, builder, asked);
  if (!lowered) return forward(lowered);
  // Requests of one round are one op, and so are units that end together.
  std::set<std::pair<std::size_t, std::size_t>> waits;
  for (std::size_t k = 0; k < batch_requests.size(); ++k)
    for (auto u = static_cast<std::size_t>(std::floor(static_cast<double>(k) * each + 1e-9));
         u < units_before(k + 1); ++u)
      waits.emplace(lowered->units[u].index(), batch_requests[k].wait.index());
  for (const auto& [unit, take] : waits) builder.add_edge(OpId(unit), OpId(take));
  return {};
}

}  // namespace

Result<FedGraph> feed_recording(const std::vector<replay::Recording>& recordings,
                                const replay::RecordedProgram& program,
                                const input::Pipeline& given, std::optional<std::uint32_t> batch) {
  input::Pipeline pipeline = given;
  pipeline.step.reset();  // the recording itself consumes the samples
  if (Status ok = input::gives_all_samples(pipeline); !ok) return forward(ok);
  const input::Counts counts = input::counts_of(pipeline);
  if (!batch && counts.samples <= 1)
    return fail("the pipeline forms no batches, and the recording does not contain its batch size",
                "", "--batch N, the number of samples per batch of a rank");
  const double samples = batch ? *batch : counts.samples;
  Result<replay::WithBatchRequests> with = replay::add_batch_requests(recordings, program);
  if (!with) return forward(with);
  const auto hosts = ranks_of_hosts(recordings);
  FedGraph fed{.graph = {},
               .by = {.batch = samples,
                      .loading_ranges = with->loading_ranges,
                      .step_requests = with->program.batch_requests.size() - with->loading_ranges,
                      .replaced = with->replaced,
                      .hosts = hosts.size(),
                      .most_ranks = 0,
                      .bound = {},
                      .allowed = 0,
                      .scarce_cores = pipeline.host.has_value()}};
  const std::vector<input::Limit> limits = input::limits_of(pipeline);
  if (!limits.empty()) {
    fed.by.bound = input::to_string(pipeline, limits.front());
    fed.by.allowed = limits.front().units_per_s * counts.samples;
  }
  Result<replay::ReplayGraph> graph = replay::to_graph(std::move(with->program));
  if (!graph) return forward(graph);
  Result<graph::Timeline> timeline = engine::run(graph->graph());
  if (!timeline) return forward(timeline);
  Unfed unfed{std::move(*graph), std::move(*timeline)};

  // Before the recording begins, each rank requests batches at the recorded rate until the queues
  // reach their steady state.
  const double each = samples / counts.samples;
  const double settle = 2 * input::units_in_flight(pipeline, counts) + 4;
  double ops = 0, rounds = 1;
  const std::vector<Asked> batch_requests = in_order(unfed);
  for (const auto& [host, ranks] : hosts)
    rounds = std::max(rounds, std::ceil(settle / (static_cast<double>(ranks.size()) * each)) + 1);
  for (const auto& host : hosts) {
    const auto& ranks = host.second;
    const auto of_host = std::count_if(
        batch_requests.begin(), batch_requests.end(), [&](const Asked& batch_request) {
          return std::find(ranks.begin(), ranks.end(), batch_request.rank) != ranks.end();
        });
    if (const double taken = static_cast<double>(of_host) * samples;
        each < 1 && taken < counts.samples)
      return fail(fmt::format("the recording consumes {:g} samples, and '{}' produces {:g} at a "
                              "time: too few to estimate the long-run rate",
                              taken, pipeline.stages.back().name, counts.samples),
                  fmt::format("{:g} samples or more", counts.samples),
                  "a longer recording, a larger --batch, or a smaller batch of that stage");
  }
  ops = input::ops_of(pipeline, each) * (static_cast<double>(batch_requests.size()) +
                                         rounds * static_cast<double>(recordings.size()));
  if (ops > kMostOps)
    return fail(fmt::format("the input pipeline needs {:.3g} ops for this recording", ops),
                fmt::format("{:g} at most", kMostOps),
                "shorter queues, larger units, or fewer ranks (--ranks)");
  GraphBuilder builder(unfed.graph.graph());
  const NameId settling = builder.intern("before the recording");
  const Picoseconds gap =
      between_batches(unfed, batch_requests,
                      replay::compare(recordings, unfed.graph, unfed.timeline).step_time.simulated);
  const Picoseconds first_batch = unfed.timeline[batch_requests.front().wait].end;
  std::vector<Asked> before;  // takes of all ranks of a round
  OpId begin(0);
  for (double k = 0; k < rounds; ++k) {
    const auto instant = [&] {
      return builder.add(
          Op{.name = settling, .category = Category::kInput, .duration = Picoseconds(0)});
    };
    const OpId ask = instant();
    const Asked round{0, ask, instant()};
    builder.add_edge(round.ask, round.wait);
    if (k > 0) builder.add_edge(begin, round.ask);
    before.push_back(round);
    // The first request of the recording follows the last of these after the same interval.
    const Picoseconds until_next =
        k + 1 < rounds ? gap : std::max(Picoseconds(0), gap - first_batch);
    begin = builder.add(Op{.name = settling, .category = Category::kDelay, .duration = until_next});
    builder.add_edge(round.wait, begin);
  }
  for (const OpId root : roots_of(unfed.graph.graph())) builder.add_edge(begin, root);
  std::uint64_t number = 0;
  for (const auto& [host, ranks] : hosts) {
    fed.by.most_ranks = std::max(fed.by.most_ranks, ranks.size());
    std::vector<Asked> of_host;
    for (const Asked& round : before) of_host.insert(of_host.end(), ranks.size(), round);
    for (const Asked& batch_request : batch_requests)
      if (std::find(ranks.begin(), ranks.end(), batch_request.rank) != ranks.end())
        of_host.push_back(batch_request);
    pipeline.seed = given.seed + number++;
    if (Status ok = put_in_front(pipeline, each, of_host, builder); !ok) return forward(ok);
  }
  Result<graph::Graph> built = std::move(builder).build();
  if (!built) return forward(built);
  fed.graph = std::move(unfed.graph);
  fed.graph.lowered.graph = std::move(*built);
  fed.graph.begin = begin;
  return fed;
}

std::string fed_text(const FedBy& by) {
  std::string text =
      fmt::format("input pipeline: a rank requests {:g} samples at each {}", by.batch,
                  by.loading_ranges > 0 ? "loading range" : "start of a step");
  if (by.loading_ranges > 0)
    text += fmt::format(", instead of the {} of work recorded there", to_string(by.replaced));
  if (by.step_requests > 0)
    text += fmt::format("; the loading that {} is kept: --remove 'host=NAME' removes it",
                        by.loading_ranges > 0 ? "ranks without a loading range do themselves"
                                              : "the recording does itself");
  text += fmt::format("; {} on a host", counted(by.most_ranks, "recorded rank"));
  if (!by.bound.empty())
    text += fmt::format("; bounded by {} at {} samples/s", by.bound, significant(by.allowed, 4));
  if (!by.scarce_cores) text += "; without `host` the number of cores is not limited";
  return text;
}

Json fed_json(const FedBy& by) {
  Json json = {{"batch", by.batch},
               {"takes_at", by.loading_ranges > 0 ? "loading ranges" : "steps"},
               {"replaced", by.replaced},
               {"hosts", by.hosts},
               {"ranks_per_host", by.most_ranks}};
  if (!by.bound.empty()) {
    json["bottleneck"] = by.bound;
    json["allowed"] = {{"value", by.allowed}, {"unit", "1/s"}};
  }
  return json;
}

}  // namespace rehearse::cli
