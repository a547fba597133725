#include "profiler/ingest/join.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "profiler/ingest/numbers.h"

namespace rehearse::ingest {
namespace {

using namespace trace;

using RowIndex = std::uint32_t;  ///< index into Rank::host_ops

struct Match {
  RowIndex untimed;
  RowIndex timed;
};

bool can_match(const HostOp& op) {
  return op.kind == HostKind::kOperator || op.kind == HostKind::kAnnotation;
}

// --- which rank

std::set<NameId> processes_of(const Rank& rank) {
  std::set<NameId> processes;
  for (const Thread& thread : rank.threads) processes.insert(thread.process);
  return processes;
}

/// The only one of `candidates` that `fits`.
template <class Fits>
std::optional<std::size_t> only(const std::set<std::size_t>& candidates, Fits fits) {
  std::optional<std::size_t> found;
  for (const std::size_t candidate : candidates)
    if (fits(candidate)) {
      if (found) return std::nullopt;
      found = candidate;
    }
  return found;
}

/// By index of the execution trace: the index of its timed rank. Surer evidence goes first, for all
/// of them, so that a guess takes no rank that another one can prove to be its own.
std::map<std::size_t, std::size_t> partners(const Trace& trace) {
  std::set<std::size_t> untimed, free;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    if (is_execution_trace(trace.ranks[r])) untimed.insert(r);
    if (trace.ranks[r].info.timed) free.insert(r);
  }
  std::map<std::size_t, std::size_t> found;
  const auto settle = [&](auto fits) {
    for (auto r = untimed.begin(); r != untimed.end();) {
      const auto partner = only(free, [&](std::size_t t) { return fits(*r, trace.ranks[*r], t); });
      if (partner) {
        found[*r] = *partner;
        free.erase(*partner);
      }
      r = partner ? untimed.erase(r) : std::next(r);
    }
  };
  settle([&](std::size_t, const Rank& rank, std::size_t t) {
    return rank.info.rank && rank.info.rank == trace.ranks[t].info.rank;
  });
  settle([&](std::size_t, const Rank& rank, std::size_t t) {
    const std::set<NameId> own = processes_of(rank);
    return own.size() == 1 && processes_of(trace.ranks[t]).contains(*own.begin());
  });
  settle([&](std::size_t, const Rank& rank, std::size_t t) {
    const auto number = number_in_file_name(rank.info.source);
    return number && number == trace.ranks[t].info.rank;
  });
  if (untimed.size() == 1) settle([](std::size_t, const Rank&, std::size_t) { return true; });
  return found;
}

// --- which operator

/// The rows of one thread in order.
using Sequence = std::vector<RowIndex>;

std::vector<Sequence> untimed_threads(const Rank& rank) {
  std::vector<Sequence> threads(rank.threads.size());
  for (RowIndex i = 0; i < rank.host_ops.size(); ++i)
    if (rank.host_ops[i].record_function) threads[rank.host_ops[i].thread.index()].push_back(i);
  for (Sequence& thread : threads)
    std::ranges::stable_sort(thread, [&](RowIndex a, RowIndex b) {
      return *rank.host_ops[a].record_function < *rank.host_ops[b].record_function;
    });
  return threads;
}

std::vector<Sequence> timed_threads(const Rank& rank) {
  std::vector<Sequence> threads(rank.threads.size());
  for (RowIndex i = 0; i < rank.host_ops.size(); ++i)
    if (can_match(rank.host_ops[i])) threads[rank.host_ops[i].thread.index()].push_back(i);
  for (Sequence& thread : threads)
    std::ranges::stable_sort(thread, [&](RowIndex a, RowIndex b) {
      const HostOp &x = rank.host_ops[a], &y = rank.host_ops[b];
      return x.start != y.start ? x.start < y.start : x.duration > y.duration;
    });
  return threads;
}

/// Two sequences of names that are the same but for a part missing here and there.
class Alignment {
 public:
  Alignment(const Rank& untimed, const Sequence& a, const Rank& timed, const Sequence& b)
      : untimed_(untimed), a_(a), timed_(timed), b_(b) {}

  /// Empty unless the two are of one program: where they overlap, three quarters of each match.
  std::vector<Match> matches() const {
    const std::optional<Position> begin = first();
    if (!begin) return {};
    std::vector<Match> found;
    Position last = *begin;
    for (Position at = *begin; at.a < a_.size() && at.b < b_.size();) {
      if (same(at)) {
        found.push_back({a_[at.a], b_[at.b]});
        last = at;
        ++at.a;
        ++at.b;
      } else {
        at = resume(at);
      }
    }
    const std::size_t overlap = std::max(last.a - begin->a, last.b - begin->b) + 1;
    if (4 * found.size() < 3 * overlap) return {};
    return found;
  }

 private:
  struct Position {
    std::size_t a;
    std::size_t b;
  };
  static constexpr std::size_t kBegin = 32;      // names that locate the start of one in the other
  static constexpr std::size_t kLookAhead = 64;  // longest part that may be missing
  static constexpr std::size_t kRun = 3;         // names in a row that end a missing part

  const HostOp& op_a(std::size_t i) const { return untimed_.host_ops[a_[i]]; }
  const HostOp& op_b(std::size_t i) const { return timed_.host_ops[b_[i]]; }
  bool same(Position at) const { return op_a(at.a).name == op_b(at.b).name; }

  /// How many of the next names agree, and sequence numbers as well: steps have the same names.
  struct Agreement {
    std::size_t names;
    std::size_t numbers;
    friend auto operator<=>(const Agreement&, const Agreement&) = default;
  };
  Agreement agreement(Position at, std::size_t length) const {
    Agreement agreement{0, 0};
    for (std::size_t i = 0; i < length && at.a + i < a_.size() && at.b + i < b_.size(); ++i) {
      if (!same({at.a + i, at.b + i})) continue;
      ++agreement.names;
      const auto number = op_a(at.a + i).sequence;
      if (number && number == op_b(at.b + i).sequence) ++agreement.numbers;
    }
    return agreement;
  }

  /// Where the begin of one lies in the other: where most of the next names agree, at least half of
  /// them. A few names at the very begin may be missing.
  std::optional<Position> first() const {
    constexpr std::size_t kMissing = 8;
    const std::size_t length = std::min({kBegin, a_.size(), b_.size()});
    std::optional<Position> best;
    Agreement most{(length + 1) / 2, 0};
    const auto consider = [&](Position at) {
      if (!same(at)) return;
      const Agreement here = agreement(at, length);
      if (best ? here <= most : here < most) return;
      best = at;
      most = here;
    };
    for (std::size_t a = 0; a < std::min(kMissing, a_.size()); ++a)
      for (std::size_t b = 0; b < b_.size(); ++b) consider({a, b});
    for (std::size_t b = 0; b < std::min(kMissing, b_.size()); ++b)
      for (std::size_t a = kMissing; a < a_.size(); ++a) consider({a, b});
    while (best && best->a > 0 && best->b > 0 && same({best->a - 1, best->b - 1}))
      best = Position{best->a - 1, best->b - 1};
    return best;
  }

  /// The position after the shortest missing part, at which a run of names agrees again.
  Position resume(Position at) const {
    for (std::size_t skipped = 1; skipped <= 2 * kLookAhead; ++skipped)
      for (std::size_t a = skipped > kLookAhead ? skipped - kLookAhead : 0;
           a <= std::min(skipped, kLookAhead); ++a) {
        const Position there{at.a + a, at.b + skipped - a};
        const std::size_t run = there.a < a_.size() ? std::min(kRun, a_.size() - there.a) : 0;
        if (run > 0 && there.b < b_.size() && agreement(there, run).names == run) return there;
      }
    return {at.a + 1, at.b + 1};
  }

  const Rank& untimed_;
  const Sequence& a_;
  const Rank& timed_;
  const Sequence& b_;
};

/// Each thread of the execution trace with the thread that most of its operators match, best pair
/// first. Where fewer than half of those that could match do, the recordings are not of one
/// program.
std::vector<Match> match_by_order(const Rank& untimed, const Rank& timed) {
  const std::vector<Sequence> as = untimed_threads(untimed), bs = timed_threads(timed);
  std::multimap<std::size_t, std::pair<std::size_t, std::size_t>, std::greater<>> pairs;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Match>> matches;
  for (std::size_t a = 0; a < as.size(); ++a)
    for (std::size_t b = 0; b < bs.size(); ++b) {
      std::vector<Match> found = Alignment(untimed, as[a], timed, bs[b]).matches();
      if (found.empty()) continue;
      pairs.emplace(found.size(), std::pair(a, b));
      matches[{a, b}] = std::move(found);
    }
  std::vector<Match> all;
  std::set<std::size_t> used_a, used_b;
  for (const auto& [size, pair] : pairs) {
    if (used_a.contains(pair.first) || used_b.contains(pair.second)) continue;
    used_a.insert(pair.first);
    used_b.insert(pair.second);
    const std::vector<Match>& found = matches[pair];
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

std::vector<Match> match_by_id(const Rank& untimed, const Rank& timed) {
  std::unordered_multimap<std::uint32_t, RowIndex> rows;
  for (RowIndex i = 0; i < timed.host_ops.size(); ++i)
    if (const auto id = timed.host_ops[i].record_function; id && can_match(timed.host_ops[i]))
      rows.emplace(*id, i);
  std::vector<Match> found;
  for (RowIndex i = 0; i < untimed.host_ops.size(); ++i) {
    const HostOp& op = untimed.host_ops[i];
    if (!op.record_function) continue;
    const auto [begin, end] = rows.equal_range(*op.record_function);
    const auto at = std::find_if(
        begin, end, [&](const auto& row) { return timed.host_ops[row.second].name == op.name; });
    if (at != end) found.push_back({i, at->second});
  }
  return found;
}

// --- rows

/// The index of a value in a table, where it is added on first use.
template <class Value, class Id>
class Index {
 public:
  explicit Index(std::vector<Value>& table) : table_(table) {
    for (std::size_t i = 0; i < table.size(); ++i) ids_.try_emplace(key(table[i]), Id(i));
  }
  Id operator[](const Value& value) {
    const auto [at, is_new] = ids_.try_emplace(key(value), Id(table_.size()));
    if (is_new) table_.push_back(value);
    return at->second;
  }

 private:
  static auto key(const Inputs& inputs) { return std::pair(inputs.shapes, inputs.types); }
  static auto key(const Collective& collective) { return collective; }

  std::vector<Value>& table_;
  std::map<decltype(key(std::declval<Value>())), Id> ids_;
};

/// Whether most operators that have a sequence number in both recordings have the same.
bool number_alike(const Rank& untimed, const Rank& timed, const std::vector<Match>& matches) {
  std::size_t both = 0, same = 0;
  for (const Match& match : matches) {
    const auto a = untimed.host_ops[match.untimed].sequence;
    const auto b = timed.host_ops[match.timed].sequence;
    if (!a || !b) continue;
    ++both;
    if (a == b) ++same;
  }
  return both > 0 && 2 * same > both;
}

void merge(Trace& trace, const Rank& untimed, Rank& timed) {
  const bool has_ids = std::ranges::any_of(
      timed.host_ops, [](const HostOp& op) { return op.record_function.has_value(); });
  const std::vector<Match> matches =
      has_ids ? match_by_id(untimed, timed) : match_by_order(untimed, timed);
  const bool alike = number_alike(untimed, timed, matches);
  Index<Inputs, InputsId> inputs(timed.inputs);
  Index<Collective, CollectiveId> collectives(timed.collectives);
  std::vector<char> joined(untimed.host_ops.size(), 0);
  for (const Match& match : matches) {
    const HostOp& from = untimed.host_ops[match.untimed];
    HostOp& to = timed.host_ops[match.timed];
    joined[match.untimed] = 1;
    if (!to.inputs && from.inputs) to.inputs = inputs[untimed.inputs[from.inputs->index()]];
    if (!to.collective && from.collective)
      to.collective = collectives[untimed.collectives[from.collective->index()]];
    if (!to.record_function) to.record_function = from.record_function;
    if (alike && !to.sequence) to.sequence = from.sequence;
    if (alike && !to.forward_thread) to.forward_thread = from.forward_thread;
  }
  const auto first = std::ranges::find(joined, 0);
  if (first == joined.end()) return;
  const HostOp& op = untimed.host_ops[static_cast<std::size_t>(first - joined.begin())];
  trace.problems.add(ProblemKind::kUnjoined,
                     fmt::format("{}: {}", untimed.info.source, trace.names[op.name]),
                     static_cast<std::uint64_t>(std::ranges::count(joined, 0)));
}

}  // namespace

void join_execution_traces(Trace& trace) {
  const std::map<std::size_t, std::size_t> joined = partners(trace);
  for (const auto& [untimed, timed] : joined)
    merge(trace, trace.ranks[untimed], trace.ranks[timed]);
  for (auto at = joined.rbegin(); at != joined.rend(); ++at)
    trace.ranks.erase(trace.ranks.begin() + static_cast<std::ptrdiff_t>(at->first));
}

}  // namespace rehearse::ingest
