// Selectors: which ops of a recording an edit changes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/replay/lower.h"

namespace rehearse::replay {

/// Written TARGET or TARGET=PATTERN, where `*` in the pattern matches any characters:
/// "kernel=*gemm*", "host=enumerate(DataLoader)*", "range=*layers.3*", "collective", "gpu".
struct Selector {
  enum class Target {
    kGpu,  ///< all device work (kernels, copies, sets, collectives) with unexplained waits for it
           ///< and its unexplained delays
    kKernel,      ///< kernels other than collectives, by their name
    kCopy,        ///< copies and sets, by their name
    kCollective,  ///< collectives, by their kind ("all_reduce") or kernel name
    kHost,        ///< work of host threads, by the name of any enclosing range
    kRange,  ///< work of host threads in a range and in the backward operators of its forward ones,
             ///< and the device work that they launch
    kLaunch,    ///< the time from a launching call to the start on the device
    kProfiler,  ///< work of the profiler
  };
  Target target;
  std::string pattern;  ///< empty: every op of the target
  std::string text;     ///< as written, for messages
};

Result<Selector> parse_selector(std::string_view text);

struct RankOp {
  std::uint32_t rank;
  OpIndex op;
  /// The outermost range that the pattern of a kHost or kRange selector names around the op.
  std::optional<HostIndex> range = {};
};

/// Takes an op of a thread or of the device away: it takes no time, waits for no resource, and is no
/// message of a known size. It still orders others.
void take_away(program::ProgramOp& op);
/// Whether an edit took away the op, or its device op.
bool is_gone(const RecordedProgram& program, const RankOp& at);

/// The selected ops that no edit took away, by rank and in their order.
std::vector<RankOp> select(const std::vector<Recording>& recordings, const RecordedProgram& program,
                           const Selector& selector);
/// The same. Fails if there are none, with names that exist, or says that edits took them all away.
Result<std::vector<RankOp>> select_some(const std::vector<Recording>& recordings,
                                        const RecordedProgram& program, const Selector& selector);

/// The ranges and operators of a rank that a pattern names.
class Ranges {
 public:
  /// `backward`: a backward operator belongs to the range of its forward operator.
  Ranges(const Recording& recording, std::string_view pattern, bool backward);
  /// The outermost one that encloses a host op.
  std::optional<HostIndex> of(std::optional<HostIndex> op) const {
    return op ? outermost_[*op] : std::nullopt;
  }

 private:
  std::vector<std::optional<HostIndex>> outermost_;  // by HostIndex
};

}  // namespace rehearse::replay
