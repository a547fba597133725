#include "models/job/interval.h"

#include "sim/program/occupancy.h"

namespace rehearse::job {

Estimate<Seconds> on_datasheet_links(Seconds time) {
  return {time, time * kFastestNetwork, time * kSlowestNetwork, Provenance::kDatasheet};
}

Estimate<Seconds> with_slow_kernels(Estimate<Seconds> step, const program::Occupancy& last,
                                    double by_roofline) {
  step.high = step.high + (last.compute + last.memory) * (by_roofline * (1 / kLeastOfPeak - 1));
  if (by_roofline > 0) step.provenance = Provenance::kDatasheet;
  return step;
}

}  // namespace rehearse::job
