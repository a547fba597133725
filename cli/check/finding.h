// Finding: one result of a check. Every kind of report is a list of findings.
#pragma once

#include <string>
#include <vector>

#include "cli/output/table.h"
#include "profiler/compare/judge.h"

namespace rehearse::cli {

/// One item that was checked, and its verdict.
struct CheckFinding {
  std::string name;  ///< "step_time", "ops: *gemm*", the name of a recording
  compare::Verdict verdict;
  std::string message;  ///< one line
  std::string file;     ///< that it is about
};

/// The findings of one check, and changes that have no limit.
struct CheckFindings {
  std::vector<CheckFinding> judged;
  std::vector<CheckFinding> notes;  ///< their verdict is pass
  compare::Verdict verdict = compare::Verdict::kPass;

  void add(CheckFinding finding) {
    verdict = compare::worse(verdict, finding.verdict);
    judged.push_back(on_one_line(std::move(finding)));
  }
  void add_note(CheckFinding finding) { notes.push_back(on_one_line(std::move(finding))); }

 private:
  /// Names of ops, files and runs come from others: their control characters must not reach a
  /// terminal or a report.
  static CheckFinding on_one_line(CheckFinding finding) {
    for (std::string* text : {&finding.name, &finding.message}) *text = printable(*text);
    return finding;
  }
};

}  // namespace rehearse::cli
