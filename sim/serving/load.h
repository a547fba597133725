// What clients send: requests with drawn arrivals, lengths, turns, and classes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/units.h"
#include "sim/serving/request.h"

namespace rehearse::serving {

/// Uniform among the whole numbers from least to most. With a sigma lognormal instead: the logarithm is normal with
/// this deviation around that of the median, and numbers outside of least to most are drawn again.
struct Lengths {
  std::int64_t least = 1, most = 1;
  double median = 0;  ///< from least to most
  double sigma = 0;   ///< at most 5, so that few are drawn again
};

/// A process with two states, whose times are exponential with these means. Between bursts the rate is `quiet`
/// times its mean, and in bursts it is what gives the mean.
struct Bursts {
  Seconds length, pause;
  double quiet = 0;  ///< 0 to 1
};

/// Independent gaps, distributed by Gamma's law: 1 is a Poisson process, less is burstier. With a swing the rate at
/// time t is rate · (1 - swing · cos(2 π t / period)); with bursts it is multiplied by that of their states. The gaps
/// are those of a clock that runs with the rate, so that a Poisson process with bursts is a Markov-modulated one.
struct Arrivals {
  double rate = 1;  ///< per second, the mean of a period
  double shape = 1;
  double swing = 0;  ///< 0 to 1
  Seconds period = Seconds::s(86'400);
  std::optional<Bursts> bursts = {};
};

struct Load {
  std::size_t count = 1;  ///< of requests: the last conversation may lack turns
  /// Tokens that a turn adds to the prompt, and tokens of its answer.
  Lengths input = {}, output = {};
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs =
      {};                                 ///< instead of both, if there are any
  Lengths turns = {};                     ///< of a conversation
  std::optional<Arrivals> arrivals = {};  ///< of conversations; without all are planned at 0
  /// From the end of a turn to the next one. A conversation without planned arrival begins as late after the end
  /// of the one that it waits for.
  Seconds think = Seconds::s(0);
  bool random_think = false;  ///< exponential with that mean
  std::vector<double> classes =
      {};  ///< shares of conversations with the priorities 0, 1, …; none: all 0
  std::vector<Seconds> deadlines = {};  ///< of each class, or one of all
};

/// The same seed gives the same lengths at every rate.
std::vector<Request> draw(const Load& load, std::uint64_t seed);

}  // namespace rehearse::serving
