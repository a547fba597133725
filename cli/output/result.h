// Writes the result of a command in the requested format to the requested destination.
#pragma once

#include <functional>
#include <string>

#include "cli/globals.h"
#include "cli/output/json.h"
#include "cli/output/table.h"

namespace rehearse::cli {

/// How to make a result in each format; only the one asked for is made.
struct Formats {
  std::function<std::string()> text;  ///< for people at a terminal
  std::function<Json()> json;
  std::function<Table()> table;  ///< as CSV, and as Markdown where there is no
  std::function<std::string()> markdown = {};
};

/// Writes to stdout, or as a whole file where -o names one.
Status write_result(const Globals& globals, const Formats& formats);

}  // namespace rehearse::cli
