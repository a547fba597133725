#include "models/comm/framework_timing.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/comm/timing_files.h"
#include "sim/base/check.h"

namespace rehearse::comm {

const FrameworkTiming& framework_timing() {
  static const FrameworkTiming kTiming = [] {
    Result<FrameworkTiming> read = parse_framework_timing(
        std::string(timing_files::framework_timing_yaml), "shipped framework timing");
    REHEARSE_CHECK(read.has_value(), "{}", to_string(read.error()));
    return *read;
  }();
  return kTiming;
}

Estimate<Seconds> in_framework(Estimate<Seconds> t, const FrameworkTiming& timing) {
  const auto apart = [](Seconds a, Seconds b) { return Seconds::s(std::hypot(a.s(), b.s())); };
  const Seconds value = t.value + timing.call;
  t.low = value - apart(t.value - t.low, timing.call);
  t.high = value + apart(t.high - t.value, timing.high - timing.call);
  t.value = value;
  t.provenance = std::max(t.provenance, Provenance::kExtrapolated);
  return t;
}

}  // namespace rehearse::comm
