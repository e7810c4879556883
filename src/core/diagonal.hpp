// The linear expert of NewtonMixture on rows too wide for a covariance.
#pragma once
#include <cmath>

#include "memory.hpp"

namespace KS_MODULE {

// Logistic (squared in regression) steps of its own size for each feature, for rows too wide for a covariance: AdaGrad with rate
// 1/2, on [1, z].
class Diagonal {
 public:
  int64_t outputs = 1;
  Columns columns;                             // 0 is the bias, 1 + d feature d; of wide rows those that have been learnt
  std::vector<double> weights, squares;        // by slot: of each output; sums of squared slopes

  Diagonal() = default;
  Diagonal(int64_t width, int64_t outputs_) : outputs(outputs_), columns(width + 1, width > kWidestDense) { reset(); }
  size_t nbytes() const { return columns.nbytes() + (weights.size() + squares.size()) * sizeof(double); }
  void reset() {
    columns.clear();
    weights.assign(size_t(columns.count() * outputs), 0.0);
    squares.assign(size_t(columns.count()), 0.0);
    add(0);
  }
  size_t add(int64_t column) {
    size_t slot = size_t(columns.add(column));
    weights.resize(size_t(columns.count() * outputs));
    squares.resize(size_t(columns.count()));
    return slot;
  }

  void score(const Memory& memory, const Rows<double>& z, int64_t i, double* f) const {
    std::copy_n(weights.data(), outputs, f);
    memory.each(z, i, [&](int64_t d, double v) {
      int64_t slot = columns.find(1 + d);
      if (slot < 0) return;
      const double* w = weights.data() + slot * outputs;
      for (int64_t c = 0; c < outputs; ++c) f[c] += w[c] * v;
    });
  }

  void learn(const Memory& memory, const Rows<double>& z, int64_t i, const double* residuals) {
    double length = 0;
    for (int64_t c = 0; c < outputs; ++c) length += residuals[c] * residuals[c];
    if (length == 0) return;
    auto step = [&](int64_t column, double v) {
      size_t slot = add(column);
      double square = squares[slot] += length * v * v;
      if (square == 0) return;
      double rate = 0.5 * v / std::sqrt(square), *w = weights.data() + slot * size_t(outputs);
      for (int64_t c = 0; c < outputs; ++c) w[c] += rate * residuals[c];
    };
    step(0, 1);
    memory.each(z, i, [&](int64_t d, double v) { step(1 + d, v); });
  }
};

}  // namespace KS_MODULE
