// The report: the result of a command as one HTML file that needs no network (docs/report.md). The
// page shows the document that the command prints, and further details.
//
//   write_report("out.html", document, {.inputs = {"job.yaml"}});
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/output/document.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// Data for pictures that is not in the document. A section without its data is left out.
struct ReportDetails {
  std::vector<std::filesystem::path> inputs = {};  ///< short text files are shown in full
  std::vector<std::string> command = {};           ///< gives the page again; empty: this one does
  /// Prefixes of the suites in docs/accuracy.md that measured this kind of prediction.
  std::vector<std::string> suites = {};
  Json timeline = {};  ///< timeline_sheet.h
  Json memory = {};    ///< over the step
  Json roofline = {};  ///< roofline.h
  Json gains = {};     ///< of single changes: single_changes.h
};

/// What the page shows: the document, the details, and how to reproduce them.
Json page_data(const Document& document, const ReportDetails& details);
/// The page around such data. `loads_from`, a source of its policy, is where its script may load from:
/// only the live page loads anything.
std::string page_text(const Json& data, std::string_view loads_from = "'none'");

/// Writes the page completely or not at all; does nothing if the path is empty. The same document
/// and details give the same bytes.
Status write_report(const std::filesystem::path& path, const Document& document,
                    const ReportDetails& details = {});

}  // namespace rehearse::cli
