#include "examples/train_cpu/network.h"

#include <cmath>
#include <random>

namespace train_cpu {

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

const Matrix& Network::forward(std::size_t k, std::size_t batch, const Matrix& input) {
  Layer& layer = layers_[k];
  auto& [saved, output] = layer.saved[batch];
  saved = input;
  output.noalias() = layer.weight * saved;
  if (k % 2 == 1) complete_(output);
  output.colwise() += layer.bias;
  if (k + 1 < layers_.size()) output = output.cwiseMax(0.0F);  // ReLU
  return output;
}

float Network::loss(std::size_t batch, const std::vector<int>& labels) {
  Matrix& scores = layers_.back().saved[batch].output;
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
  if (k + 1 < layers_.size())
    flowing_ = flowing_.cwiseProduct(output.unaryExpr([](float x) { return x > 0 ? 1.0F : 0.0F; }));
  if (add) {
    layer.weight_gradient.noalias() += flowing_ * input.transpose();
    layer.bias_gradient += flowing_.rowwise().sum();
  } else {
    layer.weight_gradient.noalias() = flowing_ * input.transpose();
    layer.bias_gradient = flowing_.rowwise().sum();
  }
  if (k == 0) return;
  flowing_ = layer.weight.transpose() * flowing_;
  if (k % 2 == 0) complete_(flowing_);
}

void Network::update(std::size_t k, float learning_rate) {
  Layer& layer = layers_[k];
  layer.weight -= learning_rate * layer.weight_gradient;
  layer.bias -= learning_rate * layer.bias_gradient;
}

}  // namespace train_cpu
