// Search: the best of numbered candidates, under limits, according to a judge. Candidates are the
// plans of a space, or the settings of an inference server.
//
// A judge gives a candidate's figures, and cheaper lower bounds of them. Candidates are judged in the
// order of their bounds. One is not evaluated if its bound cannot be among the best, and is no better
// in any figure of the front than an evaluated candidate. If bounds never exceed the figures, the
// answer equals that of evaluating everything (tests/property/search_property_test.cc), for any
// number of threads. Only the judge knows what a candidate is, and the meaning of its figures.
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
/// The place of a plan's figure.
constexpr std::size_t slot(Figure figure) { return static_cast<std::size_t>(figure); }
constexpr double of(const Figures& figures, Figure figure) { return figures[slot(figure)]; }

/// Upper limits of figures.
inline constexpr Figures kNoLimits = {
    std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(),
    std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(),
    std::numeric_limits<double>::infinity()};

struct Question {
  std::size_t objective = slot(Figure::kStepTime);
  /// These decide between candidates that are equal in the objective, the first one first.
  std::vector<std::size_t> ties = {slot(Figure::kMemory), slot(Figure::kStepTime)};
  Figures at_most = kNoLimits;
  /// The figures in which no candidate of the front is dominated; it is in the order of the first.
  std::vector<std::size_t> front = {slot(Figure::kStepTime), slot(Figure::kMemory)};
  std::size_t keep = 10;
};

/// Both functions take a number below that of all candidates, and return nothing for a candidate that
/// cannot run. Not used by two threads at a time.
struct Judge {
  std::function<std::optional<Figures>(std::uint64_t)> bound;
  /// Never below the bound. If one figure is above its limit, the others are unspecified.
  std::function<std::optional<Figures>(std::uint64_t)> evaluate;
};

struct Judged {
  std::uint64_t index;
  Figures figures;
};

struct Found {
  std::uint64_t seen = 0;       ///< all candidates
  std::uint64_t evaluated = 0;  ///< evaluated candidates; the others cannot matter
  std::vector<Judged> best;     ///< by the objective, then the ties and the index
  std::vector<Judged> front;    ///< by its first figure, then the index
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
Result<Found> search(std::uint64_t candidates, const Question& question,
                     const std::function<Judge()>& new_judge, const SearchOptions& options);

}  // namespace rehearse::strategies
