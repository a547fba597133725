// ByteSource: the bytes of an input file in order, decompressed if it is gzip.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/file.h"
#include "sim/base/result.h"

namespace rehearse::ingest {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Fills `into` from its beginning; returns the number of bytes, fewer than requested only at the
  /// end.
  virtual std::size_t read(std::span<char> into) = 0;
  /// Share of the file consumed, from 0 to 1, for progress.
  virtual double share() const = 0;
  /// The reason why the bytes ended early (a truncated or damaged gzip, a read error); else empty.
  virtual std::string damage() const = 0;
};

/// Fails on a missing or unreadable file and on a folder. Detects gzip by the first bytes.
Result<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& path);

/// All bytes. Fails, with the name in the message, if they ended early, or are more than `most`: a
/// small file may hold any number of compressed ones.
Result<std::string> read_all(ByteSource& source, const std::string& name,
                             std::size_t most = kLargestFile);

/// Bytes in memory, for tests and fuzzers. REQUIRES: `bytes` outlive the source.
std::unique_ptr<ByteSource> bytes_in_memory(std::string_view bytes);

}  // namespace rehearse::ingest
