// What samples say: their middle, and Student's t distribution.
#pragma once

#include <vector>

namespace rehearse {

/// The middle value; the mean of the two in the middle of an even number. REQUIRES: not empty.
double median(std::vector<double> values);

/// The middle value; the larger of the two in the middle of an even number, so that it is always one
/// of the samples. REQUIRES: not empty.
double upper_median(std::vector<double> values);

/// The probability that Student's t exceeds `t`. REQUIRES: degrees of freedom above zero, which need
/// not be whole.
double student_above(double t, double freedom);

/// The value that Student's t exceeds with this probability. REQUIRES: 0 < above < 1.
double student_limit(double above, double freedom);

}  // namespace rehearse
