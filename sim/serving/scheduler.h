// One inference server: a queue, running requests, and the steps that it forms of them.
//
//  - A request lacks the tokens of its prompt and of its output so far that are not cached. One that
//    lacks a single token of its output is a decode row; the rest of what a step computes are chunks.
//  - Requests run and are admitted first come, first served, by priority if the rules say so. One that
//    cannot be admitted blocks those after it, and none is admitted in a step that preempted.
//  - A decode row takes a token, and one per draft; it has no more drafts than tokens to generate.
//  - If a request needs a block and none is free, the last admitted one loses its blocks, and goes to
//    the head of the queue to compute its tokens again. By priority it is the last of those with the
//    highest number, even if the step held it, and it goes before its equals.
//  - The blocks of a conversation's turn stay in the prefix cache for the next one, with its answer.
//  - A request that finds its first tokens in a tier (tiers.h) gets a row and blocks, and computes the
//    others when these have arrived. It may lose its blocks before, or two requests that took turns
//    in loading and losing would go on for ever.
//  - A request whose prompt another server computed gets blocks for it as soon as there are, before
//    its keys and values arrive, and runs as soon as there is a row (pools.h). No blocks are promised
//    while a request waits that was preempted.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/result.h"
#include "sim/serving/blocks.h"
#include "sim/serving/request.h"
#include "sim/serving/reserve.h"
#include "sim/serving/step.h"

namespace rehearse::serving {

/// Equal steps one after another.
struct StepRun {
  Picoseconds start{0};
  Picoseconds each{0};
  std::int64_t steps = 1;
  std::int64_t prompts = 0, prompt_tokens = 0;  ///< chunks
  std::int64_t decode_rows = 0, drafted = 0;
  std::int64_t waiting = 0, running = 0;  ///< requests, after admission
  std::int64_t held = 0;                  ///< blocks, at the end
  std::int64_t preempted = 0;             ///< requests, when the step was formed
};

/// Times between two tokens of a request, with how often each occurred.
using Gaps = std::vector<std::pair<Picoseconds, std::int64_t>>;

class Scheduler {
 public:
  /// All times are those of the pricer multiplied by `scale`. REQUIRES: `pricer` and `requests`
  /// outlive the server, and `check` accepts the requests.
  Scheduler(const Rules& rules, const StepPricer& pricer, std::span<const Request> requests,
            double scale);

  /// Whether the server can ever run this request; its message names what is too small.
  static Status check(const Rules& rules, const Request& request);

  /// Puts a request into the queue, or those with promised blocks before it.
  void receive(std::uint32_t request);
  bool busy() const { return !waiting_.empty() || !running_.empty() || !arrived_.empty(); }
  /// When the next keys and values arrive from a tier; the end of time if none are on the way.
  Picoseconds next_arrival() const;
  std::size_t waiting() const { return waiting_.size(); }
  bool receives() const { return running_.empty() || steps_ % rules_.receive_interval == 0; }

  /// Runs at least one step from `now`, and equal steps together that begin before `horizon`, or
  /// only one with `single`. Neither changes any time. Returns their end, or `now` if blocks that
  /// are promised or kept leave no step to run. REQUIRES: busy().
  Picoseconds run(Picoseconds now, Picoseconds horizon, bool single, std::vector<Served>& served);
  /// The same in two parts, of one step whose time is not known when it begins: on a device that
  /// others use too. `begin` returns whether there is a step; `alone` is its time without others,
  /// and `use` the share of that in which it uses the device. Requests may be received between both
  /// parts.
  bool begin(Picoseconds now);
  Picoseconds alone() const { return each_; }
  double use() const { return use_; }
  void end(Picoseconds now, std::vector<Served>& served);
  /// The requests whose last token the steps of `run`, or of `end`, gave.
  const std::vector<std::uint32_t>& finished() const { return finished_; }
  /// Removes the requests whose deadline has passed, if the rules drop them and the server looks for new ones
  /// now. REQUIRES: no step is under way.
  std::vector<std::uint32_t> drop_late(Picoseconds now, std::vector<Served>& served);

  /// Promises blocks for the keys and values of a prompt that another server computed, if there are
  /// enough at `now`: while a step runs, those of requests that end with it are not free yet.
  bool promise(std::uint32_t request, Picoseconds now);
  /// Frees the blocks that a request kept (Rules::keeps_blocks).
  void release(std::uint32_t request);

  const std::vector<StepRun>& log() const { return log_; }
  const Gaps& gaps() const { return gaps_; }

 private:
  struct Row {
    std::uint32_t request;
    std::int64_t generated = 0;
    std::int64_t cached = 0;
    std::int64_t in_step = 0;  ///< tokens that the step computes
    Holding holding = {};
    /// Parts that the cache may have: those that it left there when it was preempted, or those of a turn's
    /// prompt. Empty: those of its prefix.
    std::vector<std::uint64_t> names = {};
    std::int64_t left_tokens = 0;  ///< of the parts that it left, if it was preempted
    std::int64_t loaded = 0;       ///< tokens from tiers, at its last admission
    Picoseconds ready{0};  ///< when its tokens from tiers arrive, until its first step after that
    bool started = false;
    bool elsewhere = false;  ///< its prompt was computed by another server
    bool delayed = false;    ///< it has its keys and values, and waits for a row
    Picoseconds last{0};     ///< when its last token was out; the first one, if delayed, with a row
  };

  std::int64_t lacks(const Row& row) const {
    return requests_[row.request].input + row.generated - row.cached;
  }
  bool decodes(const Row& row) const { return row.generated > 0 && lacks(row) == 1; }
  /// Tokens that a step computes of a running row, if it has room for all.
  std::int64_t wants(const Row& row) const;
  /// Tokens that a decode row gets from a step with so many proposed ones.
  std::int64_t given(const Row& row, std::int64_t drafted) const;
  std::int64_t blocks_at_end(const Row& row) const;
  /// Whether so many free blocks, after an admission, are enough for the reserve.
  bool leaves_reserve(std::int64_t free) const;

  void form(Picoseconds now);
  void admit_arrived(Picoseconds now);
  /// Gives running rows their tokens: those that decode, those with chunks, or both.
  void continue_rows(bool decoding, bool chunks);
  std::int32_t priority(const Row& row) const {
    return rules_.by_priority ? requests_[row.request].priority : 0;
  }
  /// Which running row loses its blocks first.
  std::size_t first_to_lose() const;
  /// Puts a preempted request before its equals.
  void wait_again(Row row);
  /// Takes the blocks of a running row, which waits again.
  void preempt(std::size_t row);
  /// Frees blocks for tokens of a row, which may change its place. False if it lost its own.
  bool make_room(std::size_t& row, std::int64_t tokens);
  /// Others may reuse the named parts of its first tokens from now on.
  void publish(Row& row, std::int64_t tokens, Picoseconds now);
  /// When the client leaves.
  Picoseconds leaves_at(const Row& row, const std::vector<Served>& served) const;
  /// Whether a prompt that is not cut waits for another step.
  bool must_wait(std::int64_t tokens, std::int64_t wanted) const;
  void admit();
  bool admit_first();
  Step step_of() const;
  std::int64_t equal_steps(Picoseconds now, Picoseconds horizon,
                           const std::vector<Served>& served) const;
  /// The step that began at `now`, and those equal to it.
  void finish(Picoseconds now, Picoseconds each, std::int64_t steps, std::vector<Served>& served);
  void give_tokens(Picoseconds now, Picoseconds each, std::int64_t steps,
                   std::vector<Served>& served);

  Rules rules_;
  const StepPricer& pricer_;
  std::span<const Request> requests_;
  double scale_;
  Blocks blocks_;
  Reserve reserve_;
  std::deque<Row> waiting_ = {};
  std::vector<Row> running_ = {};  ///< in order of admission
  std::vector<Row> coming_ = {};   ///< have blocks; their keys and values are on the way
  std::deque<Row> arrived_ = {};   ///< have keys and values, and no row
  std::vector<Row> kept_ = {};     ///< ended, with their blocks
  bool refused_ = false;           ///< the last promise of blocks
  Picoseconds now_{0};             ///< when the last step was formed
  Picoseconds until_{0};           ///< end of the last steps
  std::int64_t ending_ = 0;        ///< blocks that are free from then on
  std::int64_t budget_ = 0;        ///< tokens that are left in the step
  std::int64_t preempted_ = 0;     ///< in this step
  std::int64_t steps_ = 0;
  Picoseconds each_{0};         ///< of the equal decode steps that are under way
  std::int64_t each_left_ = 0;  ///< how many of them have this price
  double use_ = 1;
  StepRun begun_ = {};  ///< the step that is under way, without its end
  std::vector<std::uint32_t> finished_ = {};
  std::vector<StepRun> log_ = {};
  Gaps gaps_ = {};
};

}  // namespace rehearse::serving
