#include "profiler/replay/energy.h"

#include <algorithm>
#include <map>
#include <set>

namespace rehearse::replay {
namespace {

using trace::Board, trace::GpuKind, trace::GpuOp, trace::PowerReading;

// Where it is not recorded how many multiprocessors a device has: of today's boards 66 to 160.
constexpr std::uint32_t kUsualMultiprocessors = 100;

/// Power over time, linear between readings.
class PowerCurve {
 public:
  explicit PowerCurve(std::vector<std::pair<Nanoseconds, double>> readings) {
    std::ranges::stable_sort(readings,
                             [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [time, watts] : readings) {
      if (!points_.empty() && points_.back().time == time) continue;  // of another process
      double joules = 0;
      if (!points_.empty())
        joules = points_.back().joules +
                 0.5 * (points_.back().watts + watts) * (time - points_.back().time).seconds().s();
      points_.push_back({time, watts, joules});
    }
  }

  bool empty() const { return points_.size() < 2; }
  Nanoseconds first() const { return points_.front().time; }
  Nanoseconds last() const { return points_.back().time; }
  bool covers(Nanoseconds from, Nanoseconds to) const { return first() <= from && to <= last(); }

  /// Joules from the first reading on. REQUIRES: first() <= time <= last().
  double until(Nanoseconds time) const {
    auto next = std::upper_bound(points_.begin(), points_.end(), time,
                                 [](Nanoseconds t, const Point& p) { return t < p.time; });
    if (next == points_.end()) --next;
    const Point& a = *std::prev(next);
    const double whole = (next->time - a.time).seconds().s();
    const double part = (time - a.time).seconds().s();
    return a.joules + part * (a.watts + 0.5 * part / whole * (next->watts - a.watts));
  }

 private:
  struct Point {
    Nanoseconds time;
    double watts;
    double joules;
  };
  std::vector<Point> points_;
};

/// The part of a board that some processes have to themselves: all of it, or a MIG instance.
struct Partition {
  double share = 1;  ///< of the board's power
  std::vector<std::size_t> ranks;
};

struct BoardParts {
  std::vector<std::pair<Nanoseconds, double>> readings = {};
  std::map<Nanoseconds, double> counter = {};  ///< J
  std::string name = {};
  std::map<std::string, Partition> partitions = {};  ///< by instance; "" the whole board
};

using BoardKey = std::pair<std::string, std::string>;  // host, UUID

/// The board row of the device that an op ran on; nothing where it cannot be told.
const Board* board_of(const trace::Rank& rank, std::uint32_t device) {
  for (const Board& board : rank.boards)
    if (board.device == device) return &board;
  return rank.boards.size() == 1 && !rank.boards[0].device ? &rank.boards[0] : nullptr;
}

std::uint32_t multiprocessors(const trace::Rank& rank, const Board& board, std::uint32_t device) {
  if (board.multiprocessors) return *board.multiprocessors;
  for (const trace::Device& known : rank.devices)
    if (known.ordinal == device && known.multiprocessors.value_or(0) > 0)
      return *known.multiprocessors;
  return kUsualMultiprocessors;
}

/// How many multiprocessors an op uses: a kernel one per block, a copy that of one.
std::int64_t use_of(const trace::Rank& rank, const GpuOp& op, std::uint32_t all) {
  if (op.kind != GpuKind::kKernel) return 1;
  if (!op.launch_shape) return all;
  const trace::LaunchShape& shape = rank.launch_shapes[op.launch_shape->index()];
  std::uint64_t blocks = 1;
  for (const std::uint32_t extent : shape.grid)
    blocks = std::min<std::uint64_t>(blocks * std::max(extent, 1u), all);
  return static_cast<std::int64_t>(std::max<std::uint64_t>(blocks, 1));
}

std::map<BoardKey, BoardParts> find_boards(const std::vector<Recording>& recordings) {
  std::map<BoardKey, BoardParts> boards;
  for (std::size_t r = 0; r < recordings.size(); ++r) {
    const trace::Rank& rank = recordings[r].rank();
    const auto key = [&](const Board& board) { return BoardKey(rank.info.host, board.uuid); };
    for (const PowerReading& reading : rank.power) {
      BoardParts& parts = boards[key(rank.boards[reading.board])];
      if (reading.power) parts.readings.emplace_back(reading.time, reading.power->w());
      if (reading.energy) parts.counter[reading.time] = reading.energy->j();
    }
    std::set<std::uint32_t> devices;
    for (const GpuOp& op : rank.gpu_ops) devices.insert(op.device);
    for (const std::uint32_t device : devices) {
      const Board* board = board_of(rank, device);
      if (!board) continue;
      BoardParts& parts = boards[key(*board)];
      parts.name = board->name;
      Partition& partition = parts.partitions[board->instance];
      if (partition.ranks.empty() || partition.ranks.back() != r) partition.ranks.push_back(r);
      if (!board->instance.empty() && board->multiprocessors && board->all_multiprocessors)
        partition.share = std::min(1.0, static_cast<double>(*board->multiprocessors) /
                                            static_cast<double>(*board->all_multiprocessors));
    }
    for (const Board& board : rank.boards)
      if (const auto at = boards.find(key(board)); at != boards.end()) at->second.name = board.name;
  }
  // Instances whose sizes are not known have the board in equal parts.
  for (auto& [key, parts] : boards) {
    double all = 0;
    for (const auto& [instance, partition] : parts.partitions) all += partition.share;
    for (auto& [instance, partition] : parts.partitions) partition.share /= std::max(all, 1.0);
  }
  return boards;
}

/// Goes through the time of one partition and shares out its energy.
class Sweep {
 public:
  Sweep(const std::vector<Recording>& recordings, const std::vector<std::vector<StepSpan>>& steps,
        const PowerCurve& curve, const Partition& partition, Energy& out)
      : recordings_(recordings), steps_(steps), curve_(curve), partition_(partition), out_(out) {}

  /// `is_here(board)` tells what belongs to the partition. Returns what ran and what was idle.
  template <class IsHere>
  std::pair<double, double> run(IsHere is_here) {
    for (const std::size_t r : partition_.ranks) {
      add_ops(r, is_here);
      for (std::size_t s = 0; s < steps_[r].size(); ++s) {
        const StepSpan& step = steps_[r][s];
        if (!curve_.covers(step.start, step.end)) {
          out_.steps[r][s] = std::nullopt;
          continue;
        }
        edges_.push_back({step.start, Edge::kStep, true, r, s, 0});
        edges_.push_back({step.end, Edge::kStep, false, r, s, 0});
      }
    }
    edges_.push_back({curve_.last(), Edge::kLast, false, 0, 0, 0});
    std::ranges::stable_sort(edges_, {}, &Edge::time);
    ops_of_.assign(recordings_.size(), 0);
    use_of_.assign(recordings_.size(), 0);
    for (const Edge& edge : edges_) {
      advance(edge.time);
      apply(edge);
    }
    double ran = 0;
    for (const std::size_t r : partition_.ranks) ran += ops_of_[r];
    return {ran, idle_};
  }

 private:
  struct Edge {
    Nanoseconds time;
    enum Kind { kOp, kStep, kLast } kind;
    bool begins;
    std::size_t rank;
    std::size_t index;  ///< of the op or the step
    std::int64_t use;
  };

  template <class IsHere>
  void add_ops(std::size_t r, IsHere is_here) {
    const trace::Rank& rank = recordings_[r].rank();
    for (std::size_t i = 0; i < rank.gpu_ops.size(); ++i) {
      const GpuOp& op = rank.gpu_ops[i];
      const Nanoseconds start = std::max(op.start, curve_.first());
      const Nanoseconds end = std::min(op.end(), curve_.last());
      const Board* board = start < end ? board_of(rank, op.device) : nullptr;
      if (!board || !is_here(*board)) continue;
      const std::int64_t use = use_of(rank, op, multiprocessors(rank, *board, op.device));
      edges_.push_back({start, Edge::kOp, true, r, i, use});
      edges_.push_back({end, Edge::kOp, false, r, i, use});
    }
  }

  void advance(Nanoseconds time) {
    const double until = curve_.until(time) * partition_.share;
    const double joules = until - until_;
    until_ = until;
    if (use_ == 0) {
      idle_ += joules;
      return;
    }
    per_use_ += joules / static_cast<double>(use_);
    for (const std::size_t r : partition_.ranks)
      ops_of_[r] += joules * static_cast<double>(use_of_[r]) / static_cast<double>(use_);
  }

  void apply(const Edge& edge) {
    const double sign = edge.begins ? -1 : 1;
    if (edge.kind == Edge::kOp) {
      out_.ops[edge.rank][edge.index] += Joules::j(sign * per_use_ * static_cast<double>(edge.use));
      const std::int64_t change = edge.begins ? edge.use : -edge.use;
      use_ += change;
      use_of_[edge.rank] += change;
    } else if (edge.kind == Edge::kStep && out_.steps[edge.rank][edge.index]) {
      StepEnergy& step = *out_.steps[edge.rank][edge.index];
      step.ops += Joules::j(sign * ops_of_[edge.rank]);
      step.idle += Joules::j(sign * idle_ / static_cast<double>(partition_.ranks.size()));
    }
  }

  const std::vector<Recording>& recordings_;
  const std::vector<std::vector<StepSpan>>& steps_;
  const PowerCurve& curve_;
  const Partition& partition_;
  Energy& out_;
  std::vector<Edge> edges_;
  std::int64_t use_ = 0;              ///< multiprocessors in use now, by all ranks
  std::vector<std::int64_t> use_of_;  ///< by rank
  std::vector<double> ops_of_;        ///< J so far, by rank
  double until_ = 0, idle_ = 0;       ///< J so far
  double per_use_ = 0;                ///< J so far of an op that uses one multiprocessor
};

void check_counter(const PowerCurve& curve, const std::map<Nanoseconds, double>& counter,
                   BoardEnergy& board) {
  std::optional<std::pair<Nanoseconds, double>> first, last;
  for (const auto& reading : counter) {
    if (!curve.covers(reading.first, reading.first)) continue;
    if (!first) first = reading;
    last = reading;
  }
  if (!first || first->first == last->first || last->second < first->second) return;
  board.counted = Joules::j(last->second - first->second);
  board.counted_by_power = Joules::j(curve.until(last->first) - curve.until(first->first));
}

}  // namespace

std::optional<Energy> measure_energy(const std::vector<Recording>& recordings,
                                     const std::vector<std::vector<StepSpan>>& steps) {
  Energy energy;
  for (std::size_t r = 0; r < recordings.size(); ++r) {
    energy.ops.emplace_back(recordings[r].rank().gpu_ops.size(), Joules::j(0));
    energy.steps.emplace_back(steps[r].size(), std::nullopt);
  }
  const std::map<BoardKey, BoardParts> boards = find_boards(recordings);
  std::vector<char> has_board(recordings.size(), 0);
  for (const auto& [key, parts] : boards)
    for (const auto& [instance, partition] : parts.partitions)
      for (const std::size_t r : partition.ranks) has_board[r] = 1;
  for (std::size_t r = 0; r < recordings.size(); ++r)
    if (has_board[r])
      for (auto& step : energy.steps[r]) step = StepEnergy{Joules::j(0), Joules::j(0)};

  for (const auto& [key, parts] : boards) {
    const PowerCurve curve(parts.readings);
    if (curve.empty()) {  // a rank that used it has no whole energy
      for (const auto& [instance, partition] : parts.partitions)
        for (const std::size_t r : partition.ranks)
          energy.steps[r].assign(steps[r].size(), std::nullopt);
      continue;
    }
    BoardEnergy board{.host = key.first,
                      .uuid = key.second,
                      .name = parts.name,
                      .first = curve.first(),
                      .last = curve.last(),
                      .total = Joules::j(curve.until(curve.last()))};
    check_counter(curve, parts.counter, board);
    double share = 0;
    for (const auto& [instance, partition] : parts.partitions) {
      const auto is_here = [&uuid = key.second, &of = instance](const Board& b) {
        return b.uuid == uuid && b.instance == of;
      };
      const auto [ran, idle] = Sweep(recordings, steps, curve, partition, energy).run(is_here);
      board.ops += Joules::j(ran);
      board.idle += Joules::j(idle);
      board.shared = board.shared || !instance.empty() || partition.ranks.size() > 1;
      share += partition.share;
    }
    if (parts.partitions.empty())
      board.idle = board.total;
    else
      board.other = Joules::j(board.total.j() * std::max(0.0, 1 - share));
    energy.boards.push_back(std::move(board));
  }
  if (energy.boards.empty()) return std::nullopt;
  return energy;
}

}  // namespace rehearse::replay
