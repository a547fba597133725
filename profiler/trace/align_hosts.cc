#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "profiler/trace/align.h"
#include "sim/base/statistics.h"

namespace rehearse::trace {
namespace {

// Fewer collectives fit any two numbers.
constexpr std::size_t kLeast = 4;
constexpr std::ptrdiff_t kMaxShift = 16;  // collectives that one recording has before the other
constexpr double kFastest = 1e-3;         // no clock of a computer drifts faster
constexpr double kFinest = 1e3;           // ns; ends agree no better than this
constexpr double kNoStart = -std::numeric_limits<double>::infinity();
constexpr std::size_t kWrong = 20;  // one pair in so many may be none

// --- when collectives run

/// The properties that a collective has in common on all its ranks. Its bytes are those of the
/// input of one rank.
using Key = std::tuple<std::string, std::string, CollectiveKind, std::uint64_t, std::uint64_t>;
/// A collective on one rank, ns. Without a start nothing is known of when it began.
struct Span {
  double start, end;
};
/// The collectives of one rank by key, in order of their ends.
using Spans = std::map<Key, std::vector<Span>>;

/// Finds the range of the framework around the launch of a kernel: it knows group and bytes.
class Ranges {
 public:
  explicit Ranges(const Rank& rank) : rank_(rank), by_thread_(rank.threads.size()) {
    for (const HostOp& op : rank.host_ops) {
      if (op.correlation && (op.kind == HostKind::kRuntime || op.kind == HostKind::kDriver))
        calls_.try_emplace(*op.correlation, &op);
      if (op.collective) by_thread_[op.thread.index()].push_back(&op);
    }
    for (auto& ranges : by_thread_)
      std::ranges::stable_sort(
          ranges, [](const HostOp* a, const HostOp* b) { return a->start < b->start; });
  }

  const Collective* around(const GpuOp& op) const {
    const auto call = op.correlation ? calls_.find(*op.correlation) : calls_.end();
    if (call == calls_.end()) return nullptr;
    const auto& ranges = by_thread_[call->second->thread.index()];
    const Nanoseconds at = call->second->start;
    auto next =
        std::upper_bound(ranges.begin(), ranges.end(), at,
                         [](Nanoseconds time, const HostOp* range) { return time < range->start; });
    for (int looked = 0; next != ranges.begin() && looked < 8; ++looked)
      if (const HostOp* range = *--next; range->end() >= at)
        return &rank_.collectives[range->collective->index()];
    return nullptr;
  }

 private:
  const Rank& rank_;
  std::unordered_map<std::uint32_t, const HostOp*> calls_;
  std::vector<std::vector<const HostOp*>> by_thread_;
};

Spans spans_of(const Trace& trace, const Rank& rank) {
  const Ranges ranges(rank);
  Spans spans;
  const auto add = [&](const Collective& what, double start, Nanoseconds end) {
    const auto text = [&](std::optional<NameId> name) {
      return std::string(name ? trace.names[*name] : std::string_view());
    };
    spans[{text(what.group), text(what.ranks), what.kind, what.bytes_in.value_or(0),
           what.bytes_out.value_or(0)}]
        .push_back({start, static_cast<double>(end.count())});
  };
  for (const GpuOp& op : rank.gpu_ops) {
    if (!op.collective) continue;
    Collective what = rank.collectives[op.collective->index()];
    // A send ends with its receive on another rank, and no record states which rank that is.
    const Collective* around = ranges.around(op);
    if (around && what.kind == CollectiveKind::kSendRecv) what.kind = around->kind;
    if (what.kind == CollectiveKind::kSendRecv) continue;
    if (around && !what.group) what.group = around->group;
    if (around && !what.ranks) what.ranks = around->ranks;
    if (around && !what.bytes_in) what.bytes_in = around->bytes_in;
    if (around && !what.bytes_out) what.bytes_out = around->bytes_out;
    add(what, kNoStart, op.end());
  }
  // Threads of a host that give their data to others need not wait for these.
  if (rank.gpu_ops.empty())
    for (const HostOp& op : rank.host_ops)
      if (op.collective && trace.names[op.name] != "record_param_comms")
        if (const Collective& what = rank.collectives[op.collective->index()];
            what.kind != CollectiveKind::kBroadcast && what.kind != CollectiveKind::kReduce &&
            what.kind != CollectiveKind::kSendRecv)
          add(what, static_cast<double>(op.start.count()), op.end());
  for (auto& [key, all] : spans) std::ranges::sort(all, {}, &Span::end);
  return spans;
}

// --- a clock against another

/// A moment on two clocks, ns, and the bounds of their distance: no rank ends before another starts.
struct Sample {
  double at;
  double reference;
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

struct Line {
  double offset = 0;  // at `middle`
  double drift = 0;
  double middle = 0;
  double residual = 0;
  std::size_t samples = 0;
  double operator()(double t) const { return t + offset + drift * (t - middle); }
};

/// The line with its offset within the bounds of nearly all samples. Threads end when a core runs
/// them, often milliseconds late on one of the ranks, which moves the middle of the distances of ends.
void keep_bounds(const std::vector<Sample>& samples, Line& line) {
  std::vector<double> least, most;
  for (const Sample& s : samples) {
    const double drifted = line.drift * (s.at - line.middle);
    least.push_back(s.least - drifted);
    most.push_back(s.most - drifted);
  }
  std::ranges::sort(least, std::greater<>());
  std::ranges::sort(most);
  const std::size_t wrong = samples.size() / kWrong;
  if (least[wrong] <= most[wrong]) line.offset = std::clamp(line.offset, least[wrong], most[wrong]);
}

/// Least squares on the samples near a first line, which a third of wrong samples cannot affect.
std::optional<Line> fit(std::vector<Sample> samples) {
  if (samples.size() < kLeast) return std::nullopt;
  std::ranges::sort(samples, {}, &Sample::at);
  Line line{.middle = (samples.front().at + samples.back().at) / 2};
  const std::size_t half = samples.size() / 2;
  const auto distance = [](const Sample& s) { return s.reference - s.at; };
  std::vector<double> slopes, distances;
  for (std::size_t i = 0; i + half < samples.size(); ++i)
    if (const double dt = samples[i + half].at - samples[i].at; dt > 0)
      slopes.push_back((distance(samples[i + half]) - distance(samples[i])) / dt);
  if (!slopes.empty()) line.drift = std::clamp(upper_median(slopes), -kFastest, kFastest);
  for (const Sample& s : samples)
    distances.push_back(distance(s) - line.drift * (s.at - line.middle));
  line.offset = upper_median(distances);

  for (int round = 0; round < 10; ++round) {
    std::vector<double> off;
    off.reserve(samples.size());
    for (const Sample& s : samples) off.push_back(std::abs(line(s.at) - s.reference));
    line.residual = upper_median(off);
    const double near = 3 * 1.4826 * std::max(line.residual, kFinest);
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (const Sample& s : samples) {
      if (std::abs(line(s.at) - s.reference) > near) continue;
      const double x = s.at - line.middle, y = distance(s);
      n += 1;
      sx += x;
      sy += y;
      sxx += x * x;
      sxy += x * y;
    }
    line.samples = static_cast<std::size_t>(n);
    const double spread = sxx - sx * sx / n;
    double drift = spread > 0 ? (sxy - sx * sy / n) / spread : 0;
    // A drift that the noise of so few samples, or so short a time, gives by itself is none.
    const double noise = std::max(line.residual * 1.4826, kFinest);
    if (!(spread > 0) || std::abs(drift) < 3 * noise / std::sqrt(spread) ||
        std::abs(drift) > kFastest)
      drift = 0;
    line.drift = drift;
    line.offset = (sy - drift * sx) / n;
  }
  keep_bounds(samples, line);
  return line;
}

/// Pairs of ends of two ranks that must be one moment. One recording may begin some collectives
/// before the other: that shift is right with which the distances agree best.
void pair_up(const std::vector<Span>& at, const std::vector<Span>& reference,
             std::vector<Sample>& samples) {
  std::vector<Sample> best;
  double least = 0;
  for (std::ptrdiff_t step = 0; step <= 2 * kMaxShift; ++step) {
    const std::ptrdiff_t shift = (step + 1) / 2 * (step % 2 == 0 ? 1 : -1);  // 0, -1, 1, -2, ...
    std::vector<Sample> found;
    std::vector<double> distances;
    for (std::size_t k = 0; k < at.size(); ++k) {
      const std::ptrdiff_t other = static_cast<std::ptrdiff_t>(k) + shift;
      if (other < 0 || other >= static_cast<std::ptrdiff_t>(reference.size())) continue;
      const Span &own = at[k], &others = reference[static_cast<std::size_t>(other)];
      found.push_back({own.end, others.end, others.start - own.end, others.end - own.start});
      distances.push_back(found.back().reference - found.back().at);
    }
    if (2 * found.size() < std::min(at.size(), reference.size()) || found.size() < kLeast) continue;
    const double middle = upper_median(distances);
    for (double& d : distances) d = std::abs(d - middle);
    const double spread = upper_median(distances);
    // Another shift must agree clearly better: equal distances agree with any.
    if (best.empty() || spread < 0.5 * least) {
      best = std::move(found);
      least = spread;
    }
  }
  samples.insert(samples.end(), best.begin(), best.end());
}

// --- all hosts

/// Files that count time from their own start each have a clock.
std::string clock_of(const RankInfo& info) {
  constexpr Nanoseconds kYear{365LL * 86400 * 1000000000};
  return info.clock_base < kYear && info.clock_base > -kYear ? info.host + "\n" + info.source
                                                             : info.host;
}

struct Host {
  std::vector<std::size_t> ranks;
  std::optional<Line> line;  // of hosts that have been brought to the first one's clock
};

class Hosts {
 public:
  explicit Hosts(Trace& trace) : trace_(trace) {
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
      if (!trace.ranks[r].info.timed) continue;
      const auto [at, is_new] = index_.try_emplace(clock_of(trace.ranks[r].info), hosts_.size());
      if (is_new) hosts_.emplace_back();
      hosts_[at->second].ranks.push_back(r);
    }
  }

  bool align() {
    if (hosts_.size() < 2) return false;
    for (const Rank& rank : trace_.ranks) spans_.push_back(spans_of(trace_, rank));
    hosts_.front().line = Line{};
    // Next is always the host that shares most with those that have been placed.
    while (true) {
      std::optional<std::size_t> next;
      std::vector<Sample> most;
      for (std::size_t h = 0; h < hosts_.size(); ++h) {
        if (hosts_[h].line) continue;
        if (std::vector<Sample> samples = samples_of(h); samples.size() > most.size()) {
          most = std::move(samples);
          next = h;
        }
      }
      if (!next) break;
      hosts_[*next].line = fit(std::move(most));
      if (!hosts_[*next].line) break;  // nor do the others share more
    }
    // Once more, now that each can be compared with all the others.
    if (hosts_.size() > 2)
      for (std::size_t h = 1; h < hosts_.size(); ++h)
        if (hosts_[h].line)
          if (const auto again = fit(samples_of(h))) hosts_[h].line = again;
    bool any = false;
    for (std::size_t h = 1; h < hosts_.size(); ++h) {
      if (!hosts_[h].line) continue;
      any = true;
      for (const std::size_t r : hosts_[h].ranks) move(trace_.ranks[r], *hosts_[h].line);
    }
    return any;
  }

 private:
  std::vector<Sample> samples_of(std::size_t host) const {
    std::vector<Sample> samples;
    for (std::size_t other = 0; other < hosts_.size(); ++other) {
      if (other == host || !hosts_[other].line) continue;
      for (const std::size_t r : hosts_[host].ranks)
        for (const std::size_t q : hosts_[other].ranks)
          for (const auto& [key, spans] : spans_[r]) {
            const auto same = spans_[q].find(key);
            if (same == spans_[q].end()) continue;
            std::vector<Span> reference = same->second;
            const Line& line = *hosts_[other].line;
            for (Span& span : reference)
              span = {span.start == kNoStart ? kNoStart : line(span.start), line(span.end)};
            pair_up(spans, reference, samples);
          }
    }
    return samples;
  }

  static void move(Rank& rank, const Line& line) {
    const auto moved = [&](Nanoseconds t) {
      return t + Nanoseconds(std::llround(
                     line.offset + line.drift * (static_cast<double>(t.count()) - line.middle)));
    };
    const auto move_row = [&](Nanoseconds& start, Nanoseconds& duration) {
      const Nanoseconds end = moved(start + duration);
      start = moved(start);
      duration = end - start;
    };
    for (HostOp& op : rank.host_ops) move_row(op.start, op.duration);
    for (GpuOp& op : rank.gpu_ops) move_row(op.start, op.duration);
    for (Sync& sync : rank.syncs) move_row(sync.start, sync.duration);
    for (PowerReading& reading : rank.power) reading.time = moved(reading.time);
    rank.info.clock_fit =
        ClockFit{.offset = Nanoseconds(std::llround(line.offset - line.drift * line.middle)),
                 .drift = line.drift,
                 .residual = Nanoseconds(std::llround(line.residual)),
                 .samples = line.samples};
  }

  Trace& trace_;
  std::map<std::string, std::size_t> index_;  // by clock
  std::vector<Host> hosts_;
  std::vector<Spans> spans_;  // by rank
};

}  // namespace

bool align_hosts(Trace& trace) { return Hosts(trace).align(); }

}  // namespace rehearse::trace
