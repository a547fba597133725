// The documents of studies, and the page of all studies.
#pragma once

#include <string>
#include <vector>

#include "cli/output/document.h"
#include "cli/study/run_study.h"

namespace rehearse::cli {

/// CSV has a row per point and measure, because studies differ in their parameters.
Document studies_document(const std::vector<StudyResult>& results);
/// Puts all studies on one page of Markdown: a table of the expectations, then each study with its
/// source, fits, assumptions and comparisons.
std::string study_page(const std::vector<StudyResult>& results);

}  // namespace rehearse::cli
