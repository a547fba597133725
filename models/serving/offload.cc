#include "models/serving/offload.h"

namespace rehearse::serving {

OffloadTimes times_of(const Offload& o, const OffloadedStep& step, ByteRate link) {
  // The host attends where the keys and values are; the device shares in it by what it holds.
  const Bytes loaded = o.host_attention ? step.prompts_read : step.read + step.prompts_read;
  const Bytes drives =
      step.weights * o.weights.nvme + (step.read + step.prompts_read + step.written) * o.cache.nvme;
  return {.loads = (step.weights * o.weights.all() + loaded * o.cache.all()) / link,
          .stores = step.written * o.cache.all() / link,
          .drives = drives > Bytes::b(0) ? drives / *o.nvme_rate : Seconds::s(0),
          .host_attention =
              o.host_attention ? step.read * o.cache.all() / o.host_memory_rate : Seconds::s(0)};
}

}  // namespace rehearse::serving
