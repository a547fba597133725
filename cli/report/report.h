// The report: the result of a command as one HTML file that needs no network (docs/report.md). The
// page shows the document that the command prints, and further details.
//
//   write_report(globals, document, {.suites = {"withheld/all"}});
#pragma once

#include <string>
#include <string_view>

#include "cli/output/document.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// What the page shows: the document, the details, and how to reproduce them.
Json page_data(const Document& document, const ReportDetails& details);
/// The page around such data. `loads_from`, a source of its policy, is where its script may load from:
/// only the live page loads anything.
std::string page_text(const Json& data, std::string_view loads_from = "'none'");

/// Writes the page of --report completely or not at all; does nothing without that option. The same
/// document and details give the same bytes. Documents are written with their page: commands call
/// this only if they write no document.
Status write_report(const Globals& globals, const Document& document, ReportDetails details = {});

}  // namespace rehearse::cli
