// whatif --sum-order: orders computed by hand, and by a queue in a few lines on random recordings.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::value;

/// Backward computes it in one kernel of a stream, and it is summed over the ranks. In us.
struct SummedGradient {
  int stream, kernel, sum;
};
/// A kernel of the optimizer, on stream 7, that waits for a sum.
struct Update {
  std::size_t after;
  int time;
};
using Times = std::vector<int>;

constexpr int kForwardEnd = 348;  // from 48 us on

Times ready_of(const std::vector<SummedGradient>& gradients) {
  std::map<int, int> free;
  Times ready;
  for (const SummedGradient& gradient : gradients) {
    int& end = free.try_emplace(gradient.stream, kForwardEnd).first->second;
    ready.push_back(end += gradient.kernel);
  }
  return ready;
}

/// When the sums end: in recorded order, or as `order` says.
Times ends_of(const std::vector<SummedGradient>& gradients, const Times& ready,
              const std::string& order) {
  Times ends(ready.size(), 0);
  int time = 0;
  for (std::size_t served = 0; served < ready.size(); ++served) {
    std::optional<std::size_t> first, next;
    for (std::size_t k = 0; k < ready.size(); ++k)
      if (ends[k] == 0 && (!first || ready[k] < ready[*first])) first = k;
    if (order == "recorded") first = served;
    time = std::max(time, ready[*first]);
    next = first;
    if (order == "reverse")
      for (std::size_t k = 0; k < ready.size(); ++k)
        if (ends[k] == 0 && ready[k] <= time && ready[k] >= ready[*next]) next = k;
    ends[*next] = time += gradients[*next].sum;
  }
  return ends;
}

/// The end of the last kernel.
int end_of(const std::vector<SummedGradient>& gradients, const std::vector<Update>& updates,
           const Times& ready, const std::string& order) {
  const Times ends = ends_of(gradients, ready, order);
  int free = kForwardEnd;
  for (std::size_t k = 0; k < ready.size(); ++k)
    if (gradients[k].stream == 7) free = std::max(free, ready_of(gradients)[k]);
  for (const Update& update : updates)
    free =
        std::max(free, *std::max_element(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(
                                                                          update.after + 1))) +
        update.time;
  return free;
}

/// One step of one rank as PyTorch records it. `ready`: on all ranks.
class StepText {
 public:
  StepText(int rank, const std::vector<SummedGradient>& gradients,
           const std::vector<Update>& updates, const Times& ready, bool in_graph) {
    const Times own = ready_of(gradients), ends = ends_of(gradients, ready, "recorded");
    event(
        "cpu_op", "aten::linear", 1, 10, 20,
        R"("Sequence number": 1, "Fwd thread id": 0, "Input Dims": [[100, 1000], [1000, 1000]], "Input type": ["float", "float"])");
    kernel("gemm_forward", 7, 1, 14, 48, kForwardEnd);
    const int forward = call("cudaEventRecord", 1, 20);
    std::map<int, int> free = {{7, kForwardEnd}};
    std::vector<int> summed;
    int at = 40, comm = 0, launch = 0;
    for (std::size_t k = 0; k < gradients.size(); ++k, at += 40) {
      const SummedGradient& gradient = gradients[k];
      event("cpu_op", "MmBackward0", 2, at, 34, R"("Sequence number": 1, "Fwd thread id": 1)");
      const auto [from, is_new] = free.try_emplace(gradient.stream, kForwardEnd);
      if (is_new) wait(gradient.stream, 7, forward, 2, at + 2);
      event("cpu_op", "aten::mm", 2, at + 5, 9,
            R"("Input Dims": [[1000, 100], [100, 1000]], "Input type": ["float", "float"])");
      kernel("gemm_backward", gradient.stream, 2, at + 8, from->second, own[k]);
      from->second = own[k];
      wait(20, gradient.stream, call("cudaEventRecord", 2, at + 15), 2, at + 17);
      const std::string sizes = fmt::format(
          R"("Collective name": "allreduce", "dtype": "Float", "In msg nelems": {0}, "Out msg nelems": {0}, "Group size": 2, "Process Group Name": "data", "Process Group Ranks": "[0, 1]")",
          1000000);
      event("cpu_op", "record_param_comms", 2, at + 20, 10, sizes);
      if (k == 0 || !in_graph) launch = call("cudaLaunchKernel", 2, at + 22);
      device("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, launch, std::max(own[k], comm), ends[k],
             ", " + sizes);
      comm = ends[k];
      summed.push_back(call("cudaEventRecord", 2, at + 31));
    }
    at += 10;
    event("user_annotation", "Optimizer.step#SGD.step", 1, at, 20 * std::ssize(updates));
    for (const Update& update : updates) {
      wait(7, 20, summed[update.after], 1, at + 2);
      event("cpu_op", "aten::add_", 1, at + 4, 10);
      const int last = *std::max_element(
          ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(update.after + 1));
      const int start = std::max(free[7], last);
      kernel("update", 7, 1, at + 7, start, start + update.time);
      free[7] = start + update.time;
      at += 20;
    }
    const int end = end_of(gradients, updates, ready, "recorded");
    event("cuda_runtime", "cudaDeviceSynchronize", 1, at + 5, end + 6 - (at + 5),
          fmt::format(R"("correlation": {})", ++calls_));
    event("user_annotation", "ProfilerStep#1", 1, 0, end + 12);
    text_ = fmt::format(
        R"({{"schemaVersion": 1, "deviceProperties": [{{"id": 0, "name": "Example GPU"}}], "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": 2}}, "traceEvents": [{}]}})",
        rank, text_);
  }

  const std::string& text() const { return text_; }

 private:
  void event(const char* category, const std::string& name, int thread, int start,
             std::int64_t time, const std::string& args = "") {
    text_ += fmt::format(
        R"({}{{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}})",
        text_.empty() ? "" : ",\n", category, name, thread, 1700000000000000 + start, time, args);
  }
  int call(const char* name, int thread, int at) {
    event("cuda_runtime", name, thread, at, 1, fmt::format(R"("correlation": {})", ++calls_));
    return calls_;
  }
  void kernel(const char* name, int stream, int thread, int called, int start, int end) {
    device(name, stream, call("cudaLaunchKernel", thread, called), start, end);
  }
  void device(const char* name, int stream, int launch, int start, int end,
              const std::string& args = "") {
    event("kernel", name, stream, start, end - start,
          fmt::format(R"("device": 0, "stream": {}, "correlation": {}{})", stream, launch, args));
  }
  void wait(int stream, int on, int event_of, int thread, int at) {
    const int id = call("cudaStreamWaitEvent", thread, at);
    event(
        "cuda_sync", "Stream Wait Event", stream, at, 0,
        fmt::format(
            R"("device": 0, "stream": {}, "correlation": {}, "wait_on_stream": {}, "wait_on_cuda_event_record_corr_id": {})",
            stream, id, on, event_of));
  }

  std::string text_;
  int calls_ = 0;
};

/// A recording of one rank or of two.
std::string recorded(const std::vector<std::vector<SummedGradient>>& ranks,
                     const std::vector<Update>& updates, bool in_graph = false) {
  const std::filesystem::path folder = test::write_scratch("marker", "").parent_path() / "ranks";
  std::filesystem::create_directories(folder);
  Times ready = ready_of(ranks.front());
  for (const auto& gradients : ranks) {
    const Times own = ready_of(gradients);
    for (std::size_t k = 0; k < ready.size(); ++k) ready[k] = std::max(ready[k], own[k]);
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    test::write_file(
        folder / fmt::format("rank{}.json", rank),
        StepText(static_cast<int>(rank), ranks[rank], updates, ready, in_graph).text());
  return folder.string();
}

double step_of(const std::string& recording, std::vector<std::string> edit) {
  edit.insert(edit.begin(), {"whatif", recording});
  return value(test::checked_json_of(std::move(edit))["step_time"]) * 1e6;
}
int step_with(const std::string& recording, const std::string& order) {
  return static_cast<int>(std::lround(step_of(recording, {"--sum-order", order})));
}

constexpr const char* kLate = "examples/recordings/late_gradient.json";

TEST_CASE("sums of gradients run in the order of readiness or in reverse") {
  // Two sums of 100 us. The first waits for 500 us of a second stream, and the second one for 100 us:
  // it ends at 548 instead of 1048, and the update begins with the end of the first, at 948.
  const std::string two = recorded({{{8, 500, 100}, {7, 100, 100}}}, {{1, 50}});
  CHECK(step_of(two, {"--scale", "gpu:1"}) == Approx(1048 + 50 + 12));
  CHECK(step_with(two, "ready") == 948 + 50 + 12);
  CHECK(step_with(two, "reverse") == 948 + 50 + 12);

  // Of the three sums of 300 us the first is ready at 548 us, the second at 248 and the third at 348.
  // Its update takes 200 us, and that after the third sum 100. Recorded: 548 + 900 + 100.
  CHECK(step_of(kLate, {"--scale", "gpu:1"}) == Approx(1548 + 12));
  // Ready: second, third, first, which ends at 248 + 900 = 1148, and both updates.
  CHECK(step_with(kLate, "ready") == 1148 + 300 + 12);
  // Reverse: at 548 the first and the third wait. The first ends at 848 and the third at 1148.
  CHECK(step_with(kLate, "reverse") == 1148 + 100 + 12);
  // The first two join, take 600 us and are ready at 548: after the third, they end at 1248, and the
  // first update follows.
  CHECK(step_of(kLate, {"--bucket", "8MB", "--sum-order", "ready"}) == Approx(1248 + 300 + 12));
}

TEST_CASE("sums that are ready on one rank wait for the other") {
  // The second gradient is ready at 448 us on rank 0, and at 848 us on rank 1: later than the first, at 648.
  const std::string ranks =
      recorded({{{8, 300, 100}, {7, 100, 100}}, {{8, 300, 100}, {7, 500, 100}}}, {{1, 50}});
  const double recorded_step = step_of(ranks, {"--scale", "gpu:1"});
  CHECK(recorded_step == Approx(948 + 50 + 12));
  CHECK(step_of(ranks, {"--sum-order", "ready"}) == recorded_step);
}

TEST_CASE("two ranks run their sums in one new order") {
  // The first gradient is ready at 848 and 648 us, and the second at 448 and 498. Recorded, the first
  // sum ends at 948 and the second at 1048. In the order of readiness the second ends at 598.
  const std::string late =
      recorded({{{8, 500, 100}, {7, 100, 100}}, {{8, 300, 100}, {7, 150, 100}}}, {{1, 50}});
  CHECK(step_of(late, {"--scale", "gpu:1"}) == Approx(1048 + 50 + 12));
  CHECK(step_of(late, {"--sum-order", "ready"}) == Approx(948 + 50 + 12));

  // The first sum ends at 1000 us on rank 0 and at 1003 on rank 1. In between, at 1002, the second is
  // ready; the third is from 900 on. Each rank for itself would run the third first on rank 0, and the
  // second on rank 1. One order has the second until 1103, its update of 200 us and one of 50.
  const auto sums = [](int first) {
    return std::vector<SummedGradient>{{8, 100, first}, {9, 654, 100}, {7, 552, 100}};
  };
  const std::string apart = recorded({sums(552), sums(555)}, {{1, 200}, {2, 50}});
  CHECK(step_of(apart, {"--sum-order", "reverse"}) == Approx(1103 + 200 + 50 + 12).margin(3));
}

TEST_CASE("orders of sums on random recordings are those of a queue") {
  std::mt19937 random(180);
  const auto pick = [&](int from, int to) {
    return from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1));
  };
  int changed = 0;
  for (int round = 0; round < 12; ++round) {
    std::vector<SummedGradient> gradients;
    for (int k = pick(2, 5); k > 0; --k)
      gradients.push_back({pick(7, 9), 10 * pick(5, 60), 10 * pick(5, 40)});
    std::vector<Update> updates;
    for (std::size_t k = 0; k < gradients.size(); ++k)
      if (pick(0, 1) == 1) updates.push_back({k, 10 * pick(1, 9)});
    updates.push_back({gradients.size() - 1, 50});
    const std::string recording = recorded({gradients}, updates);
    const Times ready = ready_of(gradients);
    for (const char* order : {"ready", "reverse"}) {
      INFO(fmt::format("round {}, {}", round, order));
      CHECK(step_with(recording, order) == end_of(gradients, updates, ready, order) + 12);
      changed +=
          end_of(gradients, updates, ready, order) != end_of(gradients, updates, ready, "recorded");
    }
    const double as_recorded = step_of(recording, {"--scale", "gpu:1"});
    if (std::ranges::is_sorted(ready))
      CHECK(step_of(recording, {"--sum-order", "ready"}) == as_recorded);
  }
  CHECK(changed > 5);
}

TEST_CASE("sum-order: it says where it changes nothing and where it cannot be") {
  const std::string in_order = recorded({{{7, 100, 50}, {7, 100, 150}, {7, 100, 50}}}, {{2, 50}});
  const test::Ran ran = test::rehearse({"whatif", in_order, "--sum-order", "ready"});
  CHECK(ran.code == 0);
  CHECK(ran.errors.find("--sum-order ready: the sums are already in this order") !=
        std::string::npos);
  const auto refused = [](std::vector<std::string> arguments, int code, const char* message) {
    arguments.insert(arguments.begin(), "whatif");
    test::check_failed(test::rehearse(arguments), code, message);
  };
  refused({recorded({{{8, 500, 100}, {7, 100, 100}}}, {{1, 50}}, true), "--sum-order", "ready"}, 1,
          "launches its sums of gradients in one CUDA graph");
  refused({recorded({{{7, 100, 100}}}, {{0, 50}}), "--sum-order", "reverse"}, 1,
          "has no step with two sums of gradients that follow each other on a stream");
  refused({kLate, "--sum-order", "revers"}, 2, "unknown order 'revers'");
  refused({kLate, "--sum-order", "ready", "--data-parallel", "2", "--network",
           "latency=10us,rate=100GB/s"},
          2, "--sum-order excludes --data-parallel");
}

}  // namespace
}  // namespace rehearse
