#include "latency/network.h"

#include <Eigen/Core>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/split_mix.h"

namespace spillway {
namespace {

using Matrix = Eigen::MatrixXf;
using Vector = Eigen::VectorXf;
using ByRow = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::uint64_t kSeed = 1;
constexpr int kSteps = 600;
constexpr float kRate = 0.01f, kKeepsMean = 0.9f, kKeepsSquare = 0.999f, kLeast = 1e-8f;  // Adam's
constexpr float kDecay = 1e-4f;  // of weights in a step, times the rate: what no example speaks of should be small

Eigen::Index index_of(std::size_t size) { return static_cast<Eigen::Index>(size); }

// Of a layer's parameters: themselves, a gradient, or one of Adam's means.
struct Affine {
  Matrix weights;
  Vector biases;
};
using Affines = std::array<Affine, kLayers>;

Affines zeroes() {
  Affines affines;
  for (std::size_t at = 0; at < kLayers; ++at)
    affines[at] = {Matrix::Zero(index_of(kWidths[at + 1]), index_of(kWidths[at])),
                   Vector::Zero(index_of(kWidths[at + 1]))};
  return affines;
}

// He's, for rectifiers: uniform within the square root of six over the inputs.
Affines beginning() {
  Affines affines = zeroes();
  std::uint64_t state = kSeed;
  for (std::size_t at = 0; at < kLayers; ++at) {
    const double within = std::sqrt(6.0 / static_cast<double>(kWidths[at]));
    for (Eigen::Index row = 0; row < affines[at].weights.rows(); ++row)
      for (Eigen::Index column = 0; column < affines[at].weights.cols(); ++column)
        affines[at].weights(row, column) = static_cast<float>(within * next_signed(state));
  }
  return affines;
}

Scale scale_of(std::span<const Example> examples, auto value_of) {
  double sum = 0, squares = 0, weight = 0;
  for (const Example& one : examples) {
    sum += double{one.weight} * value_of(one);
    weight += one.weight;
  }
  const double mean = sum / weight;
  for (const Example& one : examples) squares += one.weight * std::pow(value_of(one) - mean, 2);
  const double spread = std::sqrt(squares / weight);
  constexpr double kNone = 1e-6;  // all are equal but for rounding
  return {static_cast<float>(mean), spread > kNone ? static_cast<float>(spread) : 0};
}

float normalised(float value, Scale scale) { return scale.spread > 0 ? (value - scale.mean) / scale.spread : 0; }

// All examples at once, a column each.
class Training {
 public:
  Training(const Matrix& inputs, const Vector& outputs, const Vector& weights)
      : inputs_(inputs), outputs_(outputs), weights_(weights) {}

  Affines run() {
    for (int step = 1; step <= kSteps; ++step) {
      find_gradient();
      const double part = static_cast<double>(step - 1) / kSteps;
      descend(step, kRate * static_cast<float>(0.5 + 0.5 * std::cos(part * std::numbers::pi)));
    }
    return std::move(now_);
  }

 private:
  void find_gradient() {
    std::array<Matrix, kLayers + 1> values;  // before the first layer and behind each
    values[0] = inputs_;
    for (std::size_t at = 0; at < kLayers; ++at) {
      values[at + 1] = (now_[at].weights * values[at]).colwise() + now_[at].biases;
      if (at + 1 < kLayers) values[at + 1] = values[at + 1].cwiseMax(0.0f);
    }
    Matrix wrong = (values[kLayers] - outputs_.transpose()).cwiseProduct(weights_.transpose());
    for (std::size_t at = kLayers; at-- > 0;) {
      gradient_[at].weights.noalias() = wrong * values[at].transpose();
      gradient_[at].biases = wrong.rowwise().sum();
      if (at == 0) break;
      wrong = (now_[at].weights.transpose() * wrong).eval();
      wrong = wrong.cwiseProduct((values[at].array() > 0.0f).cast<float>().matrix());
    }
  }

  void descend(int step, float rate) {
    const float mean_so_far = 1 - std::pow(kKeepsMean, static_cast<float>(step));
    const float square_so_far = 1 - std::pow(kKeepsSquare, static_cast<float>(step));
    const auto move = [&](auto& value, const auto& gradient, auto& mean, auto& square) {
      mean = kKeepsMean * mean + (1 - kKeepsMean) * gradient;
      square = kKeepsSquare * square + (1 - kKeepsSquare) * gradient.cwiseAbs2();
      value.array() -= rate * (mean.array() / mean_so_far) / ((square.array() / square_so_far).sqrt() + kLeast);
    };
    for (std::size_t at = 0; at < kLayers; ++at) {
      now_[at].weights *= 1 - rate * kDecay;
      move(now_[at].weights, gradient_[at].weights, mean_[at].weights, square_[at].weights);
      move(now_[at].biases, gradient_[at].biases, mean_[at].biases, square_[at].biases);
    }
  }

  const Matrix& inputs_;
  const Vector &outputs_, &weights_;
  Affines now_ = beginning(), gradient_ = zeroes(), mean_ = zeroes(), square_ = zeroes();
};

Layer layer_of(const Affine& affine) {
  const ByRow weights = affine.weights;
  return {{weights.data(), weights.data() + weights.size()},
          {affine.biases.data(), affine.biases.data() + affine.biases.size()}};
}

}  // namespace

float evaluate(const Network& network, const Features& features) {
  Vector values(index_of(features.size()));
  for (std::size_t at = 0; at < features.size(); ++at)
    values(index_of(at)) = normalised(features[at], network.inputs[at]);
  for (std::size_t at = 0; at < kLayers; ++at) {
    const Layer& layer = network.layers[at];
    const Eigen::Map<const ByRow> weights(layer.weights.data(), index_of(kWidths[at + 1]), index_of(kWidths[at]));
    const Eigen::Map<const Vector> biases(layer.biases.data(), index_of(kWidths[at + 1]));
    values = (weights * values + biases).eval();
    if (at + 1 < kLayers) values = values.cwiseMax(0.0f);
  }
  return values(0) * network.output.spread + network.output.mean;
}

Network train(std::span<const Example> examples) {
  CHECK(!examples.empty());
  Network network;
  for (std::size_t at = 0; at < network.inputs.size(); ++at)
    network.inputs[at] = scale_of(examples, [at](const Example& one) { return double{one.features[at]}; });
  network.output = scale_of(examples, [](const Example& one) { return double{one.output}; });
  Matrix inputs(index_of(network.inputs.size()), index_of(examples.size()));
  Vector outputs(index_of(examples.size())), weights(index_of(examples.size()));
  for (std::size_t column = 0; column < examples.size(); ++column) {
    const Example& one = examples[column];
    for (std::size_t row = 0; row < network.inputs.size(); ++row)
      inputs(index_of(row), index_of(column)) = normalised(one.features[row], network.inputs[row]);
    outputs(index_of(column)) = normalised(one.output, network.output);
    weights(index_of(column)) = one.weight;
  }
  weights /= weights.sum();
  const Affines trained = Training(inputs, outputs, weights).run();
  for (std::size_t at = 0; at < kLayers; ++at) network.layers[at] = layer_of(trained[at]);
  return network;
}

}  // namespace spillway
