// A small real training job, annotated with NVTX as any framework's would be: alone, or data-parallel
// under mpirun. docs/quickstart.md records it, predicts its two-process step, and runs that.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "examples/train_cpu/network.h"
#include "examples/train_cpu/nvtx.h"
#include "examples/train_cpu/ranks.h"

namespace train_cpu {
namespace {

struct Options {
  int steps = 40;
  int batch = 96;
  int width = 768;
  std::string link_file;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[++i] : nullptr;
    int* number = name == "--steps"   ? &options.steps
                  : name == "--batch" ? &options.batch
                  : name == "--width" ? &options.width
                                      : nullptr;
    if (number && value && (*number = std::atoi(value)) > 0) continue;
    if (name == "--measure-link" && value) {
      options.link_file = value;
      continue;
    }
    std::fprintf(stderr,
                 "usage: train_cpu [--steps N] [--batch SAMPLES_PER_RANK] [--width UNITS]\n"
                 "       train_cpu --measure-link FILE   (under mpirun -n 2 or more)\n");
    return false;
  }
  return true;
}

double train(const Options& options, const Ranks& ranks) {
  const int inputs = 256, classes = 10;
  Network network({inputs, options.width, options.width, options.width, classes}, 1);
  Samples source(inputs, classes, static_cast<unsigned>(ranks.rank()));
  Matrix samples;
  std::vector<int> labels;
  std::vector<double> times;
  float first_loss = 0, loss = 0;
  for (int step = 0; step < options.steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    const nvtx::Range range(("step " + std::to_string(step)).c_str());
    {
      const nvtx::Range load("load batch");
      source.draw(options.batch, samples, labels);
    }
    auto& layers = network.layers();
    {
      const nvtx::Range forward("forward");
      for (std::size_t k = 0; k < layers.size(); ++k) {
        const nvtx::Range layer(("layer " + std::to_string(k)).c_str());
        network.forward(k, samples);
      }
      loss = network.loss(labels);
    }
    if (step == 0) first_loss = loss;
    {
      const nvtx::Range backward("backward");
      for (std::size_t k = layers.size(); k-- > 0;) {
        {
          const nvtx::Range layer(("layer " + std::to_string(k)).c_str());
          network.backward(k);
        }
        // What other ranks need of this layer; alone, there is nothing to do.
        Layer& done = layers[k];
        const nvtx::Range gradient("gradient", done.parameters() * sizeof(float));
        ranks.mean(done.weight_gradient.data(), static_cast<std::size_t>(done.weight_gradient.size()));
        ranks.mean(done.bias_gradient.data(), static_cast<std::size_t>(done.bias_gradient.size()));
      }
    }
    {
      const nvtx::Range optimizer("optimizer");
      network.update(0.05F);
    }
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  if (ranks.rank() == 0)
    std::printf("%d rank%s: loss %.3f -> %.3f\n", ranks.size(), ranks.size() == 1 ? "" : "s",
                first_loss, loss);
  // The first steps fill caches and touch memory for the first time.
  const std::size_t warm = std::min<std::size_t>(5, times.size() - 1);
  double sum = 0;
  for (std::size_t i = warm; i < times.size(); ++i) sum += times[i];
  return sum / static_cast<double>(times.size() - warm);
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
  const double step = train(options, ranks);
  if (ranks.rank() == 0) std::printf("mean step %.3f ms\n", step * 1e3);
  return 0;
}

}  // namespace
}  // namespace train_cpu

int main(int argc, char** argv) { return train_cpu::run(argc, argv); }
