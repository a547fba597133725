#include "cli/output/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace rehearse::cli {

std::string column_plot(std::span<const double> values, std::size_t height, std::size_t wide,
                        const std::string& top_label) {
  constexpr std::array<std::string_view, 9> kEighths = {" ", "▁", "▂", "▃", "▄",
                                                        "▅", "▆", "▇", "█"};
  double most = 0;
  for (const double v : values) most = std::max(most, v);
  std::string text;
  for (std::size_t line = height; line-- > 0;) {
    const std::string label = line + 1 == height ? top_label : line == 0 ? "0" : "";
    text += std::string(std::max(top_label.size(), label.size()) - label.size(), ' ') + label + " ";
    text += line == 0 ? "└" : "│";
    std::string drawn;
    for (const double v : values) {
      const double filled =
          most > 0 ? v / most * static_cast<double>(height) - static_cast<double>(line) : 0;
      const auto eighths = static_cast<std::size_t>(std::lround(std::clamp(filled, 0.0, 1.0) * 8));
      for (std::size_t i = 0; i < wide; ++i) drawn += kEighths[eighths];
    }
    text += drawn.substr(0, drawn.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace rehearse::cli
