// The recording of docs/concepts/energy.md, as a trace store.
#pragma once

#include <filesystem>

#include <catch2/catch.hpp>

#include "profiler/trace/store.h"
#include "tests/support/data.h"
#include "tests/support/trace_builder.h"

namespace rehearse::test {

/// A board of 100 multiprocessors draws 100 W + 20 W/ms x t for 10 ms. Kernel A runs from 2 to 6 ms
/// with 100 blocks, B from 4 to 6 ms with 50. Steps last from 0 to 5 and from 5 to 10 ms.
inline trace::Trace power_trace() {
  trace::Trace trace;
  RankBuilder rank(trace);
  trace::Rank& rows = rank.rank();
  rows.info.host = "node-1";
  rows.boards.push_back({.uuid = "GPU-a", .name = "Example", .device = 0, .multiprocessors = 100});
  for (const auto& [us, watts] : {std::pair{0.0, 100.0}, {10000.0, 300.0}})
    rows.power.push_back({.board = 0, .time = RankBuilder::ns(us), .power = Watts::w(watts)});
  for (const auto& [us, joules] : {std::pair{0.0, 500.0}, {10000.0, 502.05}})
    rows.power.push_back({.board = 0, .time = RankBuilder::ns(us), .energy = Joules::j(joules)});
  rank.step(1, 0, 5000);
  rank.step(2, 5000, 5000);
  rank.call("cudaLaunchKernel", 100, 10, 1);
  rank.call("cudaLaunchKernel", 200, 10, 2);
  const auto kernel = [&](const char* name, double start, double duration, std::uint32_t blocks,
                          std::uint32_t stream) {
    trace::GpuOp& op = rank.kernel(name, start, duration, stream - 6, stream);
    op.launch_shape = trace::LaunchShapeId(rows.launch_shapes.size());
    rows.launch_shapes.push_back({{blocks, 1, 1}, {128, 1, 1}, 32, 0});
  };
  kernel("A", 2000, 4000, 100, 7);
  kernel("B", 4000, 2000, 50, 8);
  return trace;
}

inline std::filesystem::path power_recording() {
  const trace::Trace trace = power_trace();
  const std::filesystem::path path = scratch_folder() / "power.rehearse";
  Result<trace::StoreWriter> writer = trace::StoreWriter::create(path);
  REQUIRE(writer);
  trace::RowSink& rows = writer->rows(0);
  for (const trace::HostOp& op : trace.ranks[0].host_ops) rows.add(op);
  for (const trace::GpuOp& op : trace.ranks[0].gpu_ops) rows.add(op);
  for (const trace::PowerReading& reading : trace.ranks[0].power) rows.add(reading);
  REQUIRE(writer->finish(trace));
  return path;
}

}  // namespace rehearse::test
