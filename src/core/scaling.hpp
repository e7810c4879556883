// CSR rows brought to a common scale, each by the rows before it and itself; src/kernelstream/scaling.py states the rule.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "rows.hpp"

namespace KS_MODULE {

// What is known of the features: their first value other than 0; of the differences from it the sums and squares, over the rows that
// are not 0, and how many these are; and whether they are quantities: 1, or 0 for what is on a common scale already, or 2: not said.
struct Scales {
  std::vector<double> first, sums, squares, counts, quantities;
  double rows = 0;

  bool common(int64_t d) const { return quantities[size_t(d)] != 0 && 2 * counts[size_t(d)] > rows; }

  void learn(int64_t d, double x) {
    if (quantities[size_t(d)] == 0 || x == 0) return;
    if (counts[size_t(d)] == 0) first[size_t(d)] = x;
    const double gap = x - first[size_t(d)];
    sums[size_t(d)] += gap;
    squares[size_t(d)] += gap * gap;
    counts[size_t(d)] += 1;
  }

  // A value on the common scale, with itself among the rows; `x` may be a 0 that is not stored.
  double scaled(int64_t d, double x) const {
    const size_t at = size_t(d);
    if (quantities[at] == 0 || (counts[at] == 0 && x == 0)) return x;
    const double from = counts[at] == 0 ? x : first[at], gap = x - from, n = rows + 1;
    const double count = counts[at] + (x != 0), sum = sums[at] + (x != 0 ? gap : 0), square = squares[at] + (x != 0 ? gap * gap : 0);
    const double centre = sum / count, spread = square / count - centre * centre;
    const bool varies = spread > kLeast * (square / count), most = 2 * count > n;
    const double root = std::sqrt(std::max(spread, 0.0) + (from + centre) * (from + centre));
    if (root <= 1 && (!most || quantities[at] != 1)) return x;
    if (!most || !varies) return x / root;
    const double zeros = n - count, mean = (sum - zeros * from) / n;
    return (gap - mean) / std::sqrt((square + zeros * from * from) / n - mean * mean);
  }

 private:
  static constexpr double kLeast = 1e-12;          // a smaller share of the squares is rounding
};

// Rows on the common scale, as CSR; the scales learn those that count.
template <class T> struct ScaledRows {
  std::vector<T> values;
  std::vector<int32_t> indices;
  std::vector<int64_t> starts{0};

  ScaledRows(const Rows<T>& from, Scales& scales, const double* counted) {
    std::vector<int64_t> filled;                   // features that most rows have, sorted: their zeros are numbers as well
    for (int64_t d = 0; d < from.width; ++d)
      if (scales.common(d)) filled.push_back(d);
    for (int64_t i = 0; i < from.n; ++i) {
      auto next = filled.begin();
      auto fill = [&](int64_t before) {
        for (; next != filled.end() && *next < before; ++next) put(*next, scales.scaled(*next, 0));
      };
      from.each(i, [&](int64_t d, T x) {
        fill(d);
        if (next != filled.end() && *next == d) ++next;
        put(d, scales.scaled(d, double(x)), true);
      });
      fill(from.width);
      starts.push_back(int64_t(values.size()));
      if (counted[i] == 0) continue;
      scales.rows += 1;
      from.each(i, [&](int64_t d, T x) {
        scales.learn(d, double(x));
        auto at = std::lower_bound(filled.begin(), filled.end(), d);
        if (scales.common(d) && (at == filled.end() || *at != d)) filled.insert(at, d);
      });
      auto gone = [&](int64_t d) { return !scales.common(d); };
      filled.erase(std::remove_if(filled.begin(), filled.end(), gone), filled.end());
    }
  }

 private:
  void put(int64_t d, double value, bool stored = false) {
    if (value == 0 && !stored) return;             // zeros that are stored stay so
    values.push_back(T(value));
    indices.push_back(int32_t(d));
  }
};

}  // namespace KS_MODULE
