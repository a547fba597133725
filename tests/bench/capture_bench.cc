// The work of the capture library's flusher thread for a record: encoding it, and writing it into
// the ring or a file. The library itself measures the work of the recording thread.
#include <filesystem>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "profiler/capture/capture_file.h"
#include "profiler/capture/encode.h"
#include "profiler/capture/ring.h"

namespace rehearse::bench {
namespace {

using namespace capture;

constexpr std::size_t kRows = 255;       // of a chunk
constexpr std::size_t kChunks = 4096;    // 64 MiB of rows
constexpr std::size_t kRing = 16 << 20;  // rows cycle through it
constexpr std::size_t kCommitAt = 32 * 1024;

/// Rows as a training loop produces them: nested ranges of a hundred names, each some microseconds.
std::vector<Row> rows() {
  std::mt19937_64 random(7);
  std::vector<Row> all(kRows * kChunks);
  std::uint64_t time = 1'700'000'000'000'000'000;
  for (Row& row : all) {
    time += 500 + random() % 20'000;
    row = {.time = time, .span = 200 + random() % 50'000};
    row.text = 1 + static_cast<std::uint32_t>(random() % 100);
  }
  return all;
}

/// Encodes one chunk after another into `buffer`, and passes each to `take(buffer)`.
template <class Take>
void encode_all(benchmark::State& state, Take take) {
  const std::vector<Row> all = rows();
  std::vector<unsigned char> memory(1 << 20);
  BlockBuffer buffer(memory.data());
  std::size_t chunk = 0;
  std::uint64_t bytes = 0;
  for (auto _ : state) {
    const Row* pointers[kRows];
    for (std::size_t i = 0; i < kRows; ++i) pointers[i] = &all[chunk * kRows + i];
    const std::size_t before = buffer.size();
    buffer.add(BlockType::kRows, [&](Encoder& out) { encode_rows(out, 1, pointers, kRows); });
    bytes += buffer.size() - before;
    take(buffer);
    chunk = (chunk + 1) % kChunks;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
  state.counters["bytes_per_row"] =
      static_cast<double>(bytes) / static_cast<double>(state.iterations()) / kRows;
}

void encode(benchmark::State& state) {
  encode_all(state, [](BlockBuffer& buffer) {
    benchmark::DoNotOptimize(buffer.data());
    buffer.clear();
  });
}
BENCHMARK(encode)->Name("capture/encode");

void to_ring(benchmark::State& state) {
  Ring ring;
  if (!ring.open(kRing)) return state.SkipWithError("no memory");
  encode_all(state, [&](BlockBuffer& buffer) {
    RingBlock block = {};
    block.bytes = static_cast<std::uint32_t>(buffer.size());
    ring.add(block, buffer.data());
    buffer.clear();
  });
  ring.close();
}
BENCHMARK(to_ring)->Name("capture/encode_to_ring");

void to_file(benchmark::State& state) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / "rehearse_capture_bench";
  ::close(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  std::uint64_t offset = 0;
  {
    CaptureFile file(path.c_str(), offset);
    encode_all(state, [&](BlockBuffer& buffer) {
      if (buffer.size() < kCommitAt) return;
      if (!file.append(buffer.data(), buffer.size())) state.SkipWithError("cannot write");
      if (offset > kRing) offset = 0;  // overwrite old data, as the ring does
      buffer.clear();
    });
  }
  std::filesystem::remove(path);
}
BENCHMARK(to_file)->Name("capture/encode_to_file");

void copy(benchmark::State& state) {
  const std::vector<Row> all = rows();
  std::vector<Row> into(all.size());
  std::size_t chunk = 0;
  for (auto _ : state) {
    std::memcpy(&into[chunk * kRows], &all[chunk * kRows], kRows * sizeof(Row));
    benchmark::ClobberMemory();
    chunk = (chunk + 1) % kChunks;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}
BENCHMARK(copy)->Name("reference/memory_copy_of_rows");

}  // namespace
}  // namespace rehearse::bench
