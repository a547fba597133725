#include "cli/output/waterfall.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/output/color.h"
#include "cli/output/table.h"

namespace rehearse::cli {

std::string waterfall_text(std::span<const WaterfallPart> parts, Seconds total) {
  constexpr std::size_t kWidth = 24;
  constexpr double kLeast = 0.0005;
  std::string text;
  double from = 0;
  for (const WaterfallPart& part : parts) {
    const double share = total > Seconds::s(0) ? part.time / total : 0;
    if (share < kLeast) continue;
    // Blocks of a character fill from the left alone: bars begin at whole ones.
    const double eighths = std::round(std::clamp(share, 0.0, 1.0) * kWidth * 8);
    const auto cells = static_cast<std::size_t>(std::ceil(eighths / 8));
    const std::size_t begin = std::min(
        static_cast<std::size_t>(std::lround(std::clamp(from, 0.0, 1.0) * kWidth)), kWidth - cells);
    text += fmt::format(
        "  {:<22} {}{} {:>10} {:>5.1f} %\n", part.name, std::string(begin, ' '),
        painted(bar(share * kWidth / static_cast<double>(kWidth - begin), kWidth - begin),
                part.category),
        to_string(part.time), share * 100);
    from += share;
  }
  return text;
}

}  // namespace rehearse::cli
