// Bytes as a file, for readers that take a name.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "tests/fuzz/errors.h"

namespace rehearse::fuzz {

/// In shared memory, as it is made for every input.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes, const std::string& extension = {})
      : path_(std::filesystem::path("/dev/shm") /
              (kName + std::to_string(::getpid()) + extension)) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~MemoryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace rehearse::fuzz
