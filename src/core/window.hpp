// Kernel ridge regression on the last few rows: (K + noise I)^-1 kept up to date as one row leaves and one enters.
#pragma once
#include <vector>

#include "kernel.hpp"

namespace KS_MODULE {

class Window {
 public:
  static constexpr double kNoise = 0.1;        // of a row of weight 1; inversely to the weight, as far as the inverse bears it
  static constexpr double kLightest = 1e-9, kHeaviest = 1e3;
  static constexpr int64_t kRenew = 1024;      // rounds after which the inverse is made anew, so that rounding never piles up
  int64_t size = 0, outputs = 1, next = 0, rounds = 0;
  Points<double> points;
  Array<double> kernel, inverse, targets;      // size x slots; outputs x slots

  Window() = default;
  Window(int64_t size_, int64_t width, int64_t outputs_)
      : size(size_),
        outputs(outputs_),
        points(Kernel<double>::named("gaussian", 1, 0, 1), width, size_),
        kernel(size_t(size_ * points.slots())),
        inverse(size_t(size_ * points.slots())),
        targets(size_t(outputs_ * points.slots())),
        k_(size_t(points.slots())),
        t_(size_t(points.slots())),
        leaves_(size_t(points.slots())) {}

  // The same with other outputs, whose targets are given.
  Window(const Window& o, int64_t outputs_, Array<double> targets_)
      : size(o.size),
        outputs(outputs_),
        next(o.next),
        rounds(o.rounds),
        points(o.points),
        kernel(o.kernel),
        inverse(o.inverse),
        targets(std::move(targets_)),
        k_(o.k_),
        t_(o.t_),
        leaves_(o.leaves_) {}

  size_t nbytes() const { return points.nbytes() + kernel.nbytes() + inverse.nbytes() + targets.nbytes(); }

  void reset(double gamma) {
    points.kernel.gamma = gamma;
    points.count = next = rounds = 0;
    kernel.clear();
    inverse.clear();
    targets.clear();
  }

  // Leaves behind what `learn` needs of the same row.
  void score(const Rows<double>& rows, int64_t i, double* f) {
    k_.clear();
    t_.clear();
    if (points.count) {
      points.measure(rows, i, 1, points.tiles(), k_.data(), points.slots());
      points.values(k_.data(), k_.data(), points.tiles());
      for (int64_t j = points.count; j < points.slots(); ++j) k_[size_t(j)] = 0;
      for (int64_t j = 0; j < points.count; ++j) t_[size_t(j)] = dot(inverse.data() + j * points.slots(), k_.data(), lines());
    }
    for (int64_t c = 0; c < outputs; ++c) f[c] = dot(t_.data(), targets.data() + c * points.slots(), lines());
  }

  void learn(const Rows<double>& rows, int64_t i, double y, double weight) {
    int64_t r = next, slots = points.slots();
    next = (next + 1) % size;
    leaves_.clear();
    double left = 0;
    if (points.count == size) {                // the oldest row leaves: the inverse without it, and t with that
      std::copy_n(inverse.data() + r * slots, slots, leaves_.data());
      left = 1 / leaves_[size_t(r)];
      axpy(-t_[size_t(r)] * left, leaves_.data(), t_.data(), lines());
    }
    t_[size_t(r)] = k_[size_t(r)] = 0;
    double own = 1 + kNoise / std::min(std::max(weight, kLightest), kHeaviest),
           rest = std::max(own - dot(k_.data(), t_.data(), lines()), 1e-9);
    points.put(r, rows, i);
    for (int64_t j = 0; j < points.count; ++j) {
      double* row = inverse.data() + j * slots;  // both changes while a line is at hand
      Line<double> without = Line<double>::of(-leaves_[size_t(j)] * left), with = Line<double>::of(t_[size_t(j)] / rest);
      for (int64_t l = 0; l < slots; l += kLine<double>) {
        Line<double> to = Line<double>::at(row + l);
        to.add_product(without, Line<double>::at(leaves_.data() + l));
        to.add_product(with, Line<double>::at(t_.data() + l));
        to.to(row + l);
      }
    }
    for (int64_t j = 0; j < points.count; ++j) {
      inverse[size_t(r * slots + j)] = inverse[size_t(j * slots + r)] = -t_[size_t(j)] / rest;
      kernel[size_t(r * slots + j)] = kernel[size_t(j * slots + r)] = k_[size_t(j)];
    }
    inverse[size_t(r * slots + r)] = 1 / rest;
    kernel[size_t(r * slots + r)] = own;
    for (int64_t c = 0; c < outputs; ++c) targets[size_t(c * slots + r)] = outputs == 1 ? y : int64_t(y) == c ? 1 : -1;
    if (++rounds % kRenew == 0) renew();
  }

 private:
  size_t lines() const { return size_t(points.slots() / kLine<double>); }

  // Gauss-Jordan; the noise keeps the pivots of this positive definite matrix away from zero.
  void renew() {
    int64_t n = points.count, slots = points.slots();
    std::vector<double> a(kernel.data(), kernel.data() + size * slots);
    for (int64_t p = 0; p < n; ++p) {
      double pivot = 1 / a[size_t(p * slots + p)];
      a[size_t(p * slots + p)] = 1;
      scale(pivot, a.data() + p * slots, lines());
      for (int64_t j = 0; j < n; ++j) {
        if (j == p) continue;
        double factor = a[size_t(j * slots + p)];
        a[size_t(j * slots + p)] = 0;
        axpy(-factor, a.data() + p * slots, a.data() + j * slots, lines());
      }
    }
    std::copy(a.begin(), a.end(), inverse.data());
  }

  Array<double> k_, t_, leaves_;
};

}  // namespace KS_MODULE
