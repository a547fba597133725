#include "cli/commands/message_law.h"

#include <algorithm>
#include <vector>

#include "models/comm/fit_pieces.h"
#include "sim/base/statistics.h"

namespace rehearse::cli {

MessageLaw::MessageLaw(const replay::RecordedProgram& recorded) {
  std::map<std::pair<std::uint32_t, CollectiveKind>, std::map<double, std::vector<Seconds>>> times;
  for (std::size_t rank = 0; rank < recorded.ranks(); ++rank)
    for (const program::ProgramOp& op : recorded.programs[rank].ops)
      if (op.task == program::Task::kCollective && op.sized && op.duration)
        times[{recorded.groups_of[rank][op.group], op.collective}][op.bytes.b()].push_back(
            op.duration->seconds());
  for (const auto& [of, sizes] : times) {
    std::vector<comm::MeasuredRow> rows;
    for (const auto& [bytes, all] : sizes)
      rows.push_back({of.second, recorded.groups[of.first].ranks(), Bytes::b(bytes), median(all)});
    const auto shortest = std::ranges::min_element(rows, {}, &comm::MeasuredRow::time);
    Fixed fixed{.most = Picoseconds::from(shortest->time)};
    if (rows.size() > 1)
      fixed.value = std::min(fixed.most, Picoseconds::from(comm::pieces::fit_affine(rows).call));
    fixed_.emplace(of, fixed);
  }
}

Picoseconds MessageLaw::with_bytes(std::uint32_t group, const program::ProgramOp& op, double times,
                                   Bound bound) const {
  const Picoseconds recorded = *op.duration;
  const auto found = fixed_.find({group, op.collective});
  Fixed fixed{.most = recorded};
  if (found != fixed_.end()) fixed = found->second;
  const auto at = [&](Picoseconds constant) {
    constant = std::min(constant, recorded);
    return constant + (recorded - constant) * times;
  };
  if (bound == Bound::kValue) return at(fixed.value);
  return (bound == Bound::kHigh) == (times > 1) ? at(Picoseconds(0)) : at(fixed.most);
}

}  // namespace rehearse::cli
