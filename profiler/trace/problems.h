// Errors and unusual data in a recording: counted by kind, never silently dropped.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::trace {

enum class Severity : std::uint8_t {
  kInfo,     ///< normal for some profilers; reported to avoid doubt
  kWarning,  ///< part of the recording cannot be used
  kError,    ///< the recording is incomplete or contradicts itself
};

enum class ProblemKind : std::uint8_t {
  kTruncated,           ///< the file ends in the middle
  kMalformed,           ///< part of the file is unreadable and was skipped
  kInvalidText,         ///< text is not UTF-8; replaced
  kAbsurdNumber,        ///< a time, size or id out of all proportion; the record was dropped
  kMissingField,        ///< a record that lacks a required field; dropped
  kUnknownCategory,     ///< an unknown category; dropped
  kIgnoredCategory,     ///< a category that replay does not need; dropped
  kNegativeDuration,    ///< a record that ends before it starts; dropped
  kZeroDuration,        ///< a device op recorded with no duration (whole-microsecond clocks)
  kDuplicateId,         ///< two launch calls with one correlation id, two ops with one id
  kClockSkew,           ///< a device op that starts before the call that launched it
  kUnlaunched,          ///< a device op without a launch call: launched before the recording
  kUnfinished,          ///< a launch call whose device op was never recorded
  kUnpairedFlow,        ///< a flow arrow with one end only
  kUnbalancedRange,     ///< a range that was opened and never closed, or closed and never opened
  kStreamOverlap,       ///< device ops of one stream that overlap
  kMissingSteps,        ///< no step marks; the whole recording counts as one step
  kUnjoined,            ///< operators of an execution trace that the timed recording lacks
  kDroppedRecords,      ///< records that the profiler itself lost
  kDanglingDependency,  ///< a dependency on an op that the recording lacks; dropped
  kLostTiming,          ///< a record whose times the profiler lost; dropped
  kNotRecorded,         ///< something the profiler could not record, as it says itself
  kUnchecked,           ///< a store from before checksums: damage may go unseen
};

struct ProblemInfo {
  std::string_view name;
  Severity severity;
  std::string_view meaning;
};

const ProblemInfo& info(ProblemKind kind);
std::string_view to_string(Severity severity);
inline constexpr std::size_t kProblemKinds = 23;

struct Problem {
  ProblemKind kind;
  std::uint64_t count;
  std::string first;  ///< first occurrence: "file:line" and the text there
};

class Problems {
 public:
  /// Counts one problem (or `count`); keeps the position of the first.
  void add(ProblemKind kind, std::string_view where, std::uint64_t count = 1);
  /// Whether the next `add` of this kind is the first, for callers that find a position costly.
  bool is_first(ProblemKind kind) const { return counts_[static_cast<std::size_t>(kind)] == 0; }
  void add(const Problems& other);

  /// The problems in order of severity, worst first.
  std::vector<Problem> list() const;
  /// The worst severity seen, or kInfo.
  Severity worst() const;

 private:
  std::array<std::uint64_t, kProblemKinds> counts_ = {};
  std::array<std::string, kProblemKinds> first_;
};

/// The remedy, as an instruction, "record again with …"; empty for harmless problems.
std::string_view remedy_of(ProblemKind kind);

}  // namespace rehearse::trace
