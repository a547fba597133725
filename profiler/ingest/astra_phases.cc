#include "profiler/ingest/astra_phases.h"

#include <algorithm>

namespace rehearse::ingest {
namespace {

using program::ProgramOp;
using program::Task;

struct Phase {
  CollectiveKind kind;
  std::vector<bool> involved;  ///< empty: the group of the op
  double share;                ///< of the op's bytes
};

class Phases {
 public:
  Phases(const AstraCollectives& how, const std::vector<std::uint32_t>& sizes)
      : how_(how), sizes_(sizes) {}

  std::vector<Phase> of(const ProgramOp& op, const std::string& group,
                        const std::vector<bool>& involved) const {
    std::vector<std::size_t> along;
    for (std::size_t d = 0; d < sizes_.size(); ++d)
      if (involved.empty() || involved[d]) along.push_back(d);
    const bool whole = how_.one_ring || !group.empty() || along.size() < 2;
    switch (whole ? CollectiveKind::kBarrier : op.collective) {
      case CollectiveKind::kAllReduce:
        return all_reduce(along);
      case CollectiveKind::kReduceScatter:
        return chain(op.collective, along);
      case CollectiveKind::kAllGather:
        std::reverse(along.begin(), along.end());
        return chain(op.collective, along);
      case CollectiveKind::kAllToAll:
        return chain(op.collective, along);
      default:
        return {{op.collective, {}, 1}};
    }
  }

 private:
  Phase phase(CollectiveKind kind, std::size_t dimension, double share) const {
    Phase phase{kind, std::vector<bool>(sizes_.size(), false), share};
    phase.involved[dimension] = true;
    return phase;
  }

  std::vector<Phase> chain(CollectiveKind kind, const std::vector<std::size_t>& along) const {
    std::vector<Phase> phases;
    double share = 1;
    for (const std::size_t d : along) {
      phases.push_back(phase(kind, d, share));
      if (kind == CollectiveKind::kReduceScatter) share /= sizes_[d];
      if (kind == CollectiveKind::kAllGather) share *= sizes_[d];
    }
    return phases;
  }

  std::vector<Phase> all_reduce(std::vector<std::size_t> along) const {
    if (!how_.scatters_first) return chain(CollectiveKind::kAllReduce, along);
    const std::size_t last = along.back();
    along.pop_back();
    std::vector<Phase> phases = chain(CollectiveKind::kReduceScatter, along);
    double share = phases.back().share / sizes_[along.back()];
    phases.push_back(phase(CollectiveKind::kAllReduce, last, share));
    for (auto d = along.rbegin(); d != along.rend(); ++d) {
      phases.push_back(phase(CollectiveKind::kAllGather, *d, share));
      share *= sizes_[*d];
    }
    return phases;
  }

  const AstraCollectives& how_;
  const std::vector<std::uint32_t>& sizes_;
};

}  // namespace

ChakraProgram in_phases(const ChakraProgram& read, const AstraCollectives& how,
                        const std::vector<std::uint32_t>& dimensions) {
  ChakraProgram result{.program = {},
                       .groups = read.groups,
                       .involved = read.involved,
                       .peers = read.peers,
                       .ids = {},
                       .without_length = read.without_length};
  const auto group_along = [&result](const std::vector<bool>& involved) {
    std::size_t g = 0;
    while (g < result.groups.size() &&
           !(result.groups[g].empty() && result.involved[g] == involved))
      ++g;
    if (g == result.groups.size()) {
      result.groups.emplace_back();
      result.involved.push_back(involved);
    }
    return static_cast<std::uint32_t>(g);
  };
  const Phases phases(how, dimensions);
  program::RankProgram& program = result.program;
  std::vector<std::vector<std::uint32_t>>
      ends;  // by op as read: what must end for it to have ended
  const auto add = [&](const ProgramOp& op, std::uint64_t id,
                       std::vector<std::uint32_t> dependencies) {
    std::sort(dependencies.begin(), dependencies.end());
    dependencies.erase(std::unique(dependencies.begin(), dependencies.end()), dependencies.end());
    program.dependencies.insert(program.dependencies.end(), dependencies.begin(),
                                dependencies.end());
    program.first_dependency.push_back(static_cast<std::uint32_t>(program.dependencies.size()));
    program.ops.push_back(op);
    result.ids.push_back(id);
    return static_cast<std::uint32_t>(program.ops.size() - 1);
  };
  for (std::size_t i = 0; i < read.program.ops.size(); ++i) {
    const ProgramOp& op = read.program.ops[i];
    std::vector<std::uint32_t> before;
    for (std::uint32_t d = read.program.first_dependency[i];
         d < read.program.first_dependency[i + 1]; ++d) {
      const std::vector<std::uint32_t>& of = ends[read.program.dependencies[d]];
      before.insert(before.end(), of.begin(), of.end());
    }
    std::vector<std::uint32_t>& end = ends.emplace_back();
    if (op.task != Task::kCollective || op.collective == CollectiveKind::kBarrier) {
      end.push_back(add(op, read.ids[i], std::move(before)));
      continue;
    }
    end.resize(how.splits);
    bool first = true;
    for (const Phase& phase : phases.of(op, read.groups[op.group], read.involved[op.group])) {
      ProgramOp part = op;
      part.collective = phase.kind;
      part.bytes = op.bytes * (phase.share / how.splits);
      if (!phase.involved.empty()) part.group = group_along(phase.involved);
      for (std::uint32_t& last : end)
        last = add(part, read.ids[i], first ? before : std::vector{last});
      first = false;
    }
  }
  return result;
}

}  // namespace rehearse::ingest
