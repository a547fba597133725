// A part of a judgement: the rows of a table, or a recording, that are predicted together. Its bytes
// are what a journal keeps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/validation/judged.h"

namespace rehearse::cli {

struct PartRow {
  std::string suite;  ///< name of its case
  std::string choice = {};
  JudgedRow row;
};

/// A row, or a recording, that could not be predicted.
struct PartSkipped {
  std::string reason, place;
};

struct Part {
  std::vector<PartRow> rows = {};
  std::vector<PartSkipped> skipped = {};
  std::vector<std::string> unknown = {};  ///< columns that turned out to be unused
};

std::string bytes_of(const Part& part);
/// REQUIRES: the bytes are those of a part.
Part part_of(std::string_view bytes);

}  // namespace rehearse::cli
