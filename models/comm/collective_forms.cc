// The forms of a CollectiveCost: time by size, from the constants of a calibration.
#include "models/comm/collective_forms.h"

#include <algorithm>
#include <cmath>

#include "models/comm/collective_cost.h"
#include "models/comm/nccl_tuning.h"
#include "models/comm/reach.h"

namespace rehearse::comm {
namespace {

/// The rate of NVLink SHARP within the nodes of a tree, relative to its rate on one node. Six
/// clusters of H100 and H200 reduced 1 to 4 GiB on two nodes at 249 to 261 GB/s, where one node
/// reaches 263.
constexpr double kNvlsInTree = 0.97;

}  // namespace

ByteRate tree_limit(Generation generation, std::uint32_t nodes) {
  if (generation == Generation::kHopper) return ByteRate::gb_per_s(nodes > 2 ? 280 : 510);
  if (generation == Generation::kBlackwell && nodes <= 2) return ByteRate::gb_per_s(730);
  constexpr auto kAmpere = static_cast<std::size_t>(Generation::kAmpere);
  const double channel = nccl::kTreeSimple[static_cast<std::size_t>(generation)][nodes > 2 ? 2 : 1];
  return ByteRate::gb_per_s(110 * channel / nccl::kTreeSimple[kAmpere][1]);
}

void CollectiveCost::set_switched(const SwitchedConstants& c, const Group& g,
                                  const NcclSetup& setup, const NcclOverrides& overrides) {
  shape_ = Shape::kChosen;
  tuning_ = NcclTuning(setup, g.kind, overrides);
  const double n = g.ranks, nodes = g.nodes, local = n / nodes, k = passes_of(g.kind);
  const bool rooted = is_rooted(g.kind);
  const double steps = rooted ? n - 1 : k * (n - 1);
  const double between = rooted ? nodes - 1 : k * (nodes - 1);
  const double wire = rooted ? 1 : k * (n - 1) / n;
  const double network = g.network ? inverse(ring_rate(*g.network)) : 0;
  const auto network_step = [&](Algorithm a, std::size_t p) {
    if (!g.network) return 0.0;
    const double nic = g.network->latency.s() * (p == 2 ? 2 : 1);
    return nccl::kNetworkLatency[static_cast<std::size_t>(a)][p] * 1e-6 + nic;
  };
  const auto ring = [&](std::size_t p, Seconds call, Seconds step) {
    return call.s() + (steps - between) * step.s() + between * network_step(Algorithm::kRing, p);
  };
  // A chain inside each node, two trees over the nodes: a node's NICs carry the data once with two
  // nodes (each is the root of one tree), twice with more.
  const auto tree = [&](std::size_t p, Seconds call, Seconds step) {
    return call.s() +
           2 * ((local - 1) * step.s() + std::log2(nodes) * network_step(Algorithm::kTree, p));
  };
  // No tree over nodes exceeds the highest rate that NCCL has observed.
  const double tree_network = g.nodes > 1
                                  ? std::max(network * (nodes > 2 ? 2 : 1),
                                             2 * inverse(tree_limit(setup.generation, g.nodes)))
                                  : 0;
  const LowLatency* low[2] = {&c.ll, &c.ll128};
  for (std::size_t p = 0; p < 2; ++p) {
    const LowLatency& l = *low[p];
    const double around = wire * std::max(inverse(l.rate), network),
                 up_and_down = std::max(2 * inverse(l.rate), tree_network);
    forms_[p] = {ring(p, l.call, l.step), l.ramp.s(), around + inverse(l.copy) / n};
    forms_[kTreeForms + p] = {tree(p, l.call, l.step), l.ramp.s(), up_and_down};
    forms_[p].wire = around;
    forms_[kTreeForms + p].wire = up_and_down;
    forms_[p].launch = forms_[kTreeForms + p].launch = l.call.s();
  }
  const Simple& s = c.simple;
  const double rate =
      inverse(s.rate) / (g.kind == CollectiveKind::kAllReduce ? s.all_reduce_gain : 1);
  const bool gather = g.kind == CollectiveKind::kAllGather && s.gather_copy;
  const double copy = inverse(gather ? *s.gather_copy : s.copy) / n;
  const double root = std::sqrt(s.fill.s() * wire * inverse(s.rate));
  forms_[2] = {ring(2, s.call, s.step), 0, wire * std::max(rate, network) + copy, s.q, root, to_};
  forms_[kTreeForms + 2] = {
      tree(2, s.call, s.step), 0, std::max(2 * rate, tree_network) + copy, s.q, root, to_};
  forms_[2].wire = wire * std::max(rate, network);
  forms_[kTreeForms + 2].wire = std::max(2 * rate, tree_network);
  forms_[2].launch = forms_[kTreeForms + 2].launch = s.call.s();
  // PAT gathers over a tree with one device per node: log2 steps, the bytes of a ring.
  forms_[kPatForm] = forms_[2];
  forms_[kPatForm].fixed = s.call.s() + std::log2(nodes) * network_step(Algorithm::kPat, 2);
  if (g.network) {
    // In every step of a ring some message leaves each node, and all ranks wait for it. Only
    // all-reduces were seen not to (decision 0054).
    const Reach reach = reach_of(*g.network);
    const double wait = reach.step.s() + reach.hop.s(), levels = std::log2(nodes);
    // Hops of rings were measured on two nodes; more of them wait no longer than trees until measured.
    const double of_ring =
        reach.step.s() * (k == 1 && !rooted ? steps : between) + reach.hop.s() * k * levels;
    for (std::size_t p = 0; p < 3; ++p) {
      forms_[p].waits = of_ring;
      forms_[p].half = n * kHalfWait.b();  // a message of a ring has a part of the buffer
      forms_[kTreeForms + p].waits = wait * 2 * levels;
      forms_[kTreeForms + p].half = kHalfWait.b();
    }
    forms_[kPatForm].waits = wait * levels;
    forms_[kPatForm].half = forms_[2].half;
  }
  if (!c.nvls) return;
  if (nodes > 1) {
    // Buffers go through the switches of a node on their way up and on their way down.
    const double inside = k * (local - 1) / local * inverse(c.nvls->rate) / kNvlsInTree;
    Form& form = forms_[kNvlsTreeForm] = forms_[kTreeForms + 2];
    form.fixed = 2 * (c.nvls->call.s() + std::log2(nodes) * network_step(Algorithm::kNvlsTree, 2));
    form.launch = c.nvls->call.s();
    form.per_byte = form.wire = std::max(inside, network * (nodes > 2 ? 2 : 1));
    form.q = 1;
    form.per_root = 0;
    return;
  }
  forms_[kNvlsForm] = {c.nvls->call.s(), 0, wire * inverse(c.nvls->rate)};
  forms_[kNvlsForm].wire = forms_[kNvlsForm].per_byte;
  forms_[kNvlsForm].launch = forms_[kNvlsForm].fixed;
}

void CollectiveCost::set_pairwise(const Pairwise& c, const Group& g) {
  shape_ = Shape::kLeast;
  const double n = g.ranks, steps = n - 1, wire = (n - 1) / n;
  forms_[0] = {c.small.call.s() + steps * c.small.step.s(), 0, inverse(c.small.rate) / n};
  forms_[1] = {c.middle.call.s() + steps * c.middle.step.s(), 0, wire * inverse(c.middle.rate)};
  forms_[2] = {c.large.call.s() + steps * c.large.step.s(),
               0,
               wire * inverse(c.large.rate) + inverse(c.large.copy) / n,
               c.large.q,
               std::sqrt(c.large.fill.s() * wire * inverse(c.large.rate)),
               to_};
  const Seconds calls[3] = {c.small.call, c.middle.call, c.large.call};
  for (std::size_t p = 0; p < 3; ++p) {
    forms_[p].launch = calls[p].s();
    forms_[p].wire = p == 2 ? wire * inverse(c.large.rate) : forms_[p].per_byte;
  }
  pieces_ = 3;
  if (g.nodes == 1) return;
  // Everything for other nodes leaves through the NICs.
  const double local = n / g.nodes;
  const double leaving = local * (n - local) / n * inverse(message_rate(*g.network));
  const Seconds messages = g.network->message_cost * (local * (n - local) / g.network->nics);
  messages_ = messages.s();
  priced_ = 3;
  for (std::size_t p = 0; p < 3; ++p) {
    forms_[3 + p] = forms_[p];
    forms_[3 + p].fixed += message_step(*g.network, p).s() + messages.s();
    forms_[3 + p].waits = reach_of(*g.network).step.s();
    forms_[3 + p].half = n * kHalfWait.b();
    forms_[3 + p].per_byte = std::max(forms_[p].per_byte, leaving);
    forms_[3 + p].wire = std::max(forms_[p].wire, leaving);
  }
}

void CollectiveCost::set_cube_mesh(const CubeMeshConstants& c, const Group& g,
                                   std::uint32_t rings) {
  shape_ = Shape::kLeast;
  const double n = g.ranks, k = passes_of(g.kind), between = k * (g.nodes - 1);
  const double steps = k * (n - 1) - between;
  const double r = rings > 0 ? rings : 0.5;  // PCIe closes the ring; judgement, widened by half
  const double network = g.network ? inverse(ring_rate(*g.network)) : 0;
  const auto form = [&](const LowLatency& l) {
    // Rings through all ranks: they leave each node once, and the slowest link decides.
    Form made{l.call.s() + steps * l.step.s(), 0,
              k * (n - 1) / n * std::max(inverse(l.rate) / r, network)};
    made.launch = l.call.s();
    made.wire = made.per_byte;
    if (!g.network) return made;
    made.fixed += between * message_step(*g.network, 2).s();
    made.waits = between * reach_of(*g.network).step.s();
    made.half = n * kHalfWait.b();
    return made;
  };
  forms_[0] = form(c.small);
  forms_[1] = form(c.large);
  pieces_ = 2;
  algorithm_ = Algorithm::kRing;
}

void CollectiveCost::set_curve(const Curve& curve, double k) {
  shape_ = Shape::kKnee;
  algorithm_ = curve.kind == CollectiveKind::kAllToAll ? Algorithm::kPairwise : Algorithm::kRing;
  const double n = curve.ranks, wire = k * (n - 1) / n;
  forms_[0] = {curve.below.call.s(), 0, wire * inverse(curve.below.rate)};
  forms_[1] = {curve.above.call.s(), 0, wire * inverse(curve.above.rate)};
  for (Form& form : forms_) {
    form.launch = form.fixed;
    form.wire = form.per_byte;
  }
  knee_ = curve.knee.b();
}

}  // namespace rehearse::comm
