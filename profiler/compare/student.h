// Student's t distribution, for any number of degrees of freedom above zero.
#pragma once

namespace rehearse::compare {

/// The probability of a value above `t`.
double student_above(double t, double freedom);

/// The value with so much probability above it. REQUIRES: 0 < above < 1.
double student_limit(double above, double freedom);

}  // namespace rehearse::compare
