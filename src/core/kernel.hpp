// Kernels, and a set of stored points with the kernel values of rows against it.
#pragma once
#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "panel.hpp"

namespace KS_MODULE {

template <class T> struct Kernel {
  enum Kind {
    gaussian,
    laplacian,
    polynomial,
    linear,
    callable,
    matern12,
    matern32,
    matern52,
    rational_quadratic,
    chi_squared,
    intersection,
    spectrum,
    precomputed
  };
  // Fills out[0..n) with k(x, points[j]); x is dense, points are n x width.
  using Callback = std::function<void(const T* x, int64_t width, const T* points, int64_t n, T* out)>;

  Kind kind = gaussian;
  T gamma = 1, offset = 0;                  // offset: coef0 of a polynomial, alpha of the rational quadratic kernel
  int degree = 1;
  Callback callback;

  static Kernel named(const std::string& name, double gamma, double offset, int degree) {
    const char* names[] = {"gaussian", "laplacian",          "polynomial",  "linear",       "callable", "matern12",   "matern32",
                           "matern52", "rational_quadratic", "chi_squared", "intersection", "spectrum", "precomputed"};
    for (size_t k = 0; k < std::size(names); ++k)
      if (name == names[k])                    // a gamma that float cannot hold is its largest: 0 times it stays 0
        return {Kind(k), T(std::min(gamma, double(std::numeric_limits<T>::max()))), T(offset), degree, {}};
    throw std::invalid_argument("unknown kernel '" + name + "'");
  }

  Form form() const {
    switch (kind) {
      case gaussian:
      case matern12:
      case matern32:
      case matern52:
      case rational_quadratic: return Form::square_distance;
      case laplacian: return Form::absolute_distance;
      case chi_squared: return Form::chi_distance;
      case intersection: return Form::minimum;
      default: return Form::product;
    }
  }
  // Times this, an entry of a row has `scale` in the kernel in place of gamma = 1.
  double input_scale(double scale) const { return has_norm(form()) || form() == Form::minimum ? scale : std::sqrt(scale); }
  bool unit_diagonal() const {                 // k(x, x) = 1 for every x
    return form() == Form::square_distance || form() == Form::absolute_distance || form() == Form::chi_distance;
  }

  // Calls loop(f), f taking a vector of distances or products to kernel values; the kind is resolved once.
  template <class Loop> void with_value(Loop loop) const {
    T g = gamma, o = offset;
    int n = degree;
    if (kind == gaussian || kind == laplacian || kind == chi_squared)
      loop([g](Vec<T> v) { return exp<T>(v * -g); });
    else if (kind == matern12)
      loop([g](Vec<T> v) { return exp<T>(-scaled(v, g, 2)); });
    else if (kind == matern32)
      loop([g](Vec<T> v) {
        Vec<T> s = scaled(v, g, 6);
        return (s + T(1)) * exp<T>(-s);
      });
    else if (kind == matern52)
      loop([g](Vec<T> v) {
        Vec<T> s = scaled(v, g, 10);
        return (s * s / T(3) + s + T(1)) * exp<T>(-s);
      });
    else if (kind == rational_quadratic)
      loop([g, o](Vec<T> v) { return exp<T>(log<T>(v * g / o + T(1)) * -o); });
    else if (kind == polynomial)
      loop([g, o, n](Vec<T> v) {
        Vec<T> base = v * g + o, power = base;
        for (int d = 1; d < n; ++d) power = power * base;
        return power;
      });
    else
      loop([](Vec<T> v) { return v; });
  }

  // The same for the derivative of the kernel value in the distance or product. (0 where the kernel has a cusp: Matern 1/2 at 0.)
  template <class Loop> void with_slope(Loop loop) const {
    T g = gamma, o = offset;
    int n = degree;
    if (kind == gaussian || kind == laplacian || kind == chi_squared)
      loop([g](Vec<T> v) { return exp<T>(v * -g) * -g; });
    else if (kind == matern12)
      loop([g](Vec<T> v) {
        Vec<T> s = scaled(v, g, 2), slope = exp<T>(-s) * -g / s;
        return s > T(0) ? slope : splat<T>(0);
      });
    else if (kind == matern32)
      loop([g](Vec<T> v) { return exp<T>(-scaled(v, g, 6)) * (-3 * g); });
    else if (kind == matern52)
      loop([g](Vec<T> v) {
        Vec<T> s = scaled(v, g, 10);
        return (s + T(1)) * exp<T>(-s) * (-5 * g / 3);
      });
    else if (kind == rational_quadratic)
      loop([g, o](Vec<T> v) { return exp<T>(log<T>(v * g / o + T(1)) * -(o + 1)) * -g; });
    else if (kind == polynomial)
      loop([g, o, n](Vec<T> v) {
        Vec<T> base = v * g + o, power = splat<T>(n * g);
        for (int d = 1; d < n; ++d) power = power * base;
        return power;
      });
    else
      loop([](Vec<T> v) { return splat<T>(1) + v * T(0); });
  }

 private:
  // sqrt(c g v), at most what exp() tells from infinity: beyond, a polynomial times it would grow again.
  static Vec<T> scaled(Vec<T> v, T g, int c) {
    Vec<T> s = root<T>(v * g) * std::sqrt(T(c)), most = splat<T>(-Reduce<T>::exp_low);
    return s > most ? most : s;
  }
};

// Points in slots 0 .. count - 1 of a panel; slots beyond hold zeros or leftovers, and whoever uses them gives them weight 0.
template <class T> class Points {
 public:
  Kernel<T> kernel;
  Panel<T> panel;
  Array<T> diagonal;                        // k(x_j, x_j)
  Array<T> gammas;                          // one scale a slot in place of the kernel's (radial kernels only), or empty
  int64_t count = 0;

  Points() = default;
  Points(Kernel<T> k, int64_t width, int64_t capacity)
      : kernel(std::move(k)), panel(width, capacity), diagonal(panel.slots()), norms_(panel.slots()) {
    if (kernel.callback) flat_ = Array<T>(size_t(panel.slots() * width));
  }

  int64_t tiles() const { return (count + kLine<T> - 1) / kLine<T>; }
  int64_t slots() const { return panel.slots(); }
  size_t nbytes() const { return panel.nbytes() + diagonal.nbytes() + norms_.nbytes() + flat_.nbytes() + gammas.nbytes(); }

  void put(int64_t slot, const Rows<T>& rows, int64_t i) {
    T diagonal_value = self(rows, i);         // first: a callable kernel may raise, and then nothing has changed
    panel.put(slot, rows, i);
    norms_[slot] = norm(slot, rows, i);
    diagonal[slot] = diagonal_value;
    if (kernel.callback)
      for (int64_t d = 0; d < panel.width(); ++d) flat_[slot * panel.width() + d] = panel.at(slot, d);
    if (slot >= count) count = slot + 1;
  }

  void grow(int64_t capacity) {
    panel.grow(capacity);
    auto extend = [](Array<T>& a, size_t n) {
      Array<T> b(n);
      if (a.size()) std::memcpy(b.data(), a.data(), a.nbytes());
      a = std::move(b);
    };
    extend(diagonal, panel.slots());
    extend(norms_, panel.slots());
    if (kernel.callback) extend(flat_, size_t(panel.slots() * panel.width()));
    if (gammas.size()) extend(gammas, panel.slots());
  }

  // After the panel of a Gaussian kernel's points was written directly: their norms, and the diagonal.
  void renew() {
    for (int64_t slot = 0; slot < count; ++slot) {
      norms_[slot] = square(slot);
      diagonal[slot] = 1;
    }
  }

  // Every point as it is in `from`, column d times scales[d]; for a kernel with a scale.
  void rescale(const Panel<T>& from, const T* scales) {
    for (int64_t t = 0; t < tiles(); ++t) {
      Line<T> square = Line<T>::zero(), sizes = Line<T>::zero();
      for (int64_t d = 0; d < panel.width(); ++d) {
        Line<T> line = Line<T>::at(from.line(t, d));
        line.apply([&](Vec<T> v) { return v * scales[d]; });
        line.to(panel.line(t, d));
        square.add_product(line, line);
        line.apply([](Vec<T> v) { return absolute<T>(v); });
        sizes.add(line);
      }
      (has_norm(kernel.form()) ? sizes : square).to(norms_.data() + t * kLine<T>);
    }
    if (kernel.kind == Kernel<T>::polynomial)
      for (int64_t slot = 0; slot < count; ++slot) diagonal[slot] = power(norms_[slot]);
  }

  // Measures (distance, product; kernel value for a callable) of rows i .. i + n - 1 against the first `tiles` tiles.
  void measure(const Rows<T>& rows, int64_t i, int64_t n, int64_t tiles, T* out, int64_t stride) const {
    if (kernel.callback) {
      for (int64_t r = 0; r < n; ++r) call(rows, i + r, out + r * stride);
    } else if (!rows.sparse()) {
      with_form(kernel.form(), [&](auto form) { panel.template dense<form.value>(rows, i, n, tiles, out, stride); });
    } else {
      for (int64_t r = 0; r < n; ++r) sparse(rows, i + r, tiles, out + r * stride);
    }
    if (kernel.kind != Kernel<T>::spectrum) return;
    for (int64_t r = 0; r < n; ++r) {
      T size = std::sqrt(rows.square(i + r));
      for (int64_t j = 0; j < tiles * kLine<T>; ++j) out[r * stride + j] = cosine(out[r * stride + j], size, j);
    }
  }

  // A product with the point of a slot over both norms; 0 if either is.
  T cosine(T product, T size, int64_t slot) const {
    T below = size * std::sqrt(norms_[slot]);
    return below > 0 ? product / below : T(0);
  }

  void values(const T* measures, T* k, int64_t tiles) const {
    if (gammas.size()) {
      for (int64_t t = 0; t < tiles; ++t) {
        Line<T> line = Line<T>::at(measures + t * kLine<T>), gamma = Line<T>::at(gammas.data() + t * kLine<T>);
        for (int v = 0; v < kVecs<T>; ++v) line.v[v] = exp<T>(line.v[v] * -gamma.v[v]);
        line.to(k + t * kLine<T>);
      }
      return;
    }
    kernel.with_value([=](auto value) { each(measures, k, tiles, value); });
  }

  // The derivative of each kernel value in its measure.
  void slopes(const T* measures, T* slopes, int64_t tiles) const {
    kernel.with_slope([=](auto slope) { each(measures, slopes, tiles, slope); });
  }

  // k(x_i, x_i)
  T self(const Rows<T>& rows, int64_t i) const {
    if (kernel.callback) {
      std::vector<T> x = flat(rows, i);
      T value = 0;
      kernel.callback(x.data(), panel.width(), x.data(), 1, &value);
      return value;
    }
    if (kernel.unit_diagonal()) return T(1);
    if (kernel.kind == Kernel<T>::intersection) return sum_of_sizes(rows, i);
    T square = rows.square(i);
    if (kernel.kind == Kernel<T>::spectrum) return T(square > 0);
    return kernel.kind == Kernel<T>::linear ? square : power(square);
  }

 private:
  template <class F> static void each(const T* from, T* to, int64_t tiles, F f) {
    for (int64_t t = 0; t < tiles; ++t) {
      Line<T> line = Line<T>::at(from + t * kLine<T>);
      line.apply(f);
      line.to(to + t * kLine<T>);
    }
  }

  T power(T product) const {
    T base = kernel.gamma * product + kernel.offset, power = base;
    for (int d = 1; d < kernel.degree; ++d) power *= base;
    return power;
  }

  // |x_j|^2 by lines, so that it is the same to the bit whether the point came as a dense row, a sparse one, or from a state.
  T square(int64_t slot) const {
    Line<T> sum = Line<T>::zero();
    for (int64_t d = 0; d < panel.width(); ++d) {
      Line<T> line = Line<T>::at(panel.line(slot / kLine<T>, d));
      sum.add_product(line, line);
    }
    T lane[kLine<T>];
    sum.to(lane);
    return lane[slot % kLine<T>];
  }

  static T sum_of_sizes(const Rows<T>& rows, int64_t i) {
    T s = 0;
    rows.each(i, [&](int64_t, T v) { s += std::abs(v); });
    return s;
  }

  T norm(int64_t slot, const Rows<T>& rows, int64_t i) const {
    if (kernel.form() == Form::square_distance || kernel.kind == Kernel<T>::spectrum) return square(slot);
    return has_norm(kernel.form()) ? sum_of_sizes(rows, i) : T(0);
  }

  void sparse(const Rows<T>& rows, int64_t i, int64_t tiles, T* out) const {
    Form shape = kernel.form() == Form::square_distance ? Form::product : kernel.form();
    with_form(shape, [&](auto form) { panel.template sparse<form.value>(rows, i, tiles, out); });
    if (has_norm(shape)) {
      for (int64_t j = 0; j < tiles * kLine<T>; ++j) out[j] += norms_[j];
    } else if (kernel.form() == Form::square_distance) {
      T square = rows.square(i);
      for (int64_t j = 0; j < tiles * kLine<T>; ++j) {
        T d = square + norms_[j] - 2 * out[j];
        out[j] = d < 0 ? T(0) : d;
      }
    }
  }

  std::vector<T> flat(const Rows<T>& rows, int64_t i) const {
    std::vector<T> x(size_t(panel.width()), T(0));
    rows.each(i, [&](int64_t d, T v) { x[size_t(d)] = v; });
    return x;
  }

  void call(const Rows<T>& rows, int64_t i, T* out) const {
    if (count == 0) return;
    std::vector<T> x = flat(rows, i);
    kernel.callback(x.data(), panel.width(), flat_.data(), count, out);
  }

  Array<T> norms_;                          // |x_j|^2 or |x_j|_1, for sparse rows and cosines
  Array<T> flat_;                           // the points as rows, for a callable kernel only
};

}  // namespace KS_MODULE
