#include "profiler/replay/periods.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace rehearse::replay {
namespace {

constexpr std::size_t kLeastTurns = 3;
constexpr std::size_t kShortest = 4;  // words of a turn
constexpr double kUneven = 0.05;      // of the usual distance: words missing or too many
constexpr double kCovered = 0.7;      // of the sequence, by whole turns
constexpr double kAlike = 0.6;        // of the runs of a turn: that the next has too

/// For each place, the number of the run of `length` words that begins there: that of its first
/// equal.
std::vector<std::size_t> runs(std::span<const std::uint32_t> words, std::size_t length) {
  const std::u32string text(words.begin(), words.end());
  std::unordered_map<std::u32string_view, std::size_t> first;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i + length <= text.size(); ++i)
    found.push_back(first.emplace(std::u32string_view(text).substr(i, length), i).first->second);
  return found;
}

/// Whether the distances are those of a mark of each turn of a loop that wrote most of `all` words.
bool is_even(const std::vector<std::size_t>& at, std::size_t all) {
  if (at.size() < kLeastTurns) return false;
  const double period =
      static_cast<double>(at.back() - at.front()) / static_cast<double>(at.size() - 1);
  if (period < static_cast<double>(kShortest) ||
      static_cast<double>(at.back() - at.front()) + period < kCovered * static_cast<double>(all))
    return false;
  const double slack = std::max(1.0, kUneven * period);
  for (std::size_t k = 1; k < at.size(); ++k)
    if (std::abs(static_cast<double>(at[k] - at[k - 1]) - period) > slack) return false;
  return true;
}

/// How many words in a row two turns must share to be alike in them by more than chance: the fewer
/// kinds of words there are, the more.
std::size_t telling_run(std::span<const std::uint32_t> words) {
  constexpr double kShortestRun = 6, kLongestRun = 24, kByChance = 0.01;
  std::unordered_map<std::uint32_t, double> count;
  for (const std::uint32_t word : words) ++count[word];
  const auto all = static_cast<double>(words.size());
  double same = 0;  // how likely two words of the sequence are the same
  for (const auto& [word, n] : count) same += n / all * n / all;
  const double run = std::log(kByChance / all) / std::log(same);
  return static_cast<std::size_t>(
      std::clamp(same < 1 ? std::ceil(run) : kLongestRun, kShortestRun, kLongestRun));
}

/// Whether each turn has most runs of words that the one before it has.
bool are_alike(const std::vector<std::size_t>& run_at, const std::vector<std::size_t>& at) {
  if (at[2] > run_at.size()) return false;
  for (std::size_t k = 0; k + 2 < at.size() && at[k + 2] <= run_at.size(); ++k) {
    const std::size_t end = at[k + 2];
    std::unordered_set<std::size_t> next;
    for (std::size_t i = at[k + 1]; i < end; ++i) next.insert(run_at[i]);
    std::size_t same = 0, all = 0;
    // Runs that reach into the next turn are of both.
    for (std::size_t i = at[k]; i < at[k + 1]; ++i, ++all) same += next.contains(run_at[i]) ? 1 : 0;
    if (static_cast<double>(same) < kAlike * static_cast<double>(all)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::size_t> find_turns(std::span<const std::uint32_t> words) {
  if (words.size() < kLeastTurns * kShortest) return {};
  const std::vector<std::size_t> compared = runs(words, telling_run(words));
  for (const std::size_t length :
       {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{8}}) {
    std::map<std::size_t, std::vector<std::size_t>> places;
    const std::vector<std::size_t> of_length = runs(words, length);
    for (std::size_t i = 0; i < of_length.size(); ++i) places[of_length[i]].push_back(i);
    // By how often they come, those that could mark turns; of the number that most words share, the
    // one that comes first. Something that comes every other turn is rarer than what comes in each.
    struct Marks {
      std::size_t words = 0;
      const std::vector<std::size_t>* first = nullptr;
    };
    std::map<std::size_t, Marks, std::greater<>> by_count;
    for (const auto& [run, at] : places) {
      if (!is_even(at, words.size())) continue;
      Marks& marks = by_count[at.size()];
      ++marks.words;
      if (!marks.first || at.front() < marks.first->front()) marks.first = &at;
    }
    std::vector<std::pair<std::size_t, const std::vector<std::size_t>*>> ranked;
    for (const auto& [count, marks] : by_count) ranked.emplace_back(marks.words, marks.first);
    std::ranges::stable_sort(ranked,
                             [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [count, at] : ranked)
      if (are_alike(compared, *at)) return *at;
  }
  return {};
}

}  // namespace rehearse::replay
