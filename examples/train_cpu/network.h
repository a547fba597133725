// A multilayer perceptron with softmax cross-entropy, trained by stochastic gradient descent.
#pragma once

#include <functional>
#include <vector>

#include <Eigen/Dense>

namespace train_cpu {

using Matrix = Eigen::MatrixXf;  // one sample per column
using Vector = Eigen::VectorXf;

struct Layer {
  /// What the backward pass of a batch needs of its forward pass.
  struct Saved {
    Matrix input;
    Matrix output;  // after the activation
  };

  Matrix weight;  // outputs x inputs
  Vector bias;
  // Of the step in hand.
  std::vector<Saved> saved;  // by batch
  Matrix weight_gradient;
  Vector bias_gradient;

  std::size_t parameters() const { return static_cast<std::size_t>(weight.size() + bias.size()); }
};

class Network {
 public:
  /// Completes a matrix to which every rank that divides the layers has a part.
  using Complete = std::function<void(Matrix&)>;

  /// Layers of these widths, from inputs to classes; weights drawn with `seed`. Up to `batches` are
  /// between their forward and their backward pass. Ranks that divide the outputs of the first layer
  /// and the inputs of the second, and so on in pairs, pass their own shares of the odd widths.
  Network(const std::vector<int>& widths, unsigned seed, std::size_t batches, Complete complete);

  std::vector<Layer>& layers() { return layers_; }

  /// Runs layer `k` on the output of the one before, `from`, and returns its output.
  const Matrix& forward(std::size_t k, std::size_t batch, const Matrix& from);
  /// The mean loss of the last layer's output; starts the backward pass.
  float loss(std::size_t batch, const std::vector<int>& labels);
  /// Gradients of layer `k`, added to the last ones or in their place; REQUIRES: those of the next
  /// layer are done.
  void backward(std::size_t k, std::size_t batch, bool add);
  /// Gradient of the loss with respect to the output of the layer that is next in `backward`.
  Matrix& flowing() { return flowing_; }
  void update(std::size_t k, float learning_rate);

 private:
  std::vector<Layer> layers_;
  Complete complete_;
  Matrix flowing_;
};

}  // namespace train_cpu
