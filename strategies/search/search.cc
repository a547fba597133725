#include "strategies/search/search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>

#include "sim/base/check.h"
#include "sim/base/on_threads.h"

namespace rehearse::strategies {
namespace {

/// The numbers of plans between two updates of the best so far, first and last: the first plans rule
/// out most others. They are constant, so that the evaluated plans do not depend on the number of
/// threads.
constexpr std::size_t kFirstRound = 16, kLastRound = 256;

bool keeps(const Figures& figures, const Figures& at_most) {
  for (std::size_t f = 0; f < kFigures; ++f)
    if (figures[f] > at_most[f]) return false;
  return true;
}

/// The best so far and the front.
class Keeper {
 public:
  Keeper(const Question& question, Found& found) : question_(question), found_(found) {}

  /// Whether a plan with these bounds may still be kept.
  bool may_matter(const Figures& bound) const {
    if (found_.best.size() < question_.keep ||
        bound[question_.objective] <= found_.best.back().figures[question_.objective])
      return true;
    return std::ranges::none_of(found_.front,
                                [&](const Judged& f) { return beats(f.figures, bound); });
  }

  void take(const Judged& plan) {
    const auto before = [&](const Judged& a, const Judged& b) { return is_before(a, b); };
    auto& best = found_.best;
    best.insert(std::upper_bound(best.begin(), best.end(), plan, before), plan);
    if (best.size() > question_.keep) best.pop_back();
    take_into_front(plan);
  }

 private:
  bool is_before(const Judged& a, const Judged& b) const {
    const std::size_t objective = question_.objective;
    if (a.figures[objective] != b.figures[objective])
      return a.figures[objective] < b.figures[objective];
    for (const std::size_t f : question_.ties)
      if (a.figures[f] != b.figures[f]) return a.figures[f] < b.figures[f];
    return a.index < b.index;
  }
  /// Not worse in any figure of the front, and better in some.
  bool beats(const Figures& a, const Figures& b) const {
    bool better = false;
    for (const std::size_t f : question_.front) {
      if (a[f] > b[f]) return false;
      better |= a[f] < b[f];
    }
    return better;
  }
  bool equals(const Figures& a, const Figures& b) const {
    return std::ranges::all_of(question_.front, [&](std::size_t f) { return a[f] == b[f]; });
  }

  /// Among plans with equal figures the first stays.
  void take_into_front(const Judged& plan) {
    for (Judged& other : found_.front) {
      if (beats(other.figures, plan.figures)) return;
      if (equals(other.figures, plan.figures)) {
        if (plan.index < other.index) other = plan;
        return;
      }
    }
    auto& front = found_.front;
    std::erase_if(front, [&](const Judged& f) { return beats(plan.figures, f.figures); });
    const auto before = [first = question_.front.front()](const Judged& a, const Judged& b) {
      const double x = a.figures[first], y = b.figures[first];
      return x != y ? x < y : a.index < b.index;
    };
    front.insert(std::upper_bound(front.begin(), front.end(), plan, before), plan);
  }

  const Question& question_;
  Found& found_;
};

/// The least work worth handing to a thread or another process: some milliseconds.
constexpr std::size_t kBoundsPerItem = 512, kPlansPerItem = 8;

/// Absent figures are stored as NaN.
void append(std::string& bytes, const std::optional<Figures>& figures) {
  Figures all;
  all.fill(std::numeric_limits<double>::quiet_NaN());
  if (figures) all = *figures;
  bytes.append(reinterpret_cast<const char*>(all.data()), sizeof all);
}

void take_all(const std::string& bytes, std::vector<std::optional<Figures>>& figures) {
  for (std::size_t at = 0; at + sizeof(Figures) <= bytes.size(); at += sizeof(Figures)) {
    Figures all;
    std::memcpy(all.data(), bytes.data() + at, sizeof all);
    figures.push_back(std::isnan(all[0]) ? std::nullopt : std::optional(all));
  }
}

/// Judges that no thread uses. Threads come and go, and a judge becomes faster with the number of
/// plans that it has judged.
class SpareJudges {
 public:
  std::unique_ptr<Judge> take(const std::function<Judge()>& new_judge) {
    {
      const std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        std::unique_ptr<Judge> judge = std::move(spare_.back());
        spare_.pop_back();
        return judge;
      }
    }
    return std::make_unique<Judge>(new_judge());
  }
  void give_back(std::unique_ptr<Judge> judge) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(judge));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Judge>> spare_;
};

class Run {
 public:
  Run(std::uint64_t candidates, const Question& question, const std::function<Judge()>& new_judge,
      const SearchOptions& options)
      : candidates_(candidates), question_(question), new_judge_(new_judge), options_(options) {}

  Result<Found> run() {
    found_.seen = candidates_;
    std::vector<Judged> possible = TRY(bounds());
    std::ranges::sort(possible, [&](const Judged& a, const Judged& b) {
      const double x = a.figures[question_.objective], y = b.figures[question_.objective];
      return x != y ? x < y : a.index < b.index;
    });
    TRY(evaluate(possible));
    return std::move(found_);
  }

 private:
  using Judgement = std::function<std::optional<Figures>(std::uint64_t)> Judge::*;

  using FiguresOf = std::vector<std::optional<Figures>>;

  /// The figures of each plan, in the given order.
  Result<FiguresOf> judge(const std::vector<std::uint64_t>& indices, Judgement judgement) {
    const bool bounds = judgement == &Judge::bound;
    const std::size_t per_item = bounds ? kBoundsPerItem : kPlansPerItem;
    const std::size_t items = (indices.size() + per_item - 1) / per_item;
    FiguresOf figures(indices.size());
    const auto judge_item = [&](std::size_t item) {
      std::unique_ptr<Judge> judge = spare_.take(new_judge_);
      const std::size_t end = std::min(indices.size(), (item + 1) * per_item);
      for (std::size_t i = item * per_item; i < end; ++i)
        figures[i] = ((*judge).*judgement)(indices[i]);
      spare_.give_back(std::move(judge));
    };
    if (!options_.spread) {
      on_threads(items, options_.threads, judge_item);
      return figures;
    }
    const auto packed = [&](std::size_t item) -> Result<std::string> {
      judge_item(item);
      std::string bytes;
      const std::size_t end = std::min(indices.size(), (item + 1) * per_item);
      for (std::size_t i = item * per_item; i < end; ++i) append(bytes, figures[i]);
      return bytes;
    };
    const std::vector<std::string> parts =
        TRY(options_.spread(bounds ? "bounds" : "plans", items, packed));
    FiguresOf all;
    for (const std::string& part : parts) take_all(part, all);
    REHEARSE_CHECK(all.size() == indices.size());
    return all;
  }

  /// The bounds of the candidates that meet the limits as far as bounds show.
  Result<std::vector<Judged>> bounds() {
    std::vector<Judged> possible;
    constexpr std::uint64_t kPart = 8192;
    for (std::uint64_t first = 0; first < candidates_; first += kPart) {
      std::vector<std::uint64_t> indices;
      for (std::uint64_t i = first; i < std::min(candidates_, first + kPart); ++i)
        indices.push_back(i);
      const FiguresOf judged = TRY(judge(indices, &Judge::bound));
      const FiguresOf& bounds = judged;
      for (std::size_t i = 0; i < indices.size(); ++i)
        if (bounds[i] && keeps(*bounds[i], question_.at_most))
          possible.push_back({indices[i], *bounds[i]});
      if (!go_on(0.5 * static_cast<double>(first) / static_cast<double>(found_.seen)))
        return stopped();
    }
    return possible;
  }

  Status evaluate(const std::vector<Judged>& possible) {
    Keeper keeper(question_, found_);
    std::vector<std::uint64_t> round;
    std::size_t most = kFirstRound;
    const auto run = [&]() -> Status {
      // Plans of equal degrees, which share routes and loads, are next to each other in the space.
      std::ranges::sort(round);
      const FiguresOf judged = TRY(judge(round, &Judge::evaluate));
      const FiguresOf& figures = judged;
      for (std::size_t i = 0; i < round.size(); ++i)
        if (figures[i] && keeps(*figures[i], question_.at_most))
          keeper.take({round[i], *figures[i]});
      found_.evaluated += round.size();
      round.clear();
      most = std::min(2 * most, kLastRound);
      return {};
    };
    for (std::size_t i = 0; i < possible.size(); ++i) {
      if (keeper.may_matter(possible[i].figures)) round.push_back(possible[i].index);
      if (round.size() < most) continue;
      TRY(run());
      if (!go_on(0.5 + 0.5 * static_cast<double>(i) / static_cast<double>(possible.size())))
        return stopped();
    }
    return round.empty() ? Status() : run();
  }

  bool go_on(double share) const { return !options_.progress || options_.progress(share); }
  static tl::unexpected<Error> stopped() {
    return fail("stopped before all candidates were judged");
  }

  std::uint64_t candidates_;
  const Question& question_;
  const std::function<Judge()>& new_judge_;
  SpareJudges spare_;
  const SearchOptions& options_;
  Found found_;
};

}  // namespace

Result<Found> search(std::uint64_t candidates, const Question& question,
                     const std::function<Judge()>& new_judge, const SearchOptions& options) {
  return Run(candidates, question, new_judge, options).run();
}

}  // namespace rehearse::strategies
