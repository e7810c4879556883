// Dictionaries of stored points with a Cholesky factor that grows a row at a time, and the two ways of filling them that
// second-order learners use: kernel online row sampling (KORS) and approximate linear dependency (ALD).
#pragma once
#include <algorithm>

#include "expansion.hpp"

namespace KS_MODULE {

// Stored points and the kernel values of a row against them, in double whatever the data: second-order coefficients are of the
// order of 1 / ridge, and would blow the rounding of single precision up to any size.
template <class T> class Store {
 public:
  Points<double> points;
  int64_t limit;                               // how many points at most

  Store(Kernel<double> kernel, int64_t width, int64_t limit_, bool grows)
      : points(std::move(kernel), width, grows ? std::min<int64_t>(limit_, 64) : limit_), limit(limit_) {}

  int64_t count() const { return points.count; }
  bool full() const { return points.count >= limit; }
  size_t nbytes() const { return points.nbytes(); }
  size_t lines() const { return size_t((points.count + kLine<double> - 1) / kLine<double>); }

  // Kernel values against all points, padded to whole lines with numbers that mean nothing.
  const double* row(const Rows<T>& rows, int64_t i) {
    int64_t slots = points.slots();
    if (int64_t(values_.size()) < slots) values_ = Array<double>(size_t(slots));
    points.measure(widen(rows, i, 1), 0, 1, points.tiles(), values_.data(), slots);
    points.values(values_.data(), values_.data(), points.tiles());
    return values_.data();
  }
  double self(const Rows<T>& rows, int64_t i) { return points.self(widen(rows, i, 1), 0); }

  void add(const Rows<T>& rows, int64_t i) {
    if (points.count >= points.slots()) points.grow(std::min(limit, points.slots() * 2));
    points.put(points.count, widen(rows, i, 1), 0);
  }

  // Rows i .. i + n - 1 as doubles; they stay until the next call.
  Rows<double> widen(const Rows<T>& rows, int64_t i, int64_t n) {
    Rows<T> part = rows.part(i, i + n);
    if constexpr (std::is_same_v<T, double>) {
      return part;
    } else {
      Rows<double> wide{n, rows.width};
      if (!part.sparse()) {
        numbers_.assign(part.dense, part.dense + n * rows.width);
        numbers_.push_back(0);                 // rows without columns are dense too
        wide.dense = numbers_.data();
        return wide;
      }
      int64_t first = part.starts[0];
      numbers_.assign(part.values + first, part.values + part.starts[n]);
      starts_.assign(part.starts, part.starts + n + 1);
      for (int64_t& start : starts_) start -= first;
      wide.values = numbers_.data();
      wide.indices = part.indices + first;
      wide.starts = starts_.data();
      return wide;
    }
  }

 private:
  Array<double> values_;
  std::vector<double> numbers_;
  std::vector<int64_t> starts_;
};

// L L^T = Psi^T Psi + ridge I for the columns psi_j = scale_j phi(x_j) of some stored points.
//
// Only rows of L are ever added, so nothing is refactored and nothing drifts: a new point costs one triangular solve, and
//   |phi|^2 - |L^-1 Psi^T phi|^2  =  ridge phi^T (Psi Psi^T + ridge I)^-1 phi,
// which is what leverage scores, Newton steps and linear dependency (ridge 0) all ask for.
class RidgeFactor {
 public:
  double ridge;
  std::vector<int64_t> slots;                  // the stored point of each row
  std::vector<double> scales;
  double trace = 0;                            // of Psi^T Psi

  explicit RidgeFactor(double ridge_, int64_t expected = 0) : ridge(ridge_) {
    slots.reserve(size_t(expected));
    scales.reserve(size_t(expected));
    data_.reserve(size_t(start(expected)));
    reserve_vectors(expected);
  }

  int64_t size() const { return int64_t(slots.size()); }
  size_t lines() const { return lines_of(size()); }
  size_t nbytes() const { return data_.size() * 8 + slots.size() * 8 + scales.size() * 8; }

  // r = L^-1 Psi^T phi, from phi's kernel values by slot. Stays until the next solve.
  const double* solve(const double* k) {
    int64_t n = size();
    for (int64_t j = 0; j < n; ++j) b_[size_t(j)] = scales[size_t(j)] * k[slots[size_t(j)]];
    return forward(b_.data());
  }
  const double* forward(const double* b) {     // r = L^-1 b
    r_.clear();
    for (int64_t j = 0; j < size(); ++j) r_[size_t(j)] = (b[j] - dot(row(j), r_.data(), lines_of(j + 1))) / row(j)[j];
    return r_.data();
  }
  // s = L^-T r for the last r, padded with zeros.
  const double* back() {
    std::memcpy(s_.data(), r_.data(), r_.nbytes());
    for (int64_t j = size() - 1; j >= 0; --j) {
      double s = s_[size_t(j)] / row(j)[j];
      axpy(-s, row(j), s_.data(), lines_of(j + 1));
      s_[size_t(j)] = s;
    }
    return s_.data();
  }
  const double* solution() const { return s_.data(); }   // the last s
  // |phi|^2 - |r|^2 for the last r, given |phi|^2; rounding cannot push it below the least value it can have.
  double residual(double self) const {
    double least = ridge > 0 ? self * ridge / (ridge + trace) : 0.0;
    return std::max(least, self - (size() ? dot(r_.data(), r_.data(), lines()) : 0.0));
  }

  // Adds scale phi, phi being the one last solved for.
  void append(int64_t slot, double scale, double self) {
    int64_t n = size();
    double pivot = std::sqrt(ridge + scale * scale * residual(self));
    data_.resize(size_t(start(n + 1)), 0.0);
    for (int64_t j = 0; j < n; ++j) data_[size_t(start(n) + j)] = scale * r_[size_t(j)];
    data_[size_t(start(n) + n)] = pivot;
    add_member(slot, scale, self);
  }

  // The factor row after row without padding, and back.
  void copy_to(double* out) const {
    for (int64_t j = 0; j < size(); ++j) out = std::copy_n(row(j), j + 1, out);
  }
  void copy_from(const double* from, const std::vector<int64_t>& slots_, const std::vector<double>& scales_,
                 const std::vector<double>& selves) {
    int64_t n = int64_t(slots_.size());
    slots.clear(), scales.clear(), data_.clear();
    trace = 0;
    for (int64_t j = 0; j < n; ++j) {
      data_.resize(size_t(start(j + 1)), 0.0);
      std::copy_n(from, j + 1, data_.begin() + start(j));
      from += j + 1;
      add_member(slots_[size_t(j)], scales_[size_t(j)], selves[size_t(j)]);
    }
  }

 private:
  static constexpr int64_t L = kLine<double>;
  static size_t lines_of(int64_t n) { return size_t((n + L - 1) / L); }
  static int64_t start(int64_t j) {            // rows are padded to whole lines: of rows 0 .. j - 1, L each have 1, 2, 3 ... lines
    int64_t q = j / L, rest = j % L;
    return L * (L * q * (q + 1) / 2 + rest * (q + 1));
  }
  const double* row(int64_t j) const { return data_.data() + start(j); }
  void add_member(int64_t slot, double scale, double self) {
    slots.push_back(slot);
    scales.push_back(scale);
    trace += scale * scale * self;
    if (size() >= int64_t(r_.size())) reserve_vectors(2 * size());
  }
  void reserve_vectors(int64_t n) {            // one line more than the factor, so that all have at least one
    size_t size = size_t(n + L);
    if (size <= r_.size()) return;
    b_ = Array<double>(size), r_ = Array<double>(size), s_ = Array<double>(size);
  }
  std::vector<double> data_;
  Array<double> b_, r_, s_;
};

// Kernel online row sampling: a dictionary that keeps phi with probability p = min(beta tau, 1), as phi / sqrt(p), where
//   tau = (1 + eps) phi^T (A + phi phi^T)^-1 phi,   A = Psi Psi^T + ridge I    (Eq. 4, the new point with weight one)
class RowSampler {
 public:
  RidgeFactor dictionary;
  double beta, eps;
  Random random;
  double online = 0;                           // sum of the estimates: the online effective dimension, from above

  RowSampler(double ridge, double beta_, double eps_, uint64_t seed, int64_t expected = 0)
      : dictionary(ridge, expected), beta(beta_), eps(eps_), random(seed) {}

  double leverage(const double* k, double self, double scale) {
    dictionary.solve(k);
    double outside = scale * scale * dictionary.residual(self) / dictionary.ridge;
    return (1 + eps) * outside / (1 + outside);
  }
  // Shows it scale phi, which will be stored in `slot` if kept. One draw u: kept if u < p; the answer is u < max(p, least).
  // `chance` gets the probability of that answer.
  bool flip(const double* k, double self, double scale, int64_t slot, double least, double* chance = nullptr) {
    double tau = leverage(k, self, scale), p = std::min(beta * tau, 1.0), u = random.uniform();
    online += tau;
    if (u < p) dictionary.append(slot, scale / std::sqrt(p), self);
    if (chance) *chance = std::max(p, least);
    return u < std::max(p, least);
  }
};

// Approximate linear dependency: whether a point joins a dictionary of `count`, by its residual. The first one always does.
inline bool independent(double residual, double self, double nu, int64_t count) {
  return count == 0 || (residual > nu && residual > kDependent<double> * self);
}

// A dictionary on its own: KORS, or ALD (keep x if its residual exceeds nu). Its features are L^-1 Psi^T phi(x).
template <class T> class Dictionary {
 public:
  Settings set;
  Store<T> store;
  bool sampled;                                // KORS, else ALD
  RowSampler sampler;
  double nu;
  std::vector<int64_t> born;                   // the number of the row that each point was
  int64_t seen = 0;

  Dictionary(Settings s, Kernel<double> kernel, bool sampled_, double ridge, double beta, double eps, double nu_, uint64_t seed)
      : set(s),
        store(std::move(kernel), set.width, set.budget, set.budget > 1024),
        sampled(sampled_),
        sampler(ridge, beta, eps, seed, std::min<int64_t>(set.budget, 1024)),
        nu(nu_) {}

  int64_t count() const { return store.count(); }
  RidgeFactor& factor() { return sampler.dictionary; }
  size_t nbytes() const { return store.nbytes() + sampler.dictionary.nbytes() + born.size() * 8; }

  // Returns the first row with a kernel value that is not finite, which changes nothing, or rows.n.
  int64_t read(const Rows<T>& rows) {
    for (int64_t i = 0; i < rows.n; ++i, ++seen) {
      double self = store.self(rows, i);
      if (!std::isfinite(self) || (sampled && !std::isfinite(self / sampler.dictionary.ridge))) return i;
      if (store.full() || !(self > 0)) continue;
      int64_t slot = store.count();
      const double* k = store.row(rows, i);
      if (!std::all_of(k, k + slot, [](double v) { return std::isfinite(v); })) return i;
      if (sampled) {
        sampler.flip(k, self, 1, slot, 0);
      } else {
        factor().solve(k);
        if (independent(factor().residual(self), self, nu, slot)) factor().append(slot, 1, self);
      }
      if (factor().size() > slot) {
        store.add(rows, i);
        born.push_back(seen);
      }
    }
    return rows.n;
  }

  void features(const Rows<T>& rows, double* out) {
    for (int64_t i = 0; i < rows.n; ++i) out = std::copy_n(factor().solve(store.row(rows, i)), factor().size(), out);
  }
  // Leverage estimates (KORS) or residuals (ALD) that the rows would have now.
  void leverages(const Rows<T>& rows, double* out) {
    for (int64_t i = 0; i < rows.n; ++i) {
      double self = store.self(rows, i);
      const double* k = store.row(rows, i);
      if (sampled) {
        out[i] = self > 0 ? sampler.leverage(k, self, 1) : 0.0;
      } else {
        factor().solve(k);
        out[i] = factor().residual(self);
      }
    }
  }
};

}  // namespace KS_MODULE
