// The linear expert of NewtonMixture on rows too wide for a covariance.
#pragma once
#include <cmath>

#include "memory.hpp"

namespace KS_MODULE {

// Logistic (squared in regression) steps of its own size for each feature, for rows too wide for a covariance: AdaGrad with rate
// 1/2, on [1, z].
class Diagonal {
 public:
  int64_t width = 0, outputs = 1;
  Array<double> weights, squares;              // outputs x (1 + width), the bias first; sums of squared slopes

  Diagonal() = default;
  Diagonal(int64_t width_, int64_t outputs_)
      : width(width_), outputs(outputs_), weights(size_t(outputs_ * (width_ + 1))), squares(size_t(width_ + 1)) {}
  size_t nbytes() const { return weights.nbytes() + squares.nbytes(); }
  void reset() {
    weights.clear();
    squares.clear();
  }

  void score(const Memory& memory, const Rows<double>& z, int64_t i, double* f) const {
    for (int64_t c = 0; c < outputs; ++c) {
      const double* w = weights.data() + c * (width + 1);
      f[c] = w[0];
      memory.each(z, i, [&](int64_t d, double v) { f[c] += w[1 + d] * v; });
    }
  }

  void learn(const Memory& memory, const Rows<double>& z, int64_t i, const double* residuals) {
    double length = 0;
    for (int64_t c = 0; c < outputs; ++c) length += residuals[c] * residuals[c];
    if (length == 0) return;
    auto step = [&](int64_t at, double v) {
      double square = squares[size_t(at)] += length * v * v;
      if (square == 0) return;
      double rate = 0.5 * v / std::sqrt(square);
      for (int64_t c = 0; c < outputs; ++c) weights[size_t(c * (width + 1) + at)] += rate * residuals[c];
    };
    step(0, 1);
    memory.each(z, i, [&](int64_t d, double v) { step(1 + d, v); });
  }
};

}  // namespace KS_MODULE
