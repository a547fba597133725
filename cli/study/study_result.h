// The documents of studies, and the page of all studies.
#pragma once

#include <string>
#include <vector>

#include "cli/output/document.h"
#include "cli/study/run_study.h"

namespace rehearse::cli {

/// In CSV a row per point and measure: studies differ in their parameters.
Document studies_document(const std::vector<StudyResult>& results);
/// All studies on one page of Markdown: a table of what was expected, then each with its source,
/// what was fitted, assumed and compared.
std::string study_page(const std::vector<StudyResult>& results);

}  // namespace rehearse::cli
