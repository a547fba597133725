#include "profiler/replay/collectives.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/core.h>

#include "profiler/trace/collective_names.h"

namespace rehearse::replay {
namespace {

using trace::Collective;
using trace::GpuOp;

// Members of one collective end together up to this much (8 ranks of one server: 7 us).
constexpr Nanoseconds kEndsTogether{100000};
constexpr std::ptrdiff_t kMaxShift = 16;

/// Completes one record of a collective with the facts of another.
void complete(Collective& known, const Collective& more) {
  if (!known.bytes_in) known.bytes_in = more.bytes_in;
  if (!known.bytes_out) known.bytes_out = more.bytes_out;
  if (!known.group_size) known.group_size = more.group_size;
  if (!known.group) known.group = more.group;
  if (!known.ranks) known.ranks = more.ranks;
  if (!known.dtype) known.dtype = more.dtype;
}

/// Which sequence an op belongs to: its process group where that is recorded, else the stream. The
/// threads of a host take collectives as they come: kind and size tell more than the thread.
std::string group_key(const Recording& r, const CommunicationOp& op,
                      const std::vector<std::size_t>& stream_rank) {
  if (op.what && op.what->group)
    return fmt::format("group {} {}", r.name(*op.what->group),
                       op.what->ranks ? r.name(*op.what->ranks) : "");
  if (op.of_host)
    return fmt::format("{} {}", to_string(op.what->kind), op.what->bytes_in.value_or(0));
  return fmt::format("stream {}", stream_rank[r.stream_of(op.op)]);
}

using Sequence = std::vector<CommunicationOp>;

std::map<std::string, Sequence> sequences(const Recording& r, const Sequence& communication) {
  // Streams are numbered by first use: their own numbers differ from rank to rank.
  std::vector<std::size_t> stream_rank(r.streams().size(), 0);
  std::vector<char> seen(r.streams().size(), 0);
  std::size_t next = 0;
  for (const CommunicationOp& op : communication)
    if (!op.of_host && !seen[r.stream_of(op.op)]) {
      seen[r.stream_of(op.op)] = 1;
      stream_rank[r.stream_of(op.op)] = next++;
    }
  std::map<std::string, Sequence> by_group;
  for (const CommunicationOp& op : communication)
    by_group[group_key(r, op, stream_rank)].push_back(op);
  return by_group;
}

bool same_kind(const CommunicationOp& a, const CommunicationOp& b) {
  return !a.what || !b.what || a.what->kind == b.what->kind;
}

Nanoseconds distance(Nanoseconds a, Nanoseconds b) { return a < b ? b - a : a - b; }

/// Whether the times of two ops allow one collective.
bool together(const CommunicationOp& a, const CommunicationOp& b) {
  if (!same_kind(a, b)) return false;
  if (a.of_host && b.of_host)
    return a.start <= b.end + kEndsTogether && b.start <= a.end + kEndsTogether;
  return distance(a.end, b.end) <= kEndsTogether;
}

/// By how many places `b` must be shifted so that most of its ops fit those of `a`.
std::ptrdiff_t best_shift(const Sequence& a, const Sequence& b) {
  std::ptrdiff_t best = 0;
  std::size_t best_hits = 0;
  for (std::ptrdiff_t step = 0; step <= 2 * kMaxShift; ++step) {
    const std::ptrdiff_t shift = (step + 1) / 2 * (step % 2 == 0 ? 1 : -1);  // 0, -1, 1, -2, ...
    std::size_t hits = 0;
    for (std::size_t k = 0; k < a.size(); ++k) {
      const std::ptrdiff_t other = static_cast<std::ptrdiff_t>(k) + shift;
      if (other < 0 || other >= static_cast<std::ptrdiff_t>(b.size())) continue;
      if (together(a[k], b[static_cast<std::size_t>(other)])) ++hits;
    }
    if (hits > best_hits) {
      best = shift;
      best_hits = hits;
    }
  }
  return best;
}

/// The ops of a sequence by kind and the number that all ranks give them; nothing where one has no
/// number or two have the same.
using ByNumber = std::map<std::pair<CollectiveKind, std::uint64_t>, std::size_t>;
std::optional<ByNumber> by_number(const Recording& r, const Sequence& ops) {
  ByNumber numbered;
  for (std::size_t k = 0; k < ops.size(); ++k) {
    if (ops[k].of_host) return std::nullopt;
    const auto number = r.gpu(ops[k].op).collective_number;
    if (!number || !ops[k].what || !numbered.try_emplace({ops[k].what->kind, *number}, k).second)
      return std::nullopt;
  }
  return numbered;
}

/// Which op of `b` is part of the same collective, for each of `a`.
std::vector<std::optional<std::size_t>> partners(const Recording& ra, const Sequence& a,
                                                 const Recording& rb, const Sequence& b) {
  std::vector<std::optional<std::size_t>> found(a.size());
  const auto numbered_a = by_number(ra, a), numbered_b = by_number(rb, b);
  if (numbered_a && numbered_b) {
    for (const auto& [number, k] : *numbered_a)
      if (const auto at = numbered_b->find(number); at != numbered_b->end()) found[k] = at->second;
    return found;
  }
  const std::ptrdiff_t shift = best_shift(a, b);
  for (std::size_t k = 0; k < a.size(); ++k) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(k) + shift;
    if (at < 0 || at >= static_cast<std::ptrdiff_t>(b.size())) continue;
    if (together(a[k], b[static_cast<std::size_t>(at)])) found[k] = static_cast<std::size_t>(at);
  }
  return found;
}

using ByRank = std::vector<std::map<std::string, Sequence>>;

/// The collectives of a group, by their order on its first given rank.
std::vector<MatchedCollective> by_order(const std::vector<Recording>& recordings, ByRank& by_rank,
                                        const std::string& key,
                                        const std::vector<std::size_t>& ranks) {
  const std::size_t lead = ranks.front();
  const Sequence& first = by_rank[lead][key];
  std::vector<MatchedCollective> group(first.size());
  for (std::size_t k = 0; k < first.size(); ++k)
    group[k].members.push_back({lead, first[k].op, first[k].start, first[k].end});
  for (const std::size_t r : ranks) {
    if (r == lead) continue;
    const Sequence& other = by_rank[r][key];
    const auto same = partners(recordings[lead], first, recordings[r], other);
    for (std::size_t k = 0; k < first.size(); ++k)
      if (same[k]) {
        const CommunicationOp& partner = other[*same[k]];
        group[k].members.push_back({r, partner.op, partner.start, partner.end});
      }
  }
  return group;
}

/// Messages of a group between two ranks each: of equal size, next to one another in the order of
/// their ends, and in flight at the same time, so that no ranks wait for one another in turn.
std::vector<MatchedCollective> by_end(ByRank& by_rank, const std::string& key,
                                      const std::vector<std::size_t>& ranks) {
  struct One {
    std::size_t rank;
    const CommunicationOp* op;
  };
  std::vector<One> all;
  for (const std::size_t r : ranks)
    for (const CommunicationOp& op : by_rank[r][key]) all.push_back({r, &op});
  std::ranges::stable_sort(all, {}, [](const One& one) { return one.op->end; });
  std::vector<MatchedCollective> pairs;
  for (std::size_t k = 0; k + 1 < all.size(); ++k) {
    const One &a = all[k], &b = all[k + 1];
    if (a.rank == b.rank || a.op->what->bytes_in != b.op->what->bytes_in ||
        b.op->end - a.op->end > kEndsTogether || b.op->start >= a.op->end)
      continue;
    pairs.push_back(
        {{{a.rank, a.op->op, a.op->start, a.op->end}, {b.rank, b.op->op, b.op->start, b.op->end}}});
    ++k;
  }
  return pairs;
}

bool is_message(const CommunicationOp& op) {
  return op.what && op.what->group && op.what->kind == CollectiveKind::kSendRecv;
}

/// From when the last member had arrived to each member's own end.
void set_transfers(std::optional<std::size_t> hidden, MatchedCollective& collective) {
  Nanoseconds last_start(INT64_MIN);
  for (const auto& member : collective.members)
    if (member.rank != hidden) last_start = std::max(last_start, member.start);
  Nanoseconds shortest(INT64_MAX);
  for (auto& member : collective.members) {
    if (member.rank == hidden) continue;
    member.transfer = std::max(Nanoseconds(0), member.end - last_start);
    shortest = std::min(shortest, member.transfer);
  }
  for (auto& member : collective.members)
    if (member.rank == hidden) member.transfer = shortest;
}

/// Ranges that communicate and lie in no other. PyTorch's record of a call only hands the collective
/// to another thread where ranges of the backend record its work.
std::vector<CommunicationOp> of_threads(const Recording& r) {
  std::vector<CommunicationOp> calls, work;
  for (const HostThread& thread : r.threads()) {
    Nanoseconds until(INT64_MIN);
    for (const HostIndex i : thread.ops) {
      const trace::HostOp& op = r.host(i);
      if (!op.collective || op.start < until) continue;
      until = op.end();
      (r.name(op) == "record_param_comms" ? calls : work)
          .push_back({i, r.rank().collectives[op.collective->index()], op.start, op.end(), true});
    }
  }
  return work.empty() ? calls : work;
}

}  // namespace

std::vector<CommunicationOp> find_communication(const Recording& r) {
  std::vector<CommunicationOp> found;
  if (r.streams().empty()) found = of_threads(r);
  for (const Stream& stream : r.streams())
    for (const GpuIndex i : stream.ops) {
      const GpuOp& op = r.gpu(i);
      if (op.kind != trace::GpuKind::kKernel) continue;
      CommunicationOp communication{i, std::nullopt, op.start, op.end()};
      if (op.collective)
        communication.what = r.rank().collectives[op.collective->index()];
      else if (!trace::is_communication_kernel(r.name(op)))
        continue;
      // The framework's ranges around the launch know more than the kernel's name.
      for (std::optional<HostIndex> at = r.launcher(i); at; at = r.parent(*at)) {
        const auto collective = r.host(*at).collective;
        if (!collective) continue;
        const Collective& around = r.rank().collectives[collective->index()];
        if (!communication.what) communication.what = around;
        // All-to-all runs as a kernel named after its sends and receives.
        if (communication.what->kind == CollectiveKind::kSendRecv)
          communication.what->kind = around.kind;
        complete(*communication.what, around);
      }
      found.push_back(communication);
    }
  std::ranges::stable_sort(found, {}, &CommunicationOp::start);
  return found;
}

CollectiveMatches match_collectives(const std::vector<Recording>& recordings,
                                    const std::vector<std::vector<CommunicationOp>>& communication,
                                    std::optional<std::size_t> hidden) {
  CollectiveMatches matches;
  std::vector<std::map<std::string, Sequence>> by_rank;
  for (std::size_t r = 0; r < recordings.size(); ++r)
    by_rank.push_back(sequences(recordings[r], communication[r]));

  std::map<std::string, std::vector<std::size_t>> ranks_of_group;
  for (std::size_t r = 0; r < by_rank.size(); ++r)
    for (const auto& [key, sequence] : by_rank[r]) ranks_of_group[key].push_back(r);

  for (const auto& [key, ranks] : ranks_of_group) {
    const auto all_between_two = [&, &group_key = key](std::size_t r) {
      return std::ranges::all_of(by_rank[r][group_key], is_message);
    };
    std::vector<MatchedCollective> group = by_order(recordings, by_rank, key, ranks);
    const auto alone = [](const MatchedCollective& one) { return one.members.size() < 2; };
    std::size_t ops = 0, matched = 0;
    for (const std::size_t r : ranks) ops += by_rank[r][key].size();
    // A stage of a pipeline sends to the next while it receives from the one before.
    if (std::ranges::any_of(group, alone) && std::ranges::all_of(ranks, all_between_two))
      group = by_end(by_rank, key, ranks);
    for (MatchedCollective& collective : group) {
      if (alone(collective)) continue;
      matched += collective.members.size();
      set_transfers(hidden, collective);
      matches.matched.push_back(std::move(collective));
    }
    matches.unmatched += ops - matched;
  }
  return matches;
}

}  // namespace rehearse::replay
