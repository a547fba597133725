// Op tables: what becomes of a row, the replay of a job from them, and its slow ranks.
#include <cstdlib>
#include <fstream>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "profiler/ingest/input.h"
#include "profiler/replay/slow_ranks.h"
#include "tests/support/data.h"
#include "tests/support/replayed.h"

namespace rehearse {
namespace {

using test::Replayed;

std::filesystem::path write(const std::string& name, std::string_view text) {
  const std::filesystem::path file = test::scratch_folder() / name;
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

Result<trace::Trace> read(const std::filesystem::path& file) {
  return ingest::read_inputs(std::span(&file, 1), {});
}

std::string error_of(const std::string& text) {
  const auto trace = read(write("wrong.csv", text));
  REQUIRE_FALSE(trace);
  return to_string(trace.error());
}

replay::Stragglers stragglers_of(const Replayed& r) {
  const auto found = replay::find_stragglers(
      r.recordings, r.graph, [](const graph::Graph& graph) { return engine::run(graph); });
  REQUIRE(found);
  return *found;
}

TEST_CASE("a row of an op table is a device op of its rank") {
  const auto trace = read(write("ops.csv",
                                "name,rank,duration (ms),start (s),stream,group,bytes\n"
                                "gemm,3,2.5,0.001,7,,\n"
                                "Memcpy HtoD,0,1,0.002,,,64\n"
                                "ncclAllGather,3,1,0.0035,7,tensor,1024\n"
                                "exchange,0,1,0.0035,,\"a, b\",\n"));
  REQUIRE(trace);
  REQUIRE(trace->ranks.size() == 2);
  const trace::Rank &zero = trace->ranks[0], &three = trace->ranks[1];
  CHECK(three.info.rank == 3);
  REQUIRE(three.gpu_ops.size() == 2);
  CHECK(trace->names[three.gpu_ops[0].name] == "gemm");
  CHECK(three.gpu_ops[0].start == Nanoseconds(0));  // the earliest of all ranks
  CHECK(three.gpu_ops[0].duration == Nanoseconds(2'500'000));
  CHECK(three.gpu_ops[0].stream == 7);
  const trace::Collective& gather = three.collectives[three.gpu_ops[1].collective->index()];
  CHECK(gather.kind == CollectiveKind::kAllGather);
  CHECK(trace->names[*gather.group] == "tensor");
  CHECK(gather.bytes_in == 1024U);
  CHECK(zero.gpu_ops[0].kind == trace::GpuKind::kCopy);
  CHECK(zero.gpu_ops[0].bytes == 64U);
  // A group whose members do something of another name waits for all of them.
  CHECK(zero.collectives[0].kind == CollectiveKind::kBarrier);
}

TEST_CASE("errors of op tables name the cell") {
  const std::string head = "rank,name,start (us),duration (us)\n";
  CHECK(error_of(head + "0,a,1,2\nx,b,1,2\n").find("wrong.csv:3: rank: ") != std::string::npos);
  CHECK(error_of(head + "0,a,1,-2\n").find("wrong.csv:2: duration (us): -2 is below zero") !=
        std::string::npos);
  CHECK(error_of(head + "0,,1,2\n").find("name: is empty") != std::string::npos);
  CHECK(error_of(head + "0.5,a,1,2\n").find("is not a whole number") != std::string::npos);
  CHECK(error_of(head + "0,a,1e30,2\n").find("is out of range") != std::string::npos);
  CHECK(error_of(head).find("has no rows") != std::string::npos);
  CHECK(error_of("rank,name,start,duration (us)\n").find("unknown column 'start'") !=
        std::string::npos);
  CHECK(error_of("rank,name,start (us)\n").find("no column 'duration' with a unit") !=
        std::string::npos);
}

TEST_CASE("what a job of an op table would take without its slow rank") {
  const auto trace = read(test::source_file("examples/recordings/slow_rank.csv"));
  REQUIRE(trace);
  Replayed r(*trace);
  REQUIRE(r.of_rank().steps.size() == 3);
  CHECK(r.comparison.median_error == Approx(0).margin(1e-12));
  CHECK(r.comparison.step_time.measured.us() == Approx(180));
  CHECK_FALSE(r.comparison.steps[0].host);
  const replay::Stragglers found = stragglers_of(r);
  REQUIRE(found.ranks.size() == 1);
  CHECK(found.ranks[0].rank == 1);
  CHECK(found.ranks[0].op == "forward");
  CHECK(found.ranks[0].ratio == Approx(1.6));
  CHECK(found.ranks[0].since == "step 1");
  CHECK(found.ranks[0].lost.us() == Approx(3 * 60));
  CHECK(found.ranks[0].step_without.us() == Approx(120));
  CHECK(found.step_if_equal.us() == Approx(150));
  // Kernels at no time leave the transfers.
  r.scale("kernel=forward:0");
  CHECK(r.comparison.step_time.simulated.us() == Approx(20));
}

TEST_CASE("a rank is slow since the step in which that begins") {
  std::string table = "rank,step,name,start (us),duration (us),group\n";
  for (int step = 0; step < 10; ++step)
    for (int rank = 0; rank < 4; ++rank) {
      const int slow = rank == 2 && step >= 6 ? 200 : 100, at = 300 * step;
      table += fmt::format("{0},{1},work,{2},{3},\n{0},{1},all_reduce,{4},{5},all\n", rank, step,
                           at, slow, at + slow, 250 - slow);
    }
  const auto trace = read(write("since.csv", table));
  REQUIRE(trace);
  const replay::Stragglers found = stragglers_of(Replayed(*trace));
  REQUIRE(found.ranks.size() == 1);
  CHECK(found.ranks[0].rank == 2);
  CHECK(found.ranks[0].since == "step 6");
  CHECK(found.group.empty());
}

TEST_CASE("streams without launches wait for what ended last before") {
  // The copy follows the first kernel of the other stream, and the second kernel follows the copy.
  const auto trace = read(write("streams.csv",
                                "rank,stream,name,start (us),duration (us)\n"
                                "0,1,a,0,100\n0,2,c,110,50\n0,1,b,170,30\n"));
  REQUIRE(trace);
  Replayed r(*trace);
  CHECK(r.start_us(2) == Approx(170));
  r.scale("kernel=a:2");
  CHECK(r.start_us(1) == Approx(210));
  CHECK(r.start_us(2) == Approx(270));
}

/// Two public timelines of training jobs, with the steps that their authors' simulator gives.
TEST_CASE("op timelines of real jobs with stragglers") {
  const auto folder = test::shared_data("straggler-timelines");
  SKIP_WITHOUT_DATA(folder);
  const std::filesystem::path into = test::scratch_folder();
  REQUIRE(std::system(fmt::format("cd '{}' && python3 -m convert.op_timelines '{}' '{}'",
                                  test::source_file("tests/validation").string(),
                                  folder->parent_path().string(), into.string())
                          .c_str()) == 0);
  struct Job {
    const char* name;
    double step, equal;  // seconds, published
    std::set<std::size_t> slow;
    const char* group;
  };
  for (const Job& job : {Job{"job_8_gpus", 2.173, 1.843, {6, 7}, "data of stage 3"},
                         Job{"job_64_gpus", 46.34, 23.48, {0}, ""}}) {
    const auto trace = read(into / fmt::format("{}.ops.csv", job.name));
    REQUIRE(trace);
    const Replayed r(*trace);
    const replay::Stragglers found = stragglers_of(r);
    std::set<std::size_t> slow;
    for (const replay::SlowRank& rank : found.ranks) slow.insert(rank.rank);
    INFO(fmt::format("{}: {:.3f} s measured, {:.3f} simulated, {:.3f} if equal", job.name,
                     r.comparison.step_time.measured.s(), r.comparison.step_time.simulated.s(),
                     found.step_if_equal.s()));
    CHECK(r.comparison.step_time.simulated.s() ==
          Approx(r.comparison.step_time.measured.s()).epsilon(0.02));
    CHECK(r.comparison.step_time.simulated.s() == Approx(job.step).epsilon(0.03));
    CHECK(found.step_if_equal.s() == Approx(job.equal).epsilon(0.07));
    CHECK(slow == job.slow);
    CHECK(found.group == job.group);
  }
}

}  // namespace
}  // namespace rehearse
