#include "strategies/stage_program.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "sim/program/rank_builder.h"
#include "strategies/launch_queue.h"
#include "strategies/origin_writer.h"
#include "strategies/schedule.h"
#include "strategies/server_program.h"
#include "strategies/stage_blocks.h"

namespace rehearse::strategies {

using program::ProgramOp, program::Task, workload::Issue, workload::Layer, workload::Layout,
    workload::Op, workload::OpKind, workload::Pass, workload::Slot, workload::Stage;

namespace {

class Writer {
 public:
  Writer(const Layout& layout, std::uint32_t stage, std::span<const Crossing> crossings,
         const KindPrice& price, const JobOptions& options, program::Program& whole)
      : layout_(layout),
        stage_(layout.stages[stage]),
        number_(stage),
        crossings_(crossings),
        price_(price),
        options_(options),
        names_(whole.names),
        origins_(layout.stages[stage], price, whole),
        blocks_(stage_, Price([this](const Op& op) { return origins_.timed(op); }),
                host_times(options, stage_.degrees, layout.stages.size()), options.host_per_kernel,
                whole.names) {
    local_group_.fill(kNone);
  }

  Result<StageProgram> run() {
    TRY(check_order(stage_, layout_.microbatches));
    TRY(blocks_.check(layout_.microbatches));
    find_peers();
    for (step_ = 0; step_ < options_.steps; ++step_) {
      begin_step();
      for (std::size_t s = 0; s < stage_.order.size(); ++s) slot(s);
      step();
    }
    if (wrong_) return tl::unexpected(std::move(*wrong_));
    // The next stage uses the room that appending left.
    program::RankProgram& program = result_.program;
    program.ops.shrink_to_fit();
    program.dependencies.shrink_to_fit();
    program.first_dependency.shrink_to_fit();
    program.device_work.shrink_to_fit();
    return std::move(result_);
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  using Ops = std::vector<std::uint32_t>;

  void find_peers() {
    for (const Crossing& crossing : crossings_)
      for (const std::uint32_t other : {crossing.from.stage, crossing.to.stage})
        if (other != number_ && touches(crossing)) add_to(result_.stages, other);
    if (const auto other = tied_with(layout_, number_)) add_to(result_.stages, *other);
    std::uint32_t first = 0;
    for (const std::uint32_t other : result_.stages) {
      const auto count = static_cast<std::uint32_t>(
          partners(stage_.degrees, 0, layout_.stages[other].degrees).size());
      peers_.push_back({first, count});
      first += count;
    }
  }
  bool touches(const Crossing& crossing) const {
    return crossing.from.stage == number_ || crossing.to.stage == number_;
  }

  void slot(std::size_t s) {
    const Slot& slot = stage_.order[s];
    cross(slot, Task::kReceive);
    begin_launches();
    const std::vector<Block>& blocks = blocks_.of(slot);
    // The last backward of the chunk: sums that overlap it may start.
    const bool ends = slot.pass == blocks_.last_backward() &&
                      std::none_of(stage_.order.begin() + static_cast<std::ptrdiff_t>(s) + 1,
                                   stage_.order.end(), [&](const Slot& later) {
                                     return later.chunk == slot.chunk && later.pass == slot.pass;
                                   });
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const Block* next = b + 1 < blocks.size() ? &blocks[b + 1] : first_block_after(s);
      block(blocks[b], next);
      if (ends) {
        const LayerRun& deferred = blocks_.deferred_after(blocks[b]);
        if (!deferred.pieces.empty() && last_paced_) await_launches();
        for (const LayerPiece& piece : deferred.pieces) defer(*piece.communication);
      }
    }
    if (!late_.empty()) finish();
    end_launches(blocks);
    cross(slot, Task::kSend);
  }

  /// Makes the next op wait for everything that is not deferred.
  void finish() {
    flush();
    for (const std::uint32_t op : late_) add_to(ready_, op);
    late_.clear();
  }

  const Block* first_block_after(std::size_t s) const {
    for (++s; s < stage_.order.size(); ++s)
      if (const std::vector<Block>& blocks = blocks_.of(stage_.order[s]); !blocks.empty())
        return &blocks.front();
    return nullptr;
  }

  /// The host begins to launch a pass. In a pipeline it has waited for what the stage received.
  void begin_launches() {
    if (!blocks_.are_paced()) return;
    await_launches();
    if (layout_.stages.size() > 1)
      host_after_ = ready_;
    else if (const Ops* ends = queue_.awaited())
      for (const std::uint32_t op : *ends) add_to(host_after_, op);
  }
  void end_launches(const std::vector<Block>& blocks) {
    if (!blocks_.are_paced()) return;
    flush();
    double launches = 0;
    for (const Block& block : blocks) launches += block.run->launches;
    queue_.add(launches, ready_);
    await_launches();
  }

  /// The next op waits for everything that the host has launched. Blocks whose device takes longer
  /// than their launches need not wait, and share an op of the host.
  void await_launches() {
    flush();
    end_launching();
    for (const std::uint32_t op : host_after_) add_to(ready_, op);
    after_deferred_.clear();
    last_paced_ = false;
  }
  void end_launching() {
    if (!launching_) return;
    launching_->origin = origins_.end(launched_, *launching_->duration);
    host_after_ = {add(*std::exchange(launching_, {}), host_after_)};
  }

  void launch(const Block& block) {
    if (last_paced_) await_launches();
    last_paced_ = block.run->is_paced();
    after_deferred_.clear();
    if (block.run->host == Picoseconds(0)) return;
    const Layer& layer = stage_.chunks[block.chunk].layers[block.layer];
    const bool alone = last_paced_ || layer.host_work == 0;
    if (alone) {
      flush();
      end_launching();
      for (const LayerPiece& piece : block.run->pieces)
        if (!piece.communication) origins_.add(block.chunk, block.layer, piece.ops);
    }
    if (!launching_) {
      launching_ = ProgramOp{.name = names_.intern(fmt::format("{} launches", names_[block.name])),
                             .task = Task::kHost};
      launching_->duration = Picoseconds(0);
      launched_ = block.name;
    }
    *launching_->duration += block.run->host;
    if (alone) end_launching();
  }

  void block(const Block& block, const Block* next) {
    if (blocks_.are_paced()) launch(block);
    // Communication that the previous block issued for this one; the first block of a step has no
    // previous one.
    if (block.run->prefetches && first_) {
      flush();
      prefetch(block);
    }
    first_ = false;
    Ops fetched = std::move(fetched_);
    fetched_.clear();
    std::size_t used = 0;
    const std::vector<LayerPiece>& pieces = block.run->pieces;
    const auto take_fetched = [&] {
      flush();
      add_to(ready_, fetched[used++]);
      after_deferred_.clear();
    };
    std::size_t i = 0;
    for (; i < pieces.size() && is_prefetched(pieces[i]); ++i)
      if (concerns_others(*pieces[i].communication)) take_fetched();
    if (next && next->run->prefetches) {
      flush();
      prefetch(*next);
    }
    for (; i < pieces.size(); ++i) {
      if (!pieces[i].communication)
        compute(pieces[i], block);
      else if (!concerns_others(*pieces[i].communication))
        continue;
      else if (is_prefetched(pieces[i]))
        take_fetched();
      else
        communicate(*pieces[i].communication);
    }
  }

  static bool is_prefetched(const LayerPiece& piece) {
    return piece.communication && piece.communication->issue == Issue::kPrefetched;
  }
  /// Axes of one rank have no communication.
  bool concerns_others(const Op& op) const {
    return op.kind == OpKind::kCopy || is_with_servers(layout_, op) ||
           workload::group_size(op, stage_.degrees) > 1;
  }

  void prefetch(const Block& block) {
    const Ops begin = ready_;  // which adding changes
    for (const LayerPiece& piece : block.run->pieces)
      if (is_prefetched(piece) && concerns_others(*piece.communication))
        fetched_.push_back(add(*piece.communication, begin));
  }

  void compute(const LayerPiece& piece, const Block& block) {
    const Task task = piece.host ? Task::kHost : Task::kCompute;
    after_deferred_.clear();
    if (pending_ && pending_->task != task) flush();
    if (!pending_) {
      pending_ = ProgramOp{.name = block.name, .task = task};
      pending_->duration = Picoseconds(0);
    }
    *pending_->duration += piece.time;
    pending_work_.kernels += piece.device.kernels;
    pending_work_.matrix += piece.device.matrix;
    pending_work_.bytes += piece.device.bytes;
    origins_.add(block.chunk, block.layer, piece.ops);
    if (!late_.empty()) flush();  // the next op also waits for the concurrent communication
  }

  /// Ends the run of computing. From here on the next op waits for `ready_`.
  void flush() {
    if (!pending_) return;
    pending_->origin = origins_.end(pending_->name, *pending_->duration);
    const std::uint32_t op = add(*pending_, ready_);
    std::vector<program::DeviceWork>& work = result_.program.device_work;
    work.resize(op + 1);
    work[op] = std::exchange(pending_work_, {});
    pending_.reset();
    became_ready({op});
  }
  void became_ready(const Ops& ops) {
    ready_ = std::move(late_);
    late_.clear();
    for (const std::uint32_t op : ops) add_to(ready_, op);
  }

  void communicate(const Op& op) {
    flush();
    switch (op.issue) {
      case Issue::kDeferred: defer(op); return;
      case Issue::kOverlapNext: {
        late_.push_back(add(op, ready_));
        break;
      }
      case Issue::kInline:
      case Issue::kPrefetched:
        became_ready(is_with_servers(layout_, op) ? exchange_with_servers(op, ready_)
                                                  : Ops{add(op, ready_)});
        break;
    }
    after_deferred_.clear();
  }

  /// Begins when the previous op has ended, which may be deferred too.
  void defer(const Op& op) {
    if (!concerns_others(op)) return;
    flush();
    const Ops after = after_deferred_.empty() ? ready_ : after_deferred_;
    after_deferred_ =
        is_with_servers(layout_, op) ? exchange_with_servers(op, after) : Ops{add(op, after)};
    deferred_.insert(deferred_.end(), after_deferred_.begin(), after_deferred_.end());
  }

  /// One message to or from each server.
  Ops exchange_with_servers(const Op& op, const Ops& after) {
    const bool push = op.collective == CollectiveKind::kReduce;
    const std::uint32_t servers = layout_.servers->count;
    const std::uint32_t first = peers_.empty() ? 0 : peers_.back().first + peers_.back().count;
    const std::uint32_t tag = server_tag(step_, exchanges_++);
    Ops added;
    for (std::uint32_t s = 0; s < servers; ++s)
      added.push_back(add(ProgramOp{.name = names_.intern(op.name),
                                    .task = push ? Task::kSend : Task::kReceive,
                                    .bytes = op.bytes / servers,
                                    .peer = first + s,
                                    .tag = tag},
                          push ? after : Ops{}));
    // A fetch is requested when the push has arrived.
    if (!push)
      for (const std::uint32_t op_before : after) add_to(added, op_before);
    return added;
  }

  std::uint32_t add(const Op& op, const Ops& after) {
    const NameId name = names_.intern(op.name);
    if (op.kind == OpKind::kCopy) {
      const Result<Picoseconds> time = copy_time(op, price_).and_then(step_part);
      if (!time && !wrong_) wrong_ = time.error();
      ProgramOp copy{
          .name = name, .task = Task::kMemory, .bytes = op.bytes, .origin = origins_.of_copies()};
      copy.duration = time.value_or(Picoseconds(0));
      return add(copy, after);
    }
    return add(ProgramOp{.name = name,
                         .task = Task::kCollective,
                         .bytes = op.bytes,
                         .collective = op.collective,
                         .group = group_of(group_kind(op)),
                         .origin = origins_.of_collective(group_kind(op), op.collective)},
               after);
  }

  std::uint32_t add(const ProgramOp& op, const Ops& after) {
    return program::append(result_.program, op, after);
  }

  static void add_to(Ops& ops, std::uint32_t op) {
    if (std::ranges::find(ops, op) == ops.end()) ops.push_back(op);
  }

  std::uint32_t group_of(GroupKind kind) {
    std::uint32_t& local = local_group_[static_cast<std::size_t>(kind)];
    if (local == kNone) {
      local = static_cast<std::uint32_t>(result_.groups.size());
      result_.groups.push_back(kind);
    }
    return local;
  }

  void await_deferred() {
    if (!deferred_.empty()) flush();
    for (const std::uint32_t op : deferred_) add_to(ready_, op);
    deferred_.clear();
    after_deferred_.clear();
  }

  void begin_step() {
    await_deferred();
    exchanges_ = 0;
    first_ = true;
  }

  /// Sends or receives what crosses to or from another stage: forward passes receive from the
  /// previous chunk and send to the next, backward ones the other way.
  void cross(const Slot& slot, Task task) {
    if (slot.pass != Pass::kForward && slot.pass != Pass::kBackward) return;
    const bool ahead = slot.pass == Pass::kForward;
    for (std::size_t c = 0; c < crossings_.size(); ++c) {
      const Crossing& crossing = crossings_[c];
      const bool at_end = ahead == (task == Task::kReceive);
      if ((at_end ? crossing.to : crossing.from) != ChunkPlace{number_, slot.chunk}) continue;
      flush();
      const std::uint32_t other = (at_end ? crossing.from : crossing.to).stage;
      exchange(task, other, crossing, tag(c, slot), ahead);
    }
  }

  void exchange(Task task, std::uint32_t other, const Crossing& crossing, std::uint32_t tag,
                bool ahead) {
    const auto place =
        static_cast<std::size_t>(std::ranges::find(result_.stages, other) - result_.stages.begin());
    const Ops after = ready_;
    for (std::uint32_t k = 0; k < peers_[place].count; ++k) {
      const std::uint32_t op =
          add(ProgramOp{.name = names_.intern(ahead ? "activations" : "gradients"),
                        .task = task,
                        .bytes = crossing.message,
                        .peer = peers_[place].first + k,
                        .tag = tag},
              task == Task::kReceive ? Ops{} : after);
      if (task == Task::kReceive) add_to(ready_, op);
    }
  }
  std::uint32_t tag(std::size_t crossing, const Slot& slot) const {
    return first_tag() +
           static_cast<std::uint32_t>(2 * crossing + (slot.pass == Pass::kForward ? 0 : 1)) *
               layout_.microbatches +
           slot.microbatch;
  }
  /// The first tag of a step: tags of crossings come first, then those of tied gradients.
  std::uint32_t first_tag() const {
    return step_ * (static_cast<std::uint32_t>(2 * crossings_.size()) * layout_.microbatches + 1);
  }

  void step() {
    await_deferred();
    first_ = false;
    if (blocks_.are_paced()) {
      await_launches();
      host_after_ = ready_;  // it reads the norm
    }
    if (const std::optional<std::uint32_t> other = tied_with(layout_, number_))
      exchange_tied(*other);
    const std::vector<Block>& blocks = blocks_.of_optimizer();
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (b == 0 && blocks[b].run->prefetches) {
        flush();
        prefetch(blocks[b]);
      }
      block(blocks[b], b + 1 < blocks.size() ? &blocks[b + 1] : nullptr);
    }
    finish();
    if (const Seconds idle = fixed_of(options_, stage_); idle > Seconds::s(0)) {
      ProgramOp fixed{.name = names_.intern("fixed"), .task = Task::kHost};
      fixed.duration = Picoseconds::from(idle);
      fixed.origin = origins_.of_fixed();
      add(fixed, ready_);
    }
  }

  /// Both sides send their gradients and add those that they receive.
  void exchange_tied(std::uint32_t other) {
    flush();
    Crossing crossing{{}, {}, tied_message(layout_, number_, other)};
    // After all tags of crossings.
    const auto tag =
        first_tag() + static_cast<std::uint32_t>(2 * crossings_.size()) * layout_.microbatches;
    exchange(Task::kSend, other, crossing, tag, false);
    exchange(Task::kReceive, other, crossing, tag, false);
  }

  struct Peers {
    std::uint32_t first, count;
  };

  const Layout& layout_;
  const Stage& stage_;
  const std::uint32_t number_;
  std::span<const Crossing> crossings_;
  const KindPrice& price_;
  const JobOptions& options_;
  NamePool& names_;
  OriginWriter origins_;
  const StageBlocks blocks_;
  StageProgram result_;
  std::vector<Peers> peers_;  // by place in result_.stages
  std::array<std::uint32_t, kGroupKinds> local_group_;
  std::optional<Error> wrong_;

  std::optional<ProgramOp> pending_;  // a run of computing
  program::DeviceWork pending_work_;  // of it
  Ops ready_;                         // the next op waits for these
  Ops late_;                          // the op after that also waits for these
  Ops fetched_;                       // of the next block
  Ops deferred_;                      // so far
  Ops after_deferred_;                // the op before, where it is deferred
  bool first_ = true;
  // The host's thread.
  bool last_paced_ = false;             // the next block waits for it
  std::optional<ProgramOp> launching_;  // launches since its last op
  NameId launched_{0};                  // the first block of them
  Ops host_after_;                      // its next op waits for these
  LaunchQueue<Ops> queue_;
  std::uint32_t step_ = 0;
  std::uint32_t exchanges_ = 0;  // with servers, in this step
};

}  // namespace

Result<StageProgram> stage_program(const Layout& layout, std::uint32_t stage,
                                   std::span<const Crossing> crossings, const KindPrice& price,
                                   const JobOptions& options, program::Program& whole) {
  return Writer(layout, stage, crossings, price, options, whole).run();
}

}  // namespace rehearse::strategies
