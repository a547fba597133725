#include "models/input/lower.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/input/ends.h"
#include "models/input/stage_lowering.h"
#include "sim/base/check.h"

namespace rehearse::input {
namespace {

using program::ProgramOp;
using program::Task;

/// The number of places of an unordered queue that are distinguished. In a larger queue it matters
/// little which place is free.
constexpr std::uint64_t kMostPlaces = 16;

/// The number of concurrent takes of the last stage that can be in flight. REQUIRES: a loop.
double takes_in_flight(const Pipeline& pipeline) {
  return std::ceil(static_cast<double>(pipeline.loop->in_flight) /
                   (counts_of(pipeline).samples * pipeline.stages.back().split));
}

bool in_turn(const std::vector<Stage>& stages, std::size_t i);

/// Whether takes of the stage differ in a cycle: some are not worked on, some are in memory, some
/// read less.
bool by_turns(const Pipeline& pipeline, const Stage& stage) {
  const double hits = stage.source ? pipeline.sources[*stage.source].hits : 0;
  return stage.visits != std::floor(stage.visits) || (hits > 0 && hits < 1) ||
         stage.reads.size() > 1;
}

/// Whether a stage takes batches of the units that are ready first.
bool comes_first(const std::vector<Stage>& stages, std::size_t i) {
  return i > 0 && stages[i - 1].split == 1 && stages[i].batch > 1 && stages[i].shuffle == 0 &&
         !in_turn(stages, i - 1);
}

/// Whether the units of a stage become ready in the order of its takes.
bool in_turn(const std::vector<Stage>& stages, std::size_t i) {
  return stages[i].ordered ||
         (stages[i].slots() == 1 && (i == 0 || in_turn(stages, i - 1) || comes_first(stages, i)));
}

/// Takes are made in an order in which every edge leads to a later take. Each stage goes as far
/// ahead as its queue and the number in flight allow.
class Network {
 public:
  Network(const Pipeline& pipeline, std::uint64_t units, Start start, NamePool& names,
          bool requests)
      : pipeline_(pipeline),
        stages_(pipeline.stages),
        last_(pipeline.stages.size() - 1),
        units_(units),
        requests_(requests),
        resources_(add_resources(pipeline, names, builder_)),
        step_name_(names.intern("accelerator")),
        step_random_(random_stream(pipeline.seed, pipeline.stages.size())),
        takes_(stages_.size()),
        ended_(stages_.size()),
        in_order_(stages_.size()),
        always_room_(stages_.size(), 0),
        uneven_(stages_.size(), 0),
        places_(stages_.size()),
        first_come_(stages_.size()) {
    const auto& loop = pipeline.loop;
    if (loop && loop->rounds()) round_ = loop->in_flight;
    builder_.reserve(static_cast<std::size_t>(ops_of(pipeline, static_cast<double>(units))));
    lowering_.reserve(stages_.size());
    for (std::size_t i = 0; i < stages_.size(); ++i)
      lowering_.emplace_back(pipeline, i, start == Start::kSpread, resources_, names, builder_);
    if (pipeline.step) accelerator_ = builder_.add(program::Stream{.name = step_name_});
    for (std::size_t i = stages_.size(); i-- > 0;) {
      takes_[i] = (units + stages_[i].split - 1) / stages_[i].split;
      units = takes_[i] * (i == last_ && round_ > 0 ? round_ : stages_[i].batch);
    }
    const Counts counts = counts_of(pipeline);
    samples_of_unit_ = counts.samples;
    samples_of_take_ = counts.samples / counts.takes.front();
    if (round_ > 0) return;  // nothing else is under way during a round
    if (loop && !accelerator_ && !requests_ && !in_turn(stages_, last_) &&
        takes_in_flight(pipeline) <= kMostPlaces)
      used_.emplace();
    bool uneven = false;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      add_freedom(i, counts);
      uneven |= by_turns(pipeline, stages_[i]);
      uneven_[i] = uneven ? 1 : 0;
    }
  }

  /// REQUIRES: called once.
  Result<Lowered> run(program::Program& into) {
    while (advance() || choose()) {
    }
    for (std::uint64_t u = 0; u < units_; ++u) {
      const std::optional<OpIndex> op = used_up(u);
      if (!op)
        return fail(
            fmt::format("'{}' never receives a unit of the {} samples in flight",
                        stages_.back().name, pipeline_.loop ? pipeline_.loop->in_flight : 0),
            fmt::format("{:.0f} or more",
                        std::max(std::ceil(least_in_flight(pipeline_)),
                                 1.0 + (pipeline_.loop ? double(pipeline_.loop->in_flight) : 0))));
      lowered_.units.push_back(*op);
    }
    for (const StageLowering& stage : lowering_) lowered_.work.push_back(stage.work());
    into.services.push_back(std::move(builder_).build());
    return std::move(lowered_);
  }

 private:
  /// Adds the freedom of stages whose units continue in any order.
  void add_freedom(std::size_t i, const Counts& counts) {
    const bool last = i == last_;
    if (pipeline_.loop) {
      // Units in flight have room, or are used up as soon as the last stage gives them.
      const double units = counts.takes[i] * stages_[i].split / counts.samples;
      const bool fits = static_cast<double>(pipeline_.loop->in_flight) * units <=
                        static_cast<double>(room_after(stages_, i));
      const bool used_up = last && !stages_[i].ordered && !accelerator_ && !requests_;
      always_room_[i] = used_up || fits ? 1 : 0;
    }
    first_come_[i] = comes_first(stages_, i) ? std::optional<Ends>(Ends{}) : std::nullopt;
    // Places that are freed in any order, one by one, if a take is one unit of the next stage.
    const bool any_order = last ? !stages_[i].ordered && !accelerator_ && !requests_
                                : stages_[i + 1].slots() > 1 && stages_[i + 1].batch == 1 &&
                                      stages_[i + 1].shuffle == 0;
    if (any_order && stages_[i].split == 1 && room_after(stages_, i) <= kMostPlaces)
      places_[i].emplace(static_cast<std::uint32_t>(room_after(stages_, i)));
  }

  /// A choice among the units that are ready first. It is made once all candidates exist.
  bool chooses(std::size_t i) const {
    return first_come_[i] || (i == 0 && used_ && used_up_before(ended_[0].size()) > 0);
  }

  /// Makes all takes that wait for no choice, as far as possible.
  bool advance() {
    bool any = false;
    for (std::size_t i = 0; i < stages_.size(); ++i)
      while (!chooses(i) && add_next(i)) any = true;
    while (add_step()) any = true;
    return any;
  }

  /// Makes the next take that is a choice, nearest to the end.
  bool choose() {
    for (std::size_t i = stages_.size(); i-- > 0;)
      if (chooses(i) && add_next(i)) return true;
    return false;
  }

  bool add_next(std::size_t i) {
    const std::uint64_t take = ended_[i].size();
    if (take >= takes_[i] || !ready(i, take)) return false;
    const bool begins_round = round_ > 0 && i < last_ && take % round_ == 0;
    if (begins_round && pipeline_.loop->late == Late::kAbandoned && take > 0)
      lowering_[i].free_workers();
    const auto [begin, end] = lowering_[i].add_take(take, after_);
    for (const std::uint64_t unit : requested_) lowered_.requested.push_back({begin, unit});
    ended_[i].push_back(end);
    if (i > 0 && places_[i - 1]) places_[i - 1]->ended(end);
    if (i == last_ && places_[i]) places_[i]->ended(end);
    if (i < last_ && first_come_[i + 1]) first_come_[i + 1]->add(end);
    if (i == last_ && used_) used_->add(end);
    const bool one_by_one =
        stages_[i].slots() == 1 && stages_[i].visits >= 1 && (i == 0 || stages_[i - 1].ordered);
    const bool first = begins_round || in_order_[i].empty();
    in_order_[i].push_back(one_by_one || first ? end
                                               : builder_.add(instant(lowering_[i].name()),
                                                              {end, in_order_[i].back()}));
    return true;
  }

  bool add_step() {
    if (!accelerator_ || steps_.size() >= units_) return false;
    const std::optional<OpIndex> unit = given_last(steps_.size());
    if (!unit) return false;
    const ProgramOp step{.name = step_name_,
                         .task = Task::kCompute,
                         .duration = whole(pipeline_.step->draw(step_random_)),
                         .stream = *accelerator_};
    steps_.push_back(builder_.add(step, {*unit, steps_.empty() ? *unit : steps_.back()}));
    return true;
  }

  const std::vector<OpIndex>& given(std::size_t i) const {
    return stages_[i].ordered ? in_order_[i] : ended_[i];
  }
  /// The op that makes a unit of the last stage ready, once it exists.
  std::optional<OpIndex> given_last(std::uint64_t unit) const {
    const std::uint64_t take = unit / stages_.back().split;
    return take < ended_.back().size() ? std::optional(given(last_)[take]) : std::nullopt;
  }
  std::optional<OpIndex> used_up(std::uint64_t unit) const {
    if (!accelerator_) return given_last(unit);
    return unit < steps_.size() ? std::optional(steps_[unit]) : std::nullopt;
  }

  /// Puts the dependencies of a take into `after_`, once all of them exist.
  bool ready(std::size_t i, std::uint64_t take) {
    after_.clear();
    requested_.clear();
    if (i == 0 ? !may_enter(take) : !units_there(i, take)) return false;
    return round_ > 0 || room_there(i, take);
  }

  /// The number of units that must be used up before a take of the first stage. REQUIRES: a loop.
  std::uint64_t used_up_before(std::uint64_t take) const {
    if (round_ > 0) return take / round_;
    const double entered = static_cast<double>(take + 1) * samples_of_take_;
    const double beyond = entered - static_cast<double>(pipeline_.loop->in_flight);
    return static_cast<std::uint64_t>(std::ceil(std::max(beyond, 0.0) / samples_of_unit_ - 1e-9));
  }

  /// Whether the number in flight lets the first stage begin.
  bool may_enter(std::uint64_t take) {
    if (!pipeline_.loop) return true;
    const std::uint64_t units = used_up_before(take);
    if (units == 0) return true;
    if (used_) return wait_for_used((units - 1) / stages_.back().split + 1);
    const std::optional<OpIndex> used = used_up(units - 1);
    if (used) after_.push_back(*used);
    if (requests_) requested_.push_back(units - 1);
    return used.has_value();
  }

  /// Waits until this many takes of the last stage have ended, in any order.
  bool wait_for_used(std::size_t takes) {
    if (used_->size() < takes) return false;
    const auto in_hand = static_cast<std::size_t>(takes_in_flight(pipeline_));
    wait_for_first(*used_, takes, {.behind = kReach * in_hand, .ahead = in_hand}, last_);
    return true;
  }

  /// Around a number of takes that end: how many may still be in progress, and how many may have
  /// ended.
  struct Window {
    std::size_t behind, ahead;
  };
  /// Waits for the first `count` that end.
  void wait_for_first(Ends& ends, std::size_t count, Window window, std::size_t stage) {
    ends.wait_for(count,
                  {count > window.behind ? count - window.behind : 0,
                   std::min(ends.size(), count + window.ahead)},
                  builder_, lowering_[stage].name(), after_);
  }

  bool units_there(std::size_t i, std::uint64_t take) {
    if (round_ > 0 && i == last_) return round_there(take);
    const std::uint32_t split = stages_[i - 1].split;
    const std::uint64_t last_unit = takes_[i - 1] * split - 1;
    const std::uint64_t from = take * stages_[i].batch;
    const std::uint64_t to = std::min(from + stages_[i].batch - 1, last_unit);
    const std::uint64_t shuffled = std::min(to + stages_[i].shuffle, last_unit);
    if (shuffled / split >= ended_[i - 1].size()) return false;
    if (first_come_[i]) {
      // Takes begin in the order in which those of the previous stage end.
      const std::size_t slots = stages_[i - 1].slots();
      wait_for_first(*first_come_[i], to + 1,
                     {.behind = kReach * slots,
                      .ahead = i < 2 || in_turn(stages_, i - 2) ? slots : kReach * slots},
                     i);
      return true;
    }
    for (std::uint64_t k = from / split; k <= to / split; ++k) after_.push_back(given(i - 1)[k]);
    after_.push_back(given(i - 1)[shuffled / split]);
    return true;
  }

  /// Whether all takes of a round exist; a barrier waits for the first of them.
  bool round_there(std::uint64_t unit) {
    const std::uint64_t from = unit * round_;
    if (ended_[last_ - 1].size() < from + round_) return false;
    const std::vector<OpIndex>& came = given(last_ - 1);
    const std::vector<OpIndex> all(came.begin() + static_cast<std::ptrdiff_t>(from),
                                   came.begin() + static_cast<std::ptrdiff_t>(from + round_));
    const Loop& loop = *pipeline_.loop;
    OpIndex filled = first_of(all, stages_[last_].batch);
    if (loop.quorum) {
      ProgramOp wait = instant(lowering_[last_].name());
      wait.task = Task::kDelay;
      wait.duration = whole(loop.wait);
      std::vector<OpIndex> after;
      if (unit > 0) after.push_back(*used_up(unit - 1));
      const OpIndex in_time = builder_.add(wait, after);
      const OpIndex enough = first_of({in_time, first_of(all, *loop.quorum)}, 2);
      filled = first_of({filled, enough}, 1);
    }
    lowered_.rounds.push_back({filled, all});
    after_.push_back(filled);
    return true;
  }

  OpIndex first_of(const std::vector<OpIndex>& ops, std::uint32_t m) {
    ProgramOp barrier = instant(lowering_[last_].name());
    barrier.need = m;
    return builder_.add(barrier, ops);
  }

  /// Whether the queue and the stages after this one leave room for the take's output.
  bool room_there(std::size_t i, std::uint64_t take) {
    if (always_room_[i]) return true;
    const bool last = i == last_;
    if (places_[i]) {
      // All earlier units have been taken, in any order.
      if (!last && ended_[i + 1].size() < take) return false;
      places_[i]->before_next(builder_, lowering_[i].name(), after_);
      return true;
    }
    // The last unit of the take fits once the unit `room` places earlier is used up.
    const bool awaited = last && requests_;
    const std::uint64_t unit = (take + 1) * stages_[i].split - 1;
    // A requested unit has left the stage.
    const std::uint64_t space = room_after(stages_, i) - (awaited ? 1 : 0);
    if (unit < space) return true;
    const std::uint64_t used = unit - space;
    // Units that nothing takes from the last stage are used up as soon as they are ready. With
    // takes that differ in a cycle, fast ones would otherwise use the places of slow ones and
    // overtake them.
    const std::size_t user_stage = last ? i : i + 1;
    const bool stepped = last && accelerator_;
    const std::vector<OpIndex>& users = stepped               ? steps_
                                        : uneven_[user_stage] ? in_order_[user_stage]
                                        : last                ? given(i)
                                                              : ended_[user_stage];
    const std::uint64_t user = stepped ? used
                               : last  ? used / stages_[i].split
                                       : used / stages_[user_stage].batch;
    if (user >= users.size()) return false;
    if (awaited) requested_.push_back(used);
    after_.push_back(users[user]);
    return true;
  }

  const Pipeline& pipeline_;
  const std::vector<Stage>& stages_;
  const std::size_t last_;
  std::uint64_t round_ = 0;  // samples of a round; none without rounds
  const std::uint64_t units_;
  RankBuilder builder_;
  const bool requests_;
  const Resources resources_;
  const NameId step_name_;
  Random step_random_;
  std::optional<std::uint32_t> accelerator_;  // stream
  double samples_of_unit_ = 1, samples_of_take_ = 1;
  std::vector<StageLowering> lowering_;
  std::vector<std::uint64_t> takes_;
  // The ops with which take k of stage i has ended, and with which it and all earlier takes have.
  std::vector<std::vector<OpIndex>> ended_, in_order_;
  std::vector<OpIndex> steps_;
  std::vector<char> always_room_;                // after each stage, for all that is in flight
  std::vector<char> uneven_;                     // takes differ in a cycle, there or before
  std::vector<std::optional<InHand>> places_;    // after each stage
  std::vector<std::optional<Ends>> first_come_;  // of the stage before
  std::optional<Ends> used_;                     // of the last stage
  std::vector<OpIndex> after_;                   // dependencies of the next take
  std::vector<std::uint64_t> requested_;         // units that must have been requested before it
  Lowered lowered_;
};

}  // namespace

std::uint64_t room_after(const std::vector<Stage>& stages, std::size_t i) {
  std::uint64_t taken = 1;
  if (i + 1 < stages.size())
    taken = std::uint64_t{stages[i + 1].slots()} * stages[i + 1].batch + stages[i + 1].shuffle;
  return std::uint64_t{stages[i].slots()} * stages[i].split + stages[i].room() + taken;
}

double units_in_flight(const Pipeline& pipeline, const Counts& counts) {
  double units = 1;
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    const auto held = static_cast<double>(room_after(pipeline.stages, i));
    units += held / (counts.takes[i] * pipeline.stages[i].split);
  }
  if (!pipeline.loop) return units;
  if (pipeline.loop->rounds()) return 1;
  return std::min(units, 1 + static_cast<double>(pipeline.loop->in_flight) / counts.samples);
}

Result<Lowered> lower(const Pipeline& pipeline, std::uint64_t units, Start start,
                      program::Program& into, bool requests) {
  REHEARSE_CHECK(!requests || !pipeline.step);
  return Network(pipeline, units, start, into.names, requests).run(into);
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
    const auto room = static_cast<double>(room_after(pipeline.stages, i));
    double places = room > kMostPlaces ? 0 : 0.25 * kReach * room;
    if (comes_first(pipeline.stages, i))
      places += 0.25 * (kReach + 1) * pipeline.stages[i - 1].slots();
    ops += (3 + places) * counts.takes[i] + (3 + ops_to_choose(stage)) * counts.visits[i];
  }
  return ops * units;
}

}  // namespace rehearse::input
