// Workloads small enough to count by hand, tagged as models/workload/op.h says.
#pragma once

#include "models/workload/workload.h"

namespace rehearse::test {

struct TinyGpt {
  double hidden = 64;
  double heads = 8;
  double sequence = 32;
  double vocabulary = 512;
  std::uint32_t layers = 8;
  bool flash = true;          ///< else attention scores are saved
  std::uint32_t experts = 0;  ///< instead of the feed-forward part
  double experts_per_token = 2;
  bool tied = false;
};

/// GPT for one sample: "embedding", "block" x layers, "head". Activations have 2 bytes.
workload::Workload tiny_gpt(const TinyGpt& dimensions);
/// Bytes of a typical activation: 32 tokens with 64 features.
inline constexpr double kTinyActivation = 32 * 64 * 2;

/// `layers` fully connected layers of size x size on one sample without tokens; each is separate.
workload::Workload tiny_mlp(std::uint32_t layers, double size);

}  // namespace rehearse::test
