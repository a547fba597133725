// Streams of keys and caches from YAML: docs/formats/study.md, section "caches".
#pragma once

#include <filesystem>

#include "models/store/prefetch.h"
#include "sim/base/yaml.h"

namespace rehearse::store {

struct CacheRun {
  KeyStream stream;
  Cache cache;
  std::size_t first = 0;  ///< batch from which hits count
  std::optional<Drive> drive = {};
  std::optional<Prefetch> prefetch = {};
};

/// Errors are recorded in the map's file; the result is then meaningless. Files of recorded
/// keys are relative to `folder`.
CacheRun read_cache(const YamlMap& map, const std::filesystem::path& folder);

}  // namespace rehearse::store
