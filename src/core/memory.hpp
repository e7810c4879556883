// A memory of NewtonMixture: how features are scaled, and the Nystrom map over its landmarks.
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "columns.hpp"
#include "kernel.hpp"
#include "newton.hpp"

namespace KS_MODULE {

// z -> z / (1 + |z| / 4): the identity near 0, bounded by 4, so that no outlier of a feature rules the rest.
inline double soft_clip(double z) {
  z = std::min(std::max(z, -1e300), 1e300);
  return z / (1 + std::abs(z) / 4);
}

// Scaled rows and their Nystrom features: L^-1 k(landmarks, z), K = L L^T.
class Memory {
 public:
  Columns columns;                             // those that have a centre and a scale; others have centre 0 and scale `others_`
  std::vector<double> centre, scale, zero;     // by slot: a feature x becomes soft_clip((x - centre) scale), 0 before the first
                                               // rebuild; zero: what 0 becomes
  double varying = 1;                          // features that vary: the linear part's prior variance is shared by them
  Points<double> landmarks;
  SharedPanel<double> whitening;               // L^-1, zero above the diagonal
  bool changed = true;                         // since it was last compared: see Mixture

  Memory() = default;
  Memory(int64_t width, int64_t budget)
      : columns(width, width > kWidestDense),
        centre(size_t(columns.count())),
        scale(centre.size()),
        zero(centre.size()),
        landmarks(Kernel<double>::named("gaussian", 1, 0, 1), width, budget),
        whitening(landmarks.slots(), budget),
        k_(size_t(kBlock * landmarks.slots())),
        starts_(size_t(kBlock + 1)) {}

  int64_t slots() const { return landmarks.slots(); }
  size_t nbytes() const { return columns.nbytes() + 3 * centre.size() * sizeof(double) + landmarks.nbytes() + whitening->nbytes(); }

  // Another scaling: of these columns, rising; all others were 0.
  void rescale(const int32_t* of, int64_t n, const double* centre_, const double* scale_) {
    columns.clear();
    std::fill(centre.begin(), centre.end(), 0.0);
    std::fill(scale.begin(), scale.end(), 1.0);
    for (int64_t j = 0; j < n; ++j) set(of[j], centre_[j], scale_[j]);
  }
  void set(int64_t column, double centre_, double scale_) {
    size_t slot = size_t(columns.add(column));
    for (auto* a : {&centre, &scale, &zero}) a->resize(size_t(columns.count()));
    centre[slot] = centre_;
    scale[slot] = scale_;
  }

  // Rows i .. i + n - 1 scaled and moved so that 0 stays 0 (distances do not mind): sparse rows stay sparse.
  template <class T> Rows<double> scaled(const Rows<T>& rows, int64_t i, int64_t n) {
    Rows<double> z;
    z.n = n;
    z.width = rows.width;
    int64_t first = rows.sparse() ? rows.starts[i] : 0, count = rows.sparse() ? rows.starts[i + n] - first : n * rows.width;
    if (int64_t(z_.size()) < std::max<int64_t>(count, 1)) z_ = Array<double>(size_t(std::max<int64_t>(count, 1)));
    double* to = z_.data();
    if (!rows.sparse()) {
      for (int64_t r = 0; r < n; ++r, to += rows.width) {
        const T* x = rows.row(i + r);
        if (columns.sparse())
          for (int64_t d = 0; d < rows.width; ++d) to[d] = x[d] == 0 ? 0 : scaled(x[d], d);
        else
          for (int64_t d = 0; d < rows.width; ++d) to[d] = scaled_at(x[d], size_t(d));
      }
      z.dense = z_.data();
      return z;
    }
    for (int64_t r = 0; r <= n; ++r) starts_[size_t(r)] = rows.starts[i + r] - first;
    for (int64_t e = first; e < first + count; ++e) *to++ = scaled(rows.values[e], rows.indices[e]);
    z.values = z_.data();
    z.indices = rows.indices + first;
    z.starts = starts_.data();
    return z;
  }

  // After centre, scale or the number of landmarks changed.
  void settle() {
    changed = true;
    others_ = landmarks.count > 0;
    moved_.clear();
    for (size_t slot = 0; slot < centre.size(); ++slot)
      if ((zero[slot] = soft_clip(-centre[slot] * scale[slot])) != 0) moved_.push_back({columns.column(int64_t(slot)), zero[slot]});
    std::sort(moved_.begin(), moved_.end());
  }

  // Calls visit(column, soft_clip((x - centre) scale)) for every feature of scaled row r but zeros, columns increasing.
  template <class F> void each(const Rows<double>& z, int64_t r, F visit) const {
    auto next = moved_.begin();
    z.each(r, [&](int64_t d, double v) {
      for (; next != moved_.end() && next->first < d; ++next) visit(next->first, next->second);
      if (next != moved_.end() && next->first == d) v += next++->second;
      if (v != 0) visit(d, v);
    });
    for (; next != moved_.end(); ++next) visit(next->first, next->second);
  }

  double scaled(double x, int64_t d) const {
    int64_t slot = columns.find(d);
    return slot < 0 ? soft_clip(x * others_) : scaled_at(x, size_t(slot));
  }

  // Whether a row has the same features in both, to the bit.
  bool same_as(const Memory& o) const {
    int64_t n = landmarks.count;
    if (n != o.landmarks.count || landmarks.sparse || landmarks.kernel.gamma != o.landmarks.kernel.gamma || centre != o.centre ||
        scale != o.scale)
      return false;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t d = 0; d < landmarks.width(); ++d)
        if (landmarks.panel.at(i, d) != o.landmarks.panel.at(i, d)) return false;
      for (int64_t j = 0; j <= i; ++j)
        if (whitening->at(i, j) != o.whitening->at(i, j)) return false;
    }
    return true;
  }

  // How many of the slots() features the landmarks have, in whole lines; the others are 0 and are not written.
  int64_t used() const { return landmarks.tiles() * kLine<double>; }

  // out[r * stride ...]: used() features of each row.
  void features(const Rows<double>& z, double* out, int64_t stride) {
    if (landmarks.count == 0) return;
    landmarks.measure(z, 0, z.n, landmarks.tiles(), k_.data(), slots());
    for (int64_t r = 0; r < z.n; ++r) landmarks.values(k_.data() + r * slots(), k_.data() + r * slots(), landmarks.tiles());
    Rows<double> k;
    k.n = z.n;
    k.width = slots();
    k.dense = k_.data();
    whitening->template dense<Form::product>(k, 0, z.n, landmarks.tiles(), out, stride, true);
  }

 private:
  double scaled_at(double x, size_t slot) const { return soft_clip((x - centre[slot]) * scale[slot]) - zero[slot]; }

  double others_ = 0;                          // 0 before the first rebuild, then 1
  Array<double> k_, z_;
  std::vector<int64_t> starts_;
  std::vector<std::pair<int64_t, double>> moved_;  // columns whose 0 is not 0 when scaled, and what it is; few if rows are mostly 0
};

}  // namespace KS_MODULE
