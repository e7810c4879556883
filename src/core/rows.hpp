// A chunk of examples as the caller holds it: a C-contiguous matrix, or CSR. Nothing is copied.
#pragma once
#include <cmath>
#include <cstdint>

#include "simd.hpp"

namespace KS_MODULE {

template <class T> struct Rows {
  int64_t n = 0, width = 0;
  const T* dense = nullptr;                // n x width, or null
  const T* values = nullptr;               // CSR otherwise: indices of a row are strictly increasing and below width
  const int32_t* indices = nullptr;
  const int64_t* starts = nullptr;

  bool sparse() const { return dense == nullptr; }
  const T* row(int64_t i) const { return dense + i * width; }

  Rows part(int64_t from, int64_t to) const {
    Rows r = *this;
    r.n = to - from;
    if (sparse())
      r.starts += from;
    else
      r.dense += from * width;
    return r;
  }

  // Calls visit(column, value) for every stored entry of row i, columns increasing.
  template <class F> void each(int64_t i, F visit) const {
    if (sparse())
      for (int64_t e = starts[i]; e < starts[i + 1]; ++e) visit(int64_t(indices[e]), values[e]);
    else
      for (int64_t d = 0; d < width; ++d) visit(d, row(i)[d]);
  }

  // Whether no number is NaN or infinite.
  bool all_finite() const {
    const T* numbers = sparse() ? values + starts[0] : dense;
    int64_t count = sparse() ? starts[n] - starts[0] : n * width, at = 0;
    Line<T> sum = Line<T>::zero();             // x - x is 0 unless x is NaN or infinite
    for (; at + kLine<T> <= count; at += kLine<T>) {
      Line<T> line = Line<T>::at(numbers + at);
      line.apply([](Vec<T> v) { return v - v; });
      sum.add(line);
    }
    T total = sum.sum();
    for (; at < count; ++at) total += numbers[at] - numbers[at];
    return total == 0;
  }

  // |x_i|^2, summed in column order, so that zeros left out change nothing.
  T square(int64_t i) const {
    T s = 0;
    each(i, [&](int64_t, T v) { s += v * v; });
    return s;
  }
};

// Whether row i of a and row j of b are the same; entries of 0 may be stored or not.
template <class T, class U> bool same_row(const Rows<T>& a, int64_t i, const Rows<U>& b, int64_t j) {
  struct Place {                               // of an entry: a column of a dense row, or where it is stored
    int64_t at, end;
  };
  auto begin = [](const auto& rows, int64_t r) {
    return rows.sparse() ? Place{rows.starts[r], rows.starts[r + 1]} : Place{r * rows.width, (r + 1) * rows.width};
  };
  auto value = [](const auto& rows, const Place& p) { return double(rows.sparse() ? rows.values[p.at] : rows.dense[p.at]); };
  auto column = [](const auto& rows, int64_t r, const Place& p) {
    return rows.sparse() ? int64_t(rows.indices[p.at]) : p.at - r * rows.width;
  };
  auto skip_zeros = [&](const auto& rows, Place& p) {
    while (p.at < p.end && value(rows, p) == 0) ++p.at;
  };
  for (Place p = begin(a, i), q = begin(b, j);; ++p.at, ++q.at) {
    skip_zeros(a, p);
    skip_zeros(b, q);
    if (p.at == p.end || q.at == q.end) return p.at == p.end && q.at == q.end;
    if (column(a, i, p) != column(b, j, q) || value(a, p) != value(b, q)) return false;
  }
}

}  // namespace KS_MODULE
