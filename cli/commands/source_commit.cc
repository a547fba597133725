#include "cli/commands/source_commit.h"

#include <algorithm>

#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargest = 16 << 20;

/// The text of a small file, without white space around it; empty if there is none.
std::string content_of(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return "";
  const Result<std::string> text = read_file(file, kLargest);
  return text ? std::string(trim(*text)) : "";
}

/// A work tree has a folder of its own within the repository, and shares the branches with it.
fs::path shared_folder(const fs::path& git) {
  const std::string common = content_of(git / "commondir");
  return common.empty() ? git : git / common;
}

bool is_commit(std::string_view text) {
  return text.size() >= 40 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string commit_in(const fs::path& git) {
  constexpr std::string_view kBranch = "ref: ";
  std::string head = content_of(git / "HEAD");
  if (head.starts_with(kBranch)) {
    const std::string branch = head.substr(kBranch.size());
    const fs::path shared = shared_folder(git);
    head = content_of(shared / branch);
    const std::string packed = head.empty() ? content_of(shared / "packed-refs") : "";
    for (const std::string_view line : split(packed, '\n'))
      if (line.ends_with(" " + branch)) head = line.substr(0, line.find(' '));
  }
  return is_commit(head) ? head : "";
}

}  // namespace

std::string source_commit(const fs::path& folder) {
  constexpr std::string_view kElsewhere = "gitdir: ";
  std::error_code error;
  for (fs::path at = fs::absolute(folder, error);; at = at.parent_path()) {
    const fs::path git = at / ".git";
    if (fs::is_directory(git, error)) return commit_in(git);
    const std::string named = content_of(git);
    if (named.starts_with(kElsewhere)) return commit_in(at / named.substr(kElsewhere.size()));
    if (!at.has_relative_path()) return "";
  }
}

}  // namespace rehearse::cli
