#include "models/comm/fit_pieces.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "models/comm/collective_cost.h"
#include "models/comm/nnls.h"

namespace rehearse::comm::pieces {
namespace {

constexpr double kHuge = std::numeric_limits<double>::max();

double k_of(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce ? 2 : 1; }
double steps(const MeasuredRow& r) { return k_of(r.kind) * (r.ranks - 1); }
double share(const MeasuredRow& r) { return r.size.b() / r.ranks; }
double ramp(const MeasuredRow& r) {
  return std::clamp(std::log2(std::max(r.size.b(), 1.0) / 4096) / 3, 0.0, 1.0);
}

}  // namespace

double wire(const MeasuredRow& r) {
  return r.kind == CollectiveKind::kSendRecv ? r.size.b() : r.size.b() * steps(r) / r.ranks;
}

ByteRate rate_of(double seconds_per_byte) {
  return seconds_per_byte > 0 ? ByteRate::bytes_per_s(1 / seconds_per_byte) : kUnlimited;
}

std::vector<double> sizes_of(std::span<const MeasuredRow> rows) {
  std::set<double> sizes;
  for (const MeasuredRow& r : rows) sizes.insert(r.size.b());
  return {sizes.begin(), sizes.end()};
}

namespace {

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

bool is_gather(const MeasuredRow& r) { return r.kind == CollectiveKind::kAllGather; }

struct SimpleFit {
  Simple constants;
  double loss = kHuge;
};

/// (L^q + W^q)^(1/q) is homogeneous in (L, W): it equals its gradient times (L, W). So with the
/// gradient taken at the last answer, it is linear in the unknowns.
SimpleFit search_simple(std::span<const MeasuredRow> rows, bool with_gain, bool with_q) {
  constexpr int kGaussNewton = 6;  // from the answer of the q before
  SimpleFit best;
  // call, step, per byte of others, per byte of all_reduce, copy, copy of all_gather, per root
  std::vector<double> x;
  const auto transfer = [&](const MeasuredRow& r) {
    const bool apart = with_gain && r.kind == CollectiveKind::kAllReduce;
    const bool gather = is_gather(r);
    return std::array<double, 5>{apart ? 0 : wire(r), apart ? wire(r) : 0, gather ? 0 : share(r),
                                 gather ? share(r) : 0, std::sqrt(wire(r))};
  };
  for (int step = 0; step <= (with_q ? 24 : 0); ++step) {
    const double q = 1 + 0.1 * step;
    double loss = kHuge;
    const auto parts = [&](const MeasuredRow& r) {
      const std::array<double, 5> t = transfer(r);
      return std::pair(x[0] + steps(r) * x[1],
                       std::inner_product(t.begin(), t.end(), x.begin() + 2, 0.0));
    };
    for (int round = 0; round < (step == 0 ? 1 : kGaussNewton); ++round) {
      const Solved s = solve(rows, 7, [&](const MeasuredRow& r) {
        double dl = 1, dw = 1;
        if (!x.empty()) {
          const auto [l, w] = parts(r);
          const double total = std::pow(std::pow(l, q) + std::pow(w, q), 1 / q);
          if (total > 0) {
            dl = std::pow(l / total, q - 1);
            dw = std::pow(w / total, q - 1);
          }
        }
        std::vector<double> columns = {dl, dl * steps(r)};
        for (const double t : transfer(r)) columns.push_back(dw * t);
        return columns;
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
    const bool gathers = std::ranges::any_of(rows, is_gather);
    const bool alone = std::ranges::all_of(rows, is_gather);
    best.constants = {.call = Seconds::s(x[0]),
                      .step = Seconds::s(x[1]),
                      .rate = rate_of(others),
                      .copy = rate_of(alone ? x[5] : x[4]),
                      .fill = Seconds::s(others > 0 ? x[6] * x[6] / others : 0),
                      .q = q,
                      .all_reduce_gain = others > 0 ? others / reduce : 1};
    if (gathers && !alone) best.constants.gather_copy = rate_of(x[5]);
  }
  return best;
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
    const double sent = wire(r) / p.large.rate.bytes_per_s();
    const double moving =
        sent + std::sqrt(p.large.fill.s() * sent) + share(r) / p.large.copy.bytes_per_s();
    const double large =
        std::pow(std::pow(fixed, p.large.q) + std::pow(moving, p.large.q), 1 / p.large.q);
    const double time = std::min({low(p.small, share(r)), low(p.middle, wire(r)), large});
    loss += std::abs(time / r.time.s() - 1);
  }
  return loss;
}

}  // namespace

LowLatency fit_ll(std::span<const MeasuredRow> rows) {
  const Solved s = solve(rows, 5, [](const MeasuredRow& r) {
    return std::vector<double>{1, steps(r), ramp(r), wire(r), share(r)};
  });
  return {Seconds::s(s.x[0]), Seconds::s(s.x[1]), Seconds::s(s.x[2]), rate_of(s.x[3]),
          rate_of(s.x[4])};
}

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

Simple fit_simple(std::span<const MeasuredRow> rows, bool with_gain, bool with_q) {
  return search_simple(rows, with_gain, with_q).constants;
}

AffineFit fit_affine(std::span<const MeasuredRow> rows) {
  const Solved s = solve(rows, 2, [](const MeasuredRow& r) {
    return std::vector<double>{1, wire(r)};
  });
  return {Seconds::s(s.x[0]), rate_of(s.x[1]), s.loss};
}

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
    const Simple large = fit_simple(between(rows, sizes[j], kHuge), false, false);
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

}  // namespace rehearse::comm::pieces
