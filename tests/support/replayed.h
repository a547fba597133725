// A trace that is lowered and run, as recorded or edited.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "profiler/replay/compare.h"
#include "profiler/replay/edit.h"
#include "profiler/replay/lower.h"
#include "profiler/trace/align.h"
#include "sim/engine/engine.h"

namespace rehearse::test {

struct Replayed {
  explicit Replayed(trace::Trace trace_in, replay::LowerOptions options = {})
      : trace(std::make_unique<trace::Trace>(std::move(trace_in))) {
    trace::align(*trace);
    for (std::size_t r = 0; r < trace->ranks.size(); ++r) recordings.emplace_back(*trace, r);
    Result<replay::RecordedProgram> lowered = replay::lower(recordings, options);
    INFO((lowered ? "" : to_string(lowered.error())));
    REQUIRE(lowered);
    program = std::move(*lowered);
    run(program);
  }

  void run(const replay::RecordedProgram& which) {
    Result<replay::ReplayGraph> lowered = replay::to_graph(which);
    INFO((lowered ? "" : to_string(lowered.error())));
    REQUIRE(lowered);
    graph = std::move(*lowered);
    Result<graph::Timeline> result = engine::run(graph.graph());
    INFO((result ? "" : to_string(result.error())));
    REQUIRE(result);
    timeline = std::move(*result);
    comparison = replay::compare(recordings, graph, timeline);
  }
  void scale(const std::string& text) {
    const Result<replay::RecordedProgram> edited =
        replay::scale(recordings, program, *replay::parse_scale(text));
    INFO((edited ? "" : to_string(edited.error())));
    REQUIRE(edited);
    run(*edited);
  }

  const replay::RankReplay& of_rank(std::size_t rank = 0) const { return program.replays[rank]; }
  double start_us(std::size_t gpu, std::size_t rank = 0) const {
    return timeline[graph.start_of(rank, of_rank(rank).device_first[gpu])].start.seconds().us();
  }
  double end_us(std::size_t gpu, std::size_t rank = 0) const {
    return timeline[graph.lowered.op(rank, of_rank(rank).device_last[gpu])].end.seconds().us();
  }
  double host_us(std::size_t step) const { return comparison.steps[step].period().simulated.us(); }

  std::unique_ptr<trace::Trace> trace;
  std::vector<replay::Recording> recordings;
  replay::RecordedProgram program;  ///< as it was recorded
  replay::ReplayGraph graph;        ///< that ran last
  graph::Timeline timeline;
  replay::Comparison comparison;
};

}  // namespace rehearse::test
