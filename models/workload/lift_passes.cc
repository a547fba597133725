#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "models/workload/lift_steps.h"

namespace rehearse::workload::lifting {
namespace {

/// What each unit belongs to.
struct Assignment {
  std::vector<std::size_t> microbatch;  ///< by unit; the optimizer's is the last
  std::vector<std::uint32_t> chunk;     ///< by unit; 0 for units that are not forward
  std::uint32_t chunks = 1;
};

/// A forward unit after a backward one begins a microbatch.
Assignment one_after_another(const std::vector<Unit>& units) {
  Assignment found{.microbatch = {}, .chunk = std::vector<std::uint32_t>(units.size(), 0)};
  std::size_t pass = 0;
  bool backward = false;
  for (const Unit& unit : units) {
    if (unit.phase == Phase::kForward && backward) {
      ++pass;
      backward = false;
    }
    if (unit.phase == Phase::kBackward) backward = true;
    found.microbatch.push_back(pass);
  }
  return found;
}

/// The same for the schedules of pipelines, which run several forward passes before the first
/// backward one. A pass computes one microbatch through one chunk of the stage.
class PipelinePasses {
 public:
  explicit PipelinePasses(const std::vector<Unit>& units)
      : units_(units), place_(units.size(), 0), run_of_(units.size(), 0) {
    for (std::size_t u = 0; u < units.size(); ++u)
      if (units[u].phase == Phase::kForward) place_[u] = forward_units_++;
  }

  /// Nothing if there is one pass alone, or passes in another order.
  std::optional<Assignment> find() {
    find_runs();
    if (runs_.size() < 2 || !find_positions() || !find_round() || !find_starts())
      return std::nullopt;
    Assignment found{.microbatch = {},
                     .chunk = std::vector<std::uint32_t>(units_.size(), 0),
                     .chunks = static_cast<std::uint32_t>(chunks_)};
    for (std::size_t u = 0; u < units_.size(); ++u) {
      std::size_t position = runs_.size() - 1;
      if (units_[u].phase == Phase::kForward) {
        const auto next = std::upper_bound(starts_.begin(), starts_.end(), place_[u]);
        position = static_cast<std::size_t>(next - starts_.begin()) - 1;
        found.chunk[u] = static_cast<std::uint32_t>(chunk_at(position));
      } else if (units_[u].phase != Phase::kOptimizer) {
        position = position_of_[run_of_[u]];
      }
      found.microbatch.push_back(microbatch_at(position));
    }
    return found;
  }

 private:
  /// A backward pass: the forward units that it undoes, from the last to the first.
  struct Run {
    std::size_t low, high;  ///< among forward units
  };

  /// Autograd undoes a pass in descending order, without a gap among the forward units that any
  /// backward unit undoes. A pass ends where this order does.
  void find_runs() {
    std::vector<std::size_t> rank(forward_units_ + 1, 0);  // among undone units
    for (const Unit& unit : units_)
      if (undoes(unit)) rank[place_[*unit.forward] + 1] = 1;
    std::partial_sum(rank.begin(), rank.end(), rank.begin());
    std::size_t last = 0;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (undoes(units_[u])) {
        const std::size_t at = place_[*units_[u].forward], here = rank[at + 1];
        if (runs_.empty() || (here != last && here + 1 != last))
          runs_.push_back({at, at});
        else
          runs_.back().low = at;
        last = here;
      }
      run_of_[u] = runs_.empty() ? 0 : runs_.size() - 1;
    }
    // Recomputation comes before the backward units that need it.
    for (std::size_t u = units_.size(); u-- > 1;)
      if (units_[u - 1].phase == Phase::kRecompute) run_of_[u - 1] = run_of_[u];
  }
  bool undoes(const Unit& unit) const {
    return unit.phase == Phase::kBackward && unit.forward &&
           units_[*unit.forward].phase == Phase::kForward;
  }

  /// The position of each backward pass among the forward passes.
  bool find_positions() {
    by_position_.resize(runs_.size());
    std::iota(by_position_.begin(), by_position_.end(), 0);
    std::sort(by_position_.begin(), by_position_.end(),
              [&](std::size_t a, std::size_t b) { return runs_[a].low < runs_[b].low; });
    position_of_.resize(runs_.size());
    for (std::size_t q = 0; q < by_position_.size(); ++q) {
      position_of_[by_position_[q]] = q;
      if (q > 0 && runs_[by_position_[q - 1]].high >= runs_[by_position_[q]].low) return false;
    }
    return true;
  }

  /// In a round, some microbatches go forward through the first chunk, then through the next, and
  /// backward from the last chunk to the first. Backward passes of one chunk are in the order of
  /// the forward ones. Without chunks, there is one round.
  bool find_round() {
    const std::size_t all = runs_.size();
    round_ = 1;
    while (round_ < all && position_of_[round_] == position_of_[round_ - 1] + 1) ++round_;
    if (position_of_[0] % round_ != 0) return false;
    chunks_ = position_of_[0] / round_ + 1;
    if (all % (round_ * chunks_) != 0) return false;
    for (std::size_t k = 0; k < all; ++k) {
      const std::size_t undone = k / (round_ * chunks_) * (round_ * chunks_) +
                                 (chunks_ - 1 - chunk_at(k)) * round_ + k % round_;
      if (position_of_[k] != undone) return false;
    }
    return true;
  }
  std::size_t chunk_at(std::size_t position) const {
    return position % (round_ * chunks_) / round_;
  }
  std::size_t microbatch_at(std::size_t position) const {
    return position / (round_ * chunks_) * round_ + position % round_;
  }

  /// The first unit of each forward pass. The first and the last units of a pass may have no
  /// backward ones: their number follows from that of the first pass, chunk by chunk, because two
  /// passes of one chunk follow each other.
  bool find_starts() {
    std::vector<std::size_t> head(chunks_, 0), tail(chunks_, 0);
    head[0] = run_at(0).low;
    starts_ = {0};
    for (std::size_t q = 1; q < runs_.size(); ++q) {
      const Run &before = run_at(q - 1), &here = run_at(q);
      const std::size_t from = chunk_at(q - 1), to = chunk_at(q);
      const bool first_of_chunk = to == from + 1 && q < round_ * chunks_;
      if (first_of_chunk) {
        if (here.low < before.high + 1 + tail[from]) return false;
        head[to] = here.low - before.high - 1 - tail[from];
      }
      if (here.low < head[to] + before.high + 1) return false;
      starts_.push_back(here.low - head[to]);
      if (from == to) tail[from] = starts_.back() - before.high - 1;
    }
    return true;
  }
  const Run& run_at(std::size_t position) const { return runs_[by_position_[position]]; }

  const std::vector<Unit>& units_;
  std::vector<std::size_t> place_;  ///< by unit: among forward units
  std::size_t forward_units_ = 0;
  std::vector<Run> runs_;
  std::vector<std::size_t> run_of_;  ///< by unit that is not forward
  std::vector<std::size_t> position_of_, by_position_;
  std::size_t round_ = 1, chunks_ = 1;
  std::vector<std::size_t> starts_;
};

/// Whether the forward parts of all microbatches are the same operators on the same shapes.
bool alike(const std::vector<Unit>& units, const std::vector<std::size_t>& passes) {
  std::vector<std::vector<const Unit*>> forward(1 +
                                                *std::max_element(passes.begin(), passes.end()));
  for (std::size_t u = 0; u < units.size(); ++u)
    if (units[u].phase == Phase::kForward) forward[passes[u]].push_back(&units[u]);
  return std::all_of(forward.begin(), forward.end(), [&](const auto& pass) {
    return std::equal(pass.begin(), pass.end(), forward[0].begin(), forward[0].end(),
                      [](const Unit* a, const Unit* b) {
                        return a->name == b->name && a->operands == b->operands;
                      });
  });
}

}  // namespace

Passes fold_passes(std::vector<Unit>& units) {
  if (units.empty()) return {};
  Assignment assigned = one_after_another(units);
  if (assigned.microbatch.back() == 0 || !alike(units, assigned.microbatch)) {
    std::optional<Assignment> pipeline = PipelinePasses(units).find();
    if (!pipeline || !alike(units, pipeline->microbatch)) return {};
    assigned = std::move(*pipeline);
  }
  const std::vector<std::size_t>& passes = assigned.microbatch;
  Passes found{.microbatches = 1 + *std::max_element(passes.begin(), passes.end()),
               .chunks = assigned.chunks};
  using PassKey = std::tuple<Phase, std::string_view, std::size_t>;
  std::map<PassKey, std::size_t> first;  // by what it is in a pass: its place among `saved`
  std::map<std::tuple<std::size_t, Phase, std::string_view>, std::size_t> seen;
  std::vector<std::size_t> place(units.size());
  std::vector<Unit> saved, later;
  std::vector<std::size_t> of_later;  // units
  for (std::size_t u = 0; u < units.size(); ++u) {
    Unit& unit = units[u];
    unit.chunk = assigned.chunk[u];
    if (passes[u] > 0 && unit.phase == Phase::kBackward) found.later.push_back(unit.start);
    const PassKey key{unit.phase, unit.name, seen[{passes[u], unit.phase, unit.name}]++};
    const auto at = first.find(key);
    if (passes[u] == 0 || unit.phase == Phase::kOptimizer) {
      place[u] = saved.size();
      first.emplace(key, saved.size());
      saved.push_back(unit);
    } else if (at != first.end()) {
      place[u] = at->second;
      Unit& into = saved[at->second];
      into.time += unit.time;
      into.device.insert(into.device.end(), unit.device.begin(), unit.device.end());
    } else {
      of_later.push_back(u);
      later.push_back(unit);
    }
  }
  for (std::size_t k = 0; k < later.size(); ++k) place[of_later[k]] = saved.size() + k;
  saved.insert(saved.end(), later.begin(), later.end());
  for (Unit& unit : saved)
    if (unit.forward) unit.forward = place[*unit.forward];
  units = std::move(saved);
  return found;
}

}  // namespace rehearse::workload::lifting
