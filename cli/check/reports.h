// Findings of a check in the formats of CI services: JUnit, SARIF and GitHub annotations.
#pragma once

#include <string>

#include "cli/check/finding.h"

namespace rehearse::cli {

/// JUnit's XML: a test case per thing that was asked. Inconclusive ones are skipped tests.
std::string junit_xml(const CheckFindings& findings);

/// SARIF 2.1.0 (OASIS): a result per failed or inconclusive thing and per note.
std::string sarif_json(const CheckFindings& findings);

/// Workflow commands of GitHub Actions: an error, a warning or a notice a line.
std::string github_annotations(const CheckFindings& findings);

}  // namespace rehearse::cli
