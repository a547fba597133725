// A 16-digit fingerprint of the inputs of a work, to compare them with those of a journal or of
// another rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "sim/base/result.h"

namespace rehearse::work {

/// A hash of all that was added, in its order. It guards against mistakes, not against malice: two
/// different inputs have the same one with a probability of 2^-64.
class Fingerprint {
 public:
  void add(std::string_view bytes);
  /// Adds the name and contents of a file; for a folder, of every file in it. Fails if one cannot
  /// be read.
  Status add_file(const std::filesystem::path& path);
  /// This program as it was built: results of another build are results of another program.
  Status add_program();

  std::uint64_t number() const { return hash_; }
  std::string text() const;  ///< hexadecimal

 private:
  Status add_contents(const std::filesystem::path& file);
  std::uint64_t hash_ = 0x9e3779b97f4a7c15;
};

}  // namespace rehearse::work
