#include "sim/serving/load.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/base/random.h"

namespace rehearse::serving {
namespace {

/// Marsaglia and Tsang, ACM TOMS 26 (2000), for shapes from 1; below, with a power of a uniform
/// number (their section 6). Mean: the shape.
double gamma(Random& random, double shape) {
  if (shape == 1) return random.exponential();
  if (shape < 1) return gamma(random, shape + 1) * std::pow(1 - random.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v))
      return d * v;
  }
}

/// When a process with a constant rate of 1 per second, but with the swing, is as far as without it at
/// `even` seconds.
double with_swing(double even, const Arrivals& arrivals) {
  if (arrivals.swing == 0) return even;
  const double turn = 2 * std::numbers::pi / arrivals.period.s(), most = arrivals.swing / turn;
  double low = even - most, high = even + most;  // t - most · sin(turn · t) = even
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (middle - most * std::sin(turn * middle) < even ? low : high) = middle;
  }
  return std::max(0.0, low);
}

std::int64_t draw(Random& random, const Lengths& lengths) {
  return lengths.least + static_cast<std::int64_t>(random.below(
                             static_cast<std::uint32_t>(lengths.most - lengths.least + 1)));
}

}  // namespace

std::vector<Request> draw(std::size_t count, const Lengths& input, const Lengths& output,
                          const std::optional<Arrivals>& arrivals, std::uint64_t seed) {
  Random lengths = random_stream(seed, 0), gaps = random_stream(seed, 1);
  std::vector<Request> requests;
  requests.reserve(count);
  double at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    // A run ends with an error before this latest arrival.
    constexpr double kLatest = 100 * 86'400;
    if (arrivals)
      at =
          std::min(at + gamma(gaps, arrivals->shape) / (arrivals->shape * arrivals->rate), kLatest);
    const std::int64_t prompt = draw(lengths, input);
    requests.push_back(
        {.planned = Picoseconds::from(Seconds::s(arrivals ? with_swing(at, *arrivals) : 0)),
         .input = prompt,
         .output = draw(lengths, output)});
  }
  return requests;
}

}  // namespace rehearse::serving
