#include "tests/support/program.h"

#include <algorithm>

#include "tests/support/trace_builder.h"

namespace rehearse::test {

Program random_program(std::uint64_t seed, bool unknown_waits) {
  std::mt19937_64 rng(seed);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(rng);
  };
  Program program(static_cast<std::size_t>(pick(2, 5)));
  const int streams = pick(1, 3);
  const int device_heavy = pick(0, 1);  // whether the device or the host is the bottleneck
  for (auto& step : program) {
    for (int n = pick(10, 60); n > 0; --n) {
      const int what = pick(0, 29);
      const int stream = pick(0, streams - 1);
      if (what < 8) {
        step.push_back({Action::Kind::kWork, static_cast<double>(pick(3, 150))});
      } else if (what < 25) {
        const int longest = device_heavy ? 400 : 60;
        step.push_back({Action::Kind::kKernel, static_cast<double>(pick(2, longest)), stream});
      } else if (what < 26) {
        step.push_back({Action::Kind::kSyncStream, 0, stream});
      } else if (what < 27) {
        step.push_back({Action::Kind::kCopyBack, static_cast<double>(pick(5, 50)), stream});
      } else if (streams > 1) {
        const int other = (stream + 1) % streams;
        step.push_back({Action::Kind::kStreamWait, 0, stream, other});
      }
    }
    if (pick(0, 1)) step.push_back({Action::Kind::kSyncDevice, 0});
    if (unknown_waits)
      step.insert(step.begin() + pick(0, static_cast<int>(step.size())),
                  {Action::Kind::kUnknownWait, static_cast<double>(pick(500, 3000))});
  }
  return program;
}

Recorded execute(const Program& program, const Machine& m) {
  Recorded result;
  RankBuilder rank(result.trace);
  double now = 0;
  std::uint32_t correlation = 0;
  std::vector<double> free(4, 0), not_before(4, 0);
  std::vector<bool> used(4, false);
  std::vector<std::size_t> ended_before(4, 0);
  const double launch_call = 5;

  const auto run_on = [&](int stream, double length, double called) {
    const auto s = static_cast<std::size_t>(stream);
    double start = std::max(called + m.launch, not_before[s]);
    if (used[s]) start = std::max(start, free[s] + m.queue_gap);
    used[s] = true;
    free[s] = start + length * m.device_factor;
    return start;
  };
  const auto wait_until = [&](const char* call, double end) {
    const double cost = std::max(m.sync_cost * m.host_factor, end + m.wake - now);
    rank.call(call, now, cost, ++correlation);
    now += cost;
  };
  for (std::size_t s = 0; s < program.size(); ++s) {
    const double begin = now;
    for (const Action& a : program[s]) {
      const auto stream = static_cast<std::size_t>(a.stream);
      switch (a.kind) {
        case Action::Kind::kWork:
          rank.host("aten::op", now, a.length * m.host_factor);
          now += a.length * m.host_factor;
          break;
        case Action::Kind::kKernel: {
          rank.call("cudaLaunchKernel", now, launch_call * m.host_factor, ++correlation);
          const double start = run_on(a.stream, a.length, now);
          rank.kernel("kernel", start, a.length * m.device_factor, correlation,
                      7 + static_cast<std::uint32_t>(a.stream));
          now += launch_call * m.host_factor;
          break;
        }
        case Action::Kind::kCopyBack: {
          const double called = now;
          const std::uint32_t id = ++correlation;
          const double start = run_on(a.stream, a.length, called);
          const double returns = free[stream] + m.wake;
          rank.call("cudaMemcpyAsync", called, returns - called, id);
          rank.copy(trace::CopyDirection::kDeviceToHost, trace::HostMemory::kPageable, start,
                    a.length * m.device_factor, 1 << 20, id,
                    7 + static_cast<std::uint32_t>(a.stream));
          now = returns;
          break;
        }
        case Action::Kind::kSyncDevice:
          wait_until("cudaDeviceSynchronize", *std::max_element(free.begin(), free.end()));
          break;
        case Action::Kind::kSyncStream: {
          if (m.records_syncs)
            rank.rank().syncs.push_back({.kind = trace::SyncKind::kStream,
                                         .start = RankBuilder::ns(now),
                                         .duration = Nanoseconds(0),
                                         .correlation = correlation + 1,
                                         .stream = 7 + static_cast<std::uint32_t>(a.stream)});
          wait_until("cudaStreamSynchronize", used[stream] ? free[stream] : 0);
          break;
        }
        case Action::Kind::kUnknownWait: {
          constexpr std::uint32_t kUnseenStream = 99;
          if (m.records_syncs)
            rank.rank().syncs.push_back({.kind = trace::SyncKind::kStream,
                                         .start = RankBuilder::ns(now),
                                         .duration = Nanoseconds(0),
                                         .correlation = correlation + 1,
                                         .stream = kUnseenStream});
          const double length = std::max(m.sync_cost * m.host_factor, a.length * m.device_factor);
          rank.call("cudaStreamSynchronize", now, length, ++correlation);
          now += length;
          break;
        }
        case Action::Kind::kStreamWait: {
          const double length = 2 * m.host_factor;
          if (m.records_syncs)
            rank.rank().syncs.push_back({.kind = trace::SyncKind::kStreamWaitEvent,
                                         .start = RankBuilder::ns(now),
                                         .duration = Nanoseconds(0),
                                         .correlation = correlation + 1,
                                         .stream = 7 + static_cast<std::uint32_t>(a.stream),
                                         .source_stream = 7 + static_cast<std::uint32_t>(a.other)});
          rank.call("cudaStreamWaitEvent", now, length, ++correlation);
          if (used[static_cast<std::size_t>(a.other)])
            not_before[stream] =
                std::max(not_before[stream], free[static_cast<std::size_t>(a.other)]);
          now += length;
          break;
        }
      }
    }
    rank.step(static_cast<int>(s + 1), begin, now - begin);
    result.host_steps.push_back(now - begin);
  }
  result.device_end = *std::max_element(free.begin(), free.end());
  return result;
}

}  // namespace rehearse::test
