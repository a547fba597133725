#include "tests/support/pages.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "tests/support/data.h"

namespace rehearse::test {

namespace fs = std::filesystem;

std::vector<fs::path> pages() {
  std::vector<fs::path> found = {source_file("README.md"), source_file("CONTRIBUTING.md")};
  for (const auto& entry : fs::recursive_directory_iterator(source_file("docs")))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  std::erase_if(found, [](const fs::path& page) { return !fs::exists(page); });
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Block> blocks_of(const fs::path& page) {
  std::vector<Block> blocks;
  bool inside = false;
  std::size_t number = 0;
  const Result<std::string> text = read_file(page);
  REQUIRE(text);
  for (const std::string_view line : split(*text, '\n')) {
    ++number;
    if (line.starts_with("```")) {
      if (!inside) blocks.push_back({std::string(line.substr(3)), number, {}});
      inside = !inside;
    } else if (inside) {
      blocks.back().lines.emplace_back(line);
    }
  }
  INFO(page << ": a block is not closed");
  REQUIRE_FALSE(inside);
  return blocks;
}

std::vector<Block> blocks_of(const fs::path& page, const std::string& language) {
  std::vector<Block> blocks = blocks_of(page);
  std::erase_if(blocks, [&](const Block& block) { return block.language != language; });
  return blocks;
}

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string section_of(const fs::path& page, const std::string& heading) {
  const std::size_t level = heading.find(' ');
  const Result<std::string> text = read_file(page);
  REQUIRE(text);
  std::string section;
  bool inside = false, found = false;
  for (const std::string_view line : split(*text, '\n')) {
    const std::size_t marks = line.starts_with('#') ? line.find_first_not_of('#') : 0;
    if (inside && marks > 0 && marks <= level) inside = false;
    if (inside) section += std::string(line) + "\n";
    if (line == heading) inside = found = true;
  }
  INFO(page << " has no heading '" << heading << "'");
  REQUIRE(found);
  return section;
}

}  // namespace rehearse::test
