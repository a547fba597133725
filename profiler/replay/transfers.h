// The size of a recorded collective.
#pragma once

#include <cstdint>
#include <optional>

#include "profiler/replay/collectives.h"
#include "sim/base/units.h"

namespace rehearse::replay {

/// The number of ranks of a collective: that of its group, else that of the job.
std::optional<std::uint32_t> ranks_of(const Recording& recording, const CommunicationOp& op);

struct SizedCollective {
  Bytes bytes;  ///< as docs/concepts/collectives.md defines it per kind
  std::uint32_t ranks;
};

/// Nothing if kind, bytes or number of ranks was not recorded. `found`: a number of ranks that is known
/// otherwise.
std::optional<SizedCollective> size_of(const Recording& recording, const CommunicationOp& op,
                                       std::optional<std::uint32_t> found = {});

}  // namespace rehearse::replay
