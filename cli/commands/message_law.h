// How long a recorded collective would take with more or fewer bytes.
#pragma once

#include <map>
#include <utility>

#include "cli/commands/edited_run.h"

namespace rehearse::cli {

/// The law of a recorded group of ranks, per kind of collective:
///
///   time = fixed + (recorded time − fixed) × bytes ÷ recorded bytes
///
/// `fixed` is the constant of a straight line through the recorded times of different sizes
/// (comm::pieces::fit_affine), at most the shortest of them. With one size it is zero. The ends of
/// the interval have no fixed time, and the shortest recorded one.
class MessageLaw {
 public:
  explicit MessageLaw(const replay::RecordedProgram& recorded);

  /// REQUIRES: `op` has a duration; `group` is its group in the program.
  Picoseconds with_bytes(std::uint32_t group, const program::ProgramOp& op, double times,
                         Bound bound) const;

 private:
  struct Fixed {
    Picoseconds value{0}, most{0};
  };
  std::map<std::pair<std::uint32_t, CollectiveKind>, Fixed> fixed_;
};

}  // namespace rehearse::cli
