#include "strategies/step/plan_bound.h"

#include <algorithm>

#include "strategies/check_plan.h"
#include "strategies/lay_out.h"
#include "strategies/layer_split.h"
#include "strategies/layout_transform.h"
#include "strategies/offload.h"

namespace rehearse::step {

using strategies::LayerPart;
using strategies::Parameters;
using strategies::ParameterTraffic;
using strategies::Plan;
using strategies::Split;
using strategies::Synchronization;
using strategies::Training;
using workload::Layer;
using workload::Op;
using workload::Pass;
using workload::Stage;

namespace {

/// Pieces of a layout are rounded to picoseconds wherever they are cut.
constexpr double kRounding = 1 - 1e-5;

bool is_waited_for(const Op& op) {
  return op.kind == workload::OpKind::kCollective && op.issue == workload::Issue::kInline;
}

std::size_t index(Pass pass) { return static_cast<std::size_t>(pass); }

}  // namespace

/// A plan while its sums are computed.
class PlanBound::Plans {
 public:
  Plans(PlanBound& bound, const Training& training, const Plan& plan)
      : b_(bound),
        training_(training),
        plan_(plan),
        m_(strategies::microbatches_of(training, plan)),
        shared_(plan.synchronization == Synchronization::kAllReduce),
        settings_(strategies::settings_of(training, plan)),
        moves_(strategies::traffic_of(training, plan, plan.pipeline, m_)),
        chunks_(bound.chunks_of(plan)) {}

  Result<PlanCost> run() {
    const std::uint32_t p = plan_.pipeline;
    places_.resize(chunks_.size());
    PlanCost cost{Seconds::s(0), Bytes::b(0), std::vector(b_.devices_.size(), Seconds::s(0))};
    std::vector<const OrderProfile*> orders;
    std::vector<double> rest;
    for (std::uint32_t s = 0; s < p; ++s) {
      TRY(enter(s));
      orders.push_back(order_);
      rest.push_back(update());
      const double computing = busy_ * m_ + rest.back();
      const std::uint32_t kind = b_.prices_.kind_of(stage_.first_rank);
      cost.busy[kind] += Seconds::s(computing * stage_.degrees.ranks() * kRounding);
      cost.memory = std::max(cost.memory, memory(kind));
    }
    pace();
    // The time of a microbatch through the places before this one, forward and back.
    std::vector<double> ahead = {0}, behind = {0};
    for (const Place& place : places_) {
      ahead.push_back(ahead.back() + place.passes[index(Pass::kForward)]);
      behind.push_back(behind.back() + place.passes[index(Pass::kBackward)]);
    }
    const double fixed = b_.spec_.conditions.fixed.s();
    double longest = 0;
    for (std::uint32_t s = 0; s < p; ++s) {
      const OrderProfile& order = *orders[s];
      double end = ahead[order.first_chunk * p + s];
      Streams sums = {}, gathers = {};
      for (std::uint32_t c = 0; c * p < places_.size(); ++c) {
        const Place& place = places_[c * p + s];
        end += m_ * place.busy();
        for (std::size_t k = 0; k < kStreams; ++k) {
          sums[k] += place.sums.sum[k];
          gathers[k] += place.sums.gather[k];
        }
      }
      const std::uint32_t last = order.last_chunk * p + s;
      const double tail =
          behind[last] - order.weights_after * places_[last].passes[index(Pass::kBackwardWeights)];
      // Sums begin with the last pass of their chunk; the optimizer waits for all of them.
      const LayerSums& own = places_[order.last_through.chunk * p + s].sums;
      const double ready = std::max({end, end - work_of(order.first_through, s) + longest_of(sums),
                                     end - work_of(order.last_through, s) + longest_of(own.sum)});
      longest = std::max({longest, ready + rest[s] + fixed, end + tail + rest[0] + fixed,
                          ready + longest_of(gathers)});
    }
    cost.step = Seconds::s(longest * kRounding);
    return cost;
  }

 private:
  static double longest_of(const Streams& streams) {
    return *std::max_element(streams.begin(), streams.end());
  }

  /// In a pipeline each pass takes as long as its host or its device; alone, all passes of a stage
  /// together do.
  void pace() {
    double device = 0, host = 0;
    for (const Place& place : places_)
      for (std::size_t pass = 0; pass < strategies::kPasses; ++pass) {
        device += place.passes[pass];
        host += place.host[pass];
      }
    for (Place& place : places_)
      for (std::size_t pass = 0; pass < strategies::kPasses; ++pass)
        if (plan_.pipeline > 1 ? place.host[pass] > place.passes[pass] : host > device)
          place.passes[pass] = place.host[pass];
  }

  /// The remaining work of a stage's order.
  double work_of(const OrderProfile::Rest& rest, std::uint32_t s) const {
    double sum = 0;
    for (std::uint32_t c = 0; c < rest.passes.size(); ++c)
      for (std::size_t pass = 0; pass < strategies::kPasses; ++pass)
        sum += rest.passes[c][pass] * places_[c * plan_.pipeline + s].passes[pass];
    return sum;
  }

  /// Times and facts of a stage.
  Status enter(std::uint32_t s) {
    const std::uint32_t p = plan_.pipeline;
    const strategies::RankSetting& setting = settings_[s];
    stage_.degrees = setting.degrees;
    stage_.together = setting.together;
    stage_.first_rank = setting.first_rank;
    Rank& rank = *TRY(b_.rank_of(setting));
    rank_ = &rank;
    const std::uint32_t v = static_cast<std::uint32_t>(chunks_.size()) / p;
    own_.clear();
    bool recomputes = false;
    for (std::uint32_t c = 0; c < v; ++c) {
      own_.push_back(&chunks_[c * p + s]);
      for (const LayerPart& part : *own_.back()) recomputes |= rank_->layers[part.layer].recomputes;
    }
    order_ = &b_.orders_.of(plan_.schedule, {.stages = p, .microbatches = m_, .chunks = v}, s,
                            recomputes);
    const auto times = TRY(b_.times_of(
        *rank_, stage_, {.weights = order_->splits_weights, .recompute = order_->splits_recompute},
        p > 1));
    const auto sums = TRY(b_.sums_of(*rank_, stage_, moves_, plan_));
    const bool gathers_after = moves_.when != ParameterTraffic::When::kLayerByLayer;
    const bool sums_after = moves_.when == ParameterTraffic::When::kAfterPasses;
    busy_ = present_ = 0;
    for (std::uint32_t c = 0; c < v; ++c) {
      Place& place = places_[c * p + s];
      for (const LayerPart& part : *own_[c]) {
        const LayerTimes& t = (*times)[part.layer];
        const LayerSums& own = (*sums)[part.layer];
        const LayerFacts& facts = rank_->layers[part.layer];
        const strategies::HostCopies copies = copies_of(facts);
        present_ = std::max(present_, copies.present);
        for (std::size_t pass = 0; pass < strategies::kPasses; ++pass) {
          const Streams streams = alongside(static_cast<Pass>(pass), facts, own, copies);
          // As closed_step treats communication alongside a layer, and its host.
          double device = t.all[pass], background = longest_of(streams);
          if (plan_.overlap_gradients)
            device = std::max(device, background) +
                     b_.spec_.conditions.overlap_penalty * std::min(device, background);
          else
            device += streams[kCopies];
          place.passes[pass] += part.count * device;
          place.host[pass] += part.count * t.host[pass];
          busy_ += part.count * t.computing[pass];
        }
        for (std::size_t k = 0; k < kCopies; ++k) {
          if (sums_after) place.sums.sum[k] += part.count * own.sum[k];
          if (gathers_after) place.sums.gather[k] += part.count * own.gather[k];
        }
        if (facts.updates && plan_.overlap_gradients) {
          place.sums.sum[kCopies] += part.count * copied(copies.gradients);
          place.sums.gather[kCopies] += part.count * copied(copies.weights);
        }
      }
    }
    return {};
  }

  strategies::HostCopies copies_of(const LayerFacts& facts) const {
    if (!plan_.tiers.any()) return {};
    return strategies::host_copies(training_, plan_, facts.parameters, facts.saved, stage_.degrees,
                                   m_);
  }
  double copied(const strategies::Moved& moved) const {
    const strategies::KindPrice& price = b_.prices_.of_kind(b_.prices_.kind_of(stage_.first_rank));
    if (!price.host_rate) return 0;
    const double time = moved.bytes / price.host_rate->bytes_per_s();
    return price.nvme_rate ? std::max(time, moved.nvme / price.nvme_rate->bytes_per_s()) : time;
  }

  /// The communication alongside a pass of a layer.
  Streams alongside(Pass pass, const LayerFacts& facts, const LayerSums& own,
                    const strategies::HostCopies& copies) const {
    const bool by_layer =
        moves_.when == ParameterTraffic::When::kLayerByLayer && !order_->splits_recompute;
    const bool by_pass = moves_.when == ParameterTraffic::When::kEachBackward;
    const bool apart = order_->splits_recompute && facts.recomputes;
    Streams streams = {};
    for (std::size_t k = 0; k < kCopies; ++k) {
      if (by_layer && pass == Pass::kForward) streams[k] = own.gather[k];
      if (by_layer && pass == Pass::kBackward)
        streams[k] = own.sum[k] + (facts.has_backward ? own.gather[k] : 0);
      if (by_pass && pass == Pass::kBackward) streams[k] = own.sum[k];
    }
    double& copying = streams[kCopies];
    copying = 0;
    if (pass == Pass::kForward) copying += copied(copies.forward);
    if (pass == Pass::kBackward) copying += copied(copies.backward);
    if (pass == (apart ? Pass::kRecompute : Pass::kBackward)) copying += copied(copies.again);
    return streams;
  }

  /// The optimizer, layer by layer.
  double update() const {
    if (!shared_) return 0;
    const double bytes = strategies::update_bytes(training_, plan_);
    const strategies::Price& price = b_.prices_.of_kind(b_.prices_.kind_of(stage_.first_rank)).op;
    double sum = 0;
    for (const auto* chunk : own_)
      for (const LayerPart& part : *chunk) {
        const LayerFacts& facts = rank_->layers[part.layer];
        const double held = strategies::updated(plan_, facts.parameters, stage_.degrees);
        if (!facts.updates || held == 0) continue;
        Op op = strategies::traffic(strategies::kUpdateName, held * bytes);
        const double on_host = plan_.tiers.optimizer.away();
        if (on_host < 1) sum += part.count * (1 - on_host) * price(op).s();
        op.host = true;
        if (on_host > 0) sum += part.count * on_host * price(op).s();
      }
    return sum;
  }

  Bytes memory(std::uint32_t kind) const {
    Parameters held;
    for (const auto* chunk : own_)
      for (const LayerPart& part : *chunk) {
        held.add(rank_->layers[part.layer].parameters, part.count);
      }
    const workload::StateBytes each = strategies::states_of(training_, plan_, held, stage_.degrees);
    const double all = held.all();
    const double gradients = shared_ ? each.gradient * all : 0;
    const double update = shared_ ? each.update.value_or(each.gradient) * all : 0;
    double states = each.weights * all + gradients;
    if (shared_) states += each.optimizer * all;
    // Weights gathered once a step, and gradients whole.
    const double gathered = shards() && plan_.pipeline > 1
                                ? stored() * held.read().summed() + summed() * held.summed()
                                : 0;
    const memory::Device& device = b_.devices_[kind];
    const double most =
        device.workspaces.b() + states + std::max(update, gathered + 2 * present_ + activations());
    const Bytes context = memory::context_of(
        device,
        memory::communicators_of(strategies::ranks_of(plan_), stage_.degrees, plan_.pipeline));
    // As on the smallest device.
    return (Bytes::b(most * memory::Assumptions{}.reserve) + context) *
           (b_.least_usable() / device.usable) * kRounding;
  }

  bool shards() const { return plan_.zero == 3 && stage_.degrees.sharers(false) > 1; }
  /// Bytes of a whole parameter, and of its whole gradient.
  double stored() const { return strategies::stored_bytes(training_.dtype); }
  double summed() const { return strategies::summed_bytes(training_, plan_); }
  /// What the backward of a layer needs in addition to activations.
  double beside_activations(const LayerFacts& facts) const {
    // It falls with the saved activations that are on the host.
    const double transient = (1 - plan_.tiers.activations.away()) * facts.transient;
    if (!shards() || plan_.gather_weights == strategies::GatherWeights::kByTensor) return transient;
    const double weights = plan_.pipeline > 1 ? 0 : stored();
    return transient + weights * facts.parameters.read().summed() +
           (stored() + summed()) * facts.parameters.summed();
  }

  /// At the fullest moment, with what backward needs.
  double activations() const {
    std::vector<double> kept;
    double most = 0;
    for (const auto* chunk : own_) {
      kept.push_back(0);
      for (const LayerPart& part : *chunk) {
        const LayerFacts& facts = rank_->layers[part.layer];
        kept.back() += part.count * (1 - plan_.tiers.activations.away()) * facts.kept;
        most = std::max(most, beside_activations(facts));
      }
    }
    for (const OrderProfile::Moment& moment : order_->fullest) {
      double sum = 0;
      for (std::size_t c = 0; c < kept.size(); ++c) sum += moment.held[c] * kept[c];
      // The last layer of a chunk is the first in backward, while all others are still kept.
      if (moment.backward && !own_[moment.chunk]->empty())
        sum += beside_activations(rank_->layers[own_[moment.chunk]->back().layer]);
      most = std::max(most, sum);
    }
    return most;
  }

  PlanBound& b_;
  const Training& training_;
  const Plan& plan_;
  const std::uint32_t m_;
  const bool shared_;
  const std::vector<strategies::RankSetting> settings_;  // by stage
  const ParameterTraffic moves_;
  const std::vector<std::vector<LayerPart>>& chunks_;
  std::vector<Place> places_ = {};
  // For the current stage.
  Stage stage_{.first_rank = 0};
  Rank* rank_ = nullptr;
  std::vector<const std::vector<LayerPart>*> own_ = {};
  const OrderProfile* order_ = nullptr;
  double busy_ = 0;     // computing, of one microbatch through all chunks
  double present_ = 0;  // bytes of the largest layer that is copied from or to the host
};

Bytes PlanBound::least_usable() const {
  Bytes least = devices_.front().usable;
  for (const memory::Device& device : devices_) least = std::min(least, device.usable);
  return least;
}

Result<PlanBound::Rank*> PlanBound::rank_of(const strategies::RankSetting& setting) {
  const RankKey key{
      setting.microbatch,     setting.degrees.tensor,          setting.degrees.context,
      setting.degrees.expert, setting.plan->sequence_parallel, setting.recompute};
  auto known = ranks_.find(key);
  if (known == ranks_.end()) {
    Result<workload::Workload> rewritten = strategies::workload_of_rank(spec_.workload, setting);
    if (!rewritten)
      known = ranks_.emplace(key, forward(rewritten)).first;
    else
      known = ranks_.emplace(key, facts_of(std::move(*rewritten))).first;
  }
  if (!known->second) return forward(known->second);
  return &*known->second;
}

PlanBound::Rank PlanBound::facts_of(workload::Workload workload) {
  Rank rank{std::move(workload)};
  for (const Layer& layer : rank.workload.layers) {
    LayerFacts facts{.parameters = strategies::parameters_of(layer),
                     .kept = memory::surely_saved(layer).b(),
                     .updates = layer.step.empty(),
                     .recomputes = !layer.recompute.empty(),
                     .has_backward = !layer.backward.empty()};
    facts.saved = layer.saved_bytes().b();
    facts.transient = memory::backward_transient(layer).b();
    rank.layers.push_back(facts);
    for (const std::vector<Op>* ops : {&layer.forward, &layer.backward, &layer.recompute})
      for (const Op& op : *ops)
        if (is_waited_for(op) &&
            std::none_of(rank.collectives.begin(), rank.collectives.end(), [&](const Op& other) {
              return other.collective == op.collective &&
                     strategies::group_kind(other) == strategies::group_kind(op);
            }))
          rank.collectives.push_back(op);
  }
  return rank;
}

Result<const std::vector<PlanBound::LayerTimes>*> PlanBound::times_of(Rank& rank,
                                                                      const Stage& stage,
                                                                      Split split, bool pipelined) {
  const unsigned splits = pipelined * 4U + split.weights * 2U + split.recompute;
  const std::uint32_t kind = prices_.kind_of(stage.first_rank);
  const auto place = std::tuple(kind, collectives_.place_of(stage.first_rank), stage.together,
                                stage.degrees.data, splits);
  if (const auto at = rank.at.find(place); at != rank.at.end()) return at->second;
  std::vector<std::uint32_t> likeness = {splits, kind};
  for (const Op& op : rank.collectives) {
    if (workload::group_size(op, stage.degrees) < 2) {
      likeness.push_back(~0U);
      continue;
    }
    likeness.push_back(TRY(collectives_.likeness(op, stage)));
  }
  auto known = rank.times.find(likeness);
  if (known == rank.times.end()) {
    std::vector<LayerTimes> times = TRY(priced(rank, stage, split, pipelined));
    known = rank.times.emplace(std::move(likeness), std::move(times)).first;
  }
  rank.at.emplace(place, &known->second);
  return &known->second;
}

Result<const std::vector<PlanBound::LayerSums>*> PlanBound::sums_of(Rank& rank, const Stage& stage,
                                                                    const ParameterTraffic& moves,
                                                                    const Plan& plan) {
  const auto key = std::tuple(collectives_.place_of(stage.first_rank), stage.together,
                              stage.degrees.data, plan.zero);
  const auto known = rank.sums.find(key);
  if (known != rank.sums.end()) return &known->second;
  std::vector<LayerSums> sums(rank.layers.size());
  const bool by_layer = plan.synchronization == Synchronization::kAllReduce &&
                        plan.overlap_gradients &&
                        plan.gather_weights == strategies::GatherWeights::kByLayer;
  for (std::size_t l = 0; by_layer && l < sums.size(); ++l) {
    const Parameters& parameters = rank.layers[l].parameters;
    // Embedding and head may share a matrix.
    if (spec_.workload.tied_embedding && l + 1 == sums.size()) continue;
    if (plan.zero < 3 && parameters.summed() * moves.gradient < plan.bucket.b()) continue;
    const auto price = [&](CollectiveKind kind, const Parameters& moved, double bytes,
                           Streams& to) -> Status {
      std::vector<Op> ops;
      strategies::add_collectives(ops, "", kind, moved, bytes, stage.degrees,
                                  workload::Issue::kDeferred);
      for (const Op& op : ops) {
        const Estimate<Seconds> time = TRY(collectives_.of(op, stage));
        to[op.expert] = time.value.s();
      }
      return {};
    };
    TRY(price(moves.sum, parameters, moves.gradient, sums[l].sum));
    if (moves.weights == 0) continue;
    TRY(price(CollectiveKind::kAllGather, plan.zero == 3 ? parameters.read() : parameters,
              moves.weights, sums[l].gather));
  }
  return &rank.sums.emplace(key, std::move(sums)).first->second;
}

Result<std::vector<PlanBound::LayerTimes>> PlanBound::priced(const Rank& rank, const Stage& stage,
                                                             Split split, bool pipelined) {
  const strategies::HostTimes host =
      strategies::host_times(job_options(spec_.conditions), stage.degrees, pipelined ? 2 : 1);
  const strategies::Price& price = prices_.of_kind(prices_.kind_of(stage.first_rank)).op;
  std::vector<LayerTimes> all;
  for (const Layer& layer : rank.workload.layers) {
    LayerTimes& times = all.emplace_back();
    for (std::size_t pass = 0; pass < strategies::kPasses; ++pass) {
      if (pass == index(Pass::kBackwardWeights) && !split.weights) continue;
      if (pass == index(Pass::kRecompute) && !split.recompute) continue;
      const strategies::LayerRun run =
          TRY(strategies::layer_run(layer, static_cast<Pass>(pass), split, price, host));
      times.host[pass] = run.host.seconds().s();
      for (const strategies::LayerPiece& piece : run.pieces) {
        if (piece.communication == nullptr) {
          times.computing[pass] += piece.time.seconds().s();
        } else if (is_waited_for(*piece.communication)) {
          const Estimate<Seconds> time = TRY(collectives_.of(*piece.communication, stage));
          times.all[pass] += time.value.s();
        }
      }
      times.all[pass] += times.computing[pass];
    }
  }
  return all;
}

const std::vector<std::vector<LayerPart>>& PlanBound::chunks_of(const Plan& plan) {
  const auto key = std::pair(plan.pipeline, plan.interleave);
  auto known = chunks_.find(key);
  if (known == chunks_.end())
    known = chunks_.emplace(key, strategies::parts_of_chunks(spec_.workload, plan)).first;
  return known->second;
}

Result<PlanCost> PlanBound::of(const Training& training, const Plan& plan) {
  return Plans(*this, training, plan).run();
}

}  // namespace rehearse::step
