// Kinds of ops: the one classification that breakdowns, colours and edits share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rehearse::graph {

enum class Category : std::uint8_t {
  kCompute,          ///< arithmetic on a device: kernels
  kCommunication,    ///< collectives and point-to-point transfers between ranks
  kMemory,           ///< copies and sets of device memory, transfers between host and device
  kHost,             ///< work of a host thread
  kInput,            ///< host work that loads and prepares samples
  kLaunch,           ///< from a launch call to the earliest start of its device op
  kSynchronization,  ///< from the end of awaited device work to the call's return; hand-offs
  kProfiler,         ///< work of the profiler itself
  kDelay,            ///< time that the recording shows and no rule explains; initial state
};

inline constexpr std::array<std::string_view, 9> kCategoryNames = {
    "compute", "communication",   "memory",   "host", "input",
    "launch",  "synchronization", "profiler", "delay"};

constexpr std::string_view to_string(Category category) {
  return kCategoryNames[static_cast<std::size_t>(category)];
}

constexpr std::optional<Category> category_from(std::string_view name) {
  for (std::size_t i = 0; i < kCategoryNames.size(); ++i)
    if (kCategoryNames[i] == name) return static_cast<Category>(i);
  return std::nullopt;
}

}  // namespace rehearse::graph
