// The documents of a gate and of a history.
#pragma once

#include <string>

#include "cli/check/gate.h"
#include "cli/check/history.h"
#include "cli/output/document.h"

namespace rehearse::cli {

/// Runs, quantities, limits and ops; in CSV a row for each quantity and op.
void add_gate(const Gate& gate, Document& document);

/// The runs with the segments that they are of, and the level now.
void add_history(const History& history, Document& document);

void add_findings(const CheckFindings& findings, Document& document);
/// "1 op changed significantly", for the sentence.
std::string gate_words(const Gate& gate);
std::string history_words(const History& history);

}  // namespace rehearse::cli
