#include "profiler/ingest/capture.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "profiler/capture/blocks.h"
#include "profiler/ingest/capture_collectives.h"
#include "profiler/ingest/capture_device.h"
#include "profiler/ingest/capture_power.h"
#include "profiler/ingest/capture_texts.h"
#include "profiler/ingest/torch_ranges.h"
#include "profiler/trace/collective_names.h"
#include "profiler/trace/recorder.h"
#include "sim/base/paged_map.h"

namespace rehearse::ingest {
namespace {

using namespace trace;
using capture::BlockReader, capture::PayloadKind, capture::Row, capture::RowKind, trace::HostOp;

/// Takes operators with a sequence number and passes them on. It passes forward operators on at
/// once (with forward thread 0, as other recorders write it), and backward ones once every forward
/// operator that ran before them must have been read. A backward operator gets the thread of the
/// latest forward one with its number that began before it. If there is none, its number means
/// nothing and is removed.
class ForwardThreads {
 public:
  explicit ForwardThreads(trace::Recorder& recorder) : recorder_(recorder) {}

  /// `thread` is the system's number of the thread that it ran on.
  void add(trace::HostOp op, std::uint32_t thread);
  /// Call it when all threads have been written out once more since the last call.
  void turn();
  void finish();

 private:
  struct Forward {
    Nanoseconds start{0};
    std::uint32_t thread = 0;  ///< 0: none
  };
  void settle(std::vector<trace::HostOp>& ops);

  trace::Recorder& recorder_;
  /// By number. Nested operators share it and count as one. Other threads, and threads that restart
  /// their numbers, are rare.
  PagedMap<Forward> first_;
  std::unordered_map<std::uint32_t, std::vector<Forward>> others_;
  std::vector<trace::HostOp> young_, old_;  ///< backward ones of the last two turns
};

void ForwardThreads::add(HostOp op, std::uint32_t thread) {
  if (names_backward_node(recorder_.names()[op.name])) return young_.push_back(op);
  constexpr Nanoseconds kNested{1'000'000};
  Forward& first = first_[*op.sequence];
  if (first.thread == 0)
    first = {op.start, thread};
  else if (first.thread != thread || op.start >= first.start + kNested)
    others_[*op.sequence].push_back({op.start, thread});
  op.forward_thread = 0;
  recorder_.add(op);
}

void ForwardThreads::settle(std::vector<HostOp>& ops) {
  for (HostOp& op : ops) {
    const Forward* latest = nullptr;
    const auto consider = [&](const Forward& forward) {
      if (forward.thread != 0 && forward.start < op.start &&
          (!latest || forward.start >= latest->start))
        latest = &forward;
    };
    consider(first_[*op.sequence]);
    if (const auto found = others_.find(*op.sequence); found != others_.end())
      for (const Forward& forward : found->second) consider(forward);
    if (latest)
      op.forward_thread = latest->thread;
    else
      op.sequence.reset();
    recorder_.add(op);
  }
  ops.clear();
}

void ForwardThreads::turn() {
  settle(old_);
  std::swap(old_, young_);
}

void ForwardThreads::finish() {
  settle(old_);
  settle(young_);
}

// Longer spans are damage; sums of shorter ones cannot overflow.
constexpr std::uint64_t kLongest = INT64_MAX / 4;

/// The number that a program gave with a range, where it is a whole one.
std::optional<std::uint64_t> whole_payload(const Row& row) {
  const auto whole = [](double value) -> std::optional<std::uint64_t> {
    if (!(value >= 0 && value < 0x1p64) || value != std::floor(value)) return std::nullopt;
    return static_cast<std::uint64_t>(value);
  };
  switch (row.payload_kind) {
    case PayloadKind::kNone: return std::nullopt;
    case PayloadKind::kUint64:
    case PayloadKind::kUint32:
    case PayloadKind::kMessageBytes: return row.payload;
    case PayloadKind::kInt64:
    case PayloadKind::kInt32:
      if (row.payload > INT64_MAX) return std::nullopt;
      return row.payload;
    case PayloadKind::kDouble: return whole(std::bit_cast<double>(row.payload));
    case PayloadKind::kFloat:
      return whole(std::bit_cast<float>(static_cast<std::uint32_t>(row.payload)));
  }
  return std::nullopt;
}

/// Whether the wall clock was set between two moments: by how many seconds, if more than drift and
/// the time it takes to read two clocks can explain.
std::optional<double> clock_step(const capture::ClockPair& a, const capture::ClockPair& b) {
  const auto difference = [](std::uint64_t x, std::uint64_t y) {
    return static_cast<double>(x) - static_cast<double>(y);
  };
  const double elapsed = difference(b.monotonic_ns, a.monotonic_ns);
  const double step = difference(b.realtime_ns, a.realtime_ns) - elapsed;
  if (std::abs(step) < 50e6 + 1e-3 * std::abs(elapsed)) return std::nullopt;
  return step * 1e-9;
}

class CaptureReader {
 public:
  CaptureReader(ByteSource& source, Recorder& recorder, const Progress& progress,
                CaptureClock clock)
      : source_(source),
        recorder_(recorder),
        progress_(progress),
        file_(recorder.info().source),
        blocks_([this](std::span<char> into) { return source_.read(into); }),
        clock_(std::move(clock)),
        texts_(recorder),
        collectives_(recorder, lookup()),
        power_(recorder, lookup()),
        device_(recorder, texts_, clock_, collectives_),
        forward_threads_(recorder) {}

  ~CaptureReader() {
    recorder_.set_place([file = file_] { return file; });
  }
  CaptureReader(const CaptureReader&) = delete;
  CaptureReader& operator=(const CaptureReader&) = delete;

  Status read() {
    recorder_.info().format = "capture";
    recorder_.set_place(
        [this] { return fmt::format("{}: block at byte {}", file_, blocks_.offset()); });
    const BlockReader::Begin begin = blocks_.begin();
    if (begin == BlockReader::Begin::kUnknownVersion)
      return fail_in(file_, "is a capture of another format version",
                     fmt::format("version {}", capture::kFormatVersion));
    if (begin == BlockReader::Begin::kOther) recorder_.problem(ProblemKind::kMalformed);
    while (begin == BlockReader::Begin::kCapture) {
      const auto block = blocks_.next();
      if (!block) break;
      if (progress_ && !progress_(source_.share())) return fail_in(file_, "stopped");
      if (!read_block(*block)) recorder_.problem(ProblemKind::kMalformed);
    }
    if (blocks_.damaged() > 0) recorder_.problem(ProblemKind::kMalformed, blocks_.damaged());
    finish(begin == BlockReader::Begin::kOther);
    return {};
  }

 private:
  /// False when the block does not hold what its type says.
  bool read_block(const capture::Block& block) {
    switch (block.type) {
      case capture::BlockType::kProcess: {
        const auto facts = capture::decode_process(block.payload);
        if (facts) read_process(*facts);
        return facts.has_value();
      }
      case capture::BlockType::kTexts: {
        const auto texts = capture::decode_texts(block.payload);
        for (const capture::NumberedText& text : texts.value_or(kNoTexts)) texts_.add(text);
        return texts.has_value();
      }
      case capture::BlockType::kThreads: {
        const auto names = capture::decode_threads(block.payload);
        for (const capture::ThreadName& name : names.value_or(kNoNames)) texts_.add(name);
        return names.has_value();
      }
      case capture::BlockType::kRows:
        if (!capture::decode_rows(block.payload, rows_)) return false;
        for (const Row& row : rows_.rows) read_row(row);
        return true;
      case capture::BlockType::kClock: {
        const auto clock = capture::decode_clock(block.payload);
        if (clock) {
          read_clock(*clock);
          clock_.pass();
          device_.turn();
          forward_threads_.turn();
        }
        return clock.has_value();
      }
      case capture::BlockType::kLoss: {
        const auto lost = capture::decode_loss(block.payload);
        lost_ = lost.value_or(lost_);
        return lost.has_value();
      }
      case capture::BlockType::kTrailer: {
        const auto trailer = capture::decode_trailer(block.payload);
        if (trailer) {
          lost_ = trailer->lost;
          ended_ = true;
        }
        return trailer.has_value();
      }
      case capture::BlockType::kSteps:  // for people: the steps themselves are rows
        return capture::decode_steps(block.payload).has_value();
      case capture::BlockType::kRecords:
        if (!capture::decode_records(block.payload, records_)) return false;
        if (!collectives_.read(records_) && !power_.read(records_) && !device_.read(records_))
          recorder_.problem(ProblemKind::kUnknownCategory, records_.count);
        return true;
    }
    recorder_.problem(ProblemKind::kUnknownCategory);
    return true;
  }

  void read_process(const capture::ProcessFacts& facts) {
    RankInfo& info = recorder_.info();
    info.host = texts_.sound(facts.host);
    // A forked process inherits the variables, but it is not the rank that they name.
    if (facts.forked_from == 0) {
      info.rank = facts.rank;
      info.world_size = facts.world_size;
    }
    if (facts.cpus > 0) info.facts.push_back({"cpus", fmt::format("{}", facts.cpus)});
    texts_.set_process(fmt::format("{}", facts.process));
    clock_.set_base(facts.realtime_ns);
    info.clock_base = clock_.base();
    read_clock({facts.realtime_ns, facts.monotonic_ns});
  }

  void read_clock(const capture::ClockPair& clock) {
    if (last_clock_) {
      if (const auto step = clock_step(*last_clock_, clock))
        recorder_.problem(
            ProblemKind::kClockSkew,
            fmt::format("{}: the wall clock was set by {:+.3f} s meanwhile", file_, *step), 1);
    }
    last_clock_ = clock;
  }

  CaptureLookup lookup() {
    return {.name = [this](std::uint64_t text) { return texts_.name(text); },
            .time = [this](std::uint64_t time) { return clock_.at(time); },
            .thread = [this](std::uint32_t thread) { return texts_.thread(thread); }};
  }

  void read_row(const Row& row) {
    const auto at = clock_.at(row.time);
    if (!at) return recorder_.problem(ProblemKind::kAbsurdNumber);
    const Nanoseconds time = *at;
    switch (row.kind) {
      case RowKind::kRange: {
        const auto span = static_cast<std::int64_t>(row.span);
        // A clock that was set back gives a negative one, which the recorder counts.
        constexpr auto kMost = static_cast<std::int64_t>(kLongest);
        if (span > kMost || span < -kMost) return recorder_.problem(ProblemKind::kAbsurdNumber);
        const auto begin = clock_.at(row.time - row.span);
        if (!begin) return recorder_.problem(ProblemKind::kAbsurdNumber);
        return add(row, *begin, time - *begin);
      }
      case RowKind::kMark: return add(row, time, Nanoseconds(0));
      case RowKind::kStart: return start(row, time);
      case RowKind::kEnd: return end(row.span, time);
      case RowKind::kOpen: return count_open(row.text);
      case RowKind::kStrayPop: return recorder_.problem(ProblemKind::kUnbalancedRange);
      case RowKind::kCategoryName: return;  // a trace has no place for categories
      case RowKind::kCommunicator:
        if (row.payload <= UINT32_MAX)
          collectives_.note_group(row.group, static_cast<std::uint32_t>(row.payload));
        return;
    }
  }

  std::optional<HostOp> host_op(const Row& row, Nanoseconds begin, Nanoseconds duration) {
    const auto name = texts_.name(row.text);
    if (!name) {
      recorder_.problem(ProblemKind::kMissingField);
      return std::nullopt;
    }
    HostOp op{.name = *name,
              .thread = texts_.thread(rows_.thread),
              .kind = HostKind::kAnnotation,
              .start = begin,
              .duration = duration};
    if (const CaptureText* text = texts_.find(row.text)) {
      if (text->is_operator) op.kind = HostKind::kOperator;
      op.sequence = text->sequence;
      op.record_function = text->op_id;
      op.inputs = text->inputs;
    }
    op.payload = whole_payload(row);
    if (row.payload_kind == PayloadKind::kMessageBytes)
      op.collective = collective(row, *name);
    else if (op.payload)
      op.collective = collective_of_all(*name, *op.payload);
    return op;
  }

  std::optional<CollectiveId> collective(const Row& row, NameId name) {
    const std::string_view call = recorder_.names()[name];
    const auto kind = collective_from_framework(call);
    if (!kind) return std::nullopt;
    Collective collective =
        nccl_collective(*kind, call, row.payload, collectives_.group_size(row.group));
    if (row.group != 0) collective.group = collectives_.group_name(row.group);
    return recorder_.collective(collective);
  }

  /// A range such as "mpi:all_reduce" whose payload is the bytes of a rank's argument, as NCCL
  /// counts them, states a collective among all ranks of the job.
  std::optional<CollectiveId> collective_of_all(NameId name, std::uint64_t bytes) {
    const std::string_view call = recorder_.names()[name];
    if (!call.starts_with("mpi:")) return std::nullopt;
    const auto kind = collective_from_framework(call);
    if (!kind) return std::nullopt;
    const std::optional<std::uint32_t> ranks = recorder_.info().world_size;
    constexpr std::uint32_t kMost = 65'536;
    if (!all_ranks_ && ranks && *ranks <= kMost) {
      std::vector<std::uint32_t> all(*ranks);
      std::iota(all.begin(), all.end(), 0U);
      all_ranks_ = recorder_.name(fmt::format("[{}]", fmt::join(all, ", ")));
    }
    Collective collective = nccl_collective(*kind, call, bytes, ranks);
    collective.group = recorder_.name("all ranks");
    collective.ranks = all_ranks_;
    return recorder_.collective(collective);
  }

  void add(const Row& row, Nanoseconds begin, Nanoseconds duration) {
    const auto op = host_op(row, begin, duration);
    if (!op) return;
    if (op->kind == HostKind::kOperator && op->sequence)
      forward_threads_.add(*op, rows_.thread);
    else
      recorder_.add(*op);
  }

  // The ends of such a range may come in either order: they may be of two threads.
  void start(const Row& row, Nanoseconds time) {
    auto op = host_op(row, time, Nanoseconds(0));
    if (!op) return;
    if (const auto ended = ends_.find(row.span); ended != ends_.end()) {
      op->duration = ended->second - time;
      ends_.erase(ended);
      recorder_.add(*op);
    } else if (!starts_.try_emplace(row.span, *op).second) {
      recorder_.problem(ProblemKind::kDuplicateId);
    }
  }
  void end(std::uint64_t number, Nanoseconds time) {
    if (const auto started = starts_.find(number); started != starts_.end()) {
      started->second.duration = time - started->second.start;
      recorder_.add(started->second);
      starts_.erase(started);
    } else if (!ends_.try_emplace(number, time).second) {
      recorder_.problem(ProblemKind::kDuplicateId);
    }
  }

  void count_open(std::uint32_t text) {
    const auto name = texts_.name(text);
    recorder_.problem(
        ProblemKind::kUnbalancedRange,
        fmt::format("{}: '{}' was never closed", file_, name ? recorder_.names()[*name] : "?"), 1);
  }

  void finish(bool is_other) {
    const auto problem = [this](ProblemKind kind, std::string_view what, std::uint64_t count) {
      recorder_.problem(kind, fmt::format("{}: {}", file_, what), count);
    };
    if (!starts_.empty()) {
      const auto first = std::ranges::min_element(starts_, [](auto& a, auto& b) {
        return std::tuple(a.second.start, a.first) < std::tuple(b.second.start, b.first);
      });
      problem(
          ProblemKind::kUnbalancedRange,
          fmt::format("'{}' was started and never ended", recorder_.names()[first->second.name]),
          starts_.size());
    }
    if (!ends_.empty())
      problem(ProblemKind::kUnbalancedRange, "a range ended that was never started", ends_.size());
    if (lost_ > 0)
      problem(ProblemKind::kDroppedRecords, "memory or disk space was short while recording",
              lost_);
    if (const std::string damage = source_.damage(); !damage.empty())
      problem(ProblemKind::kTruncated, damage, 1);
    else if (blocks_.cut())
      problem(ProblemKind::kTruncated,
              fmt::format("ends inside the block at byte {}", blocks_.offset()), 1);
    else if (!ended_ && !is_other)
      problem(ProblemKind::kTruncated,
              "the process ended without a flush; up to its last 100 ms are missing", 1);
    device_.finish();
    forward_threads_.finish();
    collectives_.finish();
    power_.finish();
    recorder_.finish();
  }

  static inline const std::vector<capture::NumberedText> kNoTexts;
  static inline const std::vector<capture::ThreadName> kNoNames;

  ByteSource& source_;
  Recorder& recorder_;
  const Progress& progress_;
  const std::string file_;
  BlockReader blocks_;
  capture::RowsBlock rows_;
  capture::RecordsBlock records_;
  CaptureClock clock_;
  std::optional<capture::ClockPair> last_clock_;
  CaptureTexts texts_;
  CaptureCollectives collectives_;
  CapturePower power_;
  CaptureDevice device_;
  ForwardThreads forward_threads_;
  std::unordered_map<std::uint64_t, HostOp> starts_;
  std::unordered_map<std::uint64_t, Nanoseconds> ends_;
  std::optional<NameId> all_ranks_;  ///< as a list
  std::uint64_t lost_ = 0;
  bool ended_ = false;
};

}  // namespace

Status read_capture(ByteSource& source, Recorder& recorder, const Progress& progress,
                    CaptureClock clock) {
  return CaptureReader(source, recorder, progress, std::move(clock)).read();
}

}  // namespace rehearse::ingest
