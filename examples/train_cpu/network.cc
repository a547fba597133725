#include "examples/train_cpu/network.h"

#include <cmath>
#include <random>
#include <string>

#include "examples/train_cpu/nvtx.h"

namespace train_cpu {
namespace {

/// "[96, 768]": extents of a matrix of one sample per column, as frameworks write them.
template <class Values>
std::string rows(const Values& values) {
  return "[" + std::to_string(values.cols()) + ", " + std::to_string(values.rows()) + "]";
}

std::string weight(const Matrix& matrix) {
  return "[" + std::to_string(matrix.rows()) + ", " + std::to_string(matrix.cols()) + "]";
}

/// An operator with the extents of its operands, in the words of PyTorch's emit_nvtx.
class Operator {
 public:
  Operator(const char* name, const std::string& sizes)
      : range_((std::string(name) + ", sizes = [" + sizes + "]").c_str()) {}
  /// One whose gradient is computed inside an operator with the same number.
  Operator(const char* name, std::size_t number, const std::string& sizes)
      : range_(
            (std::string(name) + ", seq = " + std::to_string(number) + ", sizes = [" + sizes + "]")
                .c_str()) {}

 private:
  nvtx::Range range_;
};

}  // namespace

Network::Network(const std::vector<int>& widths, unsigned seed, std::size_t batches,
                 Complete complete)
    : complete_(std::move(complete)) {
  std::mt19937 random(seed);
  for (std::size_t k = 0; k + 1 < widths.size(); ++k) {
    Layer layer;
    std::normal_distribution<float> normal(0, std::sqrt(2.0F / static_cast<float>(widths[k])));
    layer.weight = Matrix::NullaryExpr(widths[k + 1], widths[k],
                                       [&](Eigen::Index, Eigen::Index) { return normal(random); });
    layer.bias = Vector::Zero(widths[k + 1]);
    layer.saved.resize(batches);
    layers_.push_back(std::move(layer));
  }
}

const Matrix& Network::forward(std::size_t k, std::size_t batch, const Matrix& from) {
  Layer& layer = layers_[k];
  auto& [input, output] = layer.saved[batch];
  input = from;
  {
    const Operator linear("aten::linear", 2 * k, rows(input) + ", " + weight(layer.weight));
    output.noalias() = layer.weight * input;
  }
  if (k % 2 == 1) complete_(output);
  output.colwise() += layer.bias;
  if (k + 1 == layers_.size()) return output;
  const Operator relu("aten::relu", 2 * k + 1, rows(output));
  output = output.cwiseMax(0.0F);
  return output;
}

float Network::loss(std::size_t batch, const std::vector<int>& labels) {
  Matrix& scores = layers_.back().saved[batch].output;
  const Operator all("aten::cross_entropy_loss", 2 * layers_.size(), rows(scores));
  scores.rowwise() -= scores.colwise().maxCoeff().eval();
  scores = scores.array().exp();
  scores.array().rowwise() /= scores.colwise().sum().array().eval();
  float sum = 0;
  flowing_ = scores;
  const float share = 1.0F / static_cast<float>(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto column = static_cast<Eigen::Index>(i);
    sum -= std::log(std::max(scores(labels[i], column), 1e-20F));
    flowing_(labels[i], column) -= 1;
  }
  flowing_ *= share;
  return sum * share;
}

void Network::backward(std::size_t k, std::size_t batch, bool add) {
  Layer& layer = layers_[k];
  const auto& [input, output] = layer.saved[batch];
  if (k + 1 < layers_.size()) {
    const Operator node("ReluBackward0", 2 * k + 1, rows(flowing_));
    const Operator relu("aten::threshold_backward", rows(flowing_) + ", " + rows(output));
    flowing_ = flowing_.cwiseProduct(output.unaryExpr([](float x) { return x > 0 ? 1.0F : 0.0F; }));
  }
  const Operator node("LinearBackward0", 2 * k, rows(flowing_));
  {
    const Operator product("aten::mm", weight(flowing_) + ", " + rows(input));
    if (add) {
      layer.weight_gradient.noalias() += flowing_ * input.transpose();
      layer.bias_gradient += flowing_.rowwise().sum();
    } else {
      layer.weight_gradient.noalias() = flowing_ * input.transpose();
      layer.bias_gradient = flowing_.rowwise().sum();
    }
  }
  if (k == 0) return;
  {
    const Operator product("aten::mm", rows(flowing_) + ", " + weight(layer.weight));
    flowing_ = layer.weight.transpose() * flowing_;
  }
  if (k % 2 == 0) complete_(flowing_);
}

void Network::update(std::size_t k, float learning_rate) {
  Layer& layer = layers_[k];
  const Operator add("aten::add_", weight(layer.weight) + ", " + weight(layer.weight));
  layer.weight -= learning_rate * layer.weight_gradient;
  layer.bias -= learning_rate * layer.bias_gradient;
}

}  // namespace train_cpu
