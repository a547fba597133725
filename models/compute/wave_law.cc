#include "models/compute/wave_law.h"

#include <algorithm>
#include <cmath>

namespace rehearse::compute {
namespace {

constexpr double kCuts[] = {1, 2, 3, 4, 8, 16, 32};
/// Kernels of ordinary cores, in shapes without a clock, are cut no further.
constexpr double kMostCuts = 8;
/// A shorter part of k takes as long as this.
constexpr double kShortestCut = 64;
/// Rows of results from which most of the cost of long operand rows is paid.
constexpr double kRereadRows = 760;

/// The least whole number not below x, for 0 <= x < 2^62: std::ceil is a call without SSE 4.1.
double ceiling(double x) {
  const auto whole = static_cast<double>(static_cast<long long>(x));
  return whole < x ? whole + 1 : whole;
}

double smooth_maximum(double x, double y, double q) {
  const double most = std::max(x, y), least = std::min(x, y);
  if (!(most > 0)) return 0;
  return most * std::pow(1 + std::pow(least / most, q), 1 / q);
}

}  // namespace

double pace(const WaveShape& shape, double clock) {
  return shape.clock > 0 && clock > 0 ? shape.clock / clock : 1;
}

double wave_time(const WaveShape& shape, const WaveDevice& device, const MatrixProduct& product) {
  const double batch = std::max(product.batch, 1.0);
  const double m = std::max(product.m, 1.0), n = std::max(product.n, 1.0),
               k = std::max(product.k, 1.0);
  const double rows = m * n / (m + n);
  const double x =
      device.reread.from > 0 ? k / device.reread.from * rows / (rows + kRereadRows) : 0;
  const double x4 = x * x * x * x;
  const double slower = 1 + device.reread.extra * x4 / (1 + x4);
  const double per_processor = slower * device.multiprocessors / device.rate;
  const double reduced = 8 * batch * m * n / (shape.memory * device.memory_rate);
  const double paced = pace(shape, device.clock), step = shape.step * paced;
  double least = HUGE_VAL;
  for (std::size_t t = 0; t < shape.count; ++t) {
    const Tile& tile = shape.tiles[t];
    const double upright = ceiling(m / tile.rows) * ceiling(n / tile.columns);
    const double aside = ceiling(n / tile.rows) * ceiling(m / tile.columns);
    const double tiles = batch * std::min(upright, aside) / device.multiprocessors;
    const double work = std::max(2 * tile.rows * tile.columns / tile.share * per_processor, step);
    for (const double cut : kCuts) {
      const double waves = ceiling(tiles * cut);
      const double part = cut > 1 ? std::max(k / cut, kShortestCut) : k;
      const double time = waves * (work * part + tile.fixed * paced) +
                          (cut > 1 ? cut * reduced + shape.cut * paced : 0);
      least = std::min(least, time);
      if (waves > 64) break;  // enough of them: a cut only adds to it
      if (cut >= kMostCuts && !(shape.clock > 0)) break;
    }
  }
  const double capped = slower * 2 * batch * m * n * k / (shape.cap * device.rate);
  const double moved = product.bytes / (shape.memory * device.memory_rate);
  return shape.launch * paced + smooth_maximum(std::max(least, capped), moved, shape.smooth);
}

}  // namespace rehearse::compute
