// A multilayer perceptron with softmax cross-entropy, trained by stochastic gradient descent.
#pragma once

#include <vector>

#include <Eigen/Dense>

namespace train_cpu {

using Matrix = Eigen::MatrixXf;  // one sample per column
using Vector = Eigen::VectorXf;

struct Layer {
  Matrix weight;  // outputs x inputs
  Vector bias;
  // Of the step in hand.
  Matrix input;
  Matrix output;  // after the activation
  Matrix weight_gradient;
  Vector bias_gradient;

  std::size_t parameters() const { return static_cast<std::size_t>(weight.size() + bias.size()); }
};

class Network {
 public:
  /// Layers of these widths, from inputs to classes; weights drawn with `seed`.
  Network(const std::vector<int>& widths, unsigned seed);

  std::vector<Layer>& layers() { return layers_; }

  /// Runs layer `k` on the output of the one before (or on `samples`).
  void forward(std::size_t k, const Matrix& samples);
  /// The mean loss of the last layer's output; starts the backward pass.
  float loss(const std::vector<int>& labels);
  /// Gradients of layer `k`, added to the last ones or in their place; REQUIRES: those of the next
  /// layer are done.
  void backward(std::size_t k, bool add);
  void update(std::size_t k, float learning_rate);

 private:
  std::vector<Layer> layers_;
  Matrix flowing_;  // gradient of the loss with respect to the output of the layer in hand
};

}  // namespace train_cpu
