// What a check shows: the documents of a gate and of a history, and its findings in the formats of CI
// services (JUnit, SARIF and GitHub annotations).
#pragma once

#include <string>

#include "cli/check/finding.h"
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

/// JUnit XML with a test case per checked item. Inconclusive items are skipped tests.
std::string junit_xml(const CheckFindings& findings);

/// SARIF 2.1.0 (OASIS) with a result per failed or inconclusive item and per note.
std::string sarif_json(const CheckFindings& findings);

/// Workflow commands of GitHub Actions, one per line: an error, a warning or a notice.
std::string github_annotations(const CheckFindings& findings);

}  // namespace rehearse::cli
