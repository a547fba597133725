// Expectations and results of studies in words.
#pragma once

#include <string>
#include <string_view>

#include "cli/output/value.h"
#include "cli/study/run_study.h"

namespace rehearse::cli {

std::string_view text_of(StudyVerdict verdict);
/// "3.2", "412 ms", "4.1 GiB"
std::string term_text(double value, std::string_view unit);
std::string term_text(const Term& term);
/// "1.5 – 8.7"; a single value if both are the same.
std::string span_text(const Term& least, const Term& most);
/// "model vgg16, workers 4 or 8"
std::string selection_text(const Selection& selection);
/// "1.34 – 13.9", "13 values"
std::string expected_text(const Expectation& e, const std::string& unit);
/// "10 %", "5 % mean, 8 % worst", "none"
std::string tolerance_text(const Expectation& e);
/// "1.5 – 40.1", "2.6 % off, worst +7.6 %"
std::string got_text(const Expectation& e, const Compared& compared);
/// "least squares, on 3 values of seconds": the data of a fit.
std::string fit_text(const Fit& fit);
/// A published curve compared with the simulated one.
Value curve_rows(const std::string& over, const std::vector<CurvePoint>& curve);

}  // namespace rehearse::cli
