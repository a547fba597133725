// The kind of a recording, from the content of its file or folder.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "sim/base/result.h"

namespace rehearse::ingest {

enum class InputKind {
  kStore,
  kCapture,
  kKineto,
  kExecutionTrace,
  kChakra,
  kNsys,
  kOpTable,
  kRocprofJson,
  kRocprofCsv,
  kJax,
};

/// The kind of a file or folder; for a folder of recordings, the kind of the first one. Fails on
/// anything else, and lists the accepted kinds.
Result<InputKind> detect_input(const std::filesystem::path& path);

struct Input {
  std::filesystem::path path;
  InputKind kind;
  double bytes;  ///< approximate, for progress
};

/// The recordings in these paths: the paths themselves, or those directly inside a folder, in order
/// of name, numbers by value. Reports all invalid paths at once. Returns at least one.
Result<std::vector<Input>> find_inputs(std::span<const std::filesystem::path> paths);

}  // namespace rehearse::ingest
