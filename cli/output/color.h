// Colours of results at a terminal.
#pragma once

#include <string>
#include <string_view>

#include "sim/graph/category.h"

namespace rehearse::cli {

/// From here on nothing is coloured (--no-color, -o).
void forbid_color();
/// Whether stdout is a terminal that shows colours and nobody forbade them: NO_COLOR set to
/// anything but nothing, or TERM=dumb, do.
bool colored();

/// In bold; the text as it is where nothing is coloured.
std::string strong(std::string_view text);
/// In the colour of what the time is for.
std::string painted(std::string_view text, graph::Category category);

}  // namespace rehearse::cli
