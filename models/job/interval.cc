#include "models/job/interval.h"

namespace rehearse::job {

Estimate<Seconds> estimate_step(Seconds step, const Usage& last, double by_roofline) {
  const Seconds network = last.exposed_communication;
  const Seconds kernels = (last.compute + last.memory) * by_roofline;
  const bool from_datasheets = network > Seconds::s(0) || by_roofline > 0;
  return {.value = step,
          .low = step - network * (1 - kFastestNetwork),
          .high = step + network * (kSlowestNetwork - 1) + kernels * (1 / kLeastOfPeak - 1),
          .provenance = from_datasheets ? Provenance::kDatasheet : Provenance::kExtrapolated};
}

}  // namespace rehearse::job
