// What studies found, as text, JSON, rows and a page.
#pragma once

#include <string>
#include <vector>

#include "cli/output/json.h"
#include "cli/output/table.h"
#include "cli/study/run_study.h"

namespace rehearse::cli {

std::string study_text(const StudyResult& result);
Json study_json(const StudyResult& result);
/// A row per point and measure: studies differ in their parameters.
Table row_table(const std::vector<StudyResult>& results);
/// All studies on one page of Markdown: a table of what was expected, then each with its source,
/// what was fitted, assumed and compared.
std::string study_page(const std::vector<StudyResult>& results);

}  // namespace rehearse::cli
