// Layouts made by hand, to test code that reads layouts. Strategies make real ones.
#pragma once

#include "models/workload/layout.h"

namespace rehearse::test {

struct LayoutShape {
  std::uint32_t stages = 1;
  workload::Degrees degrees = {};
  std::uint32_t chunks = 1;  ///< per stage; interleaved where more than one
  std::uint32_t layers = 2;  ///< per chunk, alike
  std::uint32_t microbatches = 1;
  bool gpipe = false;  ///< all forward, then all backward; else 1F1B
  bool split = false;  ///< with weight gradients after each backward pass
};

/// Stages of layers as given, numbered consecutively, with orders of the schedule. With several
/// chunks, the number of microbatches is a multiple of the pipeline stages.
workload::Layout layout_of(const LayoutShape& shape, const workload::Layer& layer);

/// An op with this duration, at a price of one second per byte.
workload::Op seconds_op(double seconds);
inline Seconds seconds_price(const workload::Op& op) { return Seconds::s(op.bytes.b()); }

workload::Op collective_op(CollectiveKind kind, workload::Axis axis, Bytes bytes,
                           workload::Issue issue = workload::Issue::kInline);

/// GPT-175B (96 layers of 12288, sequences of 2048), one sequence per microbatch, full
/// recomputation, as Megatron-LM runs it: tensor all-reduces inline, gradients after backward.
workload::Layout gpt_175b(std::uint32_t pipeline, std::uint32_t tensor, std::uint32_t data,
                          std::uint32_t microbatches);
/// Prices an op at 250 TFLOP/s and 1.5 TB/s.
Seconds roofline_price(const workload::Op& op);

}  // namespace rehearse::test
