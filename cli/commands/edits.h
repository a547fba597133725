// The edits of `whatif` that are written SELECTOR or SELECTOR:VALUE: one list of their options,
// their order, and what they assume.
#pragma once

#include <span>
#include <string>

#include "cli/commands/edited_run.h"
#include "cli/globals.h"

namespace rehearse::cli {

struct NamedEdit {
  const char* option;  ///< "--scale"
  const char* help;
  Status (*check)(const std::string& text);
  Result<replay::RecordedProgram> (*apply)(const ReplayJob& job, const std::string& text,
                                           replay::RecordedProgram program, Bound bound,
                                           const Globals& globals);
  /// What it assumes with this text; empty: nothing.
  std::string (*assumption)(const std::string& text) = [](const std::string&) {
    return std::string();
  };
  bool once = false;  ///< several of them contradict one another
};

/// In the order in which they are applied.
std::span<const NamedEdit> named_edits();

}  // namespace rehearse::cli
