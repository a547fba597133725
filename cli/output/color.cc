#include "cli/output/color.h"

#include <atomic>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

namespace rehearse::cli {
namespace {

std::atomic<bool> forbidden = false;

std::string coded(std::string_view text, std::string_view code) {
  return colored() ? fmt::format("\033[{}m{}\033[0m", code, text) : std::string(text);
}

}  // namespace

void forbid_color() { forbidden = true; }

bool colored() {
  static const bool able = [] {
    const char* no = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return !(no && *no) && terminal && *terminal && std::string_view(terminal) != "dumb" &&
           ::isatty(STDOUT_FILENO) != 0;
  }();
  return able && !forbidden;
}

std::string strong(std::string_view text) { return coded(text, "1"); }

std::string painted(std::string_view text, graph::Category category) {
  using graph::Category;
  switch (category) {
    case Category::kCompute: return coded(text, "34");
    case Category::kCommunication: return coded(text, "33");
    case Category::kMemory: return coded(text, "32");
    case Category::kInput: return coded(text, "35");
    default: return coded(text, "90");
  }
}

}  // namespace rehearse::cli
