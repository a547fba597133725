// A curve drawn as text.
#pragma once

#include <span>
#include <string>

namespace rehearse::cli {

/// Draws columns of blocks, `height` lines high and `wide` characters each, one per value, from 0
/// at the bottom to the largest value at the top; the axis and its top label are to their left.
/// Values that are not above 0 leave their column empty.
std::string column_plot(std::span<const double> values, std::size_t height, std::size_t wide,
                        const std::string& top_label);

}  // namespace rehearse::cli
