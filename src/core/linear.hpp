// Passive-aggressive learning of a linear model over the inputs.
#pragma once
#include "rules.hpp"

namespace KS_MODULE {

template <class T> class Linear {
 public:
  Settings set;
  PassiveAggressive rule;
  std::vector<Array<T>> weights;               // one per output, over the inputs

  Linear(Settings s, PassiveAggressive r) : set(s), rule(r) {
    for (int64_t c = 0; c < set.outputs; ++c) weights.emplace_back(size_t(set.width));
  }

  // Weights set from outside may be of any size.
  void weights_changed() { reach_ = std::numeric_limits<double>::infinity(); }

  size_t nbytes() const {
    size_t total = 0;
    for (const auto& w : weights) total += w.nbytes();
    return total;
  }

  void score(const Rows<T>& rows, double* out) const {
    for (int64_t i = 0; i < rows.n; ++i)
      for (int64_t c = 0; c < set.outputs; ++c) out[i * set.outputs + c] = double(output(c, rows, i));
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    std::vector<T> f(size_t(set.outputs));
    why = Stop::done;
    for (int64_t i = from; i < rows.n; ++i) {
      for (int64_t c = 0; c < set.outputs; ++c) {
        f[size_t(c)] = output(c, rows, i);
        out[i * set.outputs + c] = double(f[size_t(c)]);
        if (!std::isfinite(f[size_t(c)])) {
          why = Stop::not_finite;
          return i;
        }
      }
      double weight = sample_weights ? sample_weights[i] : 1.0, violation;
      if (weight == 0) continue;
      Margin m = rule.aim(set, f.data(), targets[i], violation);
      if (violation <= 0) continue;
      double square = double(rows.square(i)), tau = rule.step(violation, square, weight);
      if (!std::isfinite(T(tau)) || !can_step(rows, i, m, tau, std::sqrt(square))) {
        why = Stop::not_finite;
        return i;
      }
      m.each([&](int64_t c, double u) {
        T step = T(tau * u);
        rows.each(i, [&](int64_t d, T v) { weights[size_t(c)][size_t(d)] += step * v; });
      });
    }
    return rows.n;
  }

 private:
  // Whether the weights stay finite; |x| bounds each of its entries.
  bool can_step(const Rows<T>& rows, int64_t i, const Margin& m, double tau, double size) {
    if ((reach_ += std::abs(tau) * size) < double(std::numeric_limits<T>::max()) / 4) return true;
    bool good = true;
    m.each([&](int64_t c, double u) {
      T step = T(tau * u);
      rows.each(i, [&](int64_t d, T v) { good = good && std::isfinite(weights[size_t(c)][size_t(d)] + step * v); });
    });
    if (good) return true;
    weights_changed();                         // look closely from now on
    return false;
  }

  T output(int64_t c, const Rows<T>& rows, int64_t i) const {
    const T* w = weights[size_t(c)].data();
    T s = 0;
    int64_t lined = rows.sparse() ? 0 : rows.width / kLine<T>;
    if (rows.sparse())
      rows.each(i, [&](int64_t d, T v) { s += v * w[d]; });
    else
      s = dot(w, rows.row(i), size_t(lined));
    if (!rows.sparse())
      for (int64_t d = lined * kLine<T>; d < rows.width; ++d) s += w[d] * rows.row(i)[d];
    return s;
  }

  double reach_ = 0;                           // bounds all weights
};

}  // namespace KS_MODULE
