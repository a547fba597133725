// A small real training job, annotated with NVTX as any framework's would be: alone, or on the
// ranks of mpirun, which divide samples, layers, or what is in a layer. ./quickstart records it,
// predicts its two-process step, and runs that.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
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
  int sum = 0;         // to be measured: numbers of a sum over the ranks
  std::string divide = "data";
  std::string link_file;
  std::string output;  // empty: stdout
};

/// What ranks share out. data: samples, and gradients are summed. pipeline: layers, and the passes of
/// a step follow one another through them. tensor: the units of every second layer. server: samples,
/// and the last rank holds the weights.
const std::set<std::string> kDivisions = {"data", "pipeline", "tensor", "server"};

constexpr int kWarmUp = 10;  // steps that fill caches and touch memory for the first time

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[++i] : nullptr;
    const std::map<std::string, int*> numbers = {
        {"--steps", &options.steps},           {"--batch", &options.batch},
        {"--width", &options.width},           {"--hidden", &options.hidden},
        {"--accumulate", &options.accumulate}, {"--augment", &options.augment},
        {"--loaders", &options.loaders},       {"--measure-sum", &options.sum}};
    const std::map<std::string, std::string*> texts = {{"--measure-link", &options.link_file},
                                                       {"--divide", &options.divide},
                                                       {"-o", &options.output}};
    const auto number = numbers.find(name);
    if (number != numbers.end() && value &&
        (*number->second = std::atoi(value)) >= (name == "--loaders" ? 0 : 1))
      continue;
    if (const auto text = texts.find(name); text != texts.end() && value) {
      *text->second = value;
      if (kDivisions.contains(options.divide)) continue;
    }
    std::fprintf(
        stderr,
        "usage: train_cpu [--steps N] [--batch SAMPLES_PER_RANK] [--width UNITS] [--hidden "
        "LAYERS]\n"
        "                 [--accumulate PASSES] [--augment DRAWS] [--loaders THREADS] [-o FILE]\n"
        "                 [--divide data|pipeline|tensor|server]   (under mpirun -n 2 or more)\n"
        "       train_cpu --measure-link FILE | --measure-sum NUMBERS   (the same)\n");
    return false;
  }
  return true;
}

/// One job on this rank.
class Training {
 public:
  Training(const Options& options, Ranks& ranks)
      : ranks_(ranks),
        divide_(ranks.size() > 1 ? options.divide : ""),
        passes_(options.accumulate),
        together_(divide_ == "pipeline" ? passes_ : 1),
        batch_size_(options.batch),
        network_(widths(options), divide_ == "tensor" ? 1U + static_cast<unsigned>(rank()) : 1U,
                 static_cast<std::size_t>(together_),
                 [this](Matrix& partial) { complete(partial); }),
        loader_(Samples(kInputs, kClasses, options.augment), options.batch, options.loaders,
                static_cast<unsigned>(divide_ == "tensor" ? 0 : ranks.rank())) {
    end_ = network_.layers().size();
    if (divide_ == "pipeline") {
      first_ = end_ * rank() / size();
      end_ = end_ * (rank() + 1) / size();
    }
    for (int i = 0; i < options.batch; ++i) batch_.labels.push_back(Samples::label(i, kClasses));
  }

  /// Returns the loss, on the rank that computes it.
  float step() {
    const bool server = divide_ == "server" && rank() + 1 == size();
    float loss = 0;
    for (int pass = 0; pass < passes_ && !server; pass += together_) {
      for (int k = 0; k < together_; ++k) forward(static_cast<std::size_t>(k));
      for (int k = 0; k < together_; ++k)
        loss = backward(static_cast<std::size_t>(k), pass + k > 0, pass + k + 1 == passes_);
    }
    if (server) gather();
    const nvtx::Range optimizer("optimizer");
    for (std::size_t k = first_; k < end_; ++k) {
      const nvtx::Range range(layer_name(k).c_str());
      if (server || divide_ != "server") network_.update(k, 0.05F / static_cast<float>(summed()));
      if (divide_ == "server") fetch(network_.layers()[k], server);
    }
    ranks_.sent();
    return loss;
  }

  /// Whether `step` returns the loss here.
  bool reports() const { return rank() == (divide_ == "pipeline" ? size() - 1 : 0); }

 private:
  static constexpr int kInputs = 256;
  static constexpr int kClasses = 10;

  std::vector<int> widths(const Options& options) const {
    std::vector<int> widths(static_cast<std::size_t>(options.hidden), options.width);
    widths.insert(widths.begin(), kInputs);
    widths.push_back(kClasses);
    if (divide_ == "tensor")
      for (std::size_t k = 1; k < widths.size(); k += 2) widths[k] /= ranks_.size();
    return widths;
  }

  static std::string layer_name(std::size_t k) { return "layer " + std::to_string(k); }
  std::size_t rank() const { return static_cast<std::size_t>(ranks_.rank()); }
  std::size_t size() const { return static_cast<std::size_t>(ranks_.size()); }

  /// Batches whose gradients are summed for an update.
  int summed() const {
    const int workers = divide_ == "server" ? ranks_.size() - 1 : ranks_.size();
    return passes_ * (divide_ == "data" || divide_ == "server" ? workers : 1);
  }

  /// Runs the layers of this rank on the batch, or on what the rank before it sends.
  void forward(std::size_t batch) {
    if (first_ == 0) {
      const nvtx::Range load("load batch");
      loader_.next(batch_);
    }
    const nvtx::Range forward("forward");
    Matrix received(network_.layers()[first_].weight.cols(), batch_size_);
    if (first_ > 0) receive(received, ranks_.rank() - 1);
    const Matrix* input = first_ > 0 ? &received : &batch_.samples;
    for (std::size_t k = first_; k < end_; ++k) {
      const nvtx::Range range(layer_name(k).c_str());
      input = &network_.forward(k, batch, *input);
    }
    if (end_ < network_.layers().size()) send(*input, ranks_.rank() + 1);
  }

  /// Gradients are added to those of earlier passes of the step, and shared after the last one.
  float backward(std::size_t batch, bool add, bool last) {
    const nvtx::Range backward("backward");
    float loss = 0;
    if (end_ < network_.layers().size()) {
      network_.flowing().resize(network_.layers()[end_ - 1].weight.rows(), batch_size_);
      receive(network_.flowing(), ranks_.rank() + 1);
    } else {
      loss = network_.loss(batch, batch_.labels);
    }
    for (std::size_t k = end_; k-- > first_;) {
      {
        const nvtx::Range range(layer_name(k).c_str());
        network_.backward(k, batch, add);
      }
      if (!last) continue;
      Layer& done = network_.layers()[k];
      share(done.weight_gradient.data(), done.weight_gradient.size());
      share(done.bias_gradient.data(), done.bias_gradient.size());
    }
    if (first_ == 0) return loss;
    ranks_.sent();  // the gradient before this one
    gradient_ = network_.flowing();
    send(gradient_, ranks_.rank() - 1);
    return loss;
  }

  /// Sums a gradient over ranks, or sends it to the server; alone, there is nothing to do. The range
  /// tells a recording that this gradient is complete, and its size.
  void share(float* gradient, Eigen::Index count) {
    const auto numbers = static_cast<std::size_t>(count);
    const nvtx::Range range("gradient", numbers * sizeof(float));
    if (divide_ == "data") ranks_.sum(gradient, numbers);
    if (divide_ == "server") ranks_.send(gradient, numbers, ranks_.size() - 1);
  }

  /// Sums a matrix to which the ranks of a layer have parts; alone, the range tells where.
  void complete(Matrix& partial) {
    const auto numbers = static_cast<std::size_t>(partial.size());
    const nvtx::Range range(("sum of " + std::to_string(partial.rows())).c_str(),
                            numbers * sizeof(float));
    if (divide_ == "tensor") ranks_.sum(partial.data(), numbers);
  }

  /// The server's side of `share`: the gradients of all workers.
  void gather() {
    for (std::size_t k = end_; k-- > 0;) {
      Layer& layer = network_.layers()[k];
      Matrix weight(layer.weight.rows(), layer.weight.cols());
      Vector bias(layer.bias.size());
      layer.weight_gradient.setZero(weight.rows(), weight.cols());
      layer.bias_gradient.setZero(bias.size());
      for (int worker = 0; worker + 1 < ranks_.size(); ++worker) {
        receive(weight, worker);
        receive(bias, worker);
        layer.weight_gradient += weight;
        layer.bias_gradient += bias;
      }
    }
  }

  /// Weights after the update, from the server to all workers.
  void fetch(Layer& layer, bool server) {
    for (int worker = 0; server && worker + 1 < ranks_.size(); ++worker) {
      send(layer.weight, worker);
      send(layer.bias, worker);
    }
    if (server) return;
    receive(layer.weight, ranks_.size() - 1);
    receive(layer.bias, ranks_.size() - 1);
  }

  template <class Values>
  void send(const Values& values, int to) {
    ranks_.send(values.data(), static_cast<std::size_t>(values.size()), to);
  }
  template <class Values>
  void receive(Values& values, int from) const {
    ranks_.receive(values.data(), static_cast<std::size_t>(values.size()), from);
  }

  Ranks& ranks_;
  const std::string divide_;  ///< empty: one rank alone
  const int passes_;
  const int together_;  ///< passes that are all forward before they are backward
  const int batch_size_;
  Network network_;
  std::size_t first_ = 0, end_;  ///< layers of this rank
  Loader loader_;
  Batch batch_;
  Matrix gradient_;  ///< under way to the rank before
};

/// Trains, and says how it went.
bool train(const Options& options, Ranks& ranks) {
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
  if (!training.reports()) return true;
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
  Ranks ranks(&argc, &argv);
  Options options;
  if (!parse(argc, argv, options)) return 2;
  if (!options.link_file.empty()) {
    if (ranks.size() > 1 && ranks.measure_link(options.link_file)) return 0;
    std::fprintf(stderr, "train_cpu: cannot measure a link to %s (needs mpirun -n 2)\n",
                 options.link_file.c_str());
    return 1;
  }
  if (options.sum > 0) {
    const double time = ranks.measure_sum(static_cast<std::size_t>(options.sum));
    if (ranks.rank() == 0) std::printf("%.1f us\n", time);
    return 0;
  }
  return train(options, ranks) ? 0 : 1;
}

}  // namespace
}  // namespace train_cpu

int main(int argc, char** argv) { return train_cpu::run(argc, argv); }
