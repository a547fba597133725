// The edits of `whatif` that are written SELECTOR or SELECTOR:VALUE: one list of their options,
// their order, and what they assume.
#pragma once

#include <span>
#include <string>

#include "cli/commands/edited_run.h"
#include "cli/globals.h"

namespace rehearse::cli {

using Texts = std::span<const std::string>;

std::string assumes_nothing(const std::string& text);

struct NamedEdit {
  enum class Given : std::uint8_t {
    kInTurn,    ///< one after the other
    kTogether,  ///< all at once: what one does depends on the others
    kOnce,      ///< several contradict one another
  };

  const char* option;  ///< "--scale"
  const char* help;
  Status (*check)(const std::string& text);
  /// `texts`: one, or all if they are given together.
  Result<replay::RecordedProgram> (*apply)(const ReplayJob& job, Texts texts,
                                           replay::RecordedProgram program, Bound bound,
                                           const Globals& globals);
  /// What it assumes with this text; empty: nothing.
  std::string (*assumption)(const std::string& text) = assumes_nothing;
  Given given = Given::kInTurn;
  bool before_messages = false;  ///< --bucket and --network come after it: it may change sizes
};

/// In the order in which they are applied: times by laws, which work there is, stated times, factors,
/// delays, work that is done again, and order. So a factor applies to a stated time too, and no edit
/// changes what is not there.
std::span<const NamedEdit> named_edits();

}  // namespace rehearse::cli
