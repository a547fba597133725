#include "tests/support/recorded_step.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "sim/base/check.h"
#include "tests/support/trace_builder.h"

namespace rehearse::test {
namespace {

using program::ProgramOp;
using program::Task;
using workload::Layer;
using workload::Op;
using workload::OpKind;
using workload::Pass;

/// A computing op of a rank, in the order in which it runs.
struct Work {
  const Op* op;
  enum class Phase { kForward, kBackward, kUpdate } phase;
  std::uint32_t microbatch, chunk, layer;
  std::uint32_t product;  ///< of a product: the forward one of the layer that it is or undoes
};

bool computes(const Op& op) { return !op.communicates(); }

std::uint32_t products_of(const std::vector<Op>& ops) {
  return static_cast<std::uint32_t>(
      std::count_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::kGemm; }));
}

std::vector<Work> work_of(const workload::Layout& layout, const workload::Stage& stage) {
  std::vector<Work> work;
  const auto add = [&](const std::vector<Op>& ops, Work::Phase phase, const workload::Slot& slot,
                       std::uint32_t layer) {
    const std::uint32_t all = products_of(stage.chunks[slot.chunk].layers[layer].forward);
    std::uint32_t seen = 0;
    for (const Op& op : ops) {
      if (!computes(op)) continue;
      // Each product has two gradients.
      const std::uint32_t product =
          phase == Work::Phase::kBackward ? all - 1 - std::min(all - 1, seen / 2) : seen;
      work.push_back({&op, phase, slot.microbatch, slot.chunk, layer, product});
      if (op.kind == OpKind::kGemm) ++seen;
    }
  };
  for (const workload::Slot& slot : stage.order) {
    const std::vector<Layer>& layers = stage.chunks[slot.chunk].layers;
    const auto count = static_cast<std::uint32_t>(layers.size());
    for (std::uint32_t k = 0; k < count; ++k) {
      REHEARSE_CHECK(layers[k].count == 1);
      const std::uint32_t back = count - 1 - k;
      if (slot.pass == Pass::kForward) add(layers[k].forward, Work::Phase::kForward, slot, k);
      if (slot.pass == Pass::kBackward)
        add(layers[back].backward, Work::Phase::kBackward, slot, back);
    }
  }
  REHEARSE_CHECK(layout.microbatches > 0);
  for (std::uint32_t c = 0; c < stage.chunks.size(); ++c)
    for (std::uint32_t l = 0; l < stage.chunks[c].layers.size(); ++l)
      add(stage.chunks[c].layers[l].step, Work::Phase::kUpdate, {Pass::kBackward, c, 0}, l);
  return work;
}

class RankRecorder {
 public:
  static constexpr int kMain = 1, kAutograd = 2;

  RankRecorder(trace::Trace& trace, const step::Step& step, const strategies::Price& price,
               std::size_t run, KeysBy keys_by)
      : trace_(trace), step_(step), price_(price), run_(run), keys_by_(keys_by), b_(trace) {
    const std::uint32_t number = rank().index();
    b_.rank().info.rank = number;
    b_.rank().info.world_size = step.job.ranks();
    b_.rank().info.source = fmt::format("rank{}", number);
    for (const workload::Stage& one : step.layout.stages)
      for (std::uint32_t r = 0; r < one.degrees.ranks(); ++r)
        if (one.rank(r) == number) stage_ = &one;
    work_ = work_of(step.layout, *stage_);
    samples_ = samples_of();
  }

  void add() {
    const program::RankProgram& program = step_.job.program(rank());
    for (std::uint32_t i = 0; i < program.ops.size(); ++i)
      ends_[stream_of(program.ops[i])].push_back(step_.timeline[step_.lowered.op(run_, i)].end);
    for (auto& [stream, ends] : ends_) std::ranges::sort(ends);
    // By the time at which they start: the order of issue, where ops overlap, is not that of time.
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      const ProgramOp& op = program.ops[i];
      const OpId node = step_.lowered.op(run_, i);
      if (op.task == Task::kCompute)
        compute(step_.timeline[node].start, *op.duration);
      else if (op.task == Task::kCollective)
        message(program, i, op.collective, op.bytes, members_of(op));
      else if (op.task == Task::kSend || op.task == Task::kReceive)
        message(program, i, CollectiveKind::kSendRecv, op.bytes, between(op));
      else
        REHEARSE_CHECK(op.duration && *op.duration == Picoseconds(0));
    }
    REHEARSE_CHECK(next_ == work_.size());
    const double ahead = launch_ahead();
    b_.call("cudaDeviceSynchronize", ahead, us(last_) - ahead + 0.5, ++correlation_, kMain);
    b_.step(1, 0, us(last_) + 1);
  }

 private:
  RankId rank() const { return step_.lowered.ranks[run_]; }
  static double us(Picoseconds time) { return time.seconds().us(); }

  /// All ops hold the samples of a microbatch.
  double samples_of() const {
    return step_.layout.samples_per_step / step_.layout.microbatches / stage_->degrees.data;
  }

  std::vector<std::uint32_t> members_of(const ProgramOp& op) const {
    std::vector<std::uint32_t> members;
    for (const RankId member :
         step_.job.groups[step_.job.groups_of[rank().index()][op.group]].members)
      members.push_back(member.index());
    return members;
  }

  std::vector<std::uint32_t> between(const ProgramOp& op) const {
    const std::uint32_t own = rank().index(), peer = step_.job.peer(rank(), op).index();
    return {std::min(own, peer), std::max(own, peer)};
  }

  /// The host does not wait for the device: nothing lasts longer than 1 us. Returns its end in us.
  double launch_ahead() {
    std::vector<trace::HostOp>& ops = b_.rank().host_ops;
    std::map<Nanoseconds, Nanoseconds> times;
    for (const trace::HostOp& op : ops) times.try_emplace(op.start, 0);
    Nanoseconds before(0), time(0);
    for (auto& [recorded, launched] : times) {
      launched = time += std::min(Nanoseconds(1000), recorded - before);
      before = recorded;
    }
    for (trace::HostOp& op : ops) op.start = times.at(op.start);
    return time.seconds().us() + 1;
  }

  /// Each group has one, as have sends and receives (sim/program/program.h).
  static std::uint32_t stream_of(const ProgramOp& op) {
    return op.task == Task::kSend ? 13 : op.task == Task::kReceive ? 14 : 15 + op.group;
  }

  /// The kernels of the ops that the program joined to one.
  void compute(Picoseconds start, Picoseconds duration) {
    Picoseconds at = start;
    const Picoseconds end = start + duration;
    while (next_ < work_.size() && end - at > Picoseconds(1000)) {
      const Work& work = work_[next_++];
      const Picoseconds time = Picoseconds::from(price_(*work.op));
      if (work.op->kind == OpKind::kAttention && in_ring_)
        attention_in_ring(work, us(at), us(time));
      else
        kernel(work, us(at), us(time));
      at += time;
    }
    last_ = std::max(last_, end);
  }

  /// In parts, one for the keys of each rank.
  void attention_in_ring(const Work& work, double at, double duration) {
    in_ring_ = false;
    const double ranks = stage_->degrees.context;
    Op part = *work.op;
    part.n /= ranks;
    Work of_part = work;
    of_part.op = &part;
    const int calls = keys_by_ == KeysBy::kMessages ? static_cast<int>(ranks) : 1;
    for (int call = 0; call < calls; ++call)
      kernel(of_part, at + duration / calls * call, duration / calls);
  }

  void kernel(const Work& work, double at, double duration) {
    const Op& op = *work.op;
    const std::string name(op.name);
    if (work.phase == Work::Phase::kUpdate) {
      b_.host("Optimizer.step#SGD", at, 0.9, trace::HostKind::kAnnotation, kMain);
      operation("aten::_foreach_add_", fmt::format("[[{}]]", op.bytes.b() / 4), at, duration,
                kMain);
      return;
    }
    const bool product = op.kind == OpKind::kGemm;
    const std::uint32_t sequence = 100 * (1000 * work.microbatch + 100 * work.chunk + work.layer) +
                                   (product         ? 10 + work.product
                                    : name == "add" ? 3
                                                    : 2);
    if (work.phase == Work::Phase::kForward) {
      trace::HostOp& row = operation("aten::" + name, forward_shapes(op), at, duration, kMain);
      row.sequence = sequence;
      row.forward_thread = 0;
      return;
    }
    operation("aten::" + name, product ? product_shapes(op) : forward_shapes(op), at, duration,
              kAutograd);
    trace::HostOp& node = b_.host(product                         ? "AddmmBackward0"
                                  : op.kind == OpKind::kAttention ? "AttentionBackward0"
                                                                  : "GeluBackward0",
                                  at, 0.9, trace::HostKind::kOperator, kAutograd);
    node.sequence = sequence;
    node.forward_thread = 1;
    if (op.weight_gradient)
      row("torch::autograd::AccumulateGrad",
          op.expert ? fmt::format("[[{}, {}, {}]]", op.batch, op.m, op.n)
                    : fmt::format("[[{}, {}]]", op.m, op.n),
          at + 0.8, kAutograd);
  }

  static std::string product_shapes(const Op& op) {
    return op.expert ? fmt::format("[[{0}, {1}, {2}], [{0}, {2}, {3}]]", op.batch, op.m, op.k, op.n)
                     : fmt::format("[[{}, {}], [{}, {}]]", op.m, op.k, op.k, op.n);
  }

  std::string forward_shapes(const Op& op) const {
    if (op.expert && op.kind == OpKind::kGemm) return product_shapes(op);
    if (op.kind == OpKind::kGemm)
      return fmt::format("[[{}, {}, {}], [{}, {}], []]", samples_, op.m / samples_, op.k, op.n,
                         op.k);
    if (op.kind == OpKind::kAttention)
      return fmt::format("[[{0}, {1}, {2}, {4}], [{0}, {1}, {3}, {4}], [{0}, {1}, {3}, {4}]]",
                         samples_, op.batch / samples_, op.m, op.n, op.k);
    REHEARSE_CHECK(op.kind == OpKind::kElementwise);
    // An addition reads two tensors and writes one; others read and write one.
    const bool add = op.name == "add";
    const std::string one =
        fmt::format("[{}, 1, {}]", samples_, op.bytes.b() / 4 / (add ? 3 : 2) / samples_);
    return add ? "[" + one + ", " + one + "]" : "[" + one + "]";
  }

  trace::HostOp& row(const std::string& name, const std::string& shapes, double at, int thread) {
    trace::HostOp& host = b_.host(name, at, 0.05, trace::HostKind::kOperator, thread);
    b_.rank().inputs.push_back({trace_.names.intern(shapes), trace_.names.intern(types(shapes))});
    host.inputs = trace::InputsId(b_.rank().inputs.size() - 1);
    return host;
  }
  static std::string types(const std::string& shapes) {
    std::string text;
    std::size_t depth = 0;
    for (const char c : shapes)
      if (c == '[' && ++depth == 2)
        text += text.empty() ? "\"float\"" : ", \"float\"";
      else if (c == ']')
        --depth;
    return "[" + text + "]";
  }

  /// The operator and its launch begin with the kernel: launches are no matter here.
  trace::HostOp& operation(const std::string& name, const std::string& shapes, double at,
                           double duration, int thread) {
    launch("kernel", at, duration, thread);
    return row(name, shapes, at + 0.001, thread);
  }
  trace::GpuOp& launch(const std::string& name, double at, double duration, int thread,
                       std::uint32_t stream = 7) {
    b_.call("cudaLaunchKernel", at + 0.01, 0.01, ++correlation_, thread);
    return b_.kernel(name, at, duration, correlation_, stream);
  }

  /// From when this rank has arrived, and its stream is free: a kernel waits for those before it.
  void message(const program::RankProgram& program, std::uint32_t i, CollectiveKind kind,
               Bytes bytes, const std::vector<std::uint32_t>& members) {
    Picoseconds start(0);
    for (std::uint32_t d = program.first_dependency[i]; d < program.first_dependency[i + 1]; ++d)
      start = std::max(start, step_.timeline[step_.lowered.op(run_, program.dependencies[d])].end);
    const Picoseconds end = step_.timeline[step_.lowered.op(run_, i)].end;
    const std::vector<Picoseconds>& ends = ends_.at(stream_of(program.ops[i]));
    if (const auto own = std::ranges::lower_bound(ends, end); own != ends.begin())
      start = std::max(start, *std::prev(own));
    last_ = std::max(last_, end);
    const double share = kind == CollectiveKind::kAllGather
                             ? bytes.b() / static_cast<double>(members.size())
                             : bytes.b();
    // Each rank passes on what it received, until all have all parts.
    in_ring_ = keys_by_ != KeysBy::kGather &&
               step_.job.names[program.ops[i].name] == "keys and values around";
    const int messages = in_ring_ ? static_cast<int>(members.size()) - 1 : 1;
    const double duration = (us(end) - us(start)) / messages;
    for (int m = 0; m < messages; ++m)
      kernel_of_message(in_ring_ ? CollectiveKind::kSendRecv : kind, share, members,
                        us(start) + duration * m, duration, stream_of(program.ops[i]));
  }

  void kernel_of_message(CollectiveKind kind, double bytes,
                         const std::vector<std::uint32_t>& members, double at, double duration,
                         std::uint32_t stream) {
    b_.rank().collectives.push_back(
        {.kind = kind,
         .bytes_in = static_cast<std::uint64_t>(std::llround(bytes)),
         .group_size = static_cast<std::uint32_t>(members.size()),
         .group = trace_.names.intern("group"),
         .ranks = trace_.names.intern(fmt::format("[{}]", fmt::join(members, ", ")))});
    // Issued where the last computing op was.
    const bool backward = (kind != CollectiveKind::kSendRecv || in_ring_) && next_ > 0 &&
                          work_[next_ - 1].phase == Work::Phase::kBackward;
    launch("ncclDevKernel", at, duration, backward ? kAutograd : kMain, stream).collective =
        trace::CollectiveId(b_.rank().collectives.size() - 1);
  }

  trace::Trace& trace_;
  const step::Step& step_;
  const strategies::Price& price_;
  const std::size_t run_;
  const KeysBy keys_by_;
  RankBuilder b_;
  const workload::Stage* stage_ = nullptr;
  std::vector<Work> work_;
  double samples_ = 1;
  std::size_t next_ = 0;
  bool in_ring_ = false;  ///< the next attention
  std::uint32_t correlation_ = 0;
  Picoseconds last_{0};
  std::map<std::uint32_t, std::vector<Picoseconds>> ends_;  ///< of messages, by stream
};

}  // namespace

trace::Trace record(const step::Step& step, const strategies::Price& price, KeysBy keys_by) {
  REHEARSE_CHECK(step.lowered.ranks.size() == step.job.ranks());
  trace::Trace trace;
  for (std::size_t run = 0; run < step.lowered.ranks.size(); ++run)
    RankRecorder(trace, step, price, run, keys_by).add();
  return trace;
}

}  // namespace rehearse::test
