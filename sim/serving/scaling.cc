#include "sim/serving/scaling.h"

#include <algorithm>
#include <cmath>

namespace rehearse::serving {

std::size_t Scaler::decide(Picoseconds now, double signal, std::size_t replicas) {
  next_ = now + Picoseconds::from(scaling_.every);
  ++decisions_;
  // A signal that is a whole number of targets but for its rounding needs no replica more.
  const double wished = std::ceil(signal / scaling_.target - 1e-9);
  const auto wish = static_cast<std::size_t>(
      std::clamp(wished, static_cast<double>(scaling_.least), static_cast<double>(scaling_.most)));
  while (!wishes_.empty() && wishes_.back().second <= wish) wishes_.pop_back();
  wishes_.emplace_back(now, wish);
  while (wishes_.front().first < now &&
         now - wishes_.front().first >= Picoseconds::from(scaling_.hold))
    wishes_.pop_front();
  return wish > replicas ? wish : std::min(replicas, wishes_.front().second);
}

}  // namespace rehearse::serving
