// The contents of a YAML file and of all files that it names, for the key of a journal.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/work/fingerprint.h"

namespace rehearse::cli {

/// What a word with parameters in it becomes, for each of their values.
using Spellings = std::function<std::vector<std::string>(const std::string& word)>;

/// Adds the contents of a YAML file, and of the files and folders that any word of it names, from
/// its folder; of YAML files among them, likewise. Fails where one cannot be read.
Status add_with_named_files(work::Fingerprint& fingerprint, const std::filesystem::path& path,
                            const Spellings& spellings = {});

}  // namespace rehearse::cli
