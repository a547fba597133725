// Recorded steps of a model in a few lines: operators with shapes, one after another.
#pragma once

#include <string>

#include <fmt/core.h>

#include "tests/support/trace_builder.h"

namespace rehearse::test {

class StepBuilder {
 public:
  static constexpr int kMain = 1, kAutograd = 2;

  explicit StepBuilder(trace::Trace& trace) : trace_(trace), rank_(trace) {}

  RankBuilder& rank() { return rank_; }
  double now() const { return now_; }

  /// Begins a step, which contains everything until end_step.
  void begin_step() { begin_ = now_; }
  void end_step() { rank_.step(step_++, begin_, now_ - begin_); }
  void wait(double us) { now_ += us; }

  /// An operator with one kernel of this many microseconds; without a kernel for 0.
  trace::HostOp& op(const std::string& name, const std::string& shapes, double kernel,
                    int thread = kMain, const std::string& kernel_name = "k") {
    const double start = now_;
    if (kernel > 0) launch(kernel, thread, kernel_name);
    now_ = start + 8;
    trace::HostOp& row = rank_.host(name, start, 8, trace::HostKind::kOperator, thread);
    if (!shapes.empty()) row.inputs = inputs(shapes, "float");
    return row;
  }
  /// A forward operator with its sequence number, which its backward operator refers to.
  trace::HostOp& forward(const std::string& name, const std::string& shapes, double kernel,
                         std::uint32_t sequence) {
    trace::HostOp& row = op(name, shapes, kernel);
    row.sequence = sequence;
    row.forward_thread = 0;
    return row;
  }
  /// A backward operator on the autograd thread that encloses what `inside` adds.
  template <class Inside>
  void backward(const std::string& name, std::optional<std::uint32_t> sequence, Inside inside) {
    const double start = now_;
    now_ += 1;
    inside();
    trace::HostOp& row =
        rank_.host(name, start, now_ - start, trace::HostKind::kOperator, kAutograd);
    row.sequence = sequence;
    if (sequence) row.forward_thread = 1;
    now_ += 1;
  }
  void gradient(const std::string& shape) {
    op("torch::autograd::AccumulateGrad", "[" + shape + "]", 0, kAutograd);
  }
  /// A module call, a range or an operator that encloses what `inside` adds.
  template <class Inside>
  trace::HostOp& around(const std::string& name, trace::HostKind kind, Inside inside) {
    const double start = now_;
    now_ += 1;
    inside();
    now_ += 1;
    return rank_.host(name, start, now_ - start - 1, kind, kMain);
  }
  template <class Inside>
  void module(const std::string& name, Inside inside) {
    around("nn.Module: " + name, trace::HostKind::kFrame, inside);
  }
  trace::GpuOp& launch(double kernel, int thread, const std::string& name) {
    rank_.call("cudaLaunchKernel", now_ + 2, 4, ++correlation_, thread);
    device_ = std::max(device_, now_ + 4);
    trace::GpuOp& gpu = rank_.kernel(name, device_, kernel, correlation_);
    device_ += kernel;
    return gpu;
  }
  trace::InputsId inputs(const std::string& shapes, const std::string& type) {
    std::string types;
    std::size_t depth = 0;
    for (const char c : shapes)
      if (c == '[' && ++depth == 2)
        types += fmt::format("{}\"{}\"", types.empty() ? "" : ", ", type);
      else if (c == ']')
        --depth;
    rank_.rank().inputs.push_back(
        {trace_.names.intern(shapes), trace_.names.intern("[" + types + "]")});
    return trace::InputsId(rank_.rank().inputs.size() - 1);
  }

 private:
  trace::Trace& trace_;
  RankBuilder rank_;
  double now_ = 0, begin_ = 0, device_ = 0;
  std::uint32_t correlation_ = 0;
  int step_ = 1;
};

}  // namespace rehearse::test
