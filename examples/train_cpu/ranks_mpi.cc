#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <mpi.h>

#include "examples/train_cpu/nvtx.h"
#include "examples/train_cpu/ranks.h"

namespace train_cpu {
namespace {

std::vector<MPI_Request> sending;

}  // namespace

Ranks::Ranks(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

Ranks::~Ranks() { MPI_Finalize(); }

void Ranks::sum(float* values, std::size_t count) const {
  if (size_ == 1) return;
  const nvtx::Range all("mpi:all_reduce", count * sizeof(float));
  MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

void Ranks::send(const float* values, std::size_t count, int to) {
  MPI_Request request;
  MPI_Isend(values, static_cast<int>(count), MPI_FLOAT, to, 0, MPI_COMM_WORLD, &request);
  sending.push_back(request);
}

void Ranks::sent() {
  MPI_Waitall(static_cast<int>(sending.size()), sending.data(), MPI_STATUSES_IGNORE);
  sending.clear();
}

void Ranks::receive(float* values, std::size_t count, int from) const {
  MPI_Recv(values, static_cast<int>(count), MPI_FLOAT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

double Ranks::measure_sum(std::size_t count) const {
  // One buffer after the other: a training job finds its gradients outside the caches nearby.
  constexpr std::size_t kFootprint = 24 << 20;
  const std::size_t buffers = std::clamp(kFootprint / count, std::size_t{4}, std::size_t{64});
  std::vector<std::vector<float>> all(buffers, std::vector<float>(count, 1.0F));
  std::vector<double> times;
  for (int repeat = 0; repeat < 40; ++repeat) {
    MPI_Barrier(MPI_COMM_WORLD);
    std::vector<float>& buffer = all[static_cast<std::size_t>(repeat) % buffers];
    const double begin = MPI_Wtime();
    sum(buffer.data(), buffer.size());
    times.push_back((MPI_Wtime() - begin) * 1e6);
  }
  std::nth_element(times.begin(), times.begin() + 20, times.end());
  return times[20];
}

bool Ranks::measure_link(const std::string& file) const {
  // Least squares of time against size over the medians, each size weighted by 1 / time^2 so that
  // small and large ones count alike: time = intercept + slope x bytes.
  double sw = 0, swx = 0, swy = 0, swxx = 0, swxy = 0;
  for (std::size_t bytes = 1 << 10; bytes <= (1 << 23); bytes *= 4) {
    const double x = static_cast<double>(bytes), y = measure_sum(bytes / sizeof(float)) * 1e-6,
                 w = 1 / (y * y);
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
