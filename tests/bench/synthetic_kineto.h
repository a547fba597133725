// Kineto traces of any size, made without a profiler, for benchmarks and for tests of memory.
//
// They show a training loop of a transformer: two host threads, two streams, collectives, step
// marks. The rows have the order of Kineto's; the operators of a step come before its calls and
// device work. Times are consistent with the loop: a kernel starts after its launch and after the
// kernel before it, and every step ends with a wait for the device. The same arguments give the
// same bytes.
#pragma once

#include <cstdint>
#include <cstdio>

namespace rehearse::bench {

struct SyntheticRank {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 8;
};

struct SyntheticCounts {
  std::uint64_t bytes = 0;
  std::uint64_t host_ops = 0;
  std::uint64_t gpu_ops = 0;
  std::uint64_t steps = 0;
};

/// Writes whole steps until the trace has at least `bytes`; a step has about 1 MB. The caller
/// checks the file for errors.
SyntheticCounts write_kineto(std::FILE* file, std::uint64_t bytes, const SyntheticRank& rank = {});

}  // namespace rehearse::bench
