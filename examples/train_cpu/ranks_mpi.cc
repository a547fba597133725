#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <mpi.h>

#include "examples/train_cpu/nvtx.h"
#include "examples/train_cpu/ranks.h"

namespace train_cpu {

Ranks::Ranks(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

Ranks::~Ranks() { MPI_Finalize(); }

void Ranks::mean(float* values, std::size_t count) const {
  if (size_ == 1) return;
  {
    const nvtx::Range all("mpi:all_reduce", count * sizeof(float));
    MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }
  const float share = 1.0F / static_cast<float>(size_);
  std::transform(values, values + count, values, [share](float v) { return v * share; });
}

bool Ranks::measure_link(const std::string& file) const {
  // Least squares of time against size over the medians, each size weighted by 1 / time^2 so that
  // small and large ones count alike: time = intercept + slope x bytes.
  double sw = 0, swx = 0, swy = 0, swxx = 0, swxy = 0;
  for (std::size_t bytes = 1 << 10; bytes <= (1 << 23); bytes *= 4) {
    // One buffer after the other: a training job finds its gradients outside the caches nearby.
    constexpr std::size_t kFootprint = 96 << 20;
    const std::size_t buffers = std::clamp(kFootprint / bytes, std::size_t{4}, std::size_t{64});
    std::vector<std::vector<float>> all(buffers, std::vector<float>(bytes / sizeof(float), 1.0F));
    std::vector<double> times;
    for (int repeat = 0; repeat < 40; ++repeat) {
      MPI_Barrier(MPI_COMM_WORLD);
      std::vector<float>& buffer = all[static_cast<std::size_t>(repeat) % buffers];
      const double begin = MPI_Wtime();
      mean(buffer.data(), buffer.size());
      times.push_back(MPI_Wtime() - begin);
    }
    std::nth_element(times.begin(), times.begin() + 20, times.end());
    const double x = static_cast<double>(bytes), y = times[20], w = 1 / (y * y);
    sw += w;
    swx += w * x;
    swy += w * y;
    swxx += w * x * x;
    swxy += w * x * y;
  }
  const double slope = (sw * swxy - swx * swy) / (sw * swxx - swx * swx);
  const double intercept = std::max(0.0, (swy - slope * swx) / sw);
  // Ring all-reduce: 2 (n-1) (latency + bytes / (n rate)).
  const double latency = intercept / (2.0 * (size_ - 1));
  const double rate = 2.0 * (size_ - 1) / size_ / slope;
  if (rank_ != 0) return true;
  std::FILE* out = std::fopen(file.c_str(), "w");
  if (!out) return false;
  std::fprintf(out,
               "# Measured by train_cpu --measure-link: MPI_Allreduce among %d processes.\n"
               "link: {latency: %.3f us, rate: %.3f GB/s}\n",
               size_, latency * 1e6, rate * 1e-9);
  return std::fclose(out) == 0;
}

}  // namespace train_cpu
