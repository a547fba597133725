// Recordings of the ranks of a job that trains a chain of blocks, each of two linears with a GELU
// between, under tensor, pipeline and data parallelism.
#pragma once

#include <numeric>
#include <vector>

#include "tests/support/lift_builder.h"

namespace rehearse::test {

struct RecordedJob {
  std::uint32_t tensor = 1, pipeline = 1, data = 1;
  int blocks = 4;
  int microbatches = 1;
  double samples = 8, rows = 64, hidden = 256, inner = 1024;
  double vocabulary = 0;  ///< above 0: a table of embeddings and a head, divided by tensor ranks
  int heads = 0;          ///< above 0: blocks begin with attention; of one rank alone
  int experts = 0;  ///< above 0: blocks of a router and experts, two per token; of one rank alone
  double forward_us = 10;  ///< of a linear on one tensor rank

  std::uint32_t ranks() const { return tensor * pipeline * data; }
};

class RecordedRanks {
 public:
  RecordedRanks(trace::Trace& trace, const RecordedJob& job) : trace_(trace), job_(job) {}

  /// Tensor varies fastest, then data, then the stage.
  void add(std::uint32_t rank, int steps = 1) {
    StepBuilder b(trace_);
    b_ = &b;
    rank_ = rank;
    sequence_ = 1;
    b.rank().rank().info.rank = rank;
    b.rank().rank().info.world_size = job_.ranks();
    b.rank().rank().info.source = fmt::format("rank{}.json", rank);
    for (int s = 0; s < steps; ++s) {
      b.begin_step();
      for (int m = 0; m < job_.microbatches; ++m) pass();
      if (job_.data > 1) {
        b.around("Optimizer.step#Adam", trace::HostKind::kAnnotation, [] {});
        message(CollectiveKind::kAllReduce, gradient_bytes(), data_group());
      }
      b.around("Optimizer.step#Adam", trace::HostKind::kAnnotation,
               [&] { b.op("aten::_foreach_add_", "[[1]]", 3); });
      b.end_step();
      b.wait(40);
    }
  }

  double activation_bytes() const { return 4 * job_.samples * job_.rows * job_.hidden; }
  double gradient_bytes() const { return 4 * 2 * job_.hidden * job_.inner / job_.tensor * own(); }

 private:
  int own() const { return job_.blocks / static_cast<int>(job_.pipeline); }
  std::uint32_t stage() const { return rank_ / (job_.tensor * job_.data); }
  std::vector<std::uint32_t> tensor_group() const {
    std::vector<std::uint32_t> members(job_.tensor);
    std::iota(members.begin(), members.end(), rank_ / job_.tensor * job_.tensor);
    return members;
  }
  std::vector<std::uint32_t> data_group() const {
    std::vector<std::uint32_t> members;
    for (std::uint32_t d = 0; d < job_.data; ++d)
      members.push_back(stage() * job_.tensor * job_.data + d * job_.tensor + rank_ % job_.tensor);
    return members;
  }

  void message(CollectiveKind kind, double bytes, const std::vector<std::uint32_t>& members,
               int thread = StepBuilder::kMain) {
    trace::Rank& rank = b_->rank().rank();
    trace::Collective collective{.kind = kind,
                                 .bytes_in = static_cast<std::uint64_t>(bytes),
                                 .group_size = static_cast<std::uint32_t>(members.size())};
    std::string text;
    for (const std::uint32_t member : members)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", member);
    collective.ranks = trace_.names.intern("[" + text + "]");
    rank.collectives.push_back(collective);
    b_->launch(7, thread, "ncclDevKernel").collective =
        trace::CollectiveId(rank.collectives.size() - 1);
    b_->wait(8);
  }
  void sum(int thread) {
    if (job_.tensor > 1)
      message(CollectiveKind::kAllReduce, activation_bytes(), tensor_group(), thread);
  }
  void between(bool later) {
    const bool crosses = later ? stage() + 1 < job_.pipeline : stage() > 0;
    if (crosses) message(CollectiveKind::kSendRecv, activation_bytes(), {0, 1});
  }

  void linear(const std::string& shapes) {
    b_->forward("aten::linear", shapes, job_.forward_us, sequence_++);
  }
  void gradient(double in, double out) {
    const double m = job_.samples * job_.rows;
    b_->backward("AddmmBackward0", --sequence_, [&] {
      b_->op("aten::mm", fmt::format("[[{}, {}], [{}, {}]]", m, out, out, in), job_.forward_us,
             StepBuilder::kAutograd);
      b_->op("aten::mm", fmt::format("[[{}, {}], [{}, {}]]", out, m, m, in), job_.forward_us,
             StepBuilder::kAutograd);
    });
    b_->gradient(fmt::format("[{}, {}]", out, in));
  }

  std::string heads() const {
    const std::string one = fmt::format("[{}, {}, {}, {}]", job_.samples, job_.heads, job_.rows,
                                        job_.inner / job_.heads);
    return fmt::format("[{0}, {0}, {0}]", one);
  }
  /// As wide as the two linears between which the GELU is.
  void attention() {
    const double h = job_.hidden, w = job_.inner;
    for (int i = 0; i < 3; ++i)
      linear(fmt::format("[[{}, {}, {}], [{}, {}], []]", job_.samples, job_.rows, h, w, h));
    b_->forward("aten::scaled_dot_product_attention", heads(), 5, sequence_++);
    linear(fmt::format("[[{}, {}, {}], [{}, {}], []]", job_.samples, job_.rows, w, h, w));
    const std::string whole = fmt::format("[{}, {}, {}]", job_.samples, job_.rows, h);
    b_->forward("aten::add", fmt::format("[{0}, {0}]", whole), 2, sequence_++);
  }
  void attention_backward() {
    --sequence_;  // of the addition
    gradient(job_.inner, job_.hidden);
    b_->backward("ScaledDotProductFlashAttentionBackward0", --sequence_, [&] {
      b_->op("aten::_scaled_dot_product_flash_attention_backward", heads(), 12,
             StepBuilder::kAutograd);
    });
    for (int i = 0; i < 3; ++i) gradient(job_.hidden, job_.inner);
  }

  double words() const { return job_.vocabulary / job_.tensor; }
  std::string logits() const {
    return fmt::format("[[{}, {}, {}]]", job_.samples, job_.rows, words());
  }

  double tokens_of_expert() const { return 2 * job_.samples * job_.rows / job_.experts; }
  void product(double in, double out) {
    b_->forward("aten::bmm",
                fmt::format("[[{0}, {1}, {2}], [{0}, {2}, {3}]]", job_.experts, tokens_of_expert(),
                            in, out),
                job_.forward_us, sequence_++);
  }
  void product_backward(double in, double out) {
    const double e = job_.experts, t = tokens_of_expert();
    b_->backward("BmmBackward0", --sequence_, [&] {
      b_->op("aten::bmm", fmt::format("[[{}, {}, {}], [{}, {}, {}]]", e, t, out, e, out, in),
             job_.forward_us, StepBuilder::kAutograd);
      b_->op("aten::bmm", fmt::format("[[{}, {}, {}], [{}, {}, {}]]", e, in, t, e, t, out),
             job_.forward_us, StepBuilder::kAutograd);
    });
    b_->gradient(fmt::format("[{}, {}, {}]", e, in, out));
  }
  void mixture() {
    const double h = job_.hidden, w = job_.inner;
    linear(
        fmt::format("[[{}, {}, {}], [{}, {}], []]", job_.samples, job_.rows, h, job_.experts, h));
    product(h, w);
    b_->forward("aten::gelu", fmt::format("[[{}, {}, {}]]", job_.experts, tokens_of_expert(), w), 2,
                sequence_++);
    product(w, h);
    const std::string whole = fmt::format("[{}, {}, {}]", job_.samples, job_.rows, h);
    b_->forward("aten::add", fmt::format("[{0}, {0}]", whole), 2, sequence_++);
  }
  void mixture_backward() {
    const double h = job_.hidden, w = job_.inner;
    --sequence_;  // of the addition
    product_backward(w, h);
    b_->backward("GeluBackward0", --sequence_, [&] {
      b_->op("aten::gelu_backward",
             fmt::format("[[{}, {}, {}]]", job_.experts, tokens_of_expert(), w), 3,
             StepBuilder::kAutograd);
    });
    product_backward(h, w);
    gradient(h, job_.experts);
  }

  void pass() {
    const double h = job_.hidden, w = job_.inner / job_.tensor;
    between(false);
    if (job_.vocabulary > 0 && stage() == 0) {
      b_->forward("aten::embedding",
                  fmt::format("[[{}, {}], [{}, {}]]", words(), h, job_.samples, job_.rows), 3,
                  sequence_++);
      sum(StepBuilder::kMain);
    }
    for (int i = 0; i < own(); ++i) {
      if (job_.heads > 0) attention();
      if (job_.experts > 0) {
        mixture();
        continue;
      }
      linear(fmt::format("[[{}, {}, {}], [{}, {}], []]", job_.samples, job_.rows, h, w, h));
      b_->forward("aten::gelu", fmt::format("[[{}, {}, {}]]", job_.samples, job_.rows, w), 2,
                  sequence_++);
      linear(fmt::format("[[{}, {}, {}], [{}, {}], []]", job_.samples, job_.rows, w, h, w));
      sum(StepBuilder::kMain);
      const std::string whole = fmt::format("[{}, {}, {}]", job_.samples, job_.rows, h);
      b_->forward("aten::add", fmt::format("[{0}, {0}]", whole), 2, sequence_++);
    }
    if (job_.vocabulary > 0 && stage() + 1 == job_.pipeline) {
      linear(fmt::format("[[{}, {}, {}], [{}, {}], []]", job_.samples, job_.rows, h, words(), h));
      b_->forward("aten::_log_softmax", logits(), 4, sequence_++);
    }
    between(true);
    const std::uint32_t after = sequence_;
    between(true);
    if (job_.vocabulary > 0 && stage() + 1 == job_.pipeline) {
      b_->backward("LogSoftmaxBackward0", --sequence_, [&] {
        b_->op("aten::_log_softmax_backward_data", logits(), 4, StepBuilder::kAutograd);
      });
      gradient(h, words());
      sum(StepBuilder::kAutograd);
    }
    for (int i = 0; i < own(); ++i) {
      if (job_.experts > 0) {
        mixture_backward();
        if (job_.heads > 0) attention_backward();
        continue;
      }
      --sequence_;  // of the addition, whose backward does nothing
      gradient(w, h);
      b_->backward("GeluBackward0", --sequence_, [&] {
        b_->op("aten::gelu_backward", fmt::format("[[{}, {}, {}]]", job_.samples, job_.rows, w), 3,
               StepBuilder::kAutograd);
      });
      gradient(h, w);
      sum(StepBuilder::kAutograd);
      if (job_.heads > 0) attention_backward();
    }
    if (job_.vocabulary > 0 && stage() == 0) {
      b_->backward("EmbeddingBackward0", --sequence_, [&] {
        b_->op("aten::embedding_dense_backward",
               fmt::format("[[{}, {}, {}]]", job_.samples, job_.rows, h), 4,
               StepBuilder::kAutograd);
      });
      b_->gradient(fmt::format("[{}, {}]", words(), h));
    }
    between(false);
    sequence_ = after;
  }

  trace::Trace& trace_;
  RecordedJob job_;
  StepBuilder* b_ = nullptr;
  std::uint32_t rank_ = 0, sequence_ = 1;
};

}  // namespace rehearse::test
