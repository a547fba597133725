// Parts of a step as bars of characters, each beginning where the one before it ends.
#pragma once

#include <span>
#include <string>

#include "sim/base/units.h"
#include "sim/graph/category.h"

namespace rehearse::cli {

struct WaterfallPart {
  std::string_view name;
  Seconds time;
  graph::Category category;  ///< gives the colour
};

/// A line each: name, bar, time, share of `total`. Parts below 0.05 % are left out.
std::string waterfall_text(std::span<const WaterfallPart> parts, Seconds total);

}  // namespace rehearse::cli
