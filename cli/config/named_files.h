// The contents of a YAML file and of all files that it names, for the key of a journal.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/work/fingerprint.h"

namespace rehearse::cli {

/// Expands a word that contains parameters into one word per value of them.
using Spellings = std::function<std::vector<std::string>(const std::string& word)>;

/// Adds the contents of a YAML file, and of the files and folders that any word of it names,
/// relative to its folder. YAML files among them are treated likewise. Fails if one cannot be read.
Status add_with_named_files(work::Fingerprint& fingerprint, const std::filesystem::path& path,
                            const Spellings& spellings = {});

/// Adds the file or folder that a word names, relative to `folder`, in the same way; nothing if it
/// names none.
Status add_named_file(work::Fingerprint& fingerprint, const std::filesystem::path& folder,
                      const std::string& word);

}  // namespace rehearse::cli
