// Keys and values that replicas of one pool send to those of another (sim/serving/pools.h).
#pragma once

#include "models/serving/step_price.h"
#include "sim/serving/pools.h"

namespace rehearse::serving {

/// What connects the GPUs of two pools.
struct Network {
  ByteRate rate = ByteRate::gb_per_s(1);  ///< per GPU and direction
  Seconds latency = Seconds::s(0);        ///< per prompt
  bool by_layer = false;                  ///< while the prompt is computed
};

/// Every rank of the receiving replica gets its part of the keys and values: `cached` bytes per token
/// on the rank that holds most. The ranks of the sending replica share the work, so
///   in = cached / rate,   out = cached · receiving ranks / (sending ranks · rate).
/// Tensor ranks divide heads; latents, which every rank keeps whole, are sent to each of them.
Transfer transfer_between(const StepPrice& sender, const StepPrice& receiver,
                          const Network& network);

}  // namespace rehearse::serving
