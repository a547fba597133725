#include "models/comm/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/core.h>

#include "models/comm/collective_cost.h"
#include "models/comm/nnls.h"

namespace rehearse::comm {
namespace {

using Rows = std::vector<MeasuredRow>;

// Relative errors below this are noise of the measurement (duplicates differ by 1 to 3 %).
constexpr double kNoise = 0.02;
constexpr double kHuge = std::numeric_limits<double>::max();

double k_of(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce ? 2 : 1; }
double steps(const MeasuredRow& r) { return k_of(r.kind) * (r.ranks - 1); }
double wire(const MeasuredRow& r) {
  return r.kind == CollectiveKind::kSendRecv ? r.size.b() : r.size.b() * steps(r) / r.ranks;
}
double share(const MeasuredRow& r) { return r.size.b() / r.ranks; }
double ramp(const MeasuredRow& r) {
  return std::clamp(std::log2(std::max(r.size.b(), 1.0) / 4096) / 3, 0.0, 1.0);
}

ByteRate rate_of(double seconds_per_byte) {
  return seconds_per_byte > 0 ? ByteRate::bytes_per_s(1 / seconds_per_byte) : kUnlimited;
}

/// A piece that is linear in its unknowns, with its loss: the sum of |price / measured - 1|.
struct Solved {
  std::vector<double> x;
  double loss = 0;
};

template <class Columns>
Solved solve(std::span<const MeasuredRow> rows, std::size_t unknowns, Columns columns) {
  Equations equations(unknowns);
  for (const MeasuredRow& r : rows) {
    std::vector<double> c = columns(r);
    for (double& v : c) v /= r.time.s();
    equations.add(c, 1);
  }
  Solved solved{.x = robust_nnls(equations, kNoise)};
  for (std::size_t i = 0; i < equations.size(); ++i) {
    double sum = -1;
    for (std::size_t c = 0; c < unknowns; ++c)
      sum += equations.coefficients()[i * unknowns + c] * solved.x[c];
    solved.loss += std::abs(sum);
  }
  return solved;
}

LowLatency fit_ll(std::span<const MeasuredRow> rows) {
  const Solved s = solve(rows, 5, [](const MeasuredRow& r) {
    return std::vector<double>{1, steps(r), ramp(r), wire(r), share(r)};
  });
  return {Seconds::s(s.x[0]), Seconds::s(s.x[1]), Seconds::s(s.x[2]), rate_of(s.x[3]),
          rate_of(s.x[4])};
}

/// LL128 holds over few sizes, or none. From few rows only the step is taken: a call is as with
/// Simple, the wire carries 120 of 128 bytes, and a step costs about twice that of LL where there
/// are no rows at all.
LowLatency fit_ll128(std::span<const MeasuredRow> rows, const LowLatency& ll,
                     const Simple& simple) {
  constexpr std::size_t kMany = 8;
  if (rows.size() >= kMany) {
    const Solved s = solve(rows, 4, [](const MeasuredRow& r) {
      return std::vector<double>{1, steps(r), wire(r), share(r)};
    });
    return {Seconds::s(s.x[0]), Seconds::s(s.x[1]), Seconds::s(0), rate_of(s.x[2]),
            rate_of(s.x[3])};
  }
  LowLatency few{simple.call, 2 * ll.step, Seconds::s(0), simple.rate * (120.0 / 128), simple.copy};
  if (rows.empty()) return few;
  Equations equations(1);
  for (const MeasuredRow& r : rows) {
    const double known =
        few.call.s() + wire(r) / few.rate.bytes_per_s() + share(r) / few.copy.bytes_per_s();
    equations.add({steps(r) / r.time.s()}, 1 - known / r.time.s());
  }
  few.step = Seconds::s(robust_nnls(equations, kNoise)[0]);
  return few;
}

struct SimpleFit {
  Simple constants;
  double loss = kHuge;
};

/// (L^q + W^q)^(1/q) is homogeneous in (L, W): it equals its gradient times (L, W). So with the
/// gradient taken at the last answer, it is linear in the unknowns.
SimpleFit fit_simple(std::span<const MeasuredRow> rows, bool with_gain, bool with_q) {
  constexpr int kGaussNewton = 6;  // from the answer of the q before
  SimpleFit best;
  std::vector<double> x;  // call, step, per byte of others, per byte of all_reduce, copy
  for (int step = 0; step <= (with_q ? 12 : 0); ++step) {
    const double q = 1 + 0.1 * step;
    double loss = kHuge;
    const auto parts = [&](const MeasuredRow& r) {
      const bool apart = with_gain && r.kind == CollectiveKind::kAllReduce;
      return std::pair(x[0] + steps(r) * x[1], wire(r) * (apart ? x[3] : x[2]) + share(r) * x[4]);
    };
    for (int round = 0; round < (step == 0 ? 1 : kGaussNewton); ++round) {
      const Solved s = solve(rows, 5, [&](const MeasuredRow& r) {
        double dl = 1, dw = 1;
        if (!x.empty()) {
          const auto [l, w] = parts(r);
          const double total = std::pow(std::pow(l, q) + std::pow(w, q), 1 / q);
          if (total > 0) {
            dl = std::pow(l / total, q - 1);
            dw = std::pow(w / total, q - 1);
          }
        }
        const bool apart = with_gain && r.kind == CollectiveKind::kAllReduce;
        return std::vector<double>{dl, dl * steps(r), apart ? 0 : dw * wire(r),
                                   apart ? dw * wire(r) : 0, dw * share(r)};
      });
      x = s.x;
    }
    loss = 0;
    for (const MeasuredRow& r : rows) {
      const auto [l, w] = parts(r);
      loss += std::abs(std::pow(std::pow(l, q) + std::pow(w, q), 1 / q) / r.time.s() - 1);
    }
    if (loss >= best.loss * (1 - 1e-6)) continue;
    // Rows of all_reduce alone give the others their rate, and the other way round.
    const double others = x[2] > 0 ? x[2] : x[3], reduce = x[3] > 0 ? x[3] : x[2];
    best.loss = loss;
    best.constants = {Seconds::s(x[0]),
                      Seconds::s(x[1]),
                      rate_of(others),
                      rate_of(x[4]),
                      q,
                      others > 0 ? others / reduce : 1};
  }
  return best;
}

/// The sizes that occur, ascending.
std::vector<double> sizes_of(std::span<const MeasuredRow> rows) {
  std::set<double> sizes;
  for (const MeasuredRow& r : rows) sizes.insert(r.size.b());
  return {sizes.begin(), sizes.end()};
}

Rows between(std::span<const MeasuredRow> rows, double from, double to) {
  Rows part;
  for (const MeasuredRow& r : rows)
    if (r.size.b() >= from && r.size.b() < to) part.push_back(r);
  return part;
}

double loss_of(const Pairwise& p, std::span<const MeasuredRow> rows) {
  double loss = 0;
  for (const MeasuredRow& r : rows) {
    const auto low = [&](const LowLatency& l, double bytes) {
      return l.call.s() + (r.ranks - 1) * l.step.s() + bytes / l.rate.bytes_per_s();
    };
    const double fixed = p.large.call.s() + (r.ranks - 1) * p.large.step.s();
    const double moving =
        wire(r) / p.large.rate.bytes_per_s() + share(r) / p.large.copy.bytes_per_s();
    const double large =
        std::pow(std::pow(fixed, p.large.q) + std::pow(moving, p.large.q), 1 / p.large.q);
    const double time = std::min({low(p.small, share(r)), low(p.middle, wire(r)), large});
    loss += std::abs(time / r.time.s() - 1);
  }
  return loss;
}

/// Three pieces over two knees, searched over the sizes that occur.
Pairwise fit_pairwise(std::span<const MeasuredRow> rows) {
  const std::vector<double> sizes = sizes_of(rows);
  std::vector<LowLatency> small;
  for (const double knee : sizes) {
    const Solved s = solve(between(rows, 0, knee), 3, [](const MeasuredRow& r) {
      return std::vector<double>{1, r.ranks - 1.0, share(r)};
    });
    small.push_back(
        {.call = Seconds::s(s.x[0]), .step = Seconds::s(s.x[1]), .rate = rate_of(s.x[2])});
  }
  Pairwise best;
  double least = kHuge;
  for (std::size_t j = 1; j < sizes.size(); ++j) {
    if (sizes[j] < 128 * 1024.0 || sizes[j] > 32 * 1048576.0) continue;
    const Simple large = fit_simple(between(rows, sizes[j], kHuge), false, false).constants;
    for (std::size_t i = 1; i <= j; ++i) {
      if (sizes[i] < 8 * 1024.0) continue;
      Pairwise p{.small = small[i], .middle = small[i], .large = large};
      if (i < j) {
        const Rows middle = between(rows, sizes[i], sizes[j]);
        const Solved s = solve(middle, 3, [](const MeasuredRow& r) {
          return std::vector<double>{1, r.ranks - 1.0, wire(r)};
        });
        p.middle = {
            .call = Seconds::s(s.x[0]), .step = Seconds::s(s.x[1]), .rate = rate_of(s.x[2])};
      }
      const double loss = loss_of(p, rows);
      if (loss < least * (1 - 1e-6)) {
        least = loss;
        best = p;
      }
    }
  }
  return best;
}

/// min over two pieces of call + s step + V / (r rate), parted where it predicts best.
CubeMeshConstants fit_cube_mesh(std::span<const MeasuredRow> rows) {
  const auto per_ring = [](const MeasuredRow& r) {
    return wire(r) / std::max(cube_mesh_rings(r.ranks), 1U);
  };
  const auto fit_part = [&](const Rows& part) {
    const Solved s = solve(part, 3, [&](const MeasuredRow& r) {
      return std::vector<double>{1, steps(r), per_ring(r)};
    });
    return LowLatency{
        .call = Seconds::s(s.x[0]), .step = Seconds::s(s.x[1]), .rate = rate_of(s.x[2])};
  };
  CubeMeshConstants best{fit_part(Rows(rows.begin(), rows.end())), fit_part({})};
  best.large = best.small;
  double least = kHuge;
  for (double knee = 512 * 1024.0; knee <= 64 * 1048576.0; knee *= std::sqrt(2.0)) {
    Rows low, high;
    for (const MeasuredRow& r : rows) (per_ring(r) < knee ? low : high).push_back(r);
    if (low.size() < 3 || high.size() < 3) continue;
    const CubeMeshConstants c{fit_part(low), fit_part(high)};
    double loss = 0;
    for (const MeasuredRow& r : rows) {
      const auto price = [&](const LowLatency& l) {
        return l.call.s() + steps(r) * l.step.s() + per_ring(r) / l.rate.bytes_per_s();
      };
      loss += std::abs(std::min(price(c.small), price(c.large)) / r.time.s() - 1);
    }
    if (loss < least * (1 - 1e-6)) {
      least = loss;
      best = c;
    }
  }
  return best;
}

/// Two affine pieces with a jump between them.
Curve fit_curve(std::span<const MeasuredRow> rows) {
  const auto fit_part = [](const Rows& part) {
    const Solved s = solve(part, 2, [](const MeasuredRow& r) {
      return std::vector<double>{1, wire(r)};
    });
    return std::pair(LowLatency{.call = Seconds::s(s.x[0]), .rate = rate_of(s.x[1])}, s.loss);
  };
  const auto [whole, whole_loss] = fit_part(Rows(rows.begin(), rows.end()));
  Curve best{rows.front().kind, rows.front().ranks, Bytes::b(0), whole, whole};
  double least = whole_loss;
  const std::vector<double> sizes = sizes_of(rows);
  for (std::size_t i = 2; i + 2 < sizes.size() + 1; ++i) {
    const auto [below, low] = fit_part(between(rows, 0, sizes[i]));
    const auto [above, high] = fit_part(between(rows, sizes[i], kHuge));
    if (low + high < least * (1 - 1e-6)) {
      least = low + high;
      // Half way between the last size below and the first above.
      best.knee = Bytes::b(std::sqrt(sizes[i - 1] * sizes[i]));
      best.below = below;
      best.above = above;
    }
  }
  return best;
}

bool is_ring(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kReduceScatter;
}

/// The rows by the piece that NCCL takes for them: LL, LL128, Simple, NVLS.
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

struct SwitchedFit {
  SwitchedConstants constants;
  double loss;
};

SwitchedFit fit_rings(Calibration c, std::span<const MeasuredRow> rows) {
  const std::array<Rows, 4> parts = by_piece(c, rows);
  SwitchedConstants constants{
      .ll = fit_ll(parts[0]), .ll128 = {}, .simple = fit_simple(parts[2], true, true).constants};
  constants.ll128 = fit_ll128(parts[1], constants.ll, constants.simple);
  if (c.switched && c.switched->nvls) {
    constants.nvls = c.switched->nvls;
    const Solved s = solve(parts[3], 2, [](const MeasuredRow& r) {
      return std::vector<double>{1, wire(r)};
    });
    constants.nvls->call = Seconds::s(s.x[0]);
    constants.nvls->rate = rate_of(s.x[1]);
  }
  c.switched = constants;
  double loss = 0;
  for (const MeasuredRow& r : rows) {
    const Result<CollectiveCost> cost =
        CollectiveCost::resolve({.calibration = c}, {.kind = r.kind, .ranks = r.ranks});
    loss += std::abs(cost->seconds(r.size.b()) / r.time.s() - 1);
  }
  return {constants, loss};
}

/// With NVLS where rows show it: all_reduce of the most ranks, from some size on, quicker than any
/// ring that also explains the others.
SwitchedConstants fit_switched(Calibration c, std::span<const MeasuredRow> rows) {
  c.switched = std::nullopt;
  SwitchedFit best = fit_rings(c, rows);
  if (c.generation < Generation::kHopper) return best.constants;
  constexpr double kWorth = 0.04;  // it must explain so much of each of its rows
  std::uint32_t most = 0;
  for (const MeasuredRow& r : rows) most = std::max(most, r.ranks);
  if (most < 8) return best.constants;
  const double without = best.loss;
  for (double from = 1048576; from <= 128 * 1048576.0; from *= 2) {
    std::size_t reduced = 0;
    for (const MeasuredRow& r : rows)
      if (r.kind == CollectiveKind::kAllReduce && r.ranks == most && r.size.b() >= from) ++reduced;
    if (reduced < 2) break;
    c.switched = best.constants;
    c.switched->nvls = Nvls{Bytes::b(from), most, Seconds::s(0), kUnlimited};
    SwitchedFit with = fit_rings(c, rows);
    if (with.loss < best.loss && with.loss < without - kWorth * static_cast<double>(reduced))
      best = with;
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
    return fail(fmt::format("{} rows are of sizes that take the LL protocol", parts[0].size()),
                "at least 3: run nccl-tests from 1 KiB (-b 1K)");
  if (!rings.empty() && parts[2].size() < kLeast)
    return fail(fmt::format("{} rows are of sizes that take the Simple protocol", parts[2].size()),
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

/// price / measured, or nothing where it is refused.
std::optional<double> ratio_of(const Calibration& c, const MeasuredRow& r) {
  const Result<CollectiveCost> cost =
      CollectiveCost::resolve({.calibration = c}, {.kind = r.kind, .ranks = r.ranks});
  if (!cost) return std::nullopt;
  return cost->seconds(r.size.b()) / r.time.s();
}

/// The factor minus one that 90 % of the ratios stay within, up or down. Few ratios say little of
/// their tail: the rank is that of the 95 % quantile below 20.
double width_of(std::vector<double> factors) {
  // Another run of the same machine, or another version of NCCL, differs by as much.
  constexpr double kLeastWidth = 0.06;
  if (factors.empty()) return 0.5;  // nothing is known
  std::sort(factors.begin(), factors.end());
  const auto n = static_cast<double>(factors.size());
  const double quantile = n < 20 ? 0.95 : 0.9;
  const auto at = static_cast<std::size_t>(std::min(std::ceil(quantile * n), n) - 1);
  return std::max(factors[at] - 1, kLeastWidth);
}

void set_widths(Calibration& c, const FitRequest& request, std::span<const MeasuredRow> rows) {
  constexpr std::size_t kParts = 4;
  // The sizes of a curve are dealt in turn, each curve beginning with another part.
  std::vector<std::size_t> part(rows.size());
  const std::vector<double> sizes = sizes_of(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto size = static_cast<std::size_t>(
        std::lower_bound(sizes.begin(), sizes.end(), rows[i].size.b()) - sizes.begin());
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
  if (Status ok = enough(request, c, rows); !ok) return forward(ok);
  set_envelope(c.fitted.envelope, rows);
  fit_constants(c, rows);
  set_widths(c, request, rows);
  c.fitted.rows = rows.size();
  double sum = 0;
  for (const MeasuredRow& r : rows)
    if (const std::optional<double> ratio = ratio_of(c, r)) sum += std::abs(*ratio - 1);
  c.fitted.residual = sum / static_cast<double>(rows.size());
  return c;
}

}  // namespace rehearse::comm
