// Triggers: select the steps of the ring that are written. The launcher parses the same text, to
// reject rules that the library would not understand.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse::capture {

/// The grammar of a trigger, in one line for people.
inline constexpr char kTriggerGrammar[] =
    "step_time > p99, step_time > 250 ms (ns, us, ms, s), step_time > 1.5x median, or every 100";

struct Trigger {
  enum class Kind : std::uint8_t {
    kNone,
    kPercentile,   ///< a step longer than `value` thousandths of a percent of those before it
    kLonger,       ///< a step longer than `value` ns
    kTimesMedian,  ///< a step longer than `value` thousandths of the median of those before it
    kEvery,        ///< each step whose number `value` divides
  };
  Kind kind = Kind::kNone;
  std::uint64_t value = 0;

  bool operator==(const Trigger&) const = default;
};

/// The number of ended steps below which a percentile or median means nothing.
inline constexpr std::uint64_t kWarmUpSteps = 30;

/// Parses a trigger; spaces between its words may be left out. False if it is invalid.
bool parse_trigger(std::string_view text, Trigger& into);

/// The distribution of step times in bounded memory: counts per bucket, 128 buckets per doubling,
/// so that a quantile is at most 1/128 (0.8 %) above the true one and never below it.
class StepHistogram {
 public:
  static constexpr unsigned kPerDoubling = 128;
  static constexpr unsigned kBuckets = 64 * kPerDoubling;

  /// `counts` are kBuckets zeros that the caller owns.
  explicit StepHistogram(std::uint32_t* counts) : counts_(counts) {}

  void add(std::uint64_t ns);
  std::uint64_t count() const { return count_; }
  /// The smallest value that at least `thousandths` of a percent of the times do not exceed.
  /// REQUIRES: count() > 0.
  std::uint64_t quantile(std::uint64_t thousandths) const;

 private:
  std::uint32_t* counts_;
  std::uint64_t count_ = 0;
};

/// Whether the trigger selects a step that took `ns` and has this `number`. `before` are the steps
/// that ended before it. `limit` is set to the compared value, in ns; 0 for none.
bool fires(const Trigger& trigger, const StepHistogram& before, std::uint64_t number,
           std::uint64_t ns, std::uint64_t& limit);

}  // namespace rehearse::capture
