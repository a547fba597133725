// Rows of a trace from what both formats of rocprofv3 say of an event.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "profiler/trace/recorder.h"

namespace rehearse::ingest::rocprof {

/// Numbers of streams and queues, which are handles in some files, in the order of their first use.
class Streams {
 public:
  std::uint32_t of(std::string_view handle) {
    const auto [at, is_new] =
        numbers_.try_emplace(std::string(handle), static_cast<std::uint32_t>(numbers_.size()));
    return at->second;
  }

 private:
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
};

/// "MEMORY_COPY_HOST_TO_DEVICE", or without the first two words in ROCm 6.2.
void set_direction(std::string_view text, trace::Recorder& to, trace::GpuOp& op);

void name_kernel(std::string_view name, trace::Recorder& to, trace::GpuOp& op);

/// The grid counts threads: blocks are as many as it takes of them.
void set_shape(const std::optional<std::uint32_t> (&grid)[3],
               const std::optional<std::uint32_t> (&block)[3], trace::Recorder& to,
               trace::GpuOp& op);

void add_call(std::string_view name, trace::HostOp op, trace::Recorder& to);

/// Ranges of the program; instants say nothing about work.
void add_marker(std::string_view name, trace::HostOp op, trace::Recorder& to);

}  // namespace rehearse::ingest::rocprof
