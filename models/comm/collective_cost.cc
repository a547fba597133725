#include "models/comm/collective_cost.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "models/comm/collective_forms.h"
#include "models/comm/reach.h"
#include "sim/base/check.h"

namespace rehearse::comm {
namespace {

// The widening of intervals outside the measurements. It was observed on rows that were left out of
// the fit: a number of ranks between measured ones costs little, doubling it about half as much
// again (docs/accuracy.md, "Carried over"). The other values are judgement, on the wide side.
constexpr double kUnseenRanks = 1.1;  // between measured numbers
constexpr double kOddRanks = 2;       // odd ones below 1 MiB take other algorithms
constexpr double kBeyondPairs = 2.2;  // the same for all_to_all
constexpr double kUnseenRings = 1.2;  // on the hybrid cube mesh
constexpr double kBeyondSizes = 1.5;  // outside the measured sizes
// A pair has one to three bridges: 1 GiB on two H100 went at 115 GB/s where 64 MiB went at 199 on
// another host. Judgement.
constexpr double kOtherBridges = 1;
constexpr double kUnseenKind = 2.5;  // broadcast, reduce: steps and wire bytes unverified
constexpr double kUnseenHalf = 1.5;  // all_gather from all_reduce: 12 % on four A100 with bridges
constexpr double kUnseenAlgorithm = 2;  // forced, never seen to win on one node

/// The factor within which the cost of a message on a NIC is known. Three reports of up to 128 ranks
/// differ by a factor of two; thousands of ranks are slower by more. Judgement.
constexpr double kMessageCostWidth = 3;

/// Measured ÷ predicted between clusters with networks of one kind. For InfiniBand and RoCE by the
/// rule of docs/concepts/intervals.md, from 7 to 14 clusters of A100 to B200 on up to eight nodes. EFA
/// has too few: on p4d.24xlarge with an early plug-in collectives took up to three times as long.
/// Elsewhere the rate has the range of Reach::width, and the start-up at least a factor of two.
Spread spread_over(const Network& network, std::size_t band) {
  constexpr Spreads kNics = {{{0.65, 2.25}, {0.54, 2.96}, {0.65, 2.54}, {0.77, 1.38}}};
  constexpr Spreads kEfa = {{{0.5, 3}, {0.5, 3}, {0.5, 3}, {0.55, 2.4}}};
  switch (network.kind) {
    case NetworkKind::kInfiniband:
    case NetworkKind::kRoce: return kNics[band];
    case NetworkKind::kEfa: return kEfa[band];
    default: break;
  }
  const double width = 1 + reach_of(network).width;
  const double both = band < 2 ? std::max(2.0, width) : width + (band == 2 ? 0.3 : 0.1);
  return {1 / both, both};
}

template <class T>
bool contains(const std::vector<T>& values, T value) {
  return std::ranges::find(values, value) != values.end();
}

/// The curve of that many ranks. The two halves of an all_reduce, if they were not measured, have its
/// rate on the wire and half of its start-up. Through the host, others lie on the power law through the two
/// nearest; the interval holds the rate of both.
std::optional<Curve> curve_of(const Calibration& c, CollectiveKind kind, std::uint32_t ranks) {
  const bool half = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
  if (half && std::ranges::find(c.curves, kind, &Curve::kind) == c.curves.end()) {
    std::optional<Curve> whole = curve_of(c, CollectiveKind::kAllReduce, ranks);
    if (!whole) return whole;
    for (LowLatency* piece : {&whole->below, &whole->above}) piece->call = piece->call / 2;
    whole->kind = kind;
    return whole;
  }
  const Curve *low = nullptr, *high = nullptr;  // the two nearest, in order
  for (const Curve& curve : c.curves) {
    if (curve.kind != kind) continue;
    if (curve.ranks == ranks) return curve;
    if (high && high->ranks > ranks) continue;
    low = std::exchange(high, &curve);
  }
  if (c.fabric != Fabric::kHostStaged || !low || ranks < low->ranks) return std::nullopt;
  const double at = std::log2(1.0 * ranks / low->ranks) / std::log2(1.0 * high->ranks / low->ranks);
  const auto between = [&](double a, double b) { return a * std::pow(b / a, at); };
  Curve curve = *high;
  curve.ranks = ranks;
  // Beyond the measured numbers both pieces slow down as large messages do.
  for (LowLatency Curve::*piece : {&Curve::below, &Curve::above}) {
    const double slower =
        at > 1 ? high->above.rate / low->above.rate : (high->*piece).rate / (low->*piece).rate;
    (curve.*piece).rate = (high->*piece).rate * std::pow(slower, at - 1);
  }
  const double ratio = low->above.rate / high->above.rate,
               both = std::pow(std::max(ratio, 1 / ratio), std::max(0.5, at - 0.5));
  curve.spread = {between(low->spread.low, high->spread.low) / both,
                  between(low->spread.high, high->spread.high) * both};
  return curve;
}

tl::unexpected<Error> refuse(const Calibrated& c, const std::string& what) {
  return fail(fmt::format("{}: {}", c.calibration.device, what),
              "measure it: nccl-tests, then 'rehearse calibrate nccl LOG -o FILE' and "
              "--calibration FILE");
}

}  // namespace

NcclSetup nccl_setup(const Calibration& calibration, const Group& group) {
  const RingGraph ring =
      calibration.links > 0
          ? search_ring(calibration.generation, calibration.links,
                        nvlink_rate(calibration.generation))
          : RingGraph{12e9, 1};  // PCIe 3 as NCCL counts it; only Simple against LL depends on it
  NcclSetup setup{.generation = calibration.generation,
                  .nvlink = calibration.links > 0,
                  .graph_rate = ring.rate,
                  .channels = ring.channels,
                  .ranks = group.ranks,
                  .nodes = group.nodes};
  if (group.network) {
    setup.network_rate = group.network->node_rate.bytes_per_s();
    setup.network_latency = (group.network->latency + reach_of(*group.network).step).s();
    setup.tree_rate = tree_limit(calibration.generation, group.nodes).bytes_per_s();
  }
  // In a tree a node has less of the work on its own, and it pays from larger buffers on.
  if (calibration.switched && calibration.switched->nvls &&
      group.ranks >= group.nodes * calibration.switched->nvls->ranks)
    setup.nvls_from = calibration.switched->nvls->from.b() * group.nodes;
  return setup;
}

double CollectiveCost::Form::at(double bytes) const {
  double moving = bytes * per_byte;
  if (per_root > 0)
    moving += per_root * (bytes < largest ? std::sqrt(bytes) : bytes / std::sqrt(largest));
  const double waiting = waits > 0 ? waits * bytes / (bytes + half) : 0;
  if (q != 1) return waiting + std::pow(std::pow(fixed, q) + std::pow(moving, q), 1 / q);
  double time = waiting + fixed + moving;
  // LL's latency grows between 4 and 32 KiB.
  if (ramp > 0) time += ramp * std::clamp(std::log2(std::max(bytes, 1.0) / 4096) / 3, 0.0, 1.0);
  return time;
}

void CollectiveCost::widen(double factor) {
  for (double& w : widths_) w *= factor;
}

void CollectiveCost::spread(std::size_t band, const Spread& by) {
  Spread& all = spreads_[band];
  all.low = std::exp(-std::hypot(std::log(all.low), std::log(by.low)));
  all.high = std::exp(std::hypot(std::log(all.high), std::log(by.high)));
}

Result<CollectiveCost> CollectiveCost::of_levels(const Calibrated& calibrated, const Group& group,
                                                 Algorithm algorithm) {
  const std::uint32_t local = group.ranks / group.nodes;
  Group within{.kind = group.kind, .ranks = local, .local_scale = group.local_scale},
      between = group;
  between.ranks = group.nodes;
  if (between.network) {
    between.network->node_rate = between.network->node_rate / local;
    between.network->nics = between.network->nics / local;
    between.network->part = between.network->part / local;
  }
  CollectiveCost cost;
  cost.algorithm_ = algorithm;
  const auto add = [&](CollectiveKind kind, bool across, double share) -> Status {
    Group part = across ? between : within;
    part.kind = kind;
    if (part.ranks < 2) return {};
    CollectiveCost one = TRY(resolve(calibrated, part));
    cost.channels_ = one.channels_;
    cost.steps_.push_back({std::make_shared<CollectiveCost>(std::move(one)), share, across});
    return {};
  };
  using Kind = CollectiveKind;
  const bool pairs = group.kind == Kind::kAllToAll;
  for (const Status& ok : {add(pairs ? Kind::kAllToAll : Kind::kReduceScatter, false, 1),
                           add(group.kind, true, pairs ? 1 : 1.0 / local),
                           pairs ? Status() : add(Kind::kAllGather, false, 1)})
    TRY(ok);
  return cost;
}

Result<CollectiveCost> CollectiveCost::resolve(const Calibrated& calibrated, const Group& group,
                                               const NcclOverrides& overrides) {
  const Calibration& c = calibrated.calibration;
  if (group.ranks < 1 || group.nodes < 1 || group.ranks % group.nodes != 0)
    return fail(fmt::format("{} ranks cannot be distributed evenly over {} nodes", group.ranks,
                            group.nodes),
                "a multiple of the number of nodes");
  if (group.nodes > 1 && !group.network)
    return fail(fmt::format("{} nodes need a network between them", group.nodes));
  const bool two_dimensional =
      overrides.algorithm == Algorithm::kTwoDimensional && group.kind == CollectiveKind::kAllToAll;
  const bool hierarchical =
      overrides.algorithm == Algorithm::kHierarchical && group.kind == CollectiveKind::kAllReduce;
  if ((two_dimensional || hierarchical) && !overrides.protocol)
    return of_levels(calibrated, group, *overrides.algorithm);
  CollectiveCost cost;
  cost.provenance_ = calibrated.provenance;
  cost.from_ = c.fitted.envelope.from.b();
  cost.to_ = c.fitted.envelope.to.b();
  if (group.nodes == 1) {
    cost.scale_ = group.local_scale;
    cost.spreads_ = calibrated.machines;
  }
  if (group.ranks == 1) return cost;
  const auto extrapolate = [&](double factor) {
    cost.provenance_ = std::max(cost.provenance_, Provenance::kExtrapolated);
    cost.widen(factor);
  };
  const auto extrapolate_over = [&](const Network& network) {
    extrapolate(1);
    for (std::size_t b = 0; b < kBands; ++b) cost.spread(b, spread_over(network, b));
  };
  const bool pairs = group.kind == CollectiveKind::kAllToAll;
  const bool message = group.kind == CollectiveKind::kSendRecv;
  cost.widths_ = pairs ? c.pairwise_widths : message ? c.send_recv_widths : c.ring_widths;
  if (group.kind == CollectiveKind::kBarrier) cost.fixed_bytes_ = 4;  // an all-reduce of one number
  const NcclSetup setup = nccl_setup(c, group);
  cost.channels_ = static_cast<std::uint32_t>(setup.channels);

  const bool linear = pairs && overrides.algorithm == Algorithm::kLinear;
  if ((pairs || message) && ((overrides.algorithm && !linear) || overrides.protocol))
    return fail(fmt::format("{} does not support a choice of algorithm and protocol",
                            to_string(group.kind)));
  if (message) {
    if (group.ranks != 2) return fail("send_recv is between 2 ranks");
    if (!c.send_recv) return refuse(calibrated, "send_recv was not measured");
    cost.set_curve(*c.send_recv, 2);  // V is S: k (n - 1) / n is 1
    cost.algorithm_ = Algorithm::kPairwise;
    for (Form& form : cost.forms_) {
      if (group.nodes == 1) break;
      form.fixed += message_step(*group.network, 2).s();
      form.waits = reach_of(*group.network).step.s();
      form.half = kHalfWait.b();
      form.per_byte = std::max(form.per_byte, inverse(message_rate(*group.network)));
      form.wire = form.per_byte;
    }
    if (!contains(c.fitted.envelope.kinds, CollectiveKind::kSendRecv)) extrapolate(1);
  } else if (c.switched && pairs) {
    if (!c.switched->pairwise) return refuse(calibrated, "no all_to_all was measured");
    cost.set_pairwise(*c.switched->pairwise, group);
    if (linear) cost.algorithm_ = Algorithm::kLinear;
  } else if (c.switched) {
    cost.set_switched(*c.switched, group, setup, overrides);
    if (!cost.tuning_->choose(1e9))
      return fail(fmt::format(
          "{} on {} ranks of {} does not support this combination of algorithm and protocol",
          to_string(group.kind), group.ranks, c.device));
    if (overrides.algorithm && *overrides.algorithm != Algorithm::kRing &&
        *overrides.algorithm != Algorithm::kNvls && *overrides.algorithm != Algorithm::kNvlsTree &&
        *overrides.algorithm != Algorithm::kTree && *overrides.algorithm != Algorithm::kPat)
      return refuse(calibrated,
                    fmt::format("{} was not measured", to_string(*overrides.algorithm)));
    if (is_rooted(group.kind)) extrapolate(kUnseenKind);
    if (overrides.algorithm && *overrides.algorithm == Algorithm::kTree)
      extrapolate(kUnseenAlgorithm);
  } else if (c.cube_mesh) {
    const std::uint32_t local = group.ranks / group.nodes;
    if (local > 8) return fail(fmt::format("{}: {} ranks on a node of 8 devices", c.device, local));
    if (group.nodes > 1 && (pairs || group.network->kind == NetworkKind::kTcp))
      return refuse(
          calibrated,
          "several nodes of the hybrid cube mesh were not measured with all_to_all or TCP");
    if (pairs || is_rooted(group.kind)) extrapolate(kUnseenKind);
    const std::uint32_t rings = local > 1 ? cube_mesh_rings(local) : 1;
    if (rings == 0) {
      extrapolate(1);
      cost.widths_.fill(1.5);
    }
    cost.set_cube_mesh(*c.cube_mesh, group, rings);
  } else {
    const CollectiveKind kind =
        group.kind == CollectiveKind::kBarrier ? CollectiveKind::kAllReduce : group.kind;
    const std::uint32_t local = group.ranks / group.nodes;
    std::optional<Curve> found;
    if (group.nodes == 1 || (c.fabric == Fabric::kHostStaged && local > 1))
      found = curve_of(c, kind, local);
    if (!found)
      return refuse(
          calibrated,
          fmt::format(
              "{} on {} ranks{} was not measured, and times {} cannot be derived from other "
              "numbers of ranks",
              to_string(group.kind), group.ranks, group.nodes > 1 ? " of several nodes" : "",
              c.fabric == Fabric::kHostStaged ? "through the host" : "over bridges and PCIe"));
    if (!contains(c.fitted.envelope.ranks, local)) extrapolate(1);
    if (!contains(c.fitted.envelope.kinds, kind)) extrapolate(kUnseenHalf);
    for (std::size_t b = 0; b < kBands; ++b) cost.spread(b, found->spread);
    cost.set_curve(*found, passes_of(group.kind));
    if (group.nodes > 1) {
      // All that leaves a node, or a ring through all ranks, which is as slow as its slowest link.
      const Network& between = *group.network;
      const double n = group.ranks, leaving = pairs ? local * (n - local) / n : 0,
                   around = pairs ? 0 : passes_of(kind) * (n - 1) / n,
                   steps = pairs ? 1 : passes_of(kind) * (group.nodes - 1);
      const double network =
          std::max(leaving * inverse(message_rate(between)), around * inverse(ring_rate(between)));
      for (Form& form : cost.forms_) {
        // A ring takes the steps of every node, one after the other.
        form.fixed = form.fixed * (pairs ? 1 : group.nodes) + steps * message_step(between, 2).s();
        form.waits = steps * reach_of(between).step.s();
        form.half = n * kHalfWait.b();
        form.per_byte *= (n - 1) / n / ((local - 1.0) / local);
        form.per_byte = form.wire = std::max(form.per_byte, network);
      }
      extrapolate_over(between);
    }
    cost.beyond_sizes_ = c.fabric == Fabric::kBridgedPairs ? kOtherBridges : 0;
    return cost;
  }

  const Envelope& seen = c.fitted.envelope;
  const CollectiveKind kind =
      group.kind == CollectiveKind::kBarrier ? CollectiveKind::kAllReduce : group.kind;
  if (!message && !is_rooted(kind) && !contains(seen.kinds, kind)) extrapolate(1.3);
  if (group.nodes > 1) {
    extrapolate_over(*group.network);
    return cost;
  }
  if (message || seen.ranks.empty()) return cost;
  const auto& ranks = seen.ranks;
  if (std::ranges::find(ranks, group.ranks) == ranks.end()) {
    const std::uint32_t most = *std::ranges::max_element(ranks);
    if (group.ranks > most)
      extrapolate(std::pow(pairs ? kBeyondPairs : kBeyondRanks,
                           std::ceil(std::log2(1.0 * group.ranks / most))));
    else
      cost.widen(c.cube_mesh ? kUnseenRings : kUnseenRanks);
    if (group.ranks % 2 == 1)
      for (std::size_t b = 0; b < 2; ++b) cost.widths_[b] *= kOddRanks;
  }
  return cost;
}

CollectiveCost::Answer CollectiveCost::answer(double bytes) const {
  if (fixed_bytes_ >= 0) bytes = fixed_bytes_;
  switch (shape_) {
    case Shape::kNothing: return {0, Algorithm::kRing, Protocol::kSimple};
    case Shape::kChosen: {
      const std::optional<NcclChoice> choice = tuning_->choose(bytes);
      // resolve() ensured that there is one for large sizes; NVLS alone has none for small ones.
      const Algorithm a = choice ? choice->algorithm : Algorithm::kRing;
      const Protocol p = choice ? choice->protocol : Protocol::kSimple;
      const std::size_t form =
          a == Algorithm::kNvls       ? kNvlsForm
          : a == Algorithm::kNvlsTree ? kNvlsTreeForm
          : a == Algorithm::kPat
              ? kPatForm
              : static_cast<std::size_t>(p) + (a == Algorithm::kTree ? kTreeForms : 0);
      return {forms_[form].at(bytes), a, p, &forms_[form]};
    }
    case Shape::kLeast: {
      std::size_t best = 0;
      double least = forms_[0].at(bytes);
      for (std::size_t i = 1; i < pieces_; ++i)
        if (const double time = forms_[i].at(bytes); time < least) {
          least = time;
          best = i;
        }
      const Form& form = forms_[priced_ + best];
      return {priced_ == 0 ? least : form.at(bytes), algorithm_,
              best == 0 && pieces_ > 1 ? Protocol::kLl : Protocol::kSimple, &form};
    }
    case Shape::kKnee: {
      const bool above = bytes >= knee_;
      const Form& form = forms_[above ? 1 : 0];
      return {form.at(bytes), algorithm_, above ? Protocol::kSimple : Protocol::kLl, &form};
    }
  }
  return {0, Algorithm::kRing, Protocol::kSimple};
}

double CollectiveCost::seconds(double bytes) const {
  double sum = 0;
  for (const Step& step : steps_) sum += step.cost->seconds(bytes * step.share);
  return steps_.empty() ? answer(bytes).seconds * scale_ : sum;
}

Price CollectiveCost::at(Bytes size) const {
  if (!steps_.empty()) {
    Price whole{LevelPrice{}.time, algorithm_, Protocol::kSimple, channels_};
    for (const Step& step : steps_) {
      const Price part = step.cost->at(size * step.share);
      LevelPrice& level = whole.levels[step.across ? 1 : 0];
      level.launch += part.levels[0].launch;
      level.wire += part.levels[0].wire;
      for (Estimate<Seconds>* sum : {&level.time, &whole.time}) {
        sum->value += part.time.value;
        sum->low += part.time.low;
        sum->high += part.time.high;
        sum->provenance = std::max(part.time.provenance, Provenance::kExtrapolated);
      }
    }
    return whole;
  }
  const Answer a = answer(size.b());
  double width = widths_[band_of(size.b())];
  Provenance provenance = provenance_;
  const bool outside = fixed_bytes_ < 0 && (size.b() < from_ || size.b() > to_);
  if (outside && shape_ != Shape::kNothing) {
    provenance = std::max(provenance, Provenance::kExtrapolated);
    width = std::max(width * kBeyondSizes, beyond_sizes_);
  }
  const Spread& spread = spreads_[band_of(size.b())];
  const double whole = a.seconds * scale_, rest = whole - messages_, own = std::log(1 + width);
  const Estimate<Seconds> time = {
      Seconds::s(whole),
      Seconds::s(rest * std::exp(-std::hypot(own, std::log(spread.low))) +
                 messages_ / kMessageCostWidth),
      Seconds::s(rest * std::exp(std::hypot(own, std::log(spread.high))) +
                 messages_ * kMessageCostWidth),
      provenance};
  const double wire = a.form && fixed_bytes_ < 0 ? a.form->wire * size.b() : 0;
  const LevelPrice all{time, Seconds::s(a.form ? a.form->launch * scale_ : 0),
                       Seconds::s(wire * scale_)};
  return {time, a.algorithm, a.protocol, channels_, {all, LevelPrice{}}};
}

std::vector<Algorithm> CollectiveCost::algorithms() const {
  std::vector<Algorithm> found;
  if (!steps_.empty()) return {algorithm_};
  constexpr int kPerDoubling = 4, kDoublings = 40;  // to 1 TiB
  for (int i = 0; i <= kPerDoubling * kDoublings; ++i) {
    const Algorithm a = answer(std::exp2(1.0 * i / kPerDoubling)).algorithm;
    if (std::ranges::find(found, a) == found.end()) found.push_back(a);
    if (shape_ != Shape::kChosen) break;
  }
  return found;
}

}  // namespace rehearse::comm
