#include "models/sharing/slice_memory.h"

#include <algorithm>

namespace rehearse::sharing {

SliceMemory memory_on_slice(const cluster::MigDevice& device, std::uint32_t profile, Bytes used,
                            std::uint32_t multiprocessors) {
  constexpr double kContextMib = 4.27;  // per multiprocessor
  constexpr double kSpread = 0.01;      // of A100: 0.2 % on the mean, 2.5 % at worst
  const double fewer =
      static_cast<double>(multiprocessors) - cluster::multiprocessors_of(device, profile);
  const Bytes on_slice = std::max(Bytes::b(0), used - Bytes::mib(kContextMib) * fewer);
  const Bytes usable = cluster::slice_of(device, profile).memory;
  return {.used = {.value = on_slice,
                   .low = on_slice * (1 - kSpread),
                   .high = on_slice * (1 + kSpread),
                   .provenance = Provenance::kExtrapolated},
          .usable = usable,
          .fits = on_slice <= usable};
}

}  // namespace rehearse::sharing
