// DualSGD: a kernel part over at most B points, and Fourier features that keep what dropped points leave behind.
//
// With the step 1 / (lambda (t + delay)) all weights shrink by 1 - 1 / (t + delay) a round, so they are kept divided by the step:
// nothing shrinks, and points that entered with equal slopes stay exactly equal.
#pragma once
#include <numeric>

#include "mapped.hpp"

namespace KS_MODULE {

template <class T> class Dual {
 public:
  Settings set;
  Loss loss;
  int64_t neighbours;                          // k of k-merging
  double lambda, delay;
  Points<T> points;
  FourierMap<T> map;
  std::vector<Array<T>> weights, map_weights;  // one an output, divided by the step
  std::vector<int64_t> born;
  int64_t clock = 0, rounds = 0;               // points stored and rows learnt so far

  Dual(Settings s, Loss l, Kernel<T> kernel, const T* frequencies, int64_t pairs, int64_t k, double lam, double delay_)
      : set(s),
        loss(l),
        neighbours(k),
        lambda(lam),
        delay(delay_),
        points(std::move(kernel), set.width, set.budget),
        map(frequencies, set.width, pairs),
        born(size_t(set.budget + 1)),
        slopes_(size_t(set.outputs)),
        row_(size_t(points.slots())),
        block_(size_t(Map<T>::kBlock * stride())),
        rest_(size_t(stride())) {
    for (int64_t c = 0; c < set.outputs; ++c) {
      weights.emplace_back(size_t(points.slots()));
      map_weights.emplace_back(size_t(stride()));
    }
    features_ = Array<T>(size_t((set.budget + 1) * stride()));
    gram_.assign(size_t((set.budget + 1) * (set.budget + 1)), 0.0);
  }

  int64_t count() const { return points.count; }
  int64_t stride() const { return map.lines() * kLine<T>; }
  double& gram(int64_t i, int64_t j) { return gram_[size_t(i * (set.budget + 1) + j)]; }

  size_t nbytes() const {
    size_t total = points.nbytes() + map.nbytes() + features_.nbytes() + gram_.size() * sizeof(double) + born.size() * sizeof(int64_t);
    for (const auto& w : weights) total += w.nbytes();
    for (const auto& w : map_weights) total += w.nbytes();
    return total;
  }

  void score(const Rows<T>& rows, double* out) {
    each(rows, 0, [&](int64_t i, const T* z) {
      measure(rows, i);
      for (int64_t c = 0; c < set.outputs; ++c) out[i * set.outputs + c] = double(output(c, z));
      return true;
    });
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    std::vector<T> f(size_t(set.outputs));
    int64_t at = rows.n;
    why = Stop::done;
    each(rows, from, [&](int64_t i, const T* z) {
      measure(rows, i);
      for (int64_t c = 0; c < set.outputs; ++c) {
        f[size_t(c)] = output(c, z);
        out[i * set.outputs + c] = double(f[size_t(c)]);
        if (!std::isfinite(f[size_t(c)])) {
          why = Stop::not_finite;
          at = i;
          return false;
        }
      }
      double weight = sample_weights ? sample_weights[i] : 1.0;
      if (weight == 0) return true;
      ++rounds;
      weight = safe(weight);
      if (!loss_slopes(loss, Round<T>{rows, i, row_.data(), f.data(), targets[i], weight}, slopes_)) return true;
      try {
        add(rows, i, z);
      } catch (const NotFinite&) {
        --rounds;
        why = Stop::not_finite;
        at = i;
        return false;
      }
      return true;
    });
    return at;
  }

  // Puts row i with its features into a slot, without its kernel values.
  void place(int64_t slot, const Rows<T>& rows, int64_t i, const T* z) {
    points.put(slot, rows, i);
    std::memcpy(features_.data() + slot * stride(), z, size_t(stride()) * sizeof(T));
    born[size_t(slot)] = clock++;
  }

  template <class F> void each(const Rows<T>& rows, int64_t from, F visit) {
    for (int64_t i = from; i < rows.n; i += Map<T>::kBlock) {
      int64_t n = std::min(Map<T>::kBlock, rows.n - i);
      map.features(rows, i, n, block_.data());
      for (int64_t r = 0; r < n; ++r)
        if (!visit(i + r, block_.data() + r * stride())) return;
    }
  }

 private:
  void measure(const Rows<T>& rows, int64_t i) {
    points.measure(rows, i, 1, points.tiles(), row_.data(), points.slots());
    points.values(row_.data(), row_.data(), points.tiles());
  }

  // A row of weight w has w times the curvature: its step is 1 / (lambda t + w curvature) instead of the model's, delay being
  // curvature / lambda. Slopes with a bound need none of this, and a weight below one cannot overshoot.
  double safe(double w) const { return delay > 0 && w > 1 ? (double(rounds) + delay) / (double(rounds) / w + delay) : w; }

  T output(int64_t c, const T* z) const {
    if (rounds == 0) return 0;
    T f = dot(weights[size_t(c)].data(), row_.data(), size_t(points.tiles())) + dot(map_weights[size_t(c)].data(), z, size_t(map.lines()));
    return T(double(f) / (lambda * (double(rounds) + delay)));
  }

  // Throws, having changed nothing, if a number would not be finite. The new point has number `count` until it gets a slot: that of the
  // point dropped if there is no free one.
  void add(const Rows<T>& rows, int64_t i, const T* z) {
    int64_t n = points.count, slot = n;
    for (int64_t j = 0; j < n; ++j) gram(n, j) = gram(j, n) = double(row_[size_t(j)]);
    gram(n, n) = double(points.self(rows, i));
    for (double& g : slopes_) {
      storable<T>(g);
      g = -g;                                  // from here on the new point's weights
    }
    if (n == set.budget) {
      slot = merge(z);
      if (slot == n) {
        ++clock;
        return;
      }
      for (int64_t j = 0; j < n; ++j)
        if (j != slot) gram(slot, j) = gram(j, slot) = gram(n, j);
      gram(slot, slot) = gram(n, n);
    }
    place(slot, rows, i, z);
    for (int64_t c = 0; c < set.outputs; ++c) weights[size_t(c)][size_t(slot)] = T(slopes_[size_t(c)]);
  }

  double weight(int64_t c, int64_t j) const { return j == points.count ? slopes_[size_t(c)] : double(weights[size_t(c)][size_t(j)]); }

  // The point of smallest weight, the oldest of equals, goes: into its k nearest points as far as they span it, the rest into
  // the features. Returns its number.
  int64_t merge(const T* z) {
    int64_t n = points.count, p = 0;
    double least = 0;
    for (int64_t j = 0; j <= n; ++j) {
      double size = 0;
      for (int64_t c = 0; c < set.outputs; ++c) size += std::abs(weight(c, j));
      bool older = j < n && born[size_t(j)] < born[size_t(p)];
      if (j == 0 || size < least || (size == least && older)) least = size, p = j;
    }
    near_.clear();
    for (int64_t j = 0; j <= n; ++j)
      if (j != p) near_.push_back(j);
    int64_t k = std::min(neighbours, n);
    std::partial_sort(near_.begin(), near_.begin() + k, near_.end(),
                      [&](int64_t i, int64_t j) { return gram(p, i) > gram(p, j) || (gram(p, i) == gram(p, j) && i < j); });
    near_.resize(size_t(k));
    solve(p);
    auto feature = [&](int64_t j) { return j == n ? z : features_.data() + j * stride(); };
    std::memcpy(rest_.data(), feature(p), size_t(stride()) * sizeof(T));
    for (size_t l = 0; l < near_.size(); ++l) axpy(T(-share_[l]), feature(near_[l]), rest_.data(), size_t(map.lines()));
    for (int64_t c = 0; c < set.outputs; ++c) {
      double a = weight(c, p);
      for (size_t l = 0; l < near_.size(); ++l) storable<T>(weight(c, near_[l]) + a * share_[l]);
      const T* w = map_weights[size_t(c)].data();
      for (int64_t j = 0; j < stride(); ++j) storable<T>(double(w[j] + T(a) * rest_[size_t(j)]));
    }
    for (int64_t c = 0; c < set.outputs; ++c) {
      double a = weight(c, p);
      axpy(T(a), rest_.data(), map_weights[size_t(c)].data(), size_t(map.lines()));
      for (size_t l = 0; l < near_.size(); ++l) {
        int64_t j = near_[l];
        if (j == n)
          slopes_[size_t(c)] += a * share_[l];
        else
          weights[size_t(c)][size_t(j)] = T(weight(c, j) + a * share_[l]);
      }
    }
    return p;
  }

  // What is left of a point that those before it span. Kernel values are rounded to T, and shares of nearly dependent points
  // make weights that grow from merge to merge and cancel in T: floats need far more than their rounding (1e-5 still spoils scores).
  static constexpr double kSpanned = sizeof(T) == 8 ? 1e-10 : 1e-3;

  // share_ = K^-1 k_p over the points near_, by Cholesky; a point that those before it span is left out of near_.
  void solve(int64_t p) {
    size_t n = 0, all = near_.size();
    lower_.assign(all * all, 0.0);
    share_.assign(all, 0.0);
    for (int64_t j : near_) {
      double* row = lower_.data() + n * all;
      double left = gram(j, j), goal = gram(p, j);
      for (size_t l = 0; l < n; ++l) {
        double s = gram(j, near_[l]);
        for (size_t q = 0; q < l; ++q) s -= row[q] * lower_[l * all + q];
        row[l] = s / lower_[l * all + l];
        left -= row[l] * row[l];
        goal -= row[l] * share_[l];
      }
      if (!(left > kSpanned * gram(j, j))) continue;
      row[n] = std::sqrt(left);
      share_[n] = goal / row[n];
      near_[n++] = j;
    }
    near_.resize(n);
    share_.resize(n);
    for (size_t l = n; l-- > 0;) {
      for (size_t q = l + 1; q < n; ++q) share_[l] -= lower_[q * all + l] * share_[q];
      share_[l] /= lower_[l * all + l];
    }
  }

  std::vector<double> slopes_, gram_, lower_, share_;
  std::vector<int64_t> near_;
  Array<T> features_;                          // z of the stored points
  Array<T> row_, block_, rest_;
};

}  // namespace KS_MODULE
