#include "models/comm/fit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include "models/comm/collective_cost.h"
#include "models/comm/fit_pieces.h"

namespace rehearse::comm {
namespace {

using namespace pieces;

bool is_ring(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kReduceScatter;
}

/// The rows by the piece that NCCL uses for them: LL, LL128, Simple, NVLS.
std::array<Rows, 4> by_piece(const Calibration& c, std::span<const MeasuredRow> rows) {
  std::array<Rows, 4> parts;
  for (const MeasuredRow& r : rows) {
    const NcclTuning tuning(nccl_setup(c, {.kind = r.kind, .ranks = r.ranks}), r.kind);
    const NcclChoice choice = *tuning.choose(r.size.b());
    parts[choice.algorithm == Algorithm::kNvls ? 3 : static_cast<std::size_t>(choice.protocol)]
        .push_back(r);
  }
  return parts;
}

/// price / measured, or nothing if the price is refused.
std::optional<double> ratio_of(const Calibration& c, const MeasuredRow& r) {
  const Result<CollectiveCost> cost =
      CollectiveCost::resolve({.calibration = c}, {.kind = r.kind, .ranks = r.ranks});
  if (!cost) return std::nullopt;
  return cost->seconds(r.size.b()) / r.time.s();
}

/// The sum of |price / measured - 1|.
double loss_of(const Calibration& c, std::span<const MeasuredRow> rows) {
  double loss = 0;
  for (const MeasuredRow& r : rows)
    if (const std::optional<double> ratio = ratio_of(c, r)) loss += std::abs(*ratio - 1);
  return loss;
}

struct SwitchedFit {
  SwitchedConstants constants;
  double loss;
};

SwitchedFit fit_rings(Calibration c, std::span<const MeasuredRow> rows) {
  const std::array<Rows, 4> parts = by_piece(c, rows);
  SwitchedConstants constants{
      .ll = fit_ll(parts[0]), .ll128 = {}, .simple = fit_simple(parts[2], true, true)};
  constants.ll128 = fit_ll128(parts[1], constants.ll, constants.simple);
  if (c.switched && c.switched->nvls) {
    constants.nvls = c.switched->nvls;
    const AffineFit affine = fit_affine(parts[3]);
    constants.nvls->call = affine.call;
    constants.nvls->rate = affine.rate;
  }
  c.switched = constants;
  return {constants, loss_of(c, rows)};
}

/// With NVLS if rows show it: all_reduce with the most ranks, from some size on, that is faster
/// than any ring that also explains the other rows.
SwitchedConstants fit_switched(Calibration c, std::span<const MeasuredRow> rows) {
  c.switched = std::nullopt;
  SwitchedFit best = fit_rings(c, rows);
  if (c.generation < Generation::kHopper) return best.constants;
  constexpr double kWorth = 0.04;  // it must explain this much of each of its rows
  std::uint32_t most = 0;
  for (const MeasuredRow& r : rows) most = std::max(most, r.ranks);
  if (most < 8) return best.constants;
  const double without = best.loss;
  Calibration ring_only = c;
  ring_only.switched = best.constants;
  for (double from = 1048576; from <= 128 * 1048576.0; from *= 2) {
    Rows reduced;
    for (const MeasuredRow& r : rows)
      if (r.kind == CollectiveKind::kAllReduce && r.ranks == most && r.size.b() >= from)
        reduced.push_back(r);
    if (reduced.size() < 2) break;
    const double worth = kWorth * static_cast<double>(reduced.size());
    // The rings, which are also fitted to these rows, get half of their weight before the others
    // are fitted again.
    if (fit_affine(reduced).loss > loss_of(ring_only, reduced) - worth / 2) continue;
    c.switched = best.constants;
    c.switched->nvls = Nvls{Bytes::b(from), most, Seconds::s(0), kUnlimited};
    const SwitchedFit with = fit_rings(c, rows);
    if (with.loss < best.loss && with.loss < without - worth) best = with;
  }
  return best.constants;
}

Status enough(const FitRequest& request, const Calibration& c, std::span<const MeasuredRow> rows) {
  if (rows.empty()) return fail("there are no rows to fit");
  if (request.fabric != Fabric::kNvswitch) return {};
  Rows rings;
  for (const MeasuredRow& r : rows)
    if (is_ring(r.kind)) rings.push_back(r);
  const std::array<Rows, 4> parts = by_piece(c, rings);
  constexpr std::size_t kLeast = 3;
  if (!rings.empty() && parts[0].size() < kLeast)
    return fail(fmt::format("{} rows have sizes that use the LL protocol", parts[0].size()),
                "at least 3: run nccl-tests from 1 KiB (-b 1K)");
  if (!rings.empty() && parts[2].size() < kLeast)
    return fail(fmt::format("{} rows have sizes that use the Simple protocol", parts[2].size()),
                "at least 3: run nccl-tests to 256 MiB (-e 256M)");
  return {};
}

void fit_constants(Calibration& c, std::span<const MeasuredRow> rows) {
  Rows rings, pairs, messages;
  for (const MeasuredRow& r : rows)
    (r.kind == CollectiveKind::kAllToAll   ? pairs
     : r.kind == CollectiveKind::kSendRecv ? messages
                                           : rings)
        .push_back(r);
  if (messages.size() >= 3) c.send_recv = fit_curve(messages);
  switch (c.fabric) {
    case Fabric::kNvswitch:
      if (!rings.empty()) c.switched = fit_switched(c, rings);
      if (pairs.size() >= 6 && c.switched) {
        const Pairwise p = fit_pairwise(pairs);
        c.switched->pairwise = p;
        // A message is the half of an all_to_all of two ranks that leaves.
        const LowLatency message{.call = p.small.call + p.small.step, .rate = p.large.rate};
        if (messages.size() < 3)
          c.send_recv = Curve{CollectiveKind::kSendRecv, 2, Bytes::b(0), message, message};
      }
      break;
    case Fabric::kCubeMesh:
      if (!rings.empty()) c.cube_mesh = fit_cube_mesh(rings);
      break;
    case Fabric::kBridgedPairs:
    case Fabric::kHostStaged: {
      std::set<std::pair<CollectiveKind, std::uint32_t>> curves;
      for (const MeasuredRow& r : rows)
        if (r.kind != CollectiveKind::kSendRecv) curves.insert({r.kind, r.ranks});
      c.curves.clear();
      for (const auto& [kind, ranks] : curves) {
        Rows part;
        for (const MeasuredRow& r : rows)
          if (r.kind == kind && r.ranks == ranks) part.push_back(r);
        c.curves.push_back(fit_curve(part));
      }
      break;
    }
  }
}

void set_envelope(Envelope& e, std::span<const MeasuredRow> rows) {
  std::set<std::uint32_t> ranks;
  std::set<CollectiveKind> kinds;
  e.from = e.to = rows.front().size;
  for (const MeasuredRow& r : rows) {
    e.from = std::min(e.from, r.size);
    e.to = std::max(e.to, r.size);
    ranks.insert(r.ranks);
    kinds.insert(r.kind);
  }
  e.ranks.assign(ranks.begin(), ranks.end());
  e.kinds.assign(kinds.begin(), kinds.end());
}

/// The factor minus one that 90 % of the ratios stay within, up or down. Few ratios say little of
/// their tail: the rank is that of the 95 % quantile below 20.
double width_of(std::vector<double> factors) {
  // Another run of the same machine, or another version of NCCL, differs by this much.
  constexpr double kLeastWidth = 0.06;
  if (factors.empty()) return 0.5;  // nothing is known
  std::ranges::sort(factors);
  const auto n = static_cast<double>(factors.size());
  const double quantile = n < 20 ? 0.95 : 0.9;
  const auto at = static_cast<std::size_t>(std::min(std::ceil(quantile * n), n) - 1);
  return std::max(factors[at] - 1, kLeastWidth);
}

void set_widths(Calibration& c, const FitRequest& request, std::span<const MeasuredRow> rows) {
  constexpr std::size_t kParts = 4;
  // The sizes of a curve are dealt in turn; each curve begins with another part.
  std::vector<std::size_t> part(rows.size());
  const std::vector<double> sizes = sizes_of(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto size =
        static_cast<std::size_t>(std::ranges::lower_bound(sizes, rows[i].size.b()) - sizes.begin());
    part[i] = (size + rows[i].ranks / 2 + static_cast<std::size_t>(rows[i].kind)) % kParts;
  }
  std::array<std::vector<double>, kBands> rings, pairs, messages;
  for (std::size_t left_out = 0; left_out < kParts; ++left_out) {
    Rows kept;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (part[i] != left_out) kept.push_back(rows[i]);
    Calibration without = c;
    if (kept.empty() || !enough(request, c, kept)) continue;
    fit_constants(without, kept);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (part[i] != left_out) continue;
      const std::optional<double> ratio = ratio_of(without, rows[i]);
      if (!ratio) continue;
      auto& group = rows[i].kind == CollectiveKind::kAllToAll   ? pairs
                    : rows[i].kind == CollectiveKind::kSendRecv ? messages
                                                                : rings;
      group[band_of(rows[i].size.b())].push_back(std::max(*ratio, 1 / *ratio));
    }
  }
  for (std::size_t b = 0; b < kBands; ++b) {
    c.ring_widths[b] = width_of(rings[b]);
    c.pairwise_widths[b] = width_of(pairs[b]);
    c.send_recv_widths[b] = width_of(messages[b]);
  }
}

}  // namespace

Result<Calibration> fit(const FitRequest& request, std::span<const MeasuredRow> rows) {
  Calibration c{.device = request.device,
                .fabric = request.fabric,
                .generation = request.generation,
                .links = request.links,
                .fitted = {.source = request.source,
                           .rows_used = request.rows_used,
                           .nccl_version = request.nccl_version,
                           .date = request.date}};
  for (const MeasuredRow& r : rows)
    if (!(r.time > Seconds::s(0)) || !(r.size > Bytes::b(0)) || r.ranks < 2)
      return fail(fmt::format("a row of {} B on {} ranks in {} s cannot be fitted", r.size.b(),
                              r.ranks, r.time.s()));
  TRY(enough(request, c, rows));
  set_envelope(c.fitted.envelope, rows);
  fit_constants(c, rows);
  set_widths(c, request, rows);
  c.fitted.rows = rows.size();
  c.fitted.residual = loss_of(c, rows) / static_cast<double>(rows.size());
  return c;
}

}  // namespace rehearse::comm
