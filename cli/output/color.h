// Colours of results at a terminal.
#pragma once

#include <string>
#include <string_view>

#include "sim/graph/category.h"

namespace rehearse::cli {

/// Disables colours from now on (--no-color, -o).
void forbid_color();
/// Whether stdout is a terminal that shows colours, and they are not disabled by forbid_color(), a
/// non-empty NO_COLOR, or TERM=dumb.
bool colored();

/// The text in bold; unchanged if colours are disabled.
std::string strong(std::string_view text);
/// The text in the colour of the category.
std::string painted(std::string_view text, graph::Category category);

}  // namespace rehearse::cli
