// Batches of synthetic samples, drawn where they are used or ahead of it by threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "examples/train_cpu/network.h"

namespace train_cpu {

struct Batch {
  Matrix samples;
  std::vector<int> labels;
};

/// Samples around one centre per class, the same for every source; each source draws others.
class Samples {
 public:
  /// A sample is the mean of `draws` draws: more draws are more work, as decoding would be.
  Samples(int inputs, int classes, int draws);
  void seed(unsigned source) { state_ += 1 + source; }
  static int label(int i, int classes) { return i % classes; }
  void draw(int size, Batch& batch);

 private:
  Matrix centres_;
  int draws_;
  unsigned long long state_;
  float normal();
};

class Loader {
 public:
  /// With threads, each loads whole batches, and two per thread wait at most.
  Loader(const Samples& samples, int batch, int threads, unsigned rank);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  void next(Batch& batch);

 private:
  void load(Samples samples);

  Samples samples_;
  const int size_;
  const std::size_t most_;
  std::deque<Batch> ready_;
  bool ended_ = false;
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
};

}  // namespace train_cpu
