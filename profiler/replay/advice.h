// The most effective changes: single changes, each simulated, ordered by their gain.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "profiler/replay/compare.h"
#include "profiler/replay/edit.h"

namespace rehearse::replay {

struct Advice {
  std::string edit;                   ///< as `whatif` takes it: "--scale 'kernel:0.5'"
  std::string meaning;                ///< "every kernel twice as fast"
  Seconds step_time = Seconds::s(0);  ///< with the change
  double change = 0;                  ///< relative to no change: -0.2 is 20 % faster
};

/// Returns the `count` changes that shorten the step most. It tries: each kind of work twice as
/// fast, the kernels and host ranges with the largest share of the critical path twice as fast,
/// loading on worker processes, and no profiler. Changes that gain less than 0.1 % are left out.
/// Uses up to `threads` threads. `run` is the engine, which this module does not depend on.
using Run = std::function<Result<graph::Timeline>(const graph::Graph&)>;
std::vector<Advice> find_advice(const std::vector<Recording>& recordings, const ReplayGraph& replay,
                                const graph::Timeline& timeline, const Run& run, std::size_t count,
                                unsigned threads);

}  // namespace rehearse::replay
