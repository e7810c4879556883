// RRF: Fourier features of frequencies W = diag(g) e, e fixed draws, whose scales g are learnt along with the weights.
#pragma once
#include "mapped.hpp"

namespace KS_MODULE {

template <class T> class Reparameterised {
 public:
  Settings set;
  Descent descent;
  std::vector<Array<T>> weights;               // one per output
  std::vector<double> log_scale;               // log(g_d / g_0), one per input

  // `draws` is width x pairs; g starts at `scale`.
  Reparameterised(Settings s, Descent d, const T* draws, int64_t pairs, double scale, double scale_step)
      : set(s),
        descent(d),
        log_scale(size_t(set.width)),
        pairs_(pairs),
        start_(scale),
        step_(scale_step),
        angles_(size_t(pairs)),
        in_angle_(size_t(pairs)),
        z_(2 * angles_.size()),
        scale_(size_t(set.width), T(scale)),
        f_(size_t(set.outputs)),
        slopes_(size_t(set.outputs)),
        reach_(size_t(set.outputs)) {
    draws_ = Array<T>(size_t(set.width) * angles_.size());
    for (int64_t d = 0; d < set.width; ++d) std::copy_n(draws + d * pairs, pairs, of(d));
    for (int64_t c = 0; c < set.outputs; ++c) weights.emplace_back(z_.size());
  }

  int64_t stride() const { return int64_t(z_.size()); }

  size_t nbytes() const {
    size_t total = draws_.nbytes() + log_scale.size() * sizeof(double) + scale_.size() * sizeof(T);
    for (const auto& w : weights) total += w.nbytes();
    return total;
  }

  // To be called when log_scale and the weights were changed from outside.
  void renew() {
    std::fill(reach_.begin(), reach_.end(), std::numeric_limits<double>::infinity());
    for (int64_t d = 0; d < set.width; ++d) scale_[size_t(d)] = T(start_ * std::exp(log_scale[size_t(d)]));
  }

  void features(const Rows<T>& rows, T* out) {
    for (int64_t i = 0; i < rows.n; ++i) {
      feature(rows, i);
      std::memcpy(out + i * stride(), z_.data(), z_.nbytes());
    }
  }

  void score(const Rows<T>& rows, double* out) {
    for (int64_t i = 0; i < rows.n; ++i) {
      feature(rows, i);
      for (int64_t c = 0; c < set.outputs; ++c) out[i * set.outputs + c] = double(output(c));
    }
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    why = Stop::done;
    for (int64_t i = from; i < rows.n; ++i) {
      feature(rows, i);
      for (int64_t c = 0; c < set.outputs; ++c) {
        f_[size_t(c)] = output(c);
        out[i * set.outputs + c] = double(f_[size_t(c)]);
        if (!std::isfinite(f_[size_t(c)])) {
          why = Stop::not_finite;
          return i;
        }
      }
      double weight = sample_weights ? sample_weights[i] : 1.0;
      if (weight == 0 || learn(Round<T>{rows, i, z_.data(), f_.data(), targets[i], weight})) continue;
      why = Stop::not_finite;
      return i;
    }
    return rows.n;
  }

 private:
  static constexpr double kFarthest = 20;      // of log_scale from 0: beyond, features are constants or noise

  T* of(int64_t d) { return draws_.data() + d * int64_t(angles_.size()); }
  size_t lines() const { return angles_.size() / kLine<T>; }
  T output(int64_t c) const { return dot(weights[size_t(c)].data(), z_.data(), 2 * lines()); }

  void feature(const Rows<T>& rows, int64_t i) {
    angles_.clear();
    rows.each(i, [&](int64_t d, T v) {
      if (v != 0) axpy(v * scale_[size_t(d)], of(d), angles_.data(), lines());
    });
    turn(angles_.data(), pairs_, int64_t(angles_.size()), z_.data());
  }

  // False, nothing learnt, if the step is not finite.
  bool learn(const Round<T>& r) {
    bool learns = loss_slopes(descent.loss, r, slopes_);
    const double eta = descent.eta, lambda = descent.lambda;
    int64_t n = int64_t(angles_.size());
    if (learns && step_ != 0) {                // the loss in the angles: d cos = -sin, d sin = cos
      in_angle_.clear();
      for (size_t c = 0; c < weights.size(); ++c) {
        const T *w = weights[c].data(), s = T(slopes_[c]);
        if (s != 0)
          for (int64_t p = 0; p < n; ++p) in_angle_[size_t(p)] += s * (w[n + p] * z_[size_t(p)] - w[p] * z_[size_t(n + p)]);
      }
    }
    gradients_.clear();
    bool good = true;
    if (learns && step_ != 0)
      r.rows.each(r.i, [&](int64_t d, T v) {
        if (v == 0) return;
        gradients_.push_back(double(v) * double(scale_[size_t(d)]) * double(dot(of(d), in_angle_.data(), lines())));
        good = good && std::isfinite(gradients_.back());
      });
    for (size_t c = 0; c < weights.size(); ++c)
      good = good && std::isfinite(T(eta * slopes_[c])) && can_add(weights[c].data(), -eta * slopes_[c], r.k, stride(), 1, reach_[c]);
    if (!good) return false;
    for (size_t c = 0; c < weights.size(); ++c) {
      if (lambda != 0) scale(T(1 - eta * lambda), weights[c].data(), 2 * lines());
      if (slopes_[c] != 0) axpy(T(-eta * slopes_[c]), r.k, weights[c].data(), 2 * lines());
    }
    const double* gradient = gradients_.data();
    if (gradients_.empty()) return true;
    r.rows.each(r.i, [&](int64_t d, T v) {
      if (v == 0) return;
      double& log = log_scale[size_t(d)];
      log = std::min(kFarthest, std::max(-kFarthest, log - step_ * *gradient++));
      scale_[size_t(d)] = T(start_ * std::exp(log));
    });
    return true;
  }

  int64_t pairs_;
  double start_, step_;
  Array<T> angles_, in_angle_, z_, draws_;
  std::vector<T> scale_;                       // g
  std::vector<T> f_;
  std::vector<double> slopes_, gradients_, reach_;  // reach: bounds the weights of an output
};

}  // namespace KS_MODULE
