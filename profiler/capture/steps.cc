#include "profiler/capture/steps.h"

#include <algorithm>

namespace rehearse::capture {

std::atomic<std::uint32_t> step_domain{UINT32_MAX};
std::atomic<std::uint64_t> started_step{0};
std::atomic<std::uint64_t> window_begin{0};
std::atomic<std::uint64_t> window_end{UINT64_MAX};

namespace {

constexpr std::size_t kLongestMark = 32;

/// Atomics, so that who reads an entry while it is written anew reads numbers, if wrong ones, and
/// finds out by `ended`.
struct StepEntry {
  std::atomic<std::uint64_t> number;
  std::atomic<std::uint64_t> begin;
  std::atomic<std::uint64_t> end;
};

StepEntry entries[kRememberedSteps];
std::atomic<std::uint64_t> ended{0};
std::atomic<std::uint64_t> ended_inside{0};

// The thread that sets it to true owns what follows until it is false again.
std::atomic<bool> step_open{false};
Step open_now;
std::uint64_t last_end = 0;
std::uint64_t counted = 0;
std::uint64_t first_step = 0;
std::uint64_t end_step = UINT64_MAX;

using Hook = void (*)();
std::atomic<Hook> begin_hook{nullptr};
std::atomic<Hook> end_hook{nullptr};

/// Calls the hook at most once: either the window or the setter takes it.
void call_once(std::atomic<Hook>& hook) {
  if (const Hook call = hook.exchange(nullptr, std::memory_order_acq_rel)) call();
}

bool begun() { return window_begin.load(std::memory_order_relaxed) != UINT64_MAX; }
bool over() { return window_end.load(std::memory_order_relaxed) != UINT64_MAX; }

void begin_window(std::uint64_t time) {
  window_begin.store(time, std::memory_order_seq_cst);
  call_once(begin_hook);
}
void end_window(std::uint64_t time) {
  window_end.store(time, std::memory_order_seq_cst);
  call_once(end_hook);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_word(std::string_view a, std::string_view lower_b) {
  if (a.size() != lower_b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a.data()[i]) != lower_b.data()[i]) return false;
  return true;
}

}  // namespace

bool has_window() { return first_step > 0 || end_step < UINT64_MAX; }

StepText StepText::of(std::string_view text) {
  if (const std::size_t bracket = text.find('['); bracket != 0 && bracket < text.size())
    text.remove_suffix(text.size() - bracket);
  const bool may_be_mark = text.size() <= kLongestMark;
  std::uint64_t number = 0, place = 1;
  bool has_number = false;
  while (!text.empty() && is_digit(text.back())) {
    has_number = true;
    const auto digit = static_cast<std::uint64_t>(text.back() - '0');
    if (digit > 0) number = place < kMark ? number + digit * place : std::uint64_t{kMark};
    place = std::min<std::uint64_t>(place * 10, kMark);
    text.remove_suffix(1);
  }
  // Numbers beyond 31 bits are none.
  std::uint32_t bits =
      has_number && number + 1 < kMark ? static_cast<std::uint32_t>(number) + 1 : 0;
  if (!may_be_mark) return StepText(bits);
  constexpr std::string_view kSeparators = " #_:-";
  while (!text.empty() && kSeparators.find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  constexpr std::string_view kWords[] = {"profilerstep", "step",       "iteration",
                                         "iter",         "train_step", "training_step"};
  for (const std::string_view word : kWords)
    if (same_word(text, word)) bits |= kMark;
  return StepText(bits);
}

void start_steps(const Options& options) {
  step_open.store(false, std::memory_order_relaxed);
  started_step.store(0, std::memory_order_relaxed);
  ended.store(0, std::memory_order_relaxed);
  ended_inside.store(0, std::memory_order_relaxed);
  last_end = counted = 0;
  first_step = options.first_step;
  end_step = options.end_step;
  window_begin.store(has_window() ? UINT64_MAX : 0, std::memory_order_relaxed);
  window_end.store(UINT64_MAX, std::memory_order_relaxed);
}

bool open_step(StepText text, const Row& row) {
  if (step_open.load(std::memory_order_relaxed) ||
      step_open.exchange(true, std::memory_order_acquire))
    return false;
  const bool whole =
      row.payload_kind == PayloadKind::kUint64 || row.payload_kind == PayloadKind::kUint32 ||
      ((row.payload_kind == PayloadKind::kInt64 || row.payload_kind == PayloadKind::kInt32) &&
       row.payload <= INT64_MAX);
  open_now.number = text.has_number() ? text.number() : whole ? row.payload : counted++;
  open_now.begin = row.time;
  if (!has_window() || over()) return true;
  const bool inside = open_now.number >= first_step && open_now.number < end_step;
  if (inside && !begun()) begin_window(row.time);
  if (!inside && begun()) end_window(last_end);
  return true;
}

void close_step(std::uint64_t end) {
  const std::uint64_t ordinal = ended.load(std::memory_order_relaxed);
  StepEntry& entry = entries[ordinal % kRememberedSteps];
  entry.number.store(open_now.number, std::memory_order_relaxed);
  entry.begin.store(open_now.begin, std::memory_order_relaxed);
  entry.end.store(end, std::memory_order_relaxed);
  last_end = end;
  const bool inside = has_window() && begun() && !over();
  const bool last = inside && open_now.number + 1 >= end_step;
  if (inside)
    ended_inside.store(ended_inside.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  ended.store(ordinal + 1, std::memory_order_release);
  if (last) end_window(end);
  step_open.store(false, std::memory_order_release);
}

void abandon_step() { step_open.store(false, std::memory_order_release); }

std::uint64_t steps_ended() { return ended.load(std::memory_order_acquire); }

std::uint64_t steps_in_window() { return ended_inside.load(std::memory_order_relaxed); }

bool ended_step(std::uint64_t ordinal, Step& into) {
  if (ordinal >= steps_ended()) return false;
  const StepEntry& entry = entries[ordinal % kRememberedSteps];
  into.number = entry.number.load(std::memory_order_relaxed);
  into.begin = entry.begin.load(std::memory_order_relaxed);
  into.end = entry.end.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  // The entry of the step that ends next may be half written.
  return ended.load(std::memory_order_relaxed) - ordinal < kRememberedSteps;
}

void on_window(void (*begin)(), void (*end)()) {
  begin_hook.store(begin, std::memory_order_seq_cst);
  end_hook.store(end, std::memory_order_seq_cst);
  if (window_begin.load(std::memory_order_seq_cst) != UINT64_MAX) call_once(begin_hook);
  if (window_end.load(std::memory_order_seq_cst) != UINT64_MAX) call_once(end_hook);
}

}  // namespace rehearse::capture
