#include "strategies/step/closed_step.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/core.h>

#include "strategies/boundaries.h"
#include "strategies/server_program.h"
#include "strategies/stage_groups.h"
#include "strategies/step/link_sharing.h"
#include "strategies/step/order_times.h"
#include "strategies/step/step_clock.h"

namespace rehearse::step {
namespace {

using strategies::ChunkPlace;
using strategies::Crossing;
using strategies::LayerPiece;
using strategies::LayerRun;
using strategies::LayerStep;
using strategies::Split;
using workload::Layer;
using workload::Layout;
using workload::Op;
using workload::OpKind;
using workload::Pass;
using workload::Stage;

constexpr Picoseconds kLongAgo(INT64_MIN / 2);

class Evaluation {
 public:
  Evaluation(const Layout& layout, const StepPrices& prices, const StepOptions& options)
      : layout_(layout), prices_(prices), options_(options) {}

  Result<StepTime> run() {
    const std::vector<Crossing> crossings = TRY(strategies::crossings_of(layout_));
    TRY(find_kinds());
    chain_ = strategies::chain_of(layout_);
    for (const Stage& stage : layout_.stages) split_of_.push_back(strategies::split_of(stage));
    ending_.resize(layout_.stages.size());
    in_passes_.resize(layout_.stages.size());
    for (const ChunkPlace& place : chain_) TRY(price(place));
    TRY(price(crossings));
    run_passes();
    OrderTimes times = TRY(order_times(layout_, chain_, costs_));
    if (TRY(share_links_in_passes(times))) {
      run_passes();
      times = TRY(order_times(layout_, chain_, costs_));
    }
    return finish(times);
  }

 private:
  Status find_kinds() {
    for (const Stage& stage : layout_.stages) {
      const std::vector<std::uint32_t> kinds =
          strategies::kinds_of(prices_.op, strategies::ranks_of(stage));
      if (kinds.size() > 1)
        return fail(fmt::format("{} uses {} kinds of devices", stage.name, kinds.size()),
                    "one kind of device, or simulation instead of closed form");
      price_of_.push_back(&prices_.op.of_kind(kinds.front()));
    }
    return {};
  }

  const strategies::KindPrice& price_of(const Stage& stage) const {
    return *price_of_[static_cast<std::size_t>(&stage - layout_.stages.data())];
  }

  Status price(const ChunkPlace& place) {
    const Stage& stage = layout_.stages[place.stage];
    const Split split = split_of_[place.stage];
    const strategies::HostTimes host =
        strategies::host_times(options_.job, stage.degrees, layout_.stages.size());
    std::vector<PricedLayer>& layers = layers_.emplace_back();
    for (const Layer& layer : stage.chunks[place.chunk].layers) {
      PricedLayer priced{.count = layer.count};
      for (std::size_t pass = 0; pass < strategies::kPasses; ++pass) {
        const LayerRun run = TRY(
            strategies::layer_run(layer, static_cast<Pass>(pass), split, price_of(stage).op, host));
        priced.host[pass] = run.host;
        priced.launches[pass] = run.launches;
        is_paced_ = is_paced_ || run.is_paced();
        TRY(price(run, stage, priced.passes[pass]));
        if (!is_in_order(static_cast<Pass>(pass), split)) continue;
        const auto times = static_cast<double>(layer.count) * layout_.microbatches;
        add_length(priced.passes[pass], times);
        add_to(in_passes_[place.stage], run, stage, times);
      }
      const LayerStep step =
          TRY(strategies::layer_step(layer, price_of(stage).op, options_.job.host_per_kernel));
      TRY(price(step.deferred, stage, priced.deferred));
      TRY(price(step.rest, stage, priced.rest));
      for (const PricedRun* ending : {&priced.deferred, &priced.rest})
        add_length(*ending, layer.count);
      add_to(ending_[place.stage].sums, step.deferred, stage, layer.count);
      add_to(ending_[place.stage].rest, step.rest, stage, layer.count);
      layers.push_back(std::move(priced));
    }
    return strategies::check_length(length_);
  }

  /// To a length that no sum of these times exceeds.
  void add_length(const PricedRun& run, double times) {
    for (const Priced& piece : run) length_ += piece.time.seconds() * times;
  }

  static bool is_in_order(Pass pass, Split split) {
    return (pass != Pass::kBackwardWeights || split.weights) &&
           (pass != Pass::kRecompute || split.recompute);
  }

  /// The duration of each pass through each chunk.
  void run_passes() {
    costs_.passes.clear();
    costs_.ahead.clear();
    for (const std::vector<PricedLayer>& layers : layers_) {
      std::array<Picoseconds, strategies::kPasses>& passes = costs_.passes.emplace_back(
          std::array{Picoseconds(0), Picoseconds(0), Picoseconds(0), Picoseconds(0)});
      for (std::size_t pass = 0; pass < strategies::kPasses; ++pass)
        passes[pass] = run_pass(layers, static_cast<Pass>(pass), Picoseconds(0)).end();
      if (layout_.stages.size() > 1 || !is_paced_) continue;
      std::array<PassAhead, strategies::kPasses>& ahead = costs_.ahead.emplace_back();
      for (std::size_t pass = 0; pass < strategies::kPasses; ++pass) {
        // The host is so far ahead that nothing waits for it.
        StepClock clock = run_pass(layers, static_cast<Pass>(pass), kLongAgo);
        ahead[pass] = {clock.end(), clock.host() - kLongAgo, 0};
        for (const PricedLayer& layer : layers)
          ahead[pass].launches += layer.launches[pass] * layer.count;
      }
    }
  }
  StepClock run_pass(const std::vector<PricedLayer>& layers, Pass pass, Picoseconds host) const {
    StepClock clock(Picoseconds(0), host, options_.overlap_loss, options_.background);
    through(layers, pass, clock, [](const PricedLayer&) {});
    return clock;
  }

  /// Layer by layer, backward from the last one; `each` after every layer.
  template <class Each>
  static void through(const std::vector<PricedLayer>& layers, Pass pass, StepClock& clock,
                      Each each) {
    const auto run = [&](const PricedLayer& layer) {
      for (std::uint32_t i = 0; i < layer.count; ++i) {
        clock.layer(layer.passes[static_cast<std::size_t>(pass)],
                    layer.host[static_cast<std::size_t>(pass)]);
        each(layer);
      }
    };
    if (pass == Pass::kForward)
      std::for_each(layers.begin(), layers.end(), run);
    else
      std::for_each(layers.rbegin(), layers.rend(), run);
  }

  Status price(const LayerRun& run, const Stage& stage, PricedRun& priced) {
    priced.reserve(run.pieces.size());
    for (const LayerPiece& piece : run.pieces) {
      if (!piece.communication) {
        priced.push_back({piece.time, {}, 0});
        continue;
      }
      const Op& op = *piece.communication;
      if (op.kind == OpKind::kCopy) {
        const Seconds time = TRY(strategies::copy_time(op, price_of(stage)));
        priced.push_back({TRY(strategies::step_part(time)), op.issue,
                          static_cast<std::uint8_t>(strategies::kGroupKinds)});
        continue;
      }
      if (strategies::is_with_servers(layout_, op)) {
        const Seconds time = TRY(with_servers(op, stage));
        priced.push_back({TRY(strategies::step_part(time)), op.issue,
                          static_cast<std::uint8_t>(strategies::GroupKind::kData)});
        continue;
      }
      if (workload::group_size(op, stage.degrees) < 2) continue;
      const Seconds time = TRY(prices_.collective(op, stage));
      priced.push_back({TRY(strategies::step_part(time)), op.issue,
                        static_cast<std::uint8_t>(strategies::group_kind(op))});
    }
    return {};
  }

  /// The time in which all ranks of the stage send to or receive from the servers. A push ends with
  /// the update.
  Result<Seconds> with_servers(const Op& op, const Stage& stage) const {
    const workload::Servers& servers = *layout_.servers;
    if (servers.staleness != std::uint32_t{0})
      return fail("asynchronous workers have no closed-form step time",
                  "staleness 0, or a simulation");
    Result<Seconds> time = prices_.to_servers(stage, servers, op.bytes);
    if (!time || op.collective != CollectiveKind::kReduce) return time;
    Bytes all = Bytes::b(0);
    for (const Stage& s : layout_.stages)
      for (const workload::Chunk& chunk : s.chunks)
        for (const Layer& layer : chunk.layers)
          for (const Op& other : layer.step)
            if (strategies::is_with_servers(layout_, other) && other.collective == op.collective)
              all += other.bytes * layer.count * (s.degrees.tensor * s.degrees.context);
    const double share = op.bytes * (stage.degrees.tensor * stage.degrees.context) / all;
    // Each server has its part of every layer; the slowest determines the time.
    Seconds update = Seconds::s(0);
    for (const std::uint32_t kind : strategies::kinds_of(prices_.op, strategies::ranks_of(servers)))
      update = std::max(update, prices_.op.of_kind(kind).op(servers.update));
    return *time + update * share;
  }

  Status price(const std::vector<Crossing>& crossings) {
    costs_.transfers.assign(chain_.size(), Picoseconds(0));
    costs_.returns = costs_.transfers;
    for (std::size_t place = 0; place + 1 < chain_.size(); ++place)
      for (const Crossing& crossing : crossings) {
        if (crossing.from != chain_[place] || crossing.to != chain_[place + 1]) continue;
        const Stage &from = layout_.stages[crossing.from.stage],
                    &to = layout_.stages[crossing.to.stage];
        const Seconds there = TRY(prices_.message(from, to, crossing.message)),
                      back = TRY(prices_.message(to, from, crossing.message));
        costs_.transfers[place] = TRY(strategies::step_part(there));
        costs_.returns[place] = TRY(strategies::step_part(back));
      }
    return {};
  }

  Result<StepTime> finish(const OrderTimes& times) {
    std::vector<StepClock> clocks;
    for (std::uint32_t s = 0; s < layout_.stages.size(); ++s) {
      clocks.push_back(sums(s, times));
      ending_[s].gradients = clocks.back().all();
    }
    std::vector<Seconds> ends;
    for (std::uint32_t s = 0; s < layout_.stages.size(); ++s) {
      StepClock& clock = clocks[s];
      clock.wait_until(ending_[s].gradients);
      if (const auto other = strategies::tied_with(layout_, s)) {
        const Seconds time = TRY(prices_.message(layout_.stages[*other], layout_.stages[s],
                                                 strategies::tied_message(layout_, s, *other)));
        const auto part = TRY(strategies::step_part(time));
        ending_[s].tied = {*other, part};
        clock.wait_until(ending_[*other].gradients + ending_[s].tied->second);
      }
      ending_[s].rest_begins = clock.reached();
      for (std::size_t place = 0; place < chain_.size(); ++place) {
        if (chain_[place].stage != s) continue;
        for (const PricedLayer& layer : layers_[place])
          for (std::uint32_t i = 0; i < layer.count; ++i) clock.step(layer.rest);
      }
      const Seconds fixed = strategies::fixed_of(options_.job, layout_.stages[s]);
      ends.push_back(std::max(clock.end().seconds() + fixed, clock.all().seconds()));
      ending_[s].end = clock.all();
    }
    TRY(share_links(times, ends));
    std::optional<StepTime> result;
    std::vector<Seconds> computing;
    for (std::uint32_t s = 0; s < layout_.stages.size(); ++s) {
      const auto [busy, compute] = work_of(s);
      computing.push_back(compute);
      if (result && ends[s] <= result->step) continue;
      result = StepTime{ends[s], compute, times.end[s].seconds() - busy, {}};
    }
    result->computing = std::move(computing);
    return std::move(*result);
  }

  /// Lengthens collectives of passes if those of other stages use the same links. Returns whether
  /// there are any.
  Result<bool> share_links_in_passes(const OrderTimes& times) {
    const std::size_t stages = layout_.stages.size();
    if (!prices_.shared_links || stages < 2) return false;
    std::vector<StageCollective> collectives;
    for (std::uint32_t s = 0; s < stages; ++s)
      for (const Collective& c : in_passes_[s]) collectives.push_back({c.op, &layout_.stages[s]});
    if (collectives.empty()) return false;
    const job::SharedLinks::Shared& links = *TRY(prices_.shared_links(collectives));
    const std::size_t n = links.links.size();
    if (n == 0) return false;
    std::vector<LinkUser> users;
    std::size_t number = 0;
    for (std::uint32_t s = 0; s < stages; ++s) {
      users.push_back(
          {work_of(s).first.s(), times.end[s].seconds().s(), std::vector<LinkUse>(kStreams)});
      for (const Collective& c : in_passes_[s]) {
        LinkUse& use = users[s].streams[static_cast<std::size_t>(strategies::group_kind(*c.op))];
        for (const job::SharedLinks::Taken& taken : links.concurrent_sets[number++].taken) {
          use.busy.resize(n, 0);
          use.busy[taken.link] += c.bytes * taken.messages / links.links[taken.link].bytes_per_s();
        }
      }
    }
    for (std::size_t place = 0; place < chain_.size(); ++place)
      for (const PricedLayer& layer : layers_[place])
        for_communications(layer, chain_[place].stage, [&](const Priced& piece) {
          users[chain_[place].stage].streams[piece.stream].time +=
              piece.time.seconds().s() * (layer.count * layout_.microbatches);
        });
    if (!find_slower(users, n)) return false;
    for (std::size_t place = 0; place < chain_.size(); ++place)
      for (PricedLayer& layer : layers_[place])
        for_communications(layer, chain_[place].stage, [&](Priced& piece) {
          piece.time = piece.time * users[chain_[place].stage].streams[piece.stream].slower;
        });
    return true;
  }

  /// Of all passes of the order.
  template <class AnyLayer, class Do>
  void for_communications(AnyLayer& layer, std::uint32_t stage, Do act) const {
    for (std::size_t pass = 0; pass < strategies::kPasses; ++pass)
      if (is_in_order(static_cast<Pass>(pass), split_of_[stage]))
        for (auto& piece : layer.passes[pass])
          if (piece.issue) act(piece);
  }

  /// Delays the ends of stages whose collectives share links after the orders.
  Status share_links(const OrderTimes& times, std::vector<Seconds>& ends) const {
    if (!prices_.shared_links || layout_.stages.size() < 2) return {};
    std::vector<StageCollective> collectives;
    for (std::uint32_t s = 0; s < layout_.stages.size(); ++s)
      for (const std::vector<Collective>* all : {&ending_[s].sums, &ending_[s].rest})
        for (const Collective& c : *all) collectives.push_back({c.op, &layout_.stages[s]});
    if (collectives.empty()) return {};
    const job::SharedLinks::Shared& links = *TRY(prices_.shared_links(collectives));
    if (links.links.empty()) return {};
    std::size_t number = 0;  // of the collective
    std::vector<Burst> bursts;
    const auto add = [&](Picoseconds begin, Picoseconds end, const std::vector<Collective>& all) {
      Burst burst{begin.seconds().s(), (end - begin).seconds().s()};
      burst.shares.assign(links.links.size(), 0);
      for (const Collective& c : all)
        for (const job::SharedLinks::Taken& taken : links.concurrent_sets[number++].taken)
          burst.shares[taken.link] +=
              c.bytes * taken.messages / links.links[taken.link].bytes_per_s();
      for (double& share : burst.shares)
        share = burst.length > 0 ? std::min(1.0, share / burst.length) : 0;
      bursts.push_back(std::move(burst));
    };
    for (const Ending& e : ending_) {
      add(e.sums_begin, e.sums_end, e.sums);
      add(e.rest_begins, e.end, e.rest);
    }
    for (std::uint32_t s = 0; s < ending_.size(); ++s) {
      Burst& rest = bursts[2 * s + 1];
      rest.begin = times.end[s].seconds().s();
      rest.after.push_back({2 * s, 0});
      if (const auto& tied = ending_[s].tied) {
        const double time = tied->second.seconds().s();
        rest.begin = std::max(rest.begin, times.end[tied->first].seconds().s() + time);
        rest.after.push_back({2 * tied->first, time});
      }
    }
    const std::vector<double> shared_ends = ends_of(bursts, links.links.size());
    for (std::uint32_t s = 0; s < ending_.size(); ++s)
      ends[s] +=
          std::max(Seconds::s(0), Seconds::s(shared_ends[2 * s + 1]) - ending_[s].end.seconds());
    return {};
  }

  /// The clock of a stage after its order has ended and the sums alongside its last backward have
  /// run.
  StepClock sums(std::uint32_t s, const OrderTimes& times) {
    const Pass last = split_of_[s].weights ? Pass::kBackwardWeights : Pass::kBackward;
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < chain_.size(); ++place)
      if (chain_[place].stage == s) places.push_back(place);
    std::sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
      return times.last_begin[a] < times.last_begin[b];
    });
    StepClock streams(Picoseconds(0), kLongAgo, options_.overlap_loss, options_.background);
    Ending& ending = ending_[s];
    ending.sums_begin = times.end[s];
    for (const std::size_t place : places) {
      const bool sums = std::any_of(layers_[place].begin(), layers_[place].end(),
                                    [](const PricedLayer& l) { return !l.deferred.empty(); });
      if (!sums) continue;
      StepClock clock(times.last_begin[place], times.last_host[place], options_.overlap_loss,
                      options_.background);
      through(layers_[place], last, clock, [&](const PricedLayer& layer) {
        if (!layer.deferred.empty())
          ending.sums_begin = std::min(ending.sums_begin, clock.reached());
        streams.sums(layer.deferred, clock.reached());
      });
    }
    ending.sums_end = std::max(ending.sums_begin, streams.all());
    streams.wait_until(times.end[s]);
    return streams;
  }

  /// The work of a stage in its order: all its passes, and the computing part of them and of the
  /// step.
  std::pair<Seconds, Seconds> work_of(std::uint32_t s) const {
    Picoseconds busy(0), compute(0);
    const Split split = split_of_[s];
    const auto computing = [](const PricedRun& run) {
      Picoseconds sum(0);
      for (const Priced& piece : run)
        if (!piece.issue) sum += piece.time;
      return sum;
    };
    for (std::size_t place = 0; place < chain_.size(); ++place) {
      if (chain_[place].stage != s) continue;
      for (std::size_t pass = 0; pass < strategies::kPasses; ++pass) {
        if (!is_in_order(static_cast<Pass>(pass), split)) continue;
        const auto m = static_cast<std::int64_t>(layout_.microbatches);
        busy += costs_.passes[place][pass] * m;
        for (const PricedLayer& layer : layers_[place])
          compute += computing(layer.passes[pass]) * (m * layer.count);
      }
      for (const PricedLayer& layer : layers_[place])
        compute += computing(layer.rest) * static_cast<std::int64_t>(layer.count);
    }
    return {busy.seconds(), compute.seconds()};
  }

  /// Collectives of one kind among the same ranks.
  struct Collective {
    const Op* op;  ///< the first of them
    double bytes;  ///< of all of them
  };
  /// The end of a stage after its order, if it has all links alone.
  struct Ending {
    std::vector<Collective> sums, rest;
    Picoseconds sums_begin{0}, sums_end{0};
    Picoseconds gradients{0};                                        // it has all of its own
    std::optional<std::pair<std::uint32_t, Picoseconds>> tied = {};  // and after those of another
    Picoseconds rest_begins{0}, end{0};
  };

  void add_to(std::vector<Collective>& all, const LayerRun& run, const Stage& stage,
              double count) const {
    for (const LayerPiece& piece : run.pieces) {
      const Op* op = piece.communication;
      if (!op || op->kind != OpKind::kCollective || strategies::is_with_servers(layout_, *op) ||
          workload::group_size(*op, stage.degrees) < 2)
        continue;
      const auto known = std::find_if(all.begin(), all.end(), [&](const Collective& c) {
        return c.op->collective == op->collective &&
               strategies::group_kind(*c.op) == strategies::group_kind(*op);
      });
      if (known == all.end())
        all.push_back({op, op->bytes.b() * count});
      else
        known->bytes += op->bytes.b() * count;
    }
  }

  const Layout& layout_;
  const StepPrices& prices_;
  const StepOptions& options_;
  std::vector<const strategies::KindPrice*> price_of_;  // by stage
  std::vector<ChunkPlace> chain_;
  std::vector<Split> split_of_;                   // by stage: it looks through a whole order
  std::vector<std::vector<PricedLayer>> layers_;  // by place in the chain
  Seconds length_ = Seconds::s(0);                // of all pieces, one after another
  bool is_paced_ = false;                         // some pass of a block
  OrderCosts costs_;
  std::vector<Ending> ending_;                           // by stage
  std::vector<std::vector<Collective>> in_passes_ = {};  // by stage
};

}  // namespace

Result<StepTime> closed_step(const Layout& layout, const StepPrices& prices,
                             const StepOptions& options) {
  return Evaluation(layout, prices, options).run();
}

}  // namespace rehearse::step
