#include "models/job/symmetry.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

namespace rehearse::job {
namespace {

using program::Program, program::ProgramOp, program::RankProgram, program::Task;

/// Equal keys get one number, in the order of their first places.
template <class Key>
Classes numbered(std::span<const Key> keys) {
  std::map<Key, std::uint32_t> numbers;
  Classes classes;
  classes.reserve(keys.size());
  for (const Key& key : keys)
    classes.push_back(
        numbers.emplace(key, static_cast<std::uint32_t>(numbers.size())).first->second);
  return classes;
}

std::size_t count_of(const Classes& classes) {
  return classes.empty() ? 0 : *std::ranges::max_element(classes) + std::size_t{1};
}

/// The number of ranks of a class in a group. They all use one number for the group.
struct Part {
  std::uint32_t run, local, count;
  friend auto operator<=>(const Part&, const Part&) = default;
};
using Composition = std::vector<Part>;

/// Nothing if ranks of one class number the group differently.
std::optional<Composition> composition_of(const Program& job, const Classes& run_of,
                                          std::uint32_t group) {
  Composition parts;
  for (const RankId member : job.groups[group].members) {
    const std::vector<std::uint32_t>& groups = job.groups_of[member.index()];
    const auto place = std::ranges::find(groups, group);
    if (place == groups.end() || std::find(place + 1, groups.end(), group) != groups.end())
      return std::nullopt;
    const std::uint32_t run = run_of[member.index()];
    const auto local = static_cast<std::uint32_t>(place - groups.begin());
    const auto part = std::ranges::find(parts, run, &Part::run);
    if (part == parts.end())
      parts.push_back({run, local, 1});
    else if (part->local == local)
      ++part->count;
    else
      return std::nullopt;
  }
  std::ranges::sort(parts);
  return parts;
}

/// The collectives that the ranks of a program run in a group, in their order.
std::vector<std::pair<CollectiveKind, Bytes>> collectives_in(const RankProgram& program,
                                                             std::uint32_t local) {
  std::vector<std::pair<CollectiveKind, Bytes>> collectives;
  for (const ProgramOp& op : program.ops)
    if (op.task == Task::kCollective && op.group == local)
      collectives.emplace_back(op.collective, op.bytes);
  return collectives;
}

bool groups_are_alike(const Program& job, Symmetry& symmetry) {
  std::map<Composition, std::uint32_t> numbers;
  std::vector<std::uint32_t> number_of(job.groups.size());
  for (std::uint32_t g = 0; g < job.groups.size(); ++g) {
    std::optional<Composition> parts = composition_of(job, symmetry.run_of, g);
    const bool folds = symmetry.ranks.size() < job.ranks();
    if (!parts || (parts->size() > 1 && !folds)) return false;
    number_of[g] = numbers.emplace(std::move(*parts), static_cast<std::uint32_t>(numbers.size()))
                       .first->second;
  }
  const auto program_of = [&](std::uint32_t run) -> const RankProgram& {
    return job.program(symmetry.ranks[run]);
  };
  for (std::uint32_t r = 0; r < job.ranks(); ++r) {
    const std::vector<std::uint32_t>&groups = job.groups_of[r],
          &first = job.groups_of[symmetry.ranks[symmetry.run_of[r]].index()];
    if (groups.size() != first.size()) return false;
    for (std::size_t l = 0; l < groups.size(); ++l)
      if (number_of[groups[l]] != number_of[first[l]]) return false;
  }
  for (const RankId rank : symmetry.ranks) symmetry.meets_in.push_back(job.groups_of[rank.index()]);
  for (const auto& [parts, number] : numbers) {
    const Part& one = parts.front();
    const auto issued = collectives_in(program_of(one.run), one.local);
    for (const Part& other : parts) {
      if (other == one) continue;
      if (collectives_in(program_of(other.run), other.local) != issued) return false;
      symmetry.meets_in[other.run][other.local] =
          job.groups_of[symmetry.ranks[one.run].index()][one.local];
    }
  }
  return true;
}

/// A send or a receive of a program.
struct End {
  std::uint32_t tag, op;
};
/// Those of a program with one of its peers, by tag and order.
struct Channels {
  std::vector<End> sends, receives;
};

bool same_dependencies(const RankProgram& program, std::uint32_t a, std::uint32_t b) {
  const auto begin = [&](std::uint32_t op) {
    return program.dependencies.begin() + program.first_dependency[op];
  };
  const auto end = [&](std::uint32_t op) {
    return program.dependencies.begin() + program.first_dependency[op + 1];
  };
  return std::equal(begin(a), end(a), begin(b), end(b));
}

bool alike(const RankProgram& program, std::uint32_t a, std::uint32_t b) {
  if (a == b) return true;
  const ProgramOp &x = program.ops[a], &y = program.ops[b];
  return x.bytes == y.bytes && x.priority == y.priority && same_dependencies(program, a, b);
}

class Pairing {
 public:
  Pairing(const Program& job, bool one_stream, Symmetry& symmetry)
      : job_(job), one_stream_(one_stream), symmetry_(symmetry) {}

  bool run() {
    if (job_.peers_of.empty()) return true;
    channels_.resize(symmetry_.ranks.size());
    pairs_.resize(symmetry_.ranks.size());
    for (std::size_t run = 0; run < symmetry_.ranks.size(); ++run) collect(run);
    for (std::uint32_t r = 0; r < job_.ranks(); ++r)
      if (!pair(RankId(r))) return false;
    return true;
  }

 private:
  /// The peer of a class, as its representative has it: its class, and the number that it has for
  /// the representative.
  struct Pair {
    std::uint32_t run, back;
    std::vector<std::uint32_t> others = {};  // other numbers that ranks have
  };

  const RankProgram& program(std::size_t run) const { return job_.program(symmetry_.ranks[run]); }

  void collect(std::size_t p) {
    const RankProgram& program = this->program(p);
    const RankId rank = symmetry_.ranks[p];
    channels_[p].resize(job_.peers_of[rank.index()].size());
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      const ProgramOp& op = program.ops[i];
      if (op.task == Task::kSend) channels_[p][op.peer].sends.push_back({op.tag, i});
      if (op.task == Task::kReceive) channels_[p][op.peer].receives.push_back({op.tag, i});
    }
    for (Channels& channels : channels_[p])
      for (std::vector<End>* ends : {&channels.sends, &channels.receives})
        std::ranges::stable_sort(*ends, {}, &End::tag);
  }

  bool pair(RankId rank) {
    const std::uint32_t p = symmetry_.run_of[rank.index()];
    const std::vector<RankId>& peers = job_.peers_of[rank.index()];
    const bool first = pairs_[p].empty();
    if (peers.size() != channels_[p].size()) return false;
    for (std::uint32_t k = 0; k < peers.size(); ++k) {
      const std::vector<RankId>& theirs = job_.peers_of[peers[k].index()];
      const auto place = std::ranges::find(theirs, rank);
      if (place == theirs.end()) return false;
      const auto back = static_cast<std::uint32_t>(place - theirs.begin());
      const std::uint32_t q = symmetry_.run_of[peers[k].index()];
      if (first) {
        pairs_[p].push_back({q, back});
        if (!fits(p, k, q, back)) return false;
        arrive(p, k, q, back);
        continue;
      }
      Pair& known = pairs_[p][k];
      if (known.run != q) return false;
      if (known.back == back || std::ranges::find(known.others, back) != known.others.end())
        continue;
      if (one_stream_ || !fits(p, k, q, back) || !comes_alike(q, known.back, back)) return false;
      known.others.push_back(back);
    }
    return true;
  }

  /// Whether every message between the two has two ends of one size.
  bool fits(std::uint32_t p, std::uint32_t k, std::uint32_t q, std::uint32_t back) const {
    if (back >= channels_[q].size()) return false;
    const Channels &ours = channels_[p][k], &theirs = channels_[q][back];
    return ends_fit(p, ours.sends, q, theirs.receives) &&
           ends_fit(p, ours.receives, q, theirs.sends);
  }
  bool ends_fit(std::uint32_t p, const std::vector<End>& ours, std::uint32_t q,
                const std::vector<End>& theirs) const {
    return std::ranges::equal(ours, theirs, [&](const End& a, const End& b) {
      return a.tag == b.tag && program(p).ops[a.op].bytes == program(q).ops[b.op].bytes;
    });
  }

  /// REQUIRES: both fit.
  bool comes_alike(std::uint32_t q, std::uint32_t known, std::uint32_t back) const {
    return std::ranges::equal(
        channels_[q][known].sends, channels_[q][back].sends,
        [&](const End& a, const End& b) { return alike(program(q), a.op, b.op); });
  }

  /// REQUIRES: they fit.
  void arrive(std::uint32_t p, std::uint32_t k, std::uint32_t q, std::uint32_t back) {
    const std::vector<End>&receives = channels_[p][k].receives, &sends = channels_[q][back].sends;
    for (std::size_t i = 0; i < receives.size(); ++i)
      symmetry_.arrivals.push_back({{q, sends[i].op}, {p, receives[i].op}});
  }

  const Program& job_;
  const bool one_stream_;
  Symmetry& symmetry_;
  std::vector<std::vector<Channels>> channels_;  // by run and peer
  std::vector<std::vector<Pair>> pairs_;         // by run and peer
};

/// Whether services order the ranks of a class in one way: such ranks are ready together.
bool orders_are_alike(const Program& job, const Symmetry& symmetry) {
  if (job.orders.empty()) return true;
  // By rank: its op, the other op, and whether its own is the earlier one.
  std::vector<std::vector<std::tuple<program::OpIndex, program::OpRef, bool>>> orders(job.ranks());
  for (const auto& [before, op] : job.orders) {
    if (before.of < job.ranks()) orders[before.of].emplace_back(before.op, op, true);
    if (op.of < job.ranks()) orders[op.of].emplace_back(op.op, before, false);
  }
  for (auto& of_rank : orders) std::ranges::sort(of_rank);
  for (std::uint32_t r = 0; r < job.ranks(); ++r)
    if (orders[r] != orders[symmetry.ranks[symmetry.run_of[r]].index()]) return false;
  return true;
}

}  // namespace

Classes classes_of(std::span<const std::vector<std::uint32_t>> keys) { return numbered(keys); }

Classes classes_of_programs(const Program& job) {
  return numbered(std::span(job.program_of).first(job.ranks()));
}

Classes refined(const Program& job, Classes classes) {
  for (std::size_t count = 0;;) {
    // A rank's class, then the classes in its groups, then those of its peers.
    std::vector<std::vector<std::uint32_t>> keys(job.ranks());
    std::map<std::vector<std::uint32_t>, std::uint32_t> met;
    std::vector<std::uint32_t> group_numbers;
    for (const Program::Group& group : job.groups) {
      std::vector<std::uint32_t> members;
      for (const RankId member : group.members) members.push_back(classes[member.index()]);
      std::ranges::sort(members);
      group_numbers.push_back(
          met.emplace(std::move(members), static_cast<std::uint32_t>(met.size())).first->second);
    }
    for (std::uint32_t r = 0; r < job.ranks(); ++r) {
      keys[r] = {classes[r]};
      for (const std::uint32_t group : job.groups_of[r]) keys[r].push_back(group_numbers[group]);
      if (!job.peers_of.empty())
        for (const RankId peer : job.peers_of[r]) keys[r].push_back(classes[peer.index()]);
    }
    classes = classes_of(keys);
    const std::size_t now = count_of(classes);
    if (now == count) return classes;
    count = now;
  }
}

std::optional<Symmetry> symmetry_of(const Program& job, bool one_stream, Classes classes) {
  Symmetry symmetry{.ranks = {}, .run_of = std::move(classes), .meets_in = {}, .arrivals = {}};
  for (std::uint32_t r = 0; r < job.ranks(); ++r)
    if (symmetry.run_of[r] == symmetry.ranks.size()) symmetry.ranks.push_back(RankId(r));
  if (!groups_are_alike(job, symmetry)) return std::nullopt;
  if (!Pairing(job, one_stream, symmetry).run() || !orders_are_alike(job, symmetry))
    return std::nullopt;
  return symmetry;
}

}  // namespace rehearse::job
