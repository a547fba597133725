// Offload of a server: shares of its weights and of its keys and values are on the host or on the
// drives of its node. A step loads them layer by layer while the device computes the layer before,
// and stores new keys and values likewise (Sheng et al., FlexGen, ICML 2023). docs/concepts/serving-offload.md
// has a worked example.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/units.h"

namespace rehearse::serving {

/// Shares of a state that are not on the device; a sum of at most 1.
struct OffDevice {
  double host = 0, nvme = 0;
  double all() const { return host + nvme; }
};

struct Offload {
  OffDevice weights = {}, cache = {};
  /// Parts of a step's rows that take turns with a loaded layer, so that its activations and
  /// products have the size of one part.
  std::uint32_t batches = 1;
  /// Attention of generated tokens runs on the host, which reads their keys and values there.
  bool host_attention = false;
  ByteRate host_memory_rate = ByteRate::gb_per_s(50);
  std::optional<Bytes> host_memory = {}, nvme = {};  ///< capacities, as far as they are known
  std::optional<ByteRate> nvme_rate = {};            ///< of reading and writing together
};

/// Bytes of a server: of all weights, and of the keys and values that a step's generated tokens and
/// its prompts read, and that it writes.
struct OffloadedStep {
  Bytes weights, read, prompts_read, written;
};

/// Times of a step, each of all layers, that overlap: layers are alike, and every transfer is one
/// layer before its use, or one layer after it.
struct OffloadTimes {
  Seconds loads, stores;   ///< over the link of the device
  Seconds drives;          ///< of reading and writing
  Seconds host_attention;  ///< follows the products of its layer: it adds to the device's time
};
/// REQUIRES: `nvme_rate`, if a state has a share on drives.
OffloadTimes times_of(const Offload& offload, const OffloadedStep& step, ByteRate link);

}  // namespace rehearse::serving
