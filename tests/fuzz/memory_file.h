// Bytes as a file, for readers that take a name.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include <unistd.h>

#include "tests/fuzz/errors.h"

namespace rehearse::fuzz {

/// In shared memory, as it is written for every input. One that exists is written again: the program
/// remembers each file that it has read, and libFuzzer looks for leaks after each input that leaves
/// memory allocated, which took 20 times as long as the reader.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes, const std::string& extension = {}) {
    static std::map<std::string, Kept> files;
    path_ = files.try_emplace(extension, extension).first->second.path;
    std::ofstream(path_, std::ios::binary) << bytes;
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Kept {
    explicit Kept(const std::string& extension)
        : path(std::filesystem::path("/dev/shm") /
               (kName + std::to_string(::getpid()) + extension)) {}
    ~Kept() {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
    std::filesystem::path path;
  };

  std::filesystem::path path_;
};

}  // namespace rehearse::fuzz
