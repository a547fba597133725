// A small real training job, annotated with NVTX as any framework's would be: alone, or
// data-parallel under mpirun. ./quickstart records it, predicts its two-process step, and runs
// that.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "examples/train_cpu/loader.h"
#include "examples/train_cpu/network.h"
#include "examples/train_cpu/nvtx.h"
#include "examples/train_cpu/ranks.h"

namespace train_cpu {
namespace {

struct Options {
  int steps = 200;
  int batch = 96;
  int width = 768;
  int hidden = 3;      // layers between the first and the last matrix
  int accumulate = 1;  // passes whose gradients are summed in a step
  int augment = 1;     // draws per sample: work of the loader
  int loaders = 0;     // threads that load ahead; 0: loading between steps
  std::string link_file;
  std::string output;  // empty: stdout
};

constexpr int kWarmUp = 10;  // steps that fill caches and touch memory for the first time

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[++i] : nullptr;
    const std::map<std::string, int*> numbers = {
        {"--steps", &options.steps},           {"--batch", &options.batch},
        {"--width", &options.width},           {"--hidden", &options.hidden},
        {"--accumulate", &options.accumulate}, {"--augment", &options.augment},
        {"--loaders", &options.loaders}};
    const auto number = numbers.find(name);
    if (number != numbers.end() && value &&
        (*number->second = std::atoi(value)) >= (name == "--loaders" ? 0 : 1))
      continue;
    if (std::string* file = name == "--measure-link" ? &options.link_file
                            : name == "-o"           ? &options.output
                                                     : nullptr;
        file && value) {
      *file = value;
      continue;
    }
    std::fprintf(
        stderr,
        "usage: train_cpu [--steps N] [--batch SAMPLES_PER_RANK] [--width UNITS] [--hidden "
        "LAYERS]\n"
        "                 [--accumulate PASSES] [--augment DRAWS] [--loaders THREADS] [-o FILE]\n"
        "       train_cpu --measure-link FILE   (under mpirun -n 2 or more)\n");
    return false;
  }
  return true;
}

/// One job on this rank.
class Training {
 public:
  Training(const Options& options, const Ranks& ranks)
      : ranks_(ranks),
        accumulate_(options.accumulate),
        network_(widths(options), 1),
        loader_(Samples(kInputs, kClasses, options.augment), options.batch, options.loaders,
                static_cast<unsigned>(ranks.rank())) {}

  /// Returns the loss.
  float step() {
    float loss = 0;
    for (int k = 0; k < accumulate_; ++k) loss = pass(k);
    const nvtx::Range optimizer("optimizer");
    for (std::size_t k = 0; k < network_.layers().size(); ++k) {
      const nvtx::Range layer(layer_name(k).c_str());
      network_.update(k, 0.05F / static_cast<float>(accumulate_));
    }
    return loss;
  }

 private:
  static constexpr int kInputs = 256;
  static constexpr int kClasses = 10;

  static std::vector<int> widths(const Options& options) {
    std::vector<int> widths(static_cast<std::size_t>(options.hidden), options.width);
    widths.insert(widths.begin(), kInputs);
    widths.push_back(kClasses);
    return widths;
  }

  static std::string layer_name(std::size_t k) { return "layer " + std::to_string(k); }

  /// Forward and backward of one batch. Gradients are added to those of the passes before, and
  /// shared in the last one.
  float pass(int number) {
    {
      const nvtx::Range load("load batch");
      loader_.next(batch_);
    }
    float loss = 0;
    {
      const nvtx::Range forward("forward");
      for (std::size_t k = 0; k < network_.layers().size(); ++k) {
        const nvtx::Range layer(layer_name(k).c_str());
        network_.forward(k, batch_.samples);
      }
      loss = network_.loss(batch_.labels);
    }
    const nvtx::Range backward("backward");
    for (std::size_t k = network_.layers().size(); k-- > 0;) {
      {
        const nvtx::Range layer(layer_name(k).c_str());
        network_.backward(k, number > 0);
      }
      if (number + 1 < accumulate_) continue;
      Layer& done = network_.layers()[k];
      share(done.weight_gradient.data(), done.weight_gradient.size());
      share(done.bias_gradient.data(), done.bias_gradient.size());
    }
    return loss;
  }

  /// The mean over the ranks; alone, there is nothing to do. The range tells a recording that this
  /// gradient is complete, and its size.
  void share(float* gradient, Eigen::Index count) const {
    const auto size = static_cast<std::size_t>(count);
    const nvtx::Range range("gradient", size * sizeof(float));
    ranks_.mean(gradient, size);
  }

  const Ranks& ranks_;
  int accumulate_;
  Network network_;
  Loader loader_;
  Batch batch_;
};

/// Trains, and says how it went on rank 0.
bool train(const Options& options, const Ranks& ranks) {
  Training training(options, ranks);
  float first_loss = 0;
  {
    const nvtx::Range warm_up("warm-up");
    for (int step = 0; step < kWarmUp; ++step) {
      const float loss = training.step();
      if (step == 0) first_loss = loss;
    }
  }
  float loss = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < options.steps; ++step) {
    const nvtx::Range range(("step " + std::to_string(step)).c_str());
    loss = training.step();
  }
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  if (ranks.rank() != 0) return true;
  std::FILE* out = options.output.empty() ? stdout : std::fopen(options.output.c_str(), "w");
  if (!out) {
    std::fprintf(stderr, "train_cpu: %s cannot be written\n", options.output.c_str());
    return false;
  }
  std::fprintf(out, "%d rank%s, %d steps: loss %.3f -> %.3f\nmean step %.3f ms\n", ranks.size(),
               ranks.size() == 1 ? "" : "s", options.steps, first_loss, loss,
               time.count() / options.steps);
  return out == stdout || std::fclose(out) == 0;
}

int run(int argc, char** argv) {
  const Ranks ranks(&argc, &argv);
  Options options;
  if (!parse(argc, argv, options)) return 2;
  if (!options.link_file.empty()) {
    if (ranks.size() > 1 && ranks.measure_link(options.link_file)) return 0;
    std::fprintf(stderr, "train_cpu: cannot measure a link to %s (needs mpirun -n 2)\n",
                 options.link_file.c_str());
    return 1;
  }
  return train(options, ranks) ? 0 : 1;
}

}  // namespace
}  // namespace train_cpu

int main(int argc, char** argv) { return train_cpu::run(argc, argv); }
