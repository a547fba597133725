// The report: the result of a command as one HTML file that needs no network (docs/report.md). The
// page shows the document that the command prints, and further details.
//
//   write_report(globals, document, {.suites = {"withheld/all"}});
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/output/document.h"
#include "cli/output/value.h"
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

/// What a document shows to people: the page of a command without a layout of its own is drawn from
/// it. A list of blocks, in the order of the document. Each has a "kind" and a "title", which may be empty:
///   line    "text"
///   fields  "fields": [{"label", …}], a quantity as page_quantity(), anything else as "text" alone
///   bars    "parts": the same with a "key": times that add up to a whole
///   list    "items": texts
///   table   as page_rows()
Json shown_of(const Document& document);

/// Rows of docs/accuracy.md: those of the suites whose names begin with one of these, in the order of the page; each row has
/// its cells by heading.
Json accuracy_of(const std::vector<std::string>& suites);

/// The same for any page of that form.
Json accuracy_in(std::string_view page, const std::vector<std::string>& suites);

}  // namespace rehearse::cli
