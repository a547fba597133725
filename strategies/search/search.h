// Search: the best plans of a space, under limits, according to a judge.
//
// A judge gives a plan's figures, and cheaper lower bounds of them. Plans are judged in the order
// of their bounds. A plan is not evaluated if its bound cannot be among the best, and is no better
// in any figure of the front than an evaluated plan. If bounds never exceed the figures, the answer
// equals that of evaluating everything (tests/property/search_property_test.cc), for any number of
// threads. Only the judge knows the meaning of the figures.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/progress.h"
#include "sim/base/result.h"
#include "strategies/search/space.h"

namespace rehearse::strategies {

/// Quantities of a step under a plan, in SI units; less is better. Summed over all devices, except
/// for memory.
enum class Figure : std::uint8_t {
  kStepTime,  ///< s
  kMemory,    ///< B at the peak of the fullest device
  kCost,      ///< USD
  kEnergy,    ///< J
  kCarbon,    ///< gCO2e
};
inline constexpr std::size_t kFigures = 5;
inline constexpr std::string_view kFigureNames[kFigures] = {"step_time", "memory", "cost", "energy",
                                                            "carbon"};
using Figures = std::array<double, kFigures>;
constexpr double of(const Figures& figures, Figure figure) {
  return figures[static_cast<std::size_t>(figure)];
}

/// Upper limits of a plan's figures.
inline constexpr Figures kNoLimits = {
    std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(),
    std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(),
    std::numeric_limits<double>::infinity()};

struct Question {
  Figure objective = Figure::kStepTime;
  Figures at_most = kNoLimits;
  /// The quantities in which no plan of the front is dominated.
  std::vector<Figure> front = {Figure::kStepTime, Figure::kMemory};
  std::size_t keep = 10;
};

/// Both functions return nothing for a plan that cannot be laid out or run. Not used by two threads
/// at a time.
struct Judge {
  std::function<std::optional<Figures>(const Candidate&)> bound;
  /// Never below the bound. If memory is above its limit, the other figures are unspecified.
  std::function<std::optional<Figures>(const Candidate&)> evaluate;
};

struct Judged {
  std::uint64_t index;  ///< in the space
  Figures figures;
};

struct Found {
  std::uint64_t seen = 0;       ///< plans of the space
  std::uint64_t evaluated = 0;  ///< evaluated plans; the others cannot matter
  std::vector<Judged> best;     ///< by the objective, then memory, time and index
  std::vector<Judged> front;    ///< by step time, then index
};

/// Calls work(i) for each i below `count`, by other threads, processes or an earlier run, and
/// returns the results. `what` describes it for people; a search makes the same calls each time.
using Spread = std::function<Result<std::vector<std::string>>(
    const std::string& what, std::size_t count,
    const std::function<Result<std::string>(std::size_t)>& work)>;

struct SearchOptions {
  unsigned threads = 1;
  Progress progress = {};  ///< never called from two threads at a time
  Spread spread = {};      ///< instead of the threads
};

/// `new_judge` is called once per thread. Fails when progress asks to stop.
Result<Found> search(const Space& space, const Question& question,
                     const std::function<Judge()>& new_judge, const SearchOptions& options);

}  // namespace rehearse::strategies
