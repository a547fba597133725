// The pages of the documentation, and the blocks in them that tests run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rehearse::test {

/// The text between two fences of a Markdown file.
struct Block {
  std::string language;
  std::size_t line;  ///< of its fence, from 1
  std::vector<std::string> lines;
};

/// Every Markdown file of the documentation, sorted.
std::vector<std::filesystem::path> pages();

/// The blocks of a page in their order. Fails the test if one is not closed.
std::vector<Block> blocks_of(const std::filesystem::path& page);
/// The blocks of one language.
std::vector<Block> blocks_of(const std::filesystem::path& page, const std::string& language);

std::string join_lines(const std::vector<std::string>& lines);

/// The lines from a heading to the next of its level or a higher one; fails the test if there is no
/// such heading ("## import").
std::string section_of(const std::filesystem::path& page, const std::string& heading);

}  // namespace rehearse::test
