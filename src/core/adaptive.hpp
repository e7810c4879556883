// Linear models over a Nystrom map whose landmarks move now and then (NOLANA).
//
// Each row is also compared with its nearest landmark; the round whose row is at least epsilon away (squared distance) is the
// last before the core returns, and the caller moves the landmark. What was computed ahead under the old landmarks is dropped.
#pragma once
#include "mapped.hpp"

namespace KS_MODULE {

// The distance from which on a row moves a landmark. A fixed one has up = down = 1; otherwise it follows a quantile of the
// distances seen: up at each row that reaches it, down at each other one, so that in the long run log up / -log down rows do
// not reach it for each that does.
struct Threshold {
  double value = std::numeric_limits<double>::infinity(), floor = 0, up = 1, down = 1;
  bool reached(double distance) {
    bool far = distance >= value;
    value = std::max(floor, value * (far ? up : down));
    return far;
  }
};

// A landmark map that finds the nearest landmark of each row.
template <class T> class WatchedMap : public LandmarkMap<T> {
 public:
  using LandmarkMap<T>::landmarks;

  WatchedMap(Kernel<T> kernel, const Rows<T>& points, const T* to_features, int64_t rank)
      : LandmarkMap<T>(std::move(kernel), points, to_features, rank) {
    if (measures_squares()) return;
    places_ = Points<T>(Kernel<T>(), points.width, points.n);
    for (int64_t j = 0; j < points.n; ++j) places_.put(j, points, j);
    distances_ = Array<T>(size_t(Map<T>::kBlock * places_.slots()));
  }
  std::unique_ptr<Map<T>> clone() const override { return std::make_unique<WatchedMap>(*this); }
  size_t nbytes() const override { return LandmarkMap<T>::nbytes() + places_.nbytes(); }

  void move(int64_t slot, const Rows<T>& to, const T* to_features, int64_t rank) {
    landmarks.put(slot, to, 0);
    if (!measures_squares()) places_.put(slot, to, 0);
    this->set_matrix(to_features, rank);
  }

  // Finds the nearest landmark of rows i .. i + n - 1 (the lowest slot on ties); n is at most a block.
  void look(const Rows<T>& rows, int64_t i, int64_t n) {
    Points<T>& points = measures_squares() ? landmarks : places_;
    T* block = measures_squares() ? this->kernel_block_.data() : distances_.data();
    points.measure(rows, i, n, points.tiles(), block, points.slots());
    find(i, n, block);
  }
  int64_t nearest(int64_t i) const { return nearest_[i - first_]; }
  double distance(int64_t i) const { return double(distance_[i - first_]); }

 protected:
  void measured(const Rows<T>& rows, int64_t i, int64_t n, const T* block) override {
    if (measures_squares())
      find(i, n, block);
    else
      look(rows, i, n);
  }

 private:
  // The Gaussian kernel's own measures are the distances sought.
  bool measures_squares() const { return !landmarks.kernel.callback && landmarks.kernel.form() == Form::square_distance; }

  void find(int64_t i, int64_t n, const T* block) {
    first_ = i;
    for (int64_t r = 0; r < n; ++r) {
      const T* row = block + r * landmarks.slots();
      nearest_[r] = std::min_element(row, row + landmarks.count) - row;
      distance_[r] = row[nearest_[r]];
    }
  }

  Points<T> places_;                           // the landmarks again, to measure distances, for other kernels
  Array<T> distances_;
  int64_t first_ = 0, nearest_[Map<T>::kBlock] = {};
  T distance_[Map<T>::kBlock] = {};
};

template <class T> class Adaptive : public Mapped<T> {
 public:
  Adaptive(Settings s, Descent d, std::unique_ptr<WatchedMap<T>> m) : Mapped<T>(s, d, std::move(m)) {}

  Threshold epsilon;
  int64_t nearest = -1;                        // the landmark nearest to the row that made a run stop as due

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    WatchedMap<T>& map = watched();
    int64_t at = rows.n;
    why = Stop::done;
    auto visit = [&](int64_t i, const T* z) {
      double weight = sample_weights ? sample_weights[i] : 1.0;
      if (!this->round(rows, i, z, targets[i], weight, out + i * this->set.outputs)) {
        why = Stop::not_finite;
        at = i;
        return false;
      }
      ++calm_;
      if (weight == 0 || !epsilon.reached(map.distance(i))) return true;
      why = Stop::due;
      at = i + 1;
      nearest = map.nearest(i);
      return false;
    };
    this->each(rows, from, visit, [&] { return ahead(); });
    return at;
  }

  // The first row from `from` on that is at least epsilon away from all landmarks; rows.n if there is none.
  int64_t far(const Rows<T>& rows, int64_t from) {
    for (int64_t i = from, n; i < rows.n; i += n) {
      n = std::min(ahead(), rows.n - i);
      watched().look(rows, i, n);
      for (int64_t r = i; r < i + n; ++r, ++calm_)
        if (epsilon.reached(watched().distance(r))) {
          nearest = watched().nearest(r);
          return r;
        }
    }
    return rows.n;
  }

  void move(int64_t slot, const Rows<T>& to, const T* to_features, int64_t rank) {
    watched().move(slot, to, to_features, rank);
    calm_ = 0;
  }

  int64_t landmarks() const { return static_cast<const WatchedMap<T>&>(*this->map).landmarks.count; }

 private:
  // As many rows ahead as there were since the last move: no more than half of the work can be lost.
  int64_t ahead() const { return std::min(Map<T>::kBlock, std::max<int64_t>(1, calm_)); }
  WatchedMap<T>& watched() { return static_cast<WatchedMap<T>&>(*this->map); }
  int64_t calm_ = Map<T>::kBlock;              // rounds since a landmark moved
};

}  // namespace KS_MODULE
