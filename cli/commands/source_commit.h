// The commit of the source that a program is run from.
#pragma once

#include <filesystem>
#include <string>

namespace rehearse::cli {

/// The commit that is checked out in the Git repository around this folder, by its files alone; empty
/// outside of a repository and before its first commit.
std::string source_commit(const std::filesystem::path& folder);

}  // namespace rehearse::cli
