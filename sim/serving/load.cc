#include "sim/serving/load.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

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

/// The states of bursts one after another, on the clock of an even process with a rate of 1 per second.
class BurstClock {
 public:
  BurstClock(const std::optional<Bursts>& bursts, Random random)
      : bursts_(bursts), random_(random) {
    // It begins in either state, as often as the process is in it.
    if (bursts)
      burst_ = random_.uniform() * (bursts->length + bursts->pause).s() >= bursts->length.s();
  }

  /// When the process is as far as the even one at `even` seconds. REQUIRES: calls in the order of `even`.
  double of(double even) {
    if (!bursts_) return even;
    const double length = bursts_->length.s(), pause = bursts_->pause.s();
    for (;;) {
      const double rate =
          burst_ ? (length + pause * (1 - bursts_->quiet)) / length : bursts_->quiet;
      if (even < even_ + left_ * rate) return begin_ + (even - even_) / rate;
      even_ += left_ * rate;
      begin_ += left_;
      burst_ = !burst_;
      left_ = (burst_ ? length : pause) * random_.exponential();
    }
  }

 private:
  std::optional<Bursts> bursts_;
  Random random_;
  bool burst_ = false;           // the next state is the other one
  double begin_ = 0, even_ = 0;  // of the state, on both clocks
  double left_ = 0;              // its time
};

std::int64_t draw(Random& random, const Lengths& lengths) {
  if (lengths.sigma > 0)
    for (;;) {
      const double x = lengths.median * std::exp(lengths.sigma * random.normal());
      if (x > static_cast<double>(lengths.most) + 0.5) continue;
      if (const std::int64_t n = std::llround(x); lengths.least <= n && n <= lengths.most) return n;
    }
  return lengths.least + static_cast<std::int64_t>(random.below(
                             static_cast<std::uint32_t>(lengths.most - lengths.least + 1)));
}

/// The index of the share that a number in [0, 1) is in.
std::int32_t class_of(double at, const std::vector<double>& shares) {
  std::int32_t found = 0;
  for (; at >= shares[static_cast<std::size_t>(found)] &&
         found + 1 < static_cast<std::int32_t>(shares.size());
       ++found)
    at -= shares[static_cast<std::size_t>(found)];
  return found;
}

}  // namespace

std::vector<Request> draw(const Load& load, std::uint64_t seed) {
  const auto stream = [&](std::uint64_t number) { return random_stream(seed, number); };
  Random lengths = stream(0), gaps = stream(1), turns = stream(2), thinks = stream(3),
         classes = stream(4);
  BurstClock bursts(load.arrivals ? load.arrivals->bursts : std::nullopt, stream(5));
  std::vector<Request> requests;
  requests.reserve(load.count);
  double at = 0;
  while (requests.size() < load.count) {
    Request turn;
    if (load.arrivals) {
      // A run ends with an error before this latest arrival.
      constexpr double kLatest = 100 * 86'400;
      at = std::min(
          at + gamma(gaps, load.arrivals->shape) / (load.arrivals->shape * load.arrivals->rate),
          kLatest);
      const double clock = std::min(bursts.of(at), kLatest);
      turn.planned = Picoseconds::from(Seconds::s(with_swing(clock, *load.arrivals)));
    }
    if (!load.classes.empty()) turn.priority = class_of(classes.uniform(), load.classes);
    if (!load.deadlines.empty())
      turn.deadline = Picoseconds::from(
          load.deadlines[load.deadlines.size() == 1 ? 0 : static_cast<std::size_t>(turn.priority)]);
    std::int64_t before = 0;  // prompt and answer of the last turn
    for (std::int64_t left = draw(turns, load.turns); left > 0 && requests.size() < load.count;
         --left) {
      if (turn.follows || !load.arrivals)
        turn.think = Picoseconds::from(load.think * (load.random_think ? thinks.exponential() : 1));
      if (!load.pairs.empty()) {
        std::tie(turn.input, turn.output) =
            load.pairs[lengths.below(static_cast<std::uint32_t>(load.pairs.size()))];
      } else {
        turn.input = draw(lengths, load.input);
        turn.output = draw(lengths, load.output);
      }
      turn.input += before;
      before = turn.input + turn.output;
      requests.push_back(turn);
      turn.follows = true;
    }
  }
  return requests;
}

}  // namespace rehearse::serving
