// Findings of a check in the formats of CI services: JUnit, SARIF and GitHub annotations.
#pragma once

#include <string>

#include "cli/check/finding.h"

namespace rehearse::cli {

/// JUnit XML with a test case per checked item. Inconclusive items are skipped tests.
std::string junit_xml(const CheckFindings& findings);

/// SARIF 2.1.0 (OASIS) with a result per failed or inconclusive item and per note.
std::string sarif_json(const CheckFindings& findings);

/// Workflow commands of GitHub Actions, one per line: an error, a warning or a notice.
std::string github_annotations(const CheckFindings& findings);

}  // namespace rehearse::cli
