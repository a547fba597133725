// What kind of recording a file or folder is, by its content.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace rehearse::ingest {

enum class InputKind { kStore, kCapture, kKineto, kExecutionTrace, kChakra, kNsys };

std::string_view to_string(InputKind kind);

/// What a file or folder is. Of a folder of recordings: what the first of them is. Fails, naming
/// what is accepted, on everything else.
Result<InputKind> detect_input(const std::filesystem::path& path);

struct Input {
  std::filesystem::path path;
  InputKind kind;
  double bytes;  ///< about how many, for progress
};

/// The recordings that paths stand for: themselves, or those directly inside a folder, in order of
/// name, numbers by value. Reports at once all paths that are none. There is at least one.
Result<std::vector<Input>> find_inputs(std::span<const std::filesystem::path> paths);

}  // namespace rehearse::ingest
