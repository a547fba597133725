#include "models/input/lower.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace rehearse::input {
namespace {

using graph::Category;
using graph::Demand;
using graph::GraphBuilder;
using graph::Op;

/// Rounds of all in hand that one of them may outlast; of exponential times, one in four hundred
/// is longer.
constexpr std::uint32_t kReach = 6;
/// Places of an unordered queue that are told apart; in a larger one it matters little which is
/// free.
constexpr std::uint64_t kMostPlaces = 16;

/// A heavy tail is cut where it would not fit in a run.
Picoseconds whole(Seconds time) { return Picoseconds::from(std::min(time, Seconds::s(1e5))); }

/// What happens in turn in one visit of a stage.
struct Parts {
  bool admitted = false;  ///< by a source that takes so many requests a second
  bool read = false, work = false, serial = false;
  int count() const { return admitted + read + work + serial; }
};

struct Resources {
  std::optional<CapacityId> cores;
  double core_speed = 1;
  std::vector<std::optional<CapacityId>> bandwidth;  // of each source
  std::vector<std::optional<ServerId>> admission;
};

/// Things of which at most so many are in hand at once, the threads of a worker or the places of a
/// queue: which of those before have to end before the next begins.
class InHand {
 public:
  explicit InHand(std::uint32_t most) : most_(most) {}

  void ended(OpId op) { ends_.push_back(op); }

  /// What the next one waits for: that all but `most - 1` of those before have ended, whichever
  /// they are. Of the last kReach rounds any may be the ones that go on; older ones have ended.
  void before_next(GraphBuilder& builder, NameId name, std::vector<OpId>& after) {
    const std::size_t next = ends_.size();
    if (next < most_) return;
    if (most_ == 1) {
      after.push_back(ends_.back());
      return;
    }
    const Op instant{.name = name, .category = Category::kInput, .duration = Picoseconds(0)};
    const std::size_t reach = std::size_t{kReach} * most_;
    const std::size_t from = next > reach ? next - reach : 0;
    if (from > 0) {
      const OpId older = builder.add(instant);
      builder.add_edge(ends_[from - 1], older);
      if (older_) builder.add_edge(*older_, older);
      older_ = older;
      after.push_back(older);
    }
    const OpId free = builder.add(instant);
    for (std::size_t i = from; i < next; ++i) builder.add_edge(ends_[i], free);
    builder.wait_for_first(free, static_cast<std::uint32_t>(next - from - most_ + 1));
    after.push_back(free);
  }

 private:
  std::uint32_t most_;
  std::vector<OpId> ends_;
  std::optional<OpId> older_;  // everything before the reach of the last one has ended
};

class StageLowering {
 public:
  StageLowering(const Pipeline& pipeline, std::size_t index, Start begin,
                const Resources& resources, GraphBuilder& builder)
      : pipeline_(pipeline),
        stage_(pipeline.stages[index]),
        source_(stage_.source ? &pipeline.sources[*stage_.source] : nullptr),
        resources_(resources),
        builder_(builder),
        random_(store::mixed(pipeline.seed) ^ index),
        name_(builder.intern(stage_.name)) {
    parts_.admitted = source_ && source_->requests_per_s;
    parts_.read = source_ != nullptr;
    parts_.serial = stage_.serial.mean.s() > 0;
    // Without a host to share, work is time like any other and goes with the read.
    parts_.work = (stage_.time.mean.s() > 0 && (resources.cores || !parts_.read)) ||
                  !(parts_.read || parts_.serial);
    pooled_ = parts_.count() == 1 && !parts_.serial;
    add_resources();
    add_start(begin);
  }

  /// The op that ends take `take`, which begins after `after`.
  OpId add_take(std::uint64_t take, const std::vector<OpId>& after) {
    const auto visits_before = [&](std::uint64_t k) {
      return static_cast<std::uint64_t>(std::floor(static_cast<double>(k) * stage_.visits + 1e-9));
    };
    const std::uint64_t count = visits_before(take + 1) - visits_before(take);
    if (count == 1) return add_visit(after);
    const OpId begin =
        add(Op{.name = name_, .category = Category::kInput, .duration = Picoseconds(0)}, after);
    std::vector<OpId> ends;
    for (std::uint64_t i = 0; i < count; ++i) ends.push_back(add_visit({begin}));
    if (ends.empty()) return begin;
    return add(Op{.name = name_, .category = Category::kInput, .duration = Picoseconds(0)}, ends);
  }

  /// An op that waits for all of `after`, each named once or more.
  OpId add(Op op, std::vector<OpId> after) {
    const OpId id = builder_.add(op);
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    for (const OpId before : after) builder_.add_edge(before, id);
    return id;
  }

  const std::vector<OpId>& work() const { return work_; }
  NameId name() const { return name_; }

 private:
  void add_resources() {
    std::optional<ServerId> pool;
    if (pooled_) pool = builder_.add(graph::Server{.name = name_, .slots = stage_.slots()});
    if (parts_.admitted)
      admission_ = builder_.add(Demand{.server = resources_.admission[*stage_.source]});
    if (parts_.read) {
      Demand demand{.server = pool};
      if (const auto link = resources_.bandwidth[*stage_.source]) {
        demand.capacities = {*link};
        if (source_->connection) demand.rate_cap = source_->connection->bytes_per_s();
      }
      shared_link_ = !demand.capacities.empty();
      read_ = builder_.add(std::move(demand));
    }
    if (parts_.work) work_demand_ = builder_.add(on_cores(pool));
    if (parts_.serial)
      for (std::uint32_t w = 0; w < stage_.workers; ++w)
        locks_.push_back(builder_.add(on_cores(builder_.add(graph::Server{.name = name_}))));
  }

  Demand on_cores(std::optional<ServerId> server) const {
    Demand demand{.server = server};
    if (resources_.cores) {
      demand.capacities = {*resources_.cores};
      demand.rate_cap = resources_.core_speed;
    }
    return demand;
  }

  // Workers start one after another, all before any works.
  void add_start(Start begin) {
    if (!pooled_) threads_.assign(stage_.workers, InHand(stage_.threads));
    const Seconds start_up = stage_.start_up * stage_.workers;
    const Seconds spread = begin == Start::kSpread ? hold_time(pipeline_, stage_) : Seconds::s(0);
    if (!(start_up + spread > Seconds::s(0))) return;
    // What begins first in a pool is what asks for it first.
    const DemandId demand = !pooled_ ? DemandId(0) : read_ ? *read_ : *work_demand_;
    for (std::uint32_t i = 0; i < stage_.slots(); ++i)
      started_.push_back(builder_.add(Op{.name = name_,
                                         .category = Category::kInput,
                                         .duration = whole(start_up + spread * i / stage_.slots()),
                                         .demand = demand}));
  }

  Op core_op(const ServiceTime& time, DemandId demand) {
    const Seconds drawn = time.draw(random_);
    Op op{
        .name = name_, .category = Category::kInput, .duration = Picoseconds(0), .demand = demand};
    if (resources_.cores)
      op.work = std::min(drawn.s(), 1e5);
    else
      op.duration = whole(drawn);
    return op;
  }

  Op read_op(bool hit) {
    Op op{
        .name = name_, .category = Category::kInput, .duration = Picoseconds(0), .demand = *read_};
    Seconds time = Seconds::s(0);
    if (hit) {
      if (source_->memory) time = stage_.bytes / *source_->memory;
    } else {
      double requests = 1;
      if (source_->request) requests = std::max(std::ceil(stage_.bytes / *source_->request), 1.0);
      for (double i = 0; i < requests; ++i) time += source_->latency.draw(random_);
      if (shared_link_)
        op.work = stage_.bytes.b();
      else if (source_->connection)
        time += stage_.bytes / *source_->connection;
    }
    if (!parts_.work) time += stage_.time.draw(random_);
    op.duration = whole(time);
    return op;
  }

  OpId add_visit(std::vector<OpId> after) {
    const std::uint64_t visit = visits_++;
    // The workers of a stage whose visits have several parts are dealt them in turn.
    const std::size_t worker = visit % stage_.workers;
    if (!pooled_) threads_[worker].before_next(builder_, name_, after);
    if (!pooled_ && visit < started_.size()) after.push_back(started_[visit]);
    const auto part = [&](const Op& op) {
      const OpId id = add(op, std::move(after));
      work_.push_back(id);
      after = {id};
    };
    bool hit = false;
    if (parts_.read) {
      const double hits = source_->hits, n = static_cast<double>(visit);
      hit = std::floor((n + 1) * hits + 1e-9) > std::floor(n * hits + 1e-9);
    }
    if (parts_.admitted && !hit)
      part(Op{.name = name_,
              .category = Category::kInput,
              .duration =
                  whole(Seconds::s(std::max(requests_of_read(), 1.0) / *source_->requests_per_s)),
              .demand = *admission_});
    if (parts_.read) part(read_op(hit));
    if (parts_.work) part(core_op(stage_.time, *work_demand_));
    if (parts_.serial) part(core_op(stage_.serial, locks_[worker]));
    if (!pooled_) threads_[worker].ended(after.front());
    return after.front();
  }
  double requests_of_read() const {
    return source_->request ? std::ceil(stage_.bytes / *source_->request) : 1;
  }

  const Pipeline& pipeline_;
  const Stage& stage_;
  const Source* source_;
  const Resources& resources_;
  GraphBuilder& builder_;
  store::Random random_;
  NameId name_;
  Parts parts_;
  bool pooled_ = false, shared_link_ = false;
  std::optional<DemandId> admission_, read_, work_demand_;
  std::vector<DemandId> locks_;  // of each worker, as the next
  std::vector<InHand> threads_;
  std::vector<OpId> started_;  // of each thread
  std::vector<OpId> work_;
  std::uint64_t visits_ = 0;
};

Resources add_resources(const Pipeline& pipeline, GraphBuilder& builder) {
  Resources resources;
  if (pipeline.host) {
    const double busy = busy_threads(pipeline);
    resources.core_speed = pipeline.host->speed(busy);
    resources.cores = builder.add(graph::Capacity{
        .name = builder.intern("host cores"),
        .rate = pipeline.host->capacity(std::max<double>(busy, pipeline.host->cores))});
  }
  for (const Source& source : pipeline.sources) {
    const NameId name = builder.intern(source.name);
    resources.bandwidth.emplace_back();
    if (source.total)
      resources.bandwidth.back() =
          builder.add(graph::Capacity{.name = name, .rate = source.total->bytes_per_s()});
    resources.admission.emplace_back();
    if (source.requests_per_s)
      resources.admission.back() = builder.add(graph::Server{.name = name});
  }
  return resources;
}

/// How many takes each stage does for so many units of the last.
std::vector<std::uint64_t> takes_for(const Pipeline& pipeline, std::uint64_t units) {
  std::vector<std::uint64_t> takes(pipeline.stages.size());
  for (std::size_t i = takes.size(); i-- > 0;) {
    const Stage& stage = pipeline.stages[i];
    takes[i] = (units + stage.split - 1) / stage.split;
    units = takes[i] * stage.batch;
  }
  return takes;
}

}  // namespace

std::uint64_t room_behind(const std::vector<Stage>& stages, std::size_t i) {
  std::uint64_t taken = 1;
  if (i + 1 < stages.size())
    taken = std::uint64_t{stages[i + 1].slots()} * stages[i + 1].batch + stages[i + 1].shuffle;
  return std::uint64_t{stages[i].slots()} * stages[i].split + stages[i].room() + taken;
}

Lowered lower(const Pipeline& pipeline, std::uint64_t units, Start begin, GraphBuilder& builder) {
  const Resources resources = add_resources(pipeline, builder);
  const std::vector<Stage>& stages = pipeline.stages;
  const std::vector<std::uint64_t> takes = takes_for(pipeline, units);
  std::vector<StageLowering> lowering;
  lowering.reserve(stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i)
    lowering.emplace_back(pipeline, i, begin, resources, builder);
  std::optional<DemandId> accelerator;
  const NameId step_name = builder.intern("accelerator");
  if (pipeline.step)
    accelerator = builder.add(Demand{.server = builder.add(graph::Server{.name = step_name})});
  store::Random step_random(store::mixed(pipeline.seed) ^ stages.size());

  // Takes are made in an order in which every edge leads to a later one, each stage as far ahead as
  // its queue lets it: `ended[i][k]` is with what take k of stage i has ended, `in_order` with what
  // it and all before it have.
  std::vector<std::vector<OpId>> ended(stages.size()), in_order(stages.size());
  const auto given = [&](std::size_t i) -> const std::vector<OpId>& {
    return stages[i].ordered ? in_order[i] : ended[i];
  };
  std::vector<OpId> steps;
  std::vector<OpId> after;
  // Places that are freed in any order, one by one, where a take of this stage is one of the next.
  std::vector<std::optional<InHand>> places(stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const bool last = i + 1 == stages.size();
    const bool any_order =
        last ? !stages[i].ordered && !accelerator
             : stages[i + 1].slots() > 1 && stages[i + 1].batch == 1 && stages[i + 1].shuffle == 0;
    if (any_order && stages[i].split == 1 && room_behind(stages, i) <= kMostPlaces)
      places[i].emplace(static_cast<std::uint32_t>(room_behind(stages, i)));
  }
  const auto ready = [&](std::size_t i, std::uint64_t take) {
    after.clear();
    if (i > 0) {
      const std::uint64_t last_unit = takes[i - 1] * stages[i - 1].split - 1;
      const std::uint64_t from = take * stages[i].batch;
      const std::uint64_t to = std::min(from + stages[i].batch - 1, last_unit);
      const std::uint64_t shuffled = std::min(to + stages[i].shuffle, last_unit);
      const std::uint32_t split = stages[i - 1].split;
      if (shuffled / split >= ended[i - 1].size()) return false;
      for (std::uint64_t k = from / split; k <= to / split; ++k) after.push_back(given(i - 1)[k]);
      after.push_back(given(i - 1)[shuffled / split]);
    }
    if (places[i]) {
      // All before have been used by someone, in whatever order.
      if (i + 1 < stages.size() && ended[i + 1].size() < take) return false;
      places[i]->before_next(builder, lowering[i].name(), after);
      return true;
    }
    // The last unit of the take fits once the unit that lies `room` before it is used up.
    const std::uint64_t unit = (take + 1) * stages[i].split - 1, space = room_behind(stages, i);
    if (unit >= space) {
      const std::uint64_t used = unit - space;
      // What nothing takes from the last stage is used up as soon as it is there. Takes that are
      // not worked on end before their neighbours, and would lend them their places.
      const bool last = i + 1 == stages.size();
      const Stage& user_stage = stages[last ? i : i + 1];
      const bool alike = user_stage.visits == std::floor(user_stage.visits);
      const std::vector<OpId>& done = last ? given(i) : ended[i + 1];
      const std::vector<OpId>& users = last && accelerator ? steps
                                       : alike             ? done
                                       : last              ? in_order[i]
                                                           : in_order[i + 1];
      const std::uint64_t user = !last         ? used / stages[i + 1].batch
                                 : accelerator ? used
                                               : used / stages[i].split;
      if (user >= users.size()) return false;
      after.push_back(users[user]);
    }
    return true;
  };
  for (bool any = true; any;) {
    any = false;
    for (std::size_t i = 0; i < stages.size(); ++i)
      while (ended[i].size() < takes[i] && ready(i, ended[i].size())) {
        any = true;
        const OpId end = lowering[i].add_take(ended[i].size(), after);
        ended[i].push_back(end);
        if (i > 0 && places[i - 1]) places[i - 1]->ended(end);
        if (i + 1 == stages.size() && places[i]) places[i]->ended(end);
        const bool one_by_one =
            stages[i].slots() == 1 && stages[i].visits >= 1 && (i == 0 || stages[i - 1].ordered);
        in_order[i].push_back(one_by_one || in_order[i].empty()
                                  ? end
                                  : lowering[i].add(Op{.name = lowering[i].name(),
                                                       .category = Category::kInput,
                                                       .duration = Picoseconds(0)},
                                                    {end, in_order[i].back()}));
      }
    while (accelerator && steps.size() < units &&
           steps.size() / stages.back().split < ended.back().size()) {
      any = true;
      const OpId step = builder.add(Op{.name = step_name,
                                       .category = Category::kCompute,
                                       .duration = whole(pipeline.step->draw(step_random)),
                                       .demand = *accelerator});
      builder.add_edge(given(stages.size() - 1)[steps.size() / stages.back().split], step);
      if (!steps.empty()) builder.add_edge(steps.back(), step);
      steps.push_back(step);
    }
  }
  Lowered lowered;
  if (accelerator) {
    lowered.units = std::move(steps);
  } else {
    for (std::uint64_t u = 0; u < units; ++u)
      lowered.units.push_back(given(stages.size() - 1)[u / stages.back().split]);
  }
  for (const StageLowering& stage : lowering) lowered.work.push_back(stage.work());
  return lowered;
}

double ops_to_choose(const Stage& stage) {
  const bool chooses = stage.threads > 1 && (stage.source || stage.serial.mean.s() > 0);
  return chooses ? 0.25 * kReach * stage.threads : 0;
}

double ops_of(const Pipeline& pipeline, double units) {
  const Counts counts = counts_of(pipeline);
  double ops = pipeline.step ? 1 : 0;
  for (std::size_t i = 0; i < counts.takes.size(); ++i) {
    const Stage& stage = pipeline.stages[i];
    const auto room = static_cast<double>(room_behind(pipeline.stages, i));
    const double places = room > kMostPlaces ? 0 : 0.25 * kReach * room;
    ops += (3 + places) * counts.takes[i] + (3 + ops_to_choose(stage)) * counts.visits[i];
  }
  return ops * units;
}

}  // namespace rehearse::input
