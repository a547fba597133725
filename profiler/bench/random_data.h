// Random operands that draw as much power as those of a real job.
#pragma once

#include <string_view>
#include <vector>

namespace rehearse::bench {

/// Returns 4 MiB of numbers between -1 and 1 in a format, the same at every call; random bits if
/// `dtype` is not a number format.
const std::vector<unsigned char>& random_block(std::string_view dtype);

}  // namespace rehearse::bench
