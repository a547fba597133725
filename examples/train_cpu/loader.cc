#include "examples/train_cpu/loader.h"

#include "examples/train_cpu/nvtx.h"

namespace train_cpu {

Samples::Samples(int inputs, int classes, int draws)
    : centres_(inputs, classes), draws_(draws), state_(88172645463325252ULL) {
  centres_ = centres_.unaryExpr([this](float) { return normal(); });
}

float Samples::normal() {
  // Twelve uniforms (xorshift, Marsaglia 2003) summed are close enough to a normal for a test set.
  float sum = -6;
  for (int i = 0; i < 12; ++i) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    sum += static_cast<float>(state_ >> 40) / static_cast<float>(1 << 24);
  }
  return sum;
}

void Samples::draw(int size, Batch& batch) {
  batch.samples.resize(centres_.rows(), size);
  batch.labels.resize(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    const int label = Samples::label(i, static_cast<int>(centres_.cols()));
    batch.labels[static_cast<std::size_t>(i)] = label;
    for (Eigen::Index row = 0; row < centres_.rows(); ++row) {
      float noise = 0;
      for (int draw = 0; draw < draws_; ++draw) noise += normal();
      batch.samples(row, i) = centres_(row, label) + 2 * noise / static_cast<float>(draws_);
    }
  }
}

Loader::Loader(const Samples& samples, int batch, int threads, unsigned rank)
    : samples_(samples), size_(batch), most_(2 * static_cast<std::size_t>(threads)) {
  samples_.seed(rank);
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back(&Loader::load, this, samples_);
    samples_.seed(1000);
  }
}

Loader::~Loader() {
  {
    const std::lock_guard guard(lock_);
    ended_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Loader::load(Samples samples) {
  while (true) {
    Batch batch;
    {
      const nvtx::Range range("load ahead");
      samples.draw(size_, batch);
    }
    std::unique_lock guard(lock_);
    changed_.wait(guard, [this] { return ended_ || ready_.size() < most_; });
    if (ended_) return;
    ready_.push_back(std::move(batch));
    changed_.notify_all();
  }
}

void Loader::next(Batch& batch) {
  if (threads_.empty()) return samples_.draw(size_, batch);
  std::unique_lock guard(lock_);
  changed_.wait(guard, [this] { return !ready_.empty(); });
  batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
}

}  // namespace train_cpu
