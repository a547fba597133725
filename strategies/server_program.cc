#include "strategies/server_program.h"

#include <algorithm>

#include "sim/program/rank_builder.h"
#include "strategies/layer_run.h"

namespace rehearse::strategies {

using program::ProgramOp, program::Task, workload::Issue, workload::Layer, workload::Layout,
    workload::Op, workload::Stage;

bool is_with_servers(const Layout& layout, const Op& op) {
  return layout.servers && op.axis == workload::Axis::kData && !op.expert &&
         (op.collective == CollectiveKind::kReduce || op.collective == CollectiveKind::kBroadcast);
}

namespace {

/// A push and the fetch after it, for all ranks of a stage.
struct Exchange {
  const Stage* stage;
  Bytes pushed, fetched;
  std::uint32_t number;  ///< of the push among the exchanges of a rank in a step
};

/// Steps run deferred ops first, chunk by chunk as backward ends, then the rest (layer_run.h). A
/// server need not know the order: tags identify the exchange of a message.
std::vector<Exchange> exchanges_of(const Layout& layout) {
  std::vector<Exchange> all;
  for (const Stage& stage : layout.stages) {
    std::uint32_t number = 0;
    const auto add = [&](const Layer& layer, bool deferred) {
      const auto rest = std::ranges::find_if(layer.step, [](const Op& op) {
        return !op.communicates() || op.issue != Issue::kDeferred;
      });
      for (auto op = deferred ? layer.step.begin() : rest;
           op != (deferred ? rest : layer.step.end()); ++op) {
        if (!is_with_servers(layout, *op)) continue;
        if (op->collective == CollectiveKind::kReduce)
          all.push_back({&stage, op->bytes, Bytes::b(0), number});
        else if (!all.empty())
          all.back().fetched = op->bytes;
        ++number;
      }
    };
    const workload::Pass last =
        split_of(stage).weights ? workload::Pass::kBackwardWeights : workload::Pass::kBackward;
    std::vector<std::uint32_t> chunks;  // as their last backward passes come
    for (auto slot = stage.order.rbegin(); slot != stage.order.rend(); ++slot)
      if (slot->pass == last && std::ranges::find(chunks, slot->chunk) == chunks.end())
        chunks.push_back(slot->chunk);
    std::ranges::reverse(chunks);
    for (const std::uint32_t c : chunks)
      for (auto layer = stage.chunks[c].layers.rbegin(); layer != stage.chunks[c].layers.rend();
           ++layer)
        for (std::uint32_t i = 0; i < layer->count; ++i) add(*layer, true);
    for (const workload::Chunk& chunk : stage.chunks)
      for (const Layer& layer : chunk.layers)
        for (std::uint32_t i = 0; i < layer.count; ++i) add(layer, false);
  }
  return all;
}

class Writer {
 public:
  Writer(const Layout& layout, const Price& price, program::Program& whole)
      : layout_(layout),
        exchanges_(exchanges_of(layout)),
        update_(price(layout.servers->update)),
        push_(whole.names.intern("gradients from workers")),
        update_name_(whole.names.intern(layout.servers->update.name)),
        came_(whole.names.intern("gradients that are waited for")),
        fetch_(whole.names.intern("parameters to workers")),
        origin_(static_cast<std::uint32_t>(whole.origins.size())) {
    whole.origins.push_back(
        {{.kind = program::PartKind::kOptimizer,
          .part = whole.names.intern("optimizer"),
          .detail = whole.names.intern("on a server"),
          .provenance = layout.servers->update.measured ? Provenance::kInterpolated
                                                        : Provenance::kDatasheet}});
    for (const Exchange& e : exchanges_)
      all_ += e.pushed * (e.stage->degrees.tensor * e.stage->degrees.context);
  }

  program::RankProgram run(std::uint32_t steps) {
    came_by_step_.resize(exchanges_.size());
    for (std::uint32_t step = 0; step < steps; ++step)
      for (std::size_t e = 0; e < exchanges_.size(); ++e)
        if (layout_.servers->staleness == std::uint32_t{0})
          together(exchanges_[e], step);
        else
          each(e, step);
    return std::move(program_);
  }

 private:
  using Ops = std::vector<std::uint32_t>;

  std::uint32_t add(const ProgramOp& op, const Ops& after) {
    return program::append(program_, op, after);
  }

  Ops receive(const Exchange& exchange, std::uint32_t step) {
    Ops received;
    for (std::uint32_t r = 0; r < exchange.stage->degrees.ranks(); ++r)
      received.push_back(add({.name = push_,
                              .task = Task::kReceive,
                              .bytes = exchange.pushed / layout_.servers->count,
                              .peer = exchange.stage->rank(r),
                              .tag = server_tag(step, exchange.number)},
                             {}));
    return received;
  }
  void send(const Exchange& exchange, std::uint32_t step, std::uint32_t rank, const Ops& after) {
    if (exchange.fetched == Bytes::b(0)) return;
    add({.name = fetch_,
         .task = Task::kSend,
         .bytes = exchange.fetched / layout_.servers->count,
         .peer = exchange.stage->rank(rank),
         .tag = server_tag(step, exchange.number + 1)},
        after);
  }
  std::uint32_t update(double share, const Ops& after) {
    ProgramOp op{.name = update_name_,
                 .task = layout_.servers->update.host ? Task::kHost : Task::kCompute,
                 .origin = origin_};
    op.duration = Picoseconds::from(update_ * share);
    return add(op, after);
  }

  void together(const Exchange& exchange, std::uint32_t step) {
    const workload::Degrees& degrees = exchange.stage->degrees;
    const Ops received = receive(exchange, step);
    const std::uint32_t of_worker = degrees.tensor * degrees.context;
    const auto count = static_cast<std::uint32_t>(received.size());
    const std::uint32_t backup = std::min(layout_.servers->backup_workers * of_worker, count - 1);
    ProgramOp came{.name = came_, .task = Task::kMark, .need = count - backup};
    came.duration = Picoseconds(0);
    const std::uint32_t all = add(came, received);
    const std::uint32_t done = update(exchange.pushed * of_worker / all_, {all});
    for (std::uint32_t r = 0; r < count; ++r) send(exchange, step, r, {done});
  }

  void each(std::size_t e, std::uint32_t step) {
    const Exchange& exchange = exchanges_[e];
    const Ops received = receive(exchange, step);
    const std::optional<std::uint32_t> staleness = layout_.servers->staleness;
    std::optional<std::uint32_t> older;
    if (staleness) {
      ProgramOp came{.name = came_, .task = Task::kMark};
      came.duration = Picoseconds(0);
      came_by_step_[e].push_back(add(came, received));
      if (step >= *staleness) older = came_by_step_[e][step - *staleness];
    }
    for (std::uint32_t r = 0; r < received.size(); ++r) {
      const std::uint32_t done = update(exchange.pushed / all_, {received[r]});
      Ops after;
      if (older) after.push_back(*older);
      after.push_back(done);
      send(exchange, step, r, after);
    }
  }

  const Layout& layout_;
  const std::vector<Exchange> exchanges_;
  const Seconds update_;
  Bytes all_ = Bytes::b(0);  // of the gradients of one worker
  NameId push_, update_name_, came_, fetch_;
  std::uint32_t origin_;           // of updates
  std::vector<Ops> came_by_step_;  // by exchange: when all have come
  program::RankProgram program_;
};

}  // namespace

program::RankProgram server_program(const Layout& layout, const Price& price, std::uint32_t steps,
                                    program::Program& whole) {
  return Writer(layout, price, whole).run(steps);
}

}  // namespace rehearse::strategies
