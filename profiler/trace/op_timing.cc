#include "profiler/trace/op_timing.h"

#include <algorithm>
#include <tuple>

namespace rehearse::trace {
namespace {

auto key(const OpTiming& t) {
  return std::tie(t.op, t.shape, t.dtype, t.layout, t.epilogue, t.cold, t.device, t.multiprocessors,
                  t.partition, t.memory_clock_hz, t.libraries);
}

}  // namespace

bool same_key(const OpTiming& a, const OpTiming& b) { return key(a) == key(b); }

void merge(std::vector<OpTiming>& into, std::vector<OpTiming> timings) {
  for (OpTiming& timing : timings) {
    const auto same =
        std::ranges::find_if(into, [&](const OpTiming& known) { return same_key(known, timing); });
    if (same == into.end())
      into.push_back(std::move(timing));
    else
      *same = std::move(timing);
  }
}

}  // namespace rehearse::trace
