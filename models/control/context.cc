#include "models/control/context.h"

#include <algorithm>
#include <cmath>

#include "sim/base/random.h"

namespace rehearse::control {
namespace {

class Levels {
 public:
  Levels(std::size_t windows, std::uint64_t seed) : levels_(windows), random_(seed) {}

  std::vector<double> of(const Segments& segments) {
    double level = 0;
    for (double& each : levels_) {
      const bool begins = random_.uniform() < segments.hazard || level == 0;
      if (begins) level = segments.low * std::pow(segments.high / segments.low, random_.uniform());
      each = level;
    }
    return levels_;
  }

  std::vector<double> of(const Walk& walk) {
    const double low = std::log(walk.low), high = std::log(walk.high);
    double at = (low + high) / 2;
    for (double& each : levels_) {
      each = std::exp(at);
      // Reflections repeat after twice the width.
      const double width = high - low,
                   over = std::fmod(at + walk.step * random_.normal() - low, 2 * width);
      const double inside = over < 0 ? over + 2 * width : over;
      at = width > 0 ? low + (inside > width ? 2 * width - inside : inside) : low;
    }
    return levels_;
  }

  std::vector<double> of(const Recorded& recorded) {
    for (std::size_t w = 0; w < levels_.size(); ++w)
      levels_[w] = recorded.levels[w % recorded.levels.size()];
    return levels_;
  }

  std::vector<double> of(const States& states) {
    std::uint32_t state = 0;
    for (double& each : levels_) {
      if (states.count > 1 && random_.uniform() < states.hazard)
        state = (state + 1 + random_.below(states.count - 1)) % states.count;
      each = state + 1.0;
    }
    return levels_;
  }

 private:
  std::vector<double> levels_;
  Random random_;
};

}  // namespace

std::pair<double, double> range_of(const Context& context) {
  if (const auto* recorded = std::get_if<Recorded>(&context)) {
    const auto [low, high] = std::minmax_element(recorded->levels.begin(), recorded->levels.end());
    return {*low, *high};
  }
  if (const auto* states = std::get_if<States>(&context)) return {1, states->count};
  const auto* segments = std::get_if<Segments>(&context);
  return segments != nullptr ? std::pair(segments->low, segments->high)
                             : std::pair(std::get<Walk>(context).low, std::get<Walk>(context).high);
}

std::vector<double> levels_of(const Context& context, std::size_t windows, std::uint64_t seed) {
  return std::visit([&](const auto& process) { return Levels(windows, seed).of(process); },
                    context);
}

}  // namespace rehearse::control
