#include "models/comm/phases.h"

#include <algorithm>
#include <bit>

namespace rehearse::comm {

std::uint32_t chunks_of(Bytes size) {
  constexpr double kChunk = 256 * 1024.0, kLeast = 8, kMost = 512;
  return std::bit_ceil(static_cast<std::uint32_t>(std::clamp(size.b() / kChunk, kLeast, kMost)));
}

ByteRate Messages::cap(std::size_t lane) const {
  if (!phases) return kUnlimited;
  return parts ? phases->cap * (*parts)[lane] : phases->cap;
}

Phases phases_of(const Price& price, Seconds time, const Schedule& schedule, std::uint32_t chunks,
                 Bytes size, ByteRate links) {
  const Steps steps = steps_in(schedule, chunks);
  const ByteRate cap =
      price.wire > Seconds::s(0) ? std::min(links, size * schedule.busy / price.wire) : links;
  const Seconds wire = size * steps.share / cap, whole = std::max(time, wire);
  const Seconds launch = std::min(price.launch, whole - wire);
  const Seconds start = steps.count > 0 ? (whole - wire - launch) / steps.count : Seconds::s(0);
  return {launch, start, cap, wire, whole};
}

}  // namespace rehearse::comm
