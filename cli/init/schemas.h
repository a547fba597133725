// JSON Schemas of the YAML files that the program reads, for editors.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/init/meanings.h"
#include "cli/output/value.h"

namespace rehearse::cli {

struct SchemaFile {
  std::string_view name;  ///< "job": written as job.json
  std::string_view title;
  std::vector<std::string_view> seeds;  ///< examples of it, from which its keys are found
  std::function<void(const std::filesystem::path&)> read;
  std::vector<MeaningPage> pages;  ///< of its keys
};

/// The kinds of files, each with its reader.
std::span<const SchemaFile> schema_files();

/// The keys that the reader asks for (yaml_schema.h), with their forms and ranges; and their
/// meanings. `seeds`: further files to begin with.
Json schema_of(const SchemaFile& file, std::vector<std::string> seeds);

}  // namespace rehearse::cli
