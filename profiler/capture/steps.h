// Steps: the program's steps as the library knows them from their marks, and the window of
// recorded steps.
//
// A step is a range whose name is a mark ("step 7", "train_step_7", "ProfilerStep#7": the grammar
// of trace::is_step_name), or any range of the NVTX domain "rehearse.step". Its number is the one
// at the end of its name; else its payload if that is a whole number; else a count from 0. Marks
// within an open step are ignored: of nested marks the outer one counts, of marks on several
// threads the first.
//
// Whether a text is a mark is decided once, when it is stored; a range only reads the
// result.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "profiler/capture/format.h"
#include "profiler/capture/options.h"

namespace rehearse::capture {

inline constexpr std::string_view kStepDomain = "rehearse.step";

/// Step data of a text: whether it is a mark, and the number at its end plus one, 0 for none.
class StepText {
 public:
  constexpr StepText() = default;
  static StepText of(std::string_view text);

  bool is_mark() const { return (bits_ & kMark) != 0; }
  bool has_number() const { return (bits_ & ~kMark) != 0; }
  std::uint64_t number() const { return (bits_ & ~kMark) - 1; }

 private:
  static constexpr std::uint32_t kMark = 1u << 31;
  explicit constexpr StepText(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};

/// A step that ended. Instants are CLOCK_REALTIME, ns.
struct Step {
  std::uint64_t number = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Forgets all steps and takes the window from the options. Call it when a recording starts.
void start_steps(const Options& options);

/// The number of the domain's text; UINT32_MAX matches no text.
extern std::atomic<std::uint32_t> step_domain;

/// Opens a mark at row.time. True if it is a step, which the caller has to close or to abandon.
bool open_step(StepText text, const Row& row);
void close_step(std::uint64_t end);
/// The thread of the step ended inside it, so it is not a step.
void abandon_step();

/// The number of the started range (nvtxRangeStart) that is the open step; 0: none.
extern std::atomic<std::uint64_t> started_step;

/// Steps that ended so far, and those of them that are in the window.
std::uint64_t steps_ended();
std::uint64_t steps_in_window();
/// Returns the step with this ordinal (the first is 0). False if it has not ended, or if more than
/// kRememberedSteps have ended since.
bool ended_step(std::uint64_t ordinal, Step& into);
inline constexpr std::uint32_t kRememberedSteps = 4096;

// The recorded window of steps: all of time unless the options name one.
extern std::atomic<std::uint64_t> window_begin;  ///< UINT64_MAX before it
extern std::atomic<std::uint64_t> window_end;    ///< UINT64_MAX before its end

/// Whether data between these times belongs to the window. Late data is judged by its own time.
inline bool in_window(std::uint64_t begin, std::uint64_t end) {
  return end >= window_begin.load(std::memory_order_relaxed) &&
         begin < window_end.load(std::memory_order_relaxed);
}
/// Whether the options name a window.
bool has_window();
/// Whether the window has begun.
inline bool window_begun() { return window_begin.load(std::memory_order_relaxed) != UINT64_MAX; }
/// Whether current events are recorded.
inline bool recording_now() {
  return window_begun() && window_end.load(std::memory_order_relaxed) == UINT64_MAX;
}

/// Sets callbacks for the begin and the end of the window, each called once, on the thread of the
/// step's mark. `begin` is called at once if the window has already begun, or if there is none.
/// Either may be null. REQUIRES: called once in a process.
void on_window(void (*begin)(), void (*end)());

}  // namespace rehearse::capture
