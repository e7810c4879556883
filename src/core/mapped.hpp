// Linear models over an explicit map, w . z(x): Nystrom features of fixed landmarks, or Fourier features.
//
// The map is fixed while the core runs, so it is computed for a block of rows at once; the steps on w follow row by row.
#pragma once
#include <memory>

#include "expansion.hpp"

namespace KS_MODULE {

// z(x) for a block of rows.
template <class T> class Map {
 public:
  static constexpr int64_t kBlock = 64;
  virtual ~Map() = default;
  virtual std::unique_ptr<Map> clone() const = 0;
  virtual int64_t lines() const = 0;           // lines of z
  virtual size_t nbytes() const = 0;
  virtual void features(const Rows<T>& rows, int64_t i, int64_t n, T* z) = 0;
};

// z(x) = M k(x), M = D^-1/2 V^T of the landmarks' kernel matrix, or any other matrix.
template <class T> class LandmarkMap : public Map<T> {
 public:
  Points<T> landmarks;
  Panel<T> matrix;                             // "points" are features, "columns" landmarks

  // `to_features` is rank x landmarks.
  LandmarkMap(Kernel<T> kernel, const Rows<T>& points, const T* to_features, int64_t rank)
      : landmarks(std::move(kernel), points.width, points.n) {
    for (int64_t j = 0; j < points.n; ++j) landmarks.put(j, points, j);
    matrix = Panel<T>(landmarks.slots(), rank);
    set_matrix(to_features, rank);
    kernel_block_ = Array<T>(size_t(Map<T>::kBlock * landmarks.slots()));
  }
  void set_matrix(const T* to_features, int64_t rank) {
    for (int64_t f = 0; f < rank; ++f)
      for (int64_t j = 0; j < landmarks.count; ++j) matrix.at(f, j) = to_features[f * landmarks.count + j];
  }
  std::unique_ptr<Map<T>> clone() const override { return std::make_unique<LandmarkMap>(*this); }
  int64_t lines() const override { return matrix.slots() / kLine<T>; }
  size_t nbytes() const override { return landmarks.nbytes() + matrix.nbytes(); }
  void features(const Rows<T>& rows, int64_t i, int64_t n, T* z) override {
    int64_t stride = landmarks.slots(), tiles = landmarks.tiles();
    landmarks.measure(rows, i, n, tiles, kernel_block_.data(), stride);
    measured(rows, i, n, kernel_block_.data());
    for (int64_t r = 0; r < n; ++r) landmarks.values(kernel_block_.data() + r * stride, kernel_block_.data() + r * stride, tiles);
    Rows<T> k{n, stride, kernel_block_.data()};
    matrix.template dense<Form::product>(k, 0, n, lines(), z, matrix.slots());
  }

 protected:
  // A look at the measures of rows against the landmarks before they become kernel values.
  virtual void measured(const Rows<T>&, int64_t, int64_t, const T*) {}
  Array<T> kernel_block_;
};

// z = sqrt(1/m) [cos a, sin a] of m angles in n slots; z has 2 n slots, those beyond m are zero.
template <class T> void turn(const T* angle, int64_t m, int64_t n, T* z) {
  const T amplitude = T(std::sqrt(1.0 / double(m)));
  constexpr int step = kLine<T> / kVecs<T>;
  for (int64_t p = 0; p < n; p += step) {
    Vec<T> s, c, a = load<T>(angle + p);
    sincos<T>(a, s, c);
    store<T>(z + p, c * amplitude);
    store<T>(z + n + p, s * amplitude);
    for (int64_t q = p; q < p + step; ++q) {
      if (!(std::abs(angle[q]) < Reduce<T>::trig_limit)) {
        z[q] = std::cos(angle[q]) * amplitude;
        z[n + q] = std::sin(angle[q]) * amplitude;
      }
      if (q >= m) z[q] = z[n + q] = 0;
    }
  }
}

// z(x) = sqrt(1/m) [cos(W x), sin(W x)]
template <class T> class FourierMap : public Map<T> {
 public:
  Panel<T> frequencies;
  int64_t pairs;

  // `w` is width x pairs.
  FourierMap(const T* w, int64_t width, int64_t pairs_) : frequencies(width, pairs_), pairs(pairs_) {
    for (int64_t d = 0; d < width; ++d)
      for (int64_t p = 0; p < pairs; ++p) frequencies.at(p, d) = w[d * pairs + p];
    angles_ = Array<T>(size_t(Map<T>::kBlock * frequencies.slots()));
  }
  std::unique_ptr<Map<T>> clone() const override { return std::make_unique<FourierMap>(*this); }
  int64_t lines() const override { return 2 * tiles(); }
  size_t nbytes() const override { return frequencies.nbytes(); }
  void features(const Rows<T>& rows, int64_t i, int64_t n, T* z) override {
    int64_t stride = frequencies.slots();
    if (rows.sparse())
      for (int64_t r = 0; r < n; ++r) frequencies.template sparse<Form::product>(rows, i + r, tiles(), angles_.data() + r * stride);
    else
      frequencies.template dense<Form::product>(rows, i, n, tiles(), angles_.data(), stride);
    for (int64_t r = 0; r < n; ++r) turn(angles_.data() + r * stride, pairs, stride, z + r * 2 * stride);
  }

 private:
  int64_t tiles() const { return frequencies.slots() / kLine<T>; }
  Array<T> angles_;
};

// A map of its own for each copy of a model.
template <class T> class OwnMap {
 public:
  OwnMap(std::unique_ptr<Map<T>> map) : map_(std::move(map)) {}
  OwnMap(const OwnMap& o) : map_(o.map_->clone()) {}
  OwnMap(OwnMap&&) = default;
  OwnMap& operator=(OwnMap&&) = default;
  Map<T>* operator->() const { return map_.get(); }
  Map<T>& operator*() const { return *map_; }

 private:
  std::unique_ptr<Map<T>> map_;
};

template <class T> class Mapped {
 public:
  Settings set;
  Descent descent;
  OwnMap<T> map;
  std::vector<Array<T>> weights;               // one per output

  Mapped(Settings s, Descent d, std::unique_ptr<Map<T>> m)
      : set(s),
        descent(d),
        map(std::move(m)),
        f_(size_t(set.outputs)),
        slopes_(size_t(set.outputs)),
        reach_(size_t(set.outputs), kUnknown) {
    for (int64_t c = 0; c < set.outputs; ++c) weights.emplace_back(size_t(map->lines() * kLine<T>));
    block_ = Array<T>(size_t(Map<T>::kBlock * map->lines() * kLine<T>));
  }

  // The same with its outputs replaced.
  Mapped(const Mapped& o, const Mix& mix)
      : set(o.set),
        descent(o.descent),
        map(o.map),
        weights(mix.of(o.weights)),
        block_(o.block_),
        f_(weights.size()),
        slopes_(weights.size()),
        reach_(weights.size(), kUnknown) {
    set.outputs = mix.outputs();
  }

  size_t nbytes() const {
    size_t total = map->nbytes();
    for (const auto& w : weights) total += w.nbytes();
    return total;
  }

  // z of all rows, one after the other, without padding lines of other rows.
  void features(const Rows<T>& rows, T* out) {
    for (int64_t i = 0; i < rows.n; i += Map<T>::kBlock) {
      int64_t n = std::min(Map<T>::kBlock, rows.n - i);
      map->features(rows, i, n, block_.data());
      std::memcpy(out + i * stride(), block_.data(), size_t(n * stride()) * sizeof(T));
    }
  }
  int64_t stride() const { return map->lines() * kLine<T>; }
  void weights_changed() { std::fill(reach_.begin(), reach_.end(), kUnknown); }

  void score(const Rows<T>& rows, double* out) {
    each(rows, 0, [&](int64_t i, const T* z) {
      for (int64_t c = 0; c < set.outputs; ++c) out[i * set.outputs + c] = double(output(c, z));
      return true;
    });
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    int64_t at = rows.n;
    why = Stop::done;
    each(rows, from, [&](int64_t i, const T* z) {
      double weight = sample_weights ? sample_weights[i] : 1.0;
      if (round(rows, i, z, targets[i], weight, out + i * set.outputs)) return true;
      why = Stop::not_finite;
      at = i;
      return false;
    });
    return at;
  }

 protected:
  T output(int64_t c, const T* z) const { return dot(weights[size_t(c)].data(), z, size_t(map->lines())); }

  // Scores row i and learns from it; false, nothing learnt, if a score or a step is not finite.
  bool round(const Rows<T>& rows, int64_t i, const T* z, double target, double weight, double* out) {
    for (int64_t c = 0; c < set.outputs; ++c) {
      f_[size_t(c)] = output(c, z);
      out[c] = double(f_[size_t(c)]);
      if (!std::isfinite(f_[size_t(c)])) return false;
    }
    return weight == 0 || learn(Round<T>{rows, i, z, f_.data(), target, weight});
  }

  // visit(i, z) for each row until it says no; `ahead()` is how many rows to map at once.
  template <class F, class A> void each(const Rows<T>& rows, int64_t from, F visit, A ahead) {
    for (int64_t i = from, n; i < rows.n; i += n) {
      n = std::min<int64_t>(ahead(), rows.n - i);
      map->features(rows, i, n, block_.data());
      for (int64_t r = 0; r < n; ++r)
        if (!visit(i + r, block_.data() + r * stride())) return;
    }
  }
  template <class F> void each(const Rows<T>& rows, int64_t from, F visit) {
    each(rows, from, visit, [] { return Map<T>::kBlock; });
  }

  bool learn(const Round<T>& r) {
    size_t lines = size_t(map->lines());
    const double eta = descent.eta, lambda = descent.lambda;
    loss_slopes(descent.loss, r, slopes_);
    double size = double(largest(r.k, lines));
    for (size_t c = 0; c < weights.size(); ++c)
      if (!std::isfinite(T(eta * slopes_[c])) || !can_add(weights[c].data(), -eta * slopes_[c], r.k, stride(), size, reach_[c]))
        return false;
    for (size_t c = 0; c < weights.size(); ++c) {
      if (lambda != 0) scale(T(1 - eta * lambda), weights[c].data(), lines);
      if (slopes_[c] != 0) axpy(T(-eta * slopes_[c]), r.k, weights[c].data(), lines);
    }
    return true;
  }

  // Weights set from outside may be of any size: the next step looks at all of them.
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  Array<T> block_;
  std::vector<T> f_;
  std::vector<double> slopes_, reach_;         // reach: bounds the weights of an output
};

}  // namespace KS_MODULE
