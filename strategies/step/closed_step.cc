#include "strategies/step/closed_step.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/core.h>

#include "strategies/boundaries.h"
#include "strategies/server_program.h"
#include "strategies/stage_groups.h"
#include "strategies/step/order_times.h"

namespace rehearse::step {
namespace {

using strategies::ChunkPlace;
using strategies::Crossing;
using strategies::LayerPiece;
using strategies::LayerRun;
using strategies::LayerStep;
using strategies::Split;
using workload::Issue;
using workload::Layer;
using workload::Layout;
using workload::Op;
using workload::OpKind;
using workload::Pass;
using workload::Stage;

constexpr std::size_t kStreams = strategies::kGroupKinds + 1;  // one more for copies

/// A piece whose communication has its price.
struct Priced {
  Picoseconds time;
  std::optional<Issue> issue;  ///< of a communication
  std::uint8_t stream = 0;
};
using PricedRun = std::vector<Priced>;

/// A layer of a chunk; runs of its passes and what it does in the step.
struct PricedLayer {
  std::uint32_t count;
  std::array<PricedRun, strategies::kPasses> passes;
  PricedRun deferred, rest;
};

/// The device and its streams, as they go through pieces.
class Clock {
 public:
  Clock(Picoseconds begin, double overlap_loss, Background background)
      : ready_(begin), loss_(overlap_loss), background_(background) {
    free_.fill(begin);
  }

  /// Pieces of a layer's pass. What runs in the background counts when the layer ends.
  void layer(const PricedRun& run) {
    const Picoseconds begin = ready_;
    behind_.fill(Picoseconds(0));
    for (const Priced& piece : run) pass_piece(piece);
    const Picoseconds front = ready_ - begin,
                      behind = *std::max_element(behind_.begin(), behind_.end());
    if (behind > Picoseconds(0))
      ready_ = begin + std::max(front, behind) + std::min(front, behind) * loss_;
  }
  /// Pieces of the optimizer step, or sums beside the last backward: what is deferred is on its
  /// stream until it ends.
  void step(const PricedRun& run) {
    for (const Priced& piece : run) {
      if (piece.issue == Issue::kDeferred) {
        Picoseconds& free = free_[piece.stream];
        after_ = std::max({ready_, free, after_}) + piece.time;
        free = after_;
      } else {
        in_front(piece);
      }
    }
  }
  void sums(const PricedRun& run, Picoseconds from) {
    after_ = from;
    for (const Priced& piece : run) {
      Picoseconds& free = free_[piece.stream];
      after_ = std::max(after_, free) + piece.time;
      free = after_;
    }
    after_ = Picoseconds(0);
  }

  /// All that the pass waits for.
  Picoseconds end() {
    ready_ = std::max(ready_, late_);
    late_ = Picoseconds(0);
    return ready_;
  }
  Picoseconds reached() const { return ready_; }
  /// All that runs.
  Picoseconds all() { return std::max(end(), *std::max_element(free_.begin(), free_.end())); }
  void wait_until(Picoseconds when) { ready_ = std::max(ready_, when); }

 private:
  void pass_piece(const Priced& piece) {
    const bool background = piece.issue == Issue::kPrefetched || piece.issue == Issue::kDeferred;
    if (background && background_ == Background::kFree) return;
    if (background && background_ == Background::kOverlapped)
      behind_[piece.stream] += piece.time;
    else
      in_front(piece);
  }

  void in_front(const Priced& piece) {
    after_ = Picoseconds(0);
    Picoseconds begin = ready_;
    if (piece.issue) begin = std::max(begin, free_[piece.stream]);
    const Picoseconds end = begin + piece.time;
    if (piece.issue) free_[piece.stream] = end;
    if (piece.issue == Issue::kOverlapNext) {
      ready_ = std::max(ready_, late_);
      late_ = end;
    } else {
      ready_ = std::max(end, late_);
      late_ = Picoseconds(0);
    }
  }

  Picoseconds ready_, late_{0}, after_{0};
  std::array<Picoseconds, kStreams> free_ = make(), behind_ = make();
  double loss_;
  Background background_;

  static constexpr std::array<Picoseconds, kStreams> make() {
    return {Picoseconds(0), Picoseconds(0), Picoseconds(0),
            Picoseconds(0), Picoseconds(0), Picoseconds(0)};
  }
};

class Evaluation {
 public:
  Evaluation(const Layout& layout, const StepPrices& prices, const StepOptions& options)
      : layout_(layout), prices_(prices), options_(options) {}

  Result<StepTime> run() {
    const Result<std::vector<Crossing>> crossings = strategies::crossings_of(layout_);
    if (!crossings) return forward(crossings);
    if (Status ok = find_kinds(); !ok) return forward(ok);
    chain_ = strategies::chain_of(layout_);
    for (const Stage& stage : layout_.stages) split_of_.push_back(strategies::split_of(stage));
    for (const ChunkPlace& place : chain_)
      if (Status ok = price(place); !ok) return forward(ok);
    if (Status ok = price(*crossings); !ok) return forward(ok);
    const Result<OrderTimes> times = order_times(layout_, chain_, costs_);
    if (!times) return forward(times);
    return finish(*times);
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
    std::vector<PricedLayer>& layers = layers_.emplace_back();
    for (const Layer& layer : stage.chunks[place.chunk].layers) {
      PricedLayer priced{.count = layer.count, .passes = {}, .deferred = {}, .rest = {}};
      for (std::size_t pass = 0; pass < strategies::kPasses; ++pass) {
        const LayerRun run =
            strategies::layer_run(layer, static_cast<Pass>(pass), split, price_of(stage).op,
                                  options_.job.host_per_kernel);
        if (Status ok = price(run, stage, priced.passes[pass]); !ok) return forward(ok);
      }
      const LayerStep step =
          strategies::layer_step(layer, price_of(stage).op, options_.job.host_per_kernel);
      if (Status ok = price(step.deferred, stage, priced.deferred); !ok) return forward(ok);
      if (Status ok = price(step.rest, stage, priced.rest); !ok) return forward(ok);
      layers.push_back(std::move(priced));
    }
    std::array<Picoseconds, strategies::kPasses>& passes = costs_.passes.emplace_back(
        std::array{Picoseconds(0), Picoseconds(0), Picoseconds(0), Picoseconds(0)});
    for (std::size_t pass = 0; pass < strategies::kPasses; ++pass) {
      Clock clock(Picoseconds(0), options_.overlap_loss, options_.background);
      through(layers, static_cast<Pass>(pass), clock, [](const PricedLayer&) {});
      passes[pass] = clock.end();
    }
    return {};
  }

  /// Layer by layer, backward from the last one; `each` after every layer.
  template <class Each>
  static void through(const std::vector<PricedLayer>& layers, Pass pass, Clock& clock, Each each) {
    const auto run = [&](const PricedLayer& layer) {
      for (std::uint32_t i = 0; i < layer.count; ++i) {
        clock.layer(layer.passes[static_cast<std::size_t>(pass)]);
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
        const std::optional<ByteRate>& rate = price_of(stage).host_rate;
        if (!rate)
          return fail(fmt::format("'{}' copies between device and host", op.name),
                      "the rate of the link to the host");
        priced.push_back({Picoseconds::from(op.bytes / *rate), op.issue,
                          static_cast<std::uint8_t>(strategies::kGroupKinds)});
        continue;
      }
      if (strategies::is_with_servers(layout_, op)) {
        const Result<Seconds> time = with_servers(op, stage);
        if (!time) return forward(time);
        priced.push_back({Picoseconds::from(*time), op.issue,
                          static_cast<std::uint8_t>(strategies::GroupKind::kData)});
        continue;
      }
      if (workload::group_size(op, stage.degrees) < 2) continue;
      const Result<Seconds> time = prices_.collective(op, stage);
      if (!time) return forward(time);
      priced.push_back({Picoseconds::from(*time), op.issue,
                        static_cast<std::uint8_t>(strategies::group_kind(op))});
    }
    return {};
  }

  /// All ranks of the stage send to or get from the servers. A push ends with the update.
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
    // Each has its part of every layer; the slowest counts.
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
        const Result<Seconds> there = prices_.message(from, to, crossing.message),
                              back = prices_.message(to, from, crossing.message);
        if (!there) return forward(there);
        if (!back) return forward(back);
        costs_.transfers[place] = Picoseconds::from(*there);
        costs_.returns[place] = Picoseconds::from(*back);
      }
    return {};
  }

  Result<StepTime> finish(const OrderTimes& times) {
    std::vector<Clock> clocks;
    std::vector<Picoseconds> gradients;  // when a stage has all of its own
    for (std::uint32_t s = 0; s < layout_.stages.size(); ++s) {
      clocks.push_back(sums(s, times));
      gradients.push_back(clocks.back().all());
    }
    std::optional<StepTime> result;
    std::vector<Seconds> computing;
    for (std::uint32_t s = 0; s < layout_.stages.size(); ++s) {
      Clock& clock = clocks[s];
      clock.wait_until(gradients[s]);
      if (const auto other = strategies::tied_with(layout_, s)) {
        const Result<Seconds> time = prices_.message(layout_.stages[*other], layout_.stages[s],
                                                     strategies::tied_message(layout_, s, *other));
        if (!time) return forward(time);
        clock.wait_until(gradients[*other] + Picoseconds::from(*time));
      }
      for (std::size_t place = 0; place < chain_.size(); ++place) {
        if (chain_[place].stage != s) continue;
        for (const PricedLayer& layer : layers_[place])
          for (std::uint32_t i = 0; i < layer.count; ++i) clock.step(layer.rest);
      }
      const Seconds end =
          std::max(clock.end().seconds() + options_.job.fixed, clock.all().seconds());
      const auto [busy, compute] = work_of(s);
      computing.push_back(compute);
      if (result && end <= result->step) continue;
      result = StepTime{end, compute, times.end[s].seconds() - busy, {}};
    }
    result->computing = std::move(computing);
    return std::move(*result);
  }

  /// The clock of a stage when its order has ended and sums beside its last backward run.
  Clock sums(std::uint32_t s, const OrderTimes& times) const {
    const Pass last = split_of_[s].weights ? Pass::kBackwardWeights : Pass::kBackward;
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < chain_.size(); ++place)
      if (chain_[place].stage == s) places.push_back(place);
    std::sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
      return times.last_begin[a] < times.last_begin[b];
    });
    Clock streams(Picoseconds(0), options_.overlap_loss, options_.background);
    for (const std::size_t place : places) {
      const bool sums = std::any_of(layers_[place].begin(), layers_[place].end(),
                                    [](const PricedLayer& l) { return !l.deferred.empty(); });
      if (!sums) continue;
      Clock clock(times.last_begin[place], options_.overlap_loss, options_.background);
      through(layers_[place], last, clock,
              [&](const PricedLayer& layer) { streams.sums(layer.deferred, clock.reached()); });
    }
    streams.wait_until(times.end[s]);
    return streams;
  }

  /// Of a stage in its order: all its passes, and what of them and of the step computes.
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
        if (pass == static_cast<std::size_t>(Pass::kBackwardWeights) && !split.weights) continue;
        if (pass == static_cast<std::size_t>(Pass::kRecompute) && !split.recompute) continue;
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

  const Layout& layout_;
  const StepPrices& prices_;
  const StepOptions& options_;
  std::vector<const strategies::KindPrice*> price_of_;  // by stage
  std::vector<ChunkPlace> chain_;
  std::vector<Split> split_of_;                   // by stage: it looks through a whole order
  std::vector<std::vector<PricedLayer>> layers_;  // by place in the chain
  OrderCosts costs_;
};

}  // namespace

Result<StepTime> closed_step(const Layout& layout, const StepPrices& prices,
                             const StepOptions& options) {
  return Evaluation(layout, prices, options).run();
}

}  // namespace rehearse::step
