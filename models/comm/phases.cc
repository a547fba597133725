#include "models/comm/phases.h"

#include <algorithm>
#include <bit>

namespace rehearse::comm {

Steps steps_in(const Schedule& schedule, std::uint32_t chunks) {
  if (schedule.depth == 0)
    return {schedule.local.count + schedule.across.count,
            schedule.local.share + schedule.across.share};
  const double steps = schedule.depth + chunks - 1.0;
  return {steps, schedule.busy * steps / chunks};
}

std::uint32_t chunks_of(Bytes size) {
  constexpr double kChunk = 256 * 1024.0, kLeast = 8, kMost = 512;
  return std::bit_ceil(static_cast<std::uint32_t>(std::clamp(size.b() / kChunk, kLeast, kMost)));
}

Seconds Messages::start(std::size_t flow) const { return phase(flow).start; }

ByteRate Messages::cap(std::size_t flow) const {
  const ByteRate port = phases ? phase(flow).cap : most;
  return parts ? port * (*parts)[flow] : port;
}

Phases phases_of(const Price& price, Seconds Estimate<Seconds>::*end, const Schedule& schedule,
                 std::uint32_t chunks, Bytes size, const std::array<ByteRate, 2>& links) {
  Phases phases;
  const auto add = [&](const LevelPrice& of, const Steps& steps, double busy, std::size_t level) {
    LevelPhase& phase = phases.levels[level];
    phase.cap = links[level];
    // An end of the interval is quicker or slower in all its parts.
    const double factor = of.time.value > Seconds::s(0) ? of.time.*end / of.time.value : 1;
    if (of.wire > Seconds::s(0)) phase.cap = std::min(phase.cap, size * busy / (of.wire * factor));
    const Seconds wire = size * steps.share / phase.cap, whole = std::max(of.time.*end, wire);
    const Seconds launch = std::min(of.launch * factor, whole - wire);
    if (steps.count > 0) phase.start = (whole - wire - launch) / steps.count;
    phases.launch += launch;
    phases.wire += wire;
    phases.time += whole;
  };
  if (schedule.across_flows) {
    add(price.levels[0], schedule.local, schedule.local.share, 0);
    add(price.levels[1], schedule.across, schedule.across.share, 1);
    return phases;
  }
  const bool between = price.levels[0].time.value == Seconds::s(0);
  add(price.levels[between ? 1 : 0], steps_in(schedule, chunks), schedule.busy, 0);
  return phases;
}

}  // namespace rehearse::comm
