// Stored points, and the products or distances of rows with all of them.
//
// Points stand in tiles of one line: tile j holds points j L .. j L + L - 1 as width x L numbers, so that lanes run over points
// and a tile is contiguous. Each product is one chain of operations over the columns in order, whatever the tiling.
#pragma once
#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <vector>

#include "rows.hpp"
#include "simd.hpp"

namespace KS_MODULE {

enum class Form { product, square_distance, absolute_distance, chi_distance, minimum };

// Calls f(integral_constant<Form, form>): the form is resolved once.
template <class F> inline void with_form(Form form, F f) {
  switch (form) {
    case Form::product: return f(std::integral_constant<Form, Form::product>());
    case Form::square_distance: return f(std::integral_constant<Form, Form::square_distance>());
    case Form::absolute_distance: return f(std::integral_constant<Form, Form::absolute_distance>());
    case Form::chi_distance: return f(std::integral_constant<Form, Form::chi_distance>());
    case Form::minimum: return f(std::integral_constant<Form, Form::minimum>());
  }
}

// Forms whose term at x = 0 is |p|: over a sparse row, the norm |p|_1 stands for all terms that are left out.
constexpr bool has_norm(Form form) { return form == Form::absolute_distance || form == Form::chi_distance; }

template <Form F, class T> inline T term(T x, T p, T acc) {
  if constexpr (F == Form::product) return acc + x * p;
  if constexpr (F == Form::minimum) return acc + (x < p ? x : p);
  T d = x - p;
  if constexpr (F == Form::chi_distance) {     // 0 / 0 is 0: both entries are zero
    T sum = x + p, least = std::numeric_limits<T>::min();
    return acc + d * d / (sum > least ? sum : least);
  }
  if constexpr (F == Form::square_distance) return acc + d * d;
  return acc + std::abs(d);
}

template <class T> class Panel {
 public:
  Panel() = default;
  Panel(int64_t width, int64_t capacity)
      : width_(width), tiles_((capacity + kLine<T> - 1) / kLine<T>), data_(size_t(width * tiles_ * kLine<T>)) {}

  int64_t width() const { return width_; }
  int64_t slots() const { return tiles_ * kLine<T>; }
  size_t nbytes() const { return data_.nbytes(); }

  T& at(int64_t slot, int64_t column) { return data_[((slot / kLine<T>)*width_ + column) * kLine<T> + slot % kLine<T>]; }
  T* line(int64_t tile, int64_t column) { return data_.data() + (tile * width_ + column) * kLine<T>; }
  const T* line(int64_t tile, int64_t column) const { return const_cast<Panel*>(this)->line(tile, column); }
  T at(int64_t slot, int64_t column) const { return const_cast<Panel*>(this)->at(slot, column); }

  void put(int64_t slot, const Rows<T>& rows, int64_t i) {
    if (rows.sparse())
      for (int64_t d = 0; d < width_; ++d) at(slot, d) = 0;
    rows.each(i, [&](int64_t d, T v) { at(slot, d) = v; });
  }

  void clear() { data_.clear(); }

  // The point of a slot as a dense row, in `to`.
  Rows<T> row(int64_t slot, std::vector<T>& to) const {
    to.resize(size_t(std::max<int64_t>(1, width_)));
    for (int64_t d = 0; d < width_; ++d) to[size_t(d)] = at(slot, d);
    return {1, width_, to.data()};
  }

  void grow(int64_t capacity) {
    Panel bigger(width_, capacity);
    if (data_.size()) std::memcpy(bigger.data_.data(), data_.data(), data_.nbytes());
    *this = std::move(bigger);
  }

  // out[r * stride + slot] for rows i .. i + n - 1 and the first `tiles` tiles. Distances of sparse rows are not made here:
  // see Kernel::measure. `triangle`: of slot j only columns 0 .. j are not zero, and those beyond its tile are left out.
  // `used`: columns from there on are left out, being zero in all rows.
  template <Form F> void dense(const Rows<T>& rows, int64_t i, int64_t n, int64_t tiles, T* out, int64_t stride, bool triangle = false,
                               int64_t used = std::numeric_limits<int64_t>::max()) const {
    constexpr int R = kVectorBytes == 16 ? 2 : 4, N = kVectorBytes == 64 ? 2 : 1;
    constexpr int single = kVectorBytes == 64 ? 8 : kVectorBytes == 32 ? 4 : 2;
    int64_t t = 0, grouped = n / R * R;
    int64_t most = std::min(width_, used);
    auto columns = [&](int64_t end) { return triangle ? std::min(most, end * kLine<T>) : most; };
    for (; t + N <= tiles; t += N)
      for (int64_t r = 0; r < grouped; r += R) micro<F, R, N>(rows, i + r, t, columns(t + N), out + r * stride, stride);
    for (; t < tiles; ++t)
      for (int64_t r = 0; r < grouped; r += R) micro<F, R, 1>(rows, i + r, t, columns(t + 1), out + r * stride, stride);
    for (int64_t r = grouped; r < n; ++r) {
      for (t = 0; t + single <= tiles; t += single) micro<F, 1, single>(rows, i + r, t, columns(t + single), out + r * stride, stride);
      for (; t < tiles; ++t) micro<F, 1, 1>(rows, i + r, t, columns(t + 1), out + r * stride, stride);
    }
  }

  // The same for N tiles and their first `columns` columns, best kTiles together, and for at least kRows rows. Of 16 rows 6, 5 and 5
  // together: a single one left over would take as long as five.
  static constexpr int kTiles = kVectorBytes == 64 ? 2 : 1;
  static constexpr int kRows = kVectorBytes == 64 ? 8 : kVectorBytes == 32 ? 5 : 2, kMoreRows = kVectorBytes == 32 ? 1 : 0;
  template <Form F, int N>
  void some_tiles(const Rows<T>& rows, int64_t i, int64_t n, int64_t tile, int64_t columns, T* out, int64_t stride) const {
    int64_t r = 0;
    while (n - r >= kRows)
      if (kMoreRows && (n - r) % kRows && n - r > kRows) {
        micro<F, kRows + kMoreRows, N>(rows, i + r, tile, columns, out + r * stride, stride);
        r += kRows + kMoreRows;
      } else {
        micro<F, kRows, N>(rows, i + r, tile, columns, out + r * stride, stride);
        r += kRows;
      }
    for (; r < n; ++r) micro<F, 1, N>(rows, i + r, tile, columns, out + r * stride, stride);
  }

  // Product, minimum, or sum of (distance - |p|), all of which are 0 where x is, over the stored entries of sparse row i.
  template <Form F> void sparse(const Rows<T>& rows, int64_t i, int64_t tiles, T* out) const {
    constexpr int single = kVectorBytes == 64 ? 8 : kVectorBytes == 32 ? 4 : 2;
    int64_t t = 0;
    for (; t + single <= tiles; t += single) gather<F, single>(rows, i, t, out);
    for (; t < tiles; ++t) gather<F, 1>(rows, i, t, out);
  }

  template <Form F> static void accumulate(Line<T>& acc, Vec<T> x, const Line<T>& p) {
    for (int v = 0; v < kVecs<T>; ++v) {
      if constexpr (F == Form::product) {
        acc.v[v] += x * p.v[v];
      } else if constexpr (F == Form::minimum) {
        acc.v[v] += x < p.v[v] ? x : p.v[v];
      } else {
        Vec<T> d = x - p.v[v];
        if constexpr (F == Form::square_distance)
          acc.v[v] += d * d;
        else if constexpr (F == Form::chi_distance) {
          Vec<T> sum = x + p.v[v], least = splat<T>(std::numeric_limits<T>::min());
          acc.v[v] += d * d / (sum > least ? sum : least);
        } else
          acc.v[v] += absolute<T>(d);
      }
    }
  }

 private:
  template <Form F, int R, int N> void micro(const Rows<T>& rows, int64_t i, int64_t tile, int64_t columns, T* out, int64_t stride) const {
    Line<T> acc[R][N];
    for (auto& a : acc)
      for (auto& l : a) l = Line<T>::zero();
    const T* x = rows.row(i);
    const T* p = data_.data() + tile * width_ * kLine<T>;
    for (int64_t d = 0; d < columns; ++d)
      for (int n = 0; n < N; ++n) {
        Line<T> point = Line<T>::at(p + (n * width_ + d) * kLine<T>);
        for (int r = 0; r < R; ++r) accumulate<F>(acc[r][n], splat<T>(x[r * rows.width + d]), point);
      }
    for (int r = 0; r < R; ++r)
      for (int n = 0; n < N; ++n) acc[r][n].to(out + r * stride + (tile + n) * kLine<T>);
  }

  template <Form F, int N> void gather(const Rows<T>& rows, int64_t i, int64_t tile, T* out) const {
    Line<T> acc[N];
    for (auto& l : acc) l = Line<T>::zero();
    const T* p = data_.data() + tile * width_ * kLine<T>;
    for (int64_t e = rows.starts[i]; e < rows.starts[i + 1]; ++e) {
      Vec<T> x = splat<T>(rows.values[e]);
      for (int n = 0; n < N; ++n) {
        Line<T> point = Line<T>::at(p + (n * width_ + rows.indices[e]) * kLine<T>);
        accumulate<F>(acc[n], x, point);
        if constexpr (has_norm(F))
          for (int v = 0; v < kVecs<T>; ++v) acc[n].v[v] -= absolute<T>(point.v[v]);
      }
    }
    for (int n = 0; n < N; ++n) acc[n].to(out + (tile + n) * kLine<T>);
  }

  int64_t width_ = 0, tiles_ = 0;
  Array<T> data_;
};

// A large panel that is seldom written: copies share it until one of them is about to be.
template <class T> class SharedPanel {
 public:
  SharedPanel() : SharedPanel(0, 0) {}
  SharedPanel(int64_t width, int64_t capacity) : panel_(std::make_shared<Panel<T>>(width, capacity)) {}

  const Panel<T>& operator*() const { return *panel_; }
  const Panel<T>* operator->() const { return panel_.get(); }
  Panel<T>& own() {                            // to write to
    if (panel_.use_count() > 1) panel_ = std::make_shared<Panel<T>>(*panel_);
    std::atomic_thread_fence(std::memory_order_acquire);  // a copy in another thread may just have read it for the last time
    return *panel_;
  }

 private:
  std::shared_ptr<Panel<T>> panel_;
};

}  // namespace KS_MODULE
