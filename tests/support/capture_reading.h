// Reads a capture from memory.
#pragma once

#include <memory>
#include <string>

#include "profiler/ingest/capture.h"
#include "profiler/trace/recorder.h"

namespace rehearse::test {

struct ReadFile {
  trace::Trace trace;
  Status status;

  const trace::Rank& rank() const { return trace.ranks[0]; }
  std::string_view name(const trace::HostOp& op) const { return trace.names[op.name]; }
  std::string_view name(const trace::GpuOp& op) const { return trace.names[op.name]; }
  std::string_view thread(const trace::HostOp& op) const {
    return trace.names[rank().threads[op.thread.index()].thread];
  }
};

inline std::unique_ptr<ReadFile> read(const std::string& bytes, ingest::CaptureClock clock = {}) {
  auto file = std::make_unique<ReadFile>();
  trace::Rank& rank = file->trace.ranks.emplace_back();
  rank.info.source = "x.cap";
  trace::RankRows rows(rank);
  trace::Recorder recorder(file->trace.names, file->trace.problems, rank, rows);
  const auto source = ingest::bytes_in_memory(bytes);
  file->status = ingest::read_capture(*source, recorder, {}, std::move(clock));
  return file;
}

}  // namespace rehearse::test
