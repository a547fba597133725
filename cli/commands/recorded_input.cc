#include "cli/commands/recorded_input.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "models/input/ends.h"
#include "models/input/feed.h"
#include "models/input/limits.h"
#include "models/input/lower.h"
#include "profiler/replay/batch_requests.h"
#include "profiler/replay/compare.h"
#include "sim/base/text.h"
#include "sim/engine/engine.h"
#include "sim/program/rank_builder.h"

namespace rehearse::cli {
namespace {

using program::OpRef, program::Order, program::RankBuilder, program::Task;

constexpr double kMostOps = 5e6;

/// A request for a batch.
struct Asked {
  OpRef ask, wait;
};

/// The program's run when samples are always available.
struct Unfed {
  replay::ReplayGraph graph;
  graph::Timeline timeline;

  Picoseconds end(OpRef op) const { return timeline[graph.lowered.op(op)].end; }
};

/// The requests in the order in which they occur when nothing waits for input: in this order, none
/// waits for a later one.
std::vector<Asked> in_order(const Unfed& unfed) {
  std::vector<Asked> batch_requests;
  for (const replay::BatchRequest& request : unfed.graph.program.batch_requests)
    batch_requests.push_back({{request.rank, request.ask}, {request.rank, request.wait}});
  std::ranges::stable_sort(batch_requests, [&](const Asked& a, const Asked& b) {
    return unfed.end(a.wait) < unfed.end(b.wait);
  });
  return batch_requests;
}

struct Host {
  std::size_t ranks = 0;
  std::vector<Asked> requests;
};

/// By name.
std::map<std::string, Host> hosts_of(const std::vector<replay::Recording>& recordings,
                                     const std::vector<Asked>& batch_requests) {
  std::map<std::string, Host> hosts;
  for (const replay::Recording& recording : recordings) ++hosts[recording.rank().info.host].ranks;
  for (const Asked& request : batch_requests)
    hosts[recordings[request.wait.of].rank().info.host].requests.push_back(request);
  return hosts;
}

/// Mean time between requests of a rank; for ranks with one request, a step.
Picoseconds between_batches(const Unfed& unfed, const std::vector<Asked>& batch_requests,
                            Seconds step) {
  std::map<std::uint32_t, std::vector<Picoseconds>> times;
  for (const Asked& batch_request : batch_requests)
    times[batch_request.wait.of].push_back(unfed.end(batch_request.wait));
  Seconds sum = Seconds::s(0);
  double gaps = 0;
  for (const auto& [rank, at] : times) {
    sum += (at.back() - at.front()).seconds();
    gaps += static_cast<double>(at.size() - 1);
  }
  return Picoseconds::from(gaps > 0 ? sum / gaps : step);
}

/// Adds a pipeline and its orders with requests of `each` units, in order. A unit that two requests
/// share leaves the queue with the first of them.
Status serve(const input::Pipeline& pipeline, double each, const std::vector<Asked>& batch_requests,
             replay::RecordedProgram& program) {
  const auto units_before = [&](std::size_t take) {
    return static_cast<std::size_t>(std::ceil(static_cast<double>(take) * each - 1e-9));
  };
  std::vector<OpRef> asked;
  for (std::size_t k = 0; k < batch_requests.size(); ++k)
    asked.resize(units_before(k + 1), batch_requests[k].ask);
  const auto number = static_cast<std::uint32_t>(program.ranks() + program.services.size());
  const input::Lowered lowered =
      TRY(input::lower(pipeline, asked.size(), input::Start::kSpread, program, true));
  std::vector<Order>& orders = program.orders;
  for (const input::Requested& requested : lowered.requested)
    orders.push_back({asked[requested.unit], {number, requested.op}});
  for (std::size_t k = 0; k < batch_requests.size(); ++k)
    for (auto u = static_cast<std::size_t>(std::floor(static_cast<double>(k) * each + 1e-9));
         u < units_before(k + 1); ++u)
      orders.push_back({{number, lowered.units[u]}, batch_requests[k].wait});
  return {};
}

/// Adds `rounds` requests before the recording begins, each `gap` after the one before, and sets
/// the begin: `until_first` after the last of them.
std::vector<Asked> settle(double rounds, Picoseconds gap, Picoseconds until_first,
                          replay::RecordedProgram& program) {
  const NameId name = program.names.intern("before the recording");
  const auto number = static_cast<std::uint32_t>(program.ranks() + program.services.size());
  RankBuilder builder;
  std::vector<Asked> requests;
  std::vector<program::OpIndex> begin;
  for (double k = 0; k < rounds; ++k) {
    const program::OpIndex ask = builder.add(input::instant(name), begin),
                           wait = builder.add(input::instant(name), {ask});
    requests.push_back({{number, ask}, {number, wait}});
    begin = {builder.add({.name = name,
                          .task = Task::kDelay,
                          .duration = k + 1 < rounds ? gap : until_first,
                          .stream = program::kNoStream},
                         {wait})};
  }
  program.services.push_back(std::move(builder).build());
  program.begin = {number, begin.front()};
  for (std::uint32_t rank = 0; rank < program.ranks(); ++rank) {
    const program::RankProgram& of = program.program(RankId(rank));
    for (program::OpIndex i = 0; i < of.ops.size(); ++i)
      if (of.first_dependency[i] == of.first_dependency[i + 1])
        program.orders.push_back({*program.begin, {rank, i}});
  }
  return requests;
}

}  // namespace

Result<FedProgram> feed_recording(const std::vector<replay::Recording>& recordings,
                                  const replay::RecordedProgram& program,
                                  const input::Pipeline& given,
                                  std::optional<std::uint32_t> batch) {
  input::Pipeline pipeline = given;
  pipeline.step.reset();  // the recording itself consumes the samples
  TRY(input::gives_all_samples(pipeline));
  const input::Counts counts = input::counts_of(pipeline);
  if (!batch && counts.samples <= 1)
    return fail("the pipeline forms no batches, and the recording does not contain its batch size",
                "", "--batch N, the number of samples per batch of a rank");
  const double samples = batch ? *batch : counts.samples;
  replay::WithBatchRequests with = TRY(replay::add_batch_requests(recordings, program));
  FedProgram fed{.by = {.batch = samples,
                        .loading_ranges = with.loading_ranges,
                        .step_requests = with.program.batch_requests.size() - with.loading_ranges,
                        .replaced = with.replaced,
                        .hosts = 0,
                        .most_ranks = 0,
                        .allowed = 0,
                        .scarce_cores = pipeline.host.has_value()}};
  const std::vector<input::Limit> limits = input::limits_of(pipeline);
  if (!limits.empty()) {
    fed.by.bound = input::to_string(pipeline, limits.front());
    fed.by.allowed = limits.front().units_per_s * counts.samples;
  }
  replay::ReplayGraph graph = TRY(replay::to_graph(std::move(with.program)));
  graph::Timeline timeline = TRY(engine::run(graph.graph()));
  Unfed unfed{std::move(graph), std::move(timeline)};

  // Before the recording begins, each rank requests batches at the recorded rate until the queues
  // reach their steady state.
  const double each = samples / counts.samples;
  const double units = 2 * input::units_in_flight(pipeline, counts) + 4;
  double rounds = 1;
  const std::vector<Asked> batch_requests = in_order(unfed);
  const std::map<std::string, Host> hosts = hosts_of(recordings, batch_requests);
  fed.by.hosts = hosts.size();
  for (const auto& [name, host] : hosts) {
    fed.by.most_ranks = std::max(fed.by.most_ranks, host.ranks);
    rounds = std::max(rounds, std::ceil(units / (static_cast<double>(host.ranks) * each)) + 1);
    if (const double taken = static_cast<double>(host.requests.size()) * samples;
        each < 1 && taken < counts.samples)
      return fail(fmt::format("the recording consumes {:g} samples, and '{}' produces {:g} at a "
                              "time: too few to estimate the long-run rate",
                              taken, pipeline.stages.back().name, counts.samples),
                  fmt::format("{:g} samples or more", counts.samples),
                  "a longer recording, a larger --batch, or a smaller batch of that stage");
  }
  const double ops =
      input::ops_of(pipeline, each) * (static_cast<double>(batch_requests.size()) +
                                       rounds * static_cast<double>(recordings.size()));
  if (ops > kMostOps)
    return fail(fmt::format("the input pipeline needs {:.3g} ops for this recording", ops),
                fmt::format("{:g} at most", kMostOps),
                "shorter queues, larger units, or fewer ranks (--ranks)");
  const Picoseconds gap =
      between_batches(unfed, batch_requests,
                      replay::compare(recordings, unfed.graph, unfed.timeline).step_time.simulated);
  // The first request of the recording follows the last of these after the same interval.
  const Picoseconds until_first =
      std::max(Picoseconds(0), gap - unfed.end(batch_requests.front().wait));
  fed.program = std::move(unfed.graph.program);
  // Requests of all ranks, by round.
  const std::vector<Asked> before = settle(rounds, gap, until_first, fed.program);
  std::uint64_t number = 0;
  for (const auto& [name, host] : hosts) {
    std::vector<Asked> requests;
    for (const Asked& round : before) requests.insert(requests.end(), host.ranks, round);
    requests.insert(requests.end(), host.requests.begin(), host.requests.end());
    pipeline.seed = given.seed + number++;
    TRY(serve(pipeline, each, requests, fed.program));
  }
  // Requests of one round are one op, and so are units that end together.
  std::vector<Order>& orders = fed.program.orders;
  std::ranges::sort(orders);
  orders.erase(std::unique(orders.begin(), orders.end()), orders.end());
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
