// Files that are either whole or absent, and reading with one clear error.
#pragma once

#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "sim/base/result.h"

namespace rehearse {

/// The largest file that is read as a whole. A pipe or a device may have no end.
inline constexpr std::size_t kLargestFile = std::size_t{1} << 30;

/// The whole file. Fails on a directory, a missing or an unreadable file, and on one of more than
/// `most` bytes. The file is then an input (note_input).
Result<std::string> read_file(const std::filesystem::path& path, std::size_t most = kLargestFile);

/// From now on no output may replace this file, under any of its names.
void note_input(const std::filesystem::path& path);

/// From now on read_file(name) returns this text, which no file holds.
/// REQUIRES: no other thread reads files yet.
void hold_file(const std::filesystem::path& name, std::string text);
/// The held text of that name; null if there is none.
const std::string* held_file(const std::filesystem::path& name);

/// A file under construction: written in the target folder under a temporary name, and renamed by
/// `commit`. If commit is never reached (an error, a kill), the old file is untouched; the
/// destructor removes the temporary one, or else the next run that writes the same file. A replaced
/// file hands down its permissions.
class PendingFile {
 public:
  /// Fails if the folder does not exist or cannot be written, and if the file is an input of this
  /// run: open outputs before long work.
  /// An existing target that is no ordinary file (a pipe, /dev/null) is written in place.
  static Result<PendingFile> create(std::filesystem::path path);

  PendingFile(PendingFile&&) noexcept;
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();

  /// Where to write: by name, for libraries that open files themselves.
  const std::filesystem::path& temporary() const { return temporary_; }
  /// Appends `text`.
  Status write(std::string_view text);
  /// Puts the file in its place. Fails if it was read as an input since.
  Status commit();

 private:
  PendingFile(std::filesystem::path path, std::filesystem::path temporary, std::FILE* file);

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::FILE* file_;  // null once moved from or committed
};

/// The text as the whole file.
Status write_file(const std::filesystem::path& path, std::string_view text);

/// To call before long work: fails as PendingFile::create would on one of the paths that are not
/// empty.
Status check_writable(std::initializer_list<std::filesystem::path> paths);

}  // namespace rehearse
