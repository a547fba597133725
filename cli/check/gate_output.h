// The documents of a gate and of a history.
#pragma once

#include <string>

#include "cli/check/gate.h"
#include "cli/check/history.h"
#include "cli/output/document.h"

namespace rehearse::cli {

/// Adds runs, quantities, limits and ops; CSV has a row per quantity and op.
void add_gate(const Gate& gate, Document& document);

/// Adds the runs with their segments, and the current level.
void add_history(const History& history, Document& document);

void add_findings(const CheckFindings& findings, Document& document);
/// "1 op changed significantly", as part of a sentence.
std::string gate_words(const Gate& gate);
std::string history_words(const History& history);

}  // namespace rehearse::cli
