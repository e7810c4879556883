// A memory of NewtonMixture: how features are scaled, and the Nystrom map over its landmarks.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

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
  Array<double> centre, scale, zero;           // a feature x becomes soft_clip((x - centre) scale), 0 before the first rebuild; zero:
                                               // what 0 becomes
  double varying = 1;                          // features that vary: the linear part's prior variance is shared by them
  Points<double> landmarks;
  Panel<double> whitening;                     // L^-1, zero above the diagonal

  Memory() = default;
  Memory(int64_t width, int64_t budget)
      : centre(size_t(width)),
        scale(size_t(width)),
        zero(size_t(width)),
        landmarks(Kernel<double>::named("gaussian", 1, 0, 1), width, budget),
        whitening(landmarks.slots(), budget),
        k_(size_t(kBlock * landmarks.slots())),
        starts_(size_t(kBlock + 1)) {}

  int64_t slots() const { return landmarks.slots(); }
  size_t nbytes() const { return centre.nbytes() + scale.nbytes() + zero.nbytes() + landmarks.nbytes() + whitening.nbytes(); }

  // Rows i .. i + n - 1 scaled and moved so that 0 stays 0 (distances do not mind): sparse rows stay sparse.
  template <class T> Rows<double> scaled(const Rows<T>& rows, int64_t i, int64_t n) {
    Rows<double> z;
    z.n = n;
    z.width = rows.width;
    int64_t first = rows.sparse() ? rows.starts[i] : 0, count = rows.sparse() ? rows.starts[i + n] - first : n * rows.width;
    if (int64_t(z_.size()) < std::max<int64_t>(count, 1)) z_ = Array<double>(size_t(std::max<int64_t>(count, 1)));
    double* to = z_.data();
    if (!rows.sparse()) {
      for (int64_t r = 0; r < n; ++r, to += rows.width)
        for (int64_t d = 0; d < rows.width; ++d) to[d] = scaled(rows.row(i + r)[d], d);
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

  // After centre or scale changed.
  void settle() {
    moved_.clear();
    for (size_t d = 0; d < size_t(landmarks.width()); ++d)
      if ((zero[d] = soft_clip(-centre[d] * scale[d])) != 0) moved_.push_back(int64_t(d));
  }

  // Calls visit(column, soft_clip((x - centre) scale)) for every feature of scaled row r but zeros, columns increasing.
  template <class F> void each(const Rows<double>& z, int64_t r, F visit) const {
    auto next = moved_.begin();
    z.each(r, [&](int64_t d, double v) {
      for (; next != moved_.end() && *next < d; ++next) visit(*next, zero[size_t(*next)]);
      if (next != moved_.end() && *next == d) ++next;
      if (v += zero[size_t(d)]; v != 0) visit(d, v);
    });
    for (; next != moved_.end(); ++next) visit(*next, zero[size_t(*next)]);
  }

  double scaled(double x, int64_t d) const { return soft_clip((x - centre[size_t(d)]) * scale[size_t(d)]) - zero[size_t(d)]; }

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
    whitening.template dense<Form::product>(k, 0, z.n, landmarks.tiles(), out, stride, true);
  }

 private:
  Array<double> k_, z_;
  std::vector<int64_t> starts_, moved_;        // moved: columns whose 0 is not 0 when scaled; mostly zero ones are not among them
};

}  // namespace KS_MODULE
