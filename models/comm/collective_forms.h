// What the forms of a CollectiveCost and the choice among them have in common. For sources of this
// module alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/comm/calibration.h"
#include "models/comm/nccl_choice.h"
#include "sim/base/units.h"

namespace rehearse::comm {

/// Places among the forms of algorithms that NCCL chooses among: rings are first, by protocol.
inline constexpr std::size_t kTreeForms = 3, kNvlsForm = 6, kPatForm = 7, kNvlsTreeForm = 8;

/// How often the bytes go around: twice in an all_reduce.
inline double passes_of(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kBarrier ? 2 : 1;
}

inline bool is_rooted(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce;
}

/// Seconds per byte; 0 of an unlimited rate.
inline double inverse(ByteRate rate) { return 1 / rate.bytes_per_s(); }

/// Twice the rate at which trees over nodes reduce a buffer at most, regardless of NICs. The rates on
/// two nodes of H100 (p5.48xlarge, 8 GiB) and of B200 (16 GiB, limited by 3,200 Gbit/s) and on more
/// nodes of H100 (280 GB/s of bus bandwidth for 512 MiB to 2 GiB) are measured. Otherwise: NCCL 2.9
/// (tuning.cc) had 110 GB/s for two nodes of A100 and 80 for more; NCCL 2.30 has limits by channel,
/// which give the ratios to more nodes and other generations.
ByteRate tree_limit(Generation generation, std::uint32_t nodes);

}  // namespace rehearse::comm
