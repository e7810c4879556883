// The local memory of NewtonMixture: rows kept with what is known of each, and a small kernel machine on the nearest ones.
//
// The kernel machine is kernel ridge regression on the kNeighbours nearest rows: coefficients a = (K + kRidge I)^-1 k with a Matern
// kernel (3/2) whose length is kLength times the median distance of the neighbours. sum_i a_i y_i forecasts the target, sum_i a_i r_i
// the residual r that the aggregation's forecast left at row i when that was learnt. Where labels are noisy a mean over more rows is
// better: the smoother, over the kAround nearest rows, weighs them by the same kernel, as long as their median distance; kNothing is
// the weight of the forecast 0.
//
// Where classes move, rows that are near but old tell what was. A second smoother takes the kLatestNear nearest of the last kLatest
// rows. Its kernel is short, kLatestLength times their median distance, so that a row much nearer than the others decides; a row also
// counts less with its age, and nothing at all when it leaves. kLatestNothing is of the order of the kernel at the median: where no row
// stands out it says little.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "cells.hpp"

namespace KS_MODULE {

// All pairs i < j of N rows, those of the first row first; in whole lines of doubles, the last ones being of row 0 with itself.
template <int64_t N> struct Pairs {
  static constexpr int64_t count = (N * (N - 1) / 2 + kLine<double> - 1) / kLine<double> * kLine<double>;
  uint8_t of[2][count] = {};
  int64_t begin[N] = {};  // of the pairs of each row
  constexpr Pairs() {
    int64_t p = 0;
    for (int64_t i = 0; i < N; ++i) {
      begin[i] = p;
      for (int64_t j = i + 1; j < N; ++j, ++p) {
        of[0][p] = uint8_t(i);
        of[1][p] = uint8_t(j);
      }
    }
  }
};

class Local : public Cells {
 public:
  static constexpr double kLength = 2, kRidge = 0.03, kNothing = 0.5, kLightest = 1e-9, kHeaviest = 1e3, kUsualRows = 4;
  static constexpr int64_t kNeighbours = 24, kAround = 64, kLatest = 512, kLatestNear = 8;
  static constexpr double kLatestLength = 0.2, kLatestNothing = 0.03;
  static constexpr Pairs<kNeighbours> kPairs{};
  static constexpr double kLargest = 1e30;  // of a target, standardised

  int64_t outputs = 1;
  std::vector<float> targets, weights, residuals;  // by slot
  std::vector<Near> near;  // the neighbours of the query, by slot, the nearest first
  std::vector<Near> around;  // and more of them: the rows that the smoother takes
  std::vector<Near> latest;  // the nearest of the last rows

  Local() = default;
  Local(int64_t width_, int64_t outputs_, int64_t capacity_) : Cells(width_, capacity_), outputs(outputs_) {}

  static int64_t row_bytes(int64_t width, int64_t outputs) { return Cells::row_bytes(width) + 4 * (2 + outputs); }
  size_t nbytes() const { return Cells::nbytes() + size_t(allocated_ * 4 * (2 + outputs)); }

  void clear() {
    note_all();
    Cells::clear();
    n_ = 0;
    for (auto* a : {&targets, &weights, &residuals}) *a = {};
    for (auto* a : {&near, &around, &latest}) a->clear();
  }

  void allocate(int64_t n) {
    Cells::allocate(n);
    make_place();
  }

  // Looks for the neighbours of scaled row r.
  void look(const Rows<double>& z, int64_t r) {
    Cells::look(z, r, kAround, around);
    near.assign(around.begin(), around.begin() + std::min(kNeighbours, int64_t(around.size())));
  }
  // Looks for the nearest of the last rows.
  void look_back() { Cells::look_back(kLatest, kLatestNear, latest); }

  // Keeps the row of the last query; residual: one per output.
  void put(double y, double weight, const float* residual) {
    if (count == capacity) journal_.note_row(next - count, [&](Journal::Changes& to) { note_row(to, next % capacity); });
    int32_t slot = Cells::put();
    if (slot < 0) return;
    make_place();
    targets[size_t(slot)] = float(std::min(std::max(y, -kLargest), kLargest));
    weights[size_t(slot)] = float(weight);
    std::copy_n(residual, outputs, residuals.data() + slot * outputs);
  }
  // Keeps scaled row r.
  void put(const Rows<double>& z, int64_t r, double y, double weight, const float* residual) {
    ask(z, r);
    put(y, weight, residual);
  }
  // Keeps a row that another local memory with the same scaling and relevances kept.
  void put(const Step* row, double y, double weight, const float* residual) {
    ask(row, width);
    put(y, weight, residual);
  }

  // What it is now, as long as the mark is held. All of it is about to change: to be said before that.
  Journal::Mark mark() { return journal_.mark(landmark_of.size(), count, next); }
  void note_all() { journal_.note_all(*this); }
  // What it was then, if it knows the mark.
  bool knows(const Journal::Mark& mark) const { return journal_.knows(mark); }
  void back_to(const Journal::Mark& mark) {
    Journal::Changes& noted = *mark.changes;
    for (; noted.all.size() > mark.noted; noted.all.pop_back()) {
      const Journal::Change& change = noted.all.back();
      size_t place = size_t(change.place);
      if (change.kind == Journal::cell) cells[place] = change.before;
      if (change.kind == Journal::landmark) landmark_of[place] = change.before;
      if (change.kind == Journal::row) take_row(noted, change);
      if (change.kind == Journal::whole) {
        *this = std::move(*noted.wholes[size_t(change.before)]);
        noted.wholes.resize(size_t(change.before));
      }
    }
    count = mark.count;
    next = mark.next;
    allocated_ = 0;
    Cells::allocate(count);
    make_place();
    landmark_of.resize(mark.cells);
    settle();
    journal_.gone_back_to(mark);
  }

  // The coefficients of the neighbours, from which the forecasts below are made.
  void solve() {
    n_ = int64_t(near.size());
    if (!n_) return;
    alignas(64) double to_query[kNeighbours] = {};
    const Step* at[kNeighbours];
    for (int64_t i = 0; i < kNeighbours; ++i) {
      const Near& row = near[size_t(std::min(i, n_ - 1))];  // where there are too few, the last one again: nothing looks at those
      at[i] = rows.data() + row.which * stride;
      if (i < n_) to_query[i] = double(row.square);
    }
    roots(to_query, 0, kNeighbours);
    double median = to_query[n_ / 2] > 0 ? to_query[n_ / 2] : to_query[n_ - 1] > 0 ? to_query[n_ - 1] : 1;
    double unit = std::sqrt(3.0) / (kLength * median);
    matern(to_query, 0, kNeighbours, unit, k_);
    with_squares([&](auto& squares) { compare(at, unit, squares.of_others); });
    for (int64_t i = 0; i < n_; ++i) {
      // The line that the diagonal is in and those after it; what comes before the diagonal has no meaning.
      int64_t first = i / kLine<double> * kLine<double>;
      const double* from = pairs_ + kLine<double> + kPairs.begin[i] - i - 1;
      for (int64_t l = first; l < kNeighbours; l += kLine<double>) Line<double>::at(from + l).to(K_ + i * kNeighbours + l);
      K_[i * kNeighbours + i] = 1 + kRidge / weight(near[size_t(i)]);
    }
    factor();
    substitute(a_);
  }

  // The coefficients of the smoothers.
  void smooth() {
    smooth(around, kAround, 1, kNothing, [](int32_t) { return 1.0; }, b_);
  }
  void smooth_latest() {
    smooth(latest, kLatestNear, kLatestLength, kLatestNothing, [&](int32_t slot) { return 1 - double(age(slot)) / double(kLatest); }, c_);
  }

  // f: one value per output; of targets -1 and +1 in classification. g: of residuals.
  void forecast(const std::vector<Near>& of, const double* a, double* f, double* g) const {
    std::fill_n(f, outputs, 0.0);
    std::fill_n(g, outputs, 0.0);
    double total = 0;
    if (outputs == 1) {
      double target = 0, residual = 0;  // in registers
      for (size_t i = 0; i < of.size(); ++i) {
        target += a[i] * double(targets[size_t(of[i].which)]);
        residual += a[i] * double(residuals[size_t(of[i].which)]);
      }
      f[0] = target;
      g[0] = residual;
      return;
    }
    for (size_t i = 0; i < of.size(); ++i) {
      f[int64_t(targets[size_t(of[i].which)])] += 2 * a[i];
      total += a[i];
      for (int64_t c = 0; c < outputs; ++c) g[c] += a[i] * double(residuals[size_t(of[i].which * outputs + c)]);
    }
    for (int64_t c = 0; c < outputs; ++c) f[c] -= total;
  }
  const double* coefficients() const { return a_; }
  const double* smooth_coefficients() const { return b_; }
  const double* latest_coefficients() const { return c_; }

  // The variance of the forecast of the targets, those of the kernel machine having a variance of 1 far from all rows.
  double variance() const {
    double explained = 0;
    for (int64_t i = 0; i < n_; ++i) explained += a_[i] * k_[i];
    return std::min(std::max(1 - explained, 0.0), 1.0);
  }
  // The mean square of what the forecasts left at the neighbours, each counted by its kernel with the query, and kUsualRows rows at
  // which they left `usual`.
  double residual_square(double usual) const {
    double sum = kUsualRows * usual, total = kUsualRows;
    for (int64_t i = 0; i < n_; ++i) {
      double residual = residuals[size_t(near[size_t(i)].which * outputs)];
      sum += k_[i] * residual * residual;
      total += k_[i];
    }
    return sum / total;
  }

  // What the forecasts left at the neighbours: exceeded at one in five of them, so that a few wild targets do not matter. 0 if there are
  // fewer than kNeighbours.
  double usual_residual() const {
    if (int64_t(near.size()) < kNeighbours) return 0;
    float left[kNeighbours], *middle = left + kNeighbours * 4 / 5;
    for (int64_t i = 0; i < kNeighbours; ++i) left[i] = std::abs(residuals[size_t(near[size_t(i)].which * outputs)]);
    std::nth_element(left, middle, left + kNeighbours);
    return *middle;
  }

  // Another relevance of each feature: the rows kept are moved, and put into cells again. The landmarks are to be placed before.
  void rescale(const double* from) {
    std::vector<double> ratio(size_t(stride), 0.0);
    for (int64_t d = 0; d < width; ++d) ratio[size_t(d)] = relevance[size_t(d)] / from[d];
    Local old(*this);
    clear();
    std::vector<Step> moved(size_t(width), Step(0));
    for (int64_t i = 0; i < old.count; ++i) {
      size_t slot = old.slot_of(i);
      const Step* row = old.rows.data() + slot * size_t(stride);
      for (int64_t d = 0; d < width; ++d) moved[size_t(d)] = Step(std::floor(row[d] * ratio[size_t(d)] + 0.5));
      put(moved.data(), old.targets[slot], old.weights[slot], old.residuals.data() + slot * size_t(outputs));
    }
  }

  // Keeps what `from`, of fewer features or other outputs, keeps, the landmarks being placed; targets_: by slot of `from`;
  // residual(old, new) turns its residuals into ours.
  template <class F> void take(const Local& from, const float* targets_, F residual) {
    clear();
    if (width == from.width && from.next == from.count && from.count <= capacity) {
      copy(from);
      make_place();
      std::copy_n(targets_, count, targets.begin());
      std::copy(from.weights.begin(), from.weights.end(), weights.begin());
      for (int64_t i = 0; i < count; ++i) residual(from.residuals.data() + i * from.outputs, residuals.data() + i * outputs);
      return;
    }
    std::vector<float> mine(size_t(outputs), 0.0f);
    for (int64_t i = std::max<int64_t>(0, from.count - capacity); i < from.count; ++i) {
      size_t slot = from.slot_of(i);
      residual(from.residuals.data() + slot * size_t(from.outputs), mine.data());
      ask(from.rows.data() + slot * size_t(from.stride), from.width);
      put(targets_[slot], from.weights[slot], mine.data());
    }
  }

 private:
  // A row that leaves, and what is known of it; and back again.
  void note_row(Journal::Changes& to, int64_t slot) const {
    size_t apart = size_t(2 + outputs), n = to.known.size() / apart;
    to.rows.resize((n + 1) * size_t(stride));
    to.known.resize((n + 1) * apart);
    float* known = to.known.data() + n * apart;
    std::copy_n(rows.data() + slot * stride, stride, to.rows.data() + n * size_t(stride));
    known[0] = targets[size_t(slot)];
    known[1] = weights[size_t(slot)];
    std::copy_n(residuals.data() + slot * outputs, outputs, known + 2);
    to.all.push_back({Journal::row, int32_t(slot), int32_t(n)});
  }
  void take_row(Journal::Changes& from, const Journal::Change& change) {
    size_t slot = size_t(change.place), n = size_t(change.before), apart = size_t(2 + outputs);
    const float* known = from.known.data() + n * apart;
    std::copy_n(from.rows.data() + n * size_t(stride), stride, rows.data() + slot * size_t(stride));
    targets[slot] = known[0];
    weights[slot] = known[1];
    std::copy_n(known + 2, outputs, residuals.data() + slot * size_t(outputs));
    from.rows.resize(n * size_t(stride));
    from.known.resize(n * apart);
  }

  double weight(const Near& row) const { return std::min(std::max(double(weights[size_t(row.which)]), kLightest), kHeaviest); }

  // For what is known of the rows, as many as there are.
  void make_place() {
    if (int64_t(targets.size()) == count) return;
    residuals.reserve(size_t(allocated_ * outputs));
    residuals.resize(size_t(count * outputs));
    for (auto* a : {&targets, &weights}) {
      a->reserve(size_t(allocated_));
      a->resize(size_t(count));
    }
  }

  // The mean over rows, at most `most` of them (whole lines), by a kernel of `length` times their median distance, and by age.
  template <class F> void smooth(const std::vector<Near>& of, int64_t most, double length, double nothing, F by_age, double* b) const {
    int64_t n = int64_t(of.size());
    for (int64_t i = 0; i < most; ++i) b[i] = i < n ? double(of[size_t(i)].square) : 0;
    roots(b, 0, most);
    double median = b[n / 2] > 0 ? b[n / 2] : b[n - 1] > 0 ? b[n - 1] : 1, total = nothing;
    matern(b, 0, most, std::sqrt(3.0) / (length * median), b);
    for (int64_t i = 0; i < n; ++i) total += b[i] *= weight(of[size_t(i)]) * by_age(of[size_t(i)].which);
    for (int64_t i = 0; i < n; ++i) b[i] /= total;
  }

  // The roots of entries `first` to n, in place; of whole lines.
  static void roots(double* x, int64_t first, int64_t n) {
    for (int64_t l = first / kLine<double> * kLine<double>; l < n; ++l) x[l] = std::sqrt(x[l]);
  }

  // (1 + r) e^-r of r = unit times the distances from entry `first` to entry n.
  static void matern(const double* distance, int64_t first, int64_t n, double unit, double* out) {
    for (int64_t l = first / kLine<double> * kLine<double>; l < n; l += kLine<double>) {
      Line<double> r = Line<double>::at(distance + l);
      r.apply([&](Vec<double> v) {
        v = v * unit;
        return (v + 1) * exp<double>(-v);
      });
      r.to(out + l);
    }
  }

  // Into pairs_, from the second line on: the kernel of each pair of rows.
  template <class S> void compare(const Step* const* at, double unit, std::vector<S>& square) {
    double* to = pairs_ + kLine<double>;
    square.resize(size_t(kPairs.count));
    measure([&](int64_t p) { return at[kPairs.of[0][p]]; }, [&](int64_t p) { return at[kPairs.of[1][p]]; }, kPairs.count, square.data());
    for (int64_t p = 0; p < kPairs.count; ++p) to[p] = std::sqrt(double(square[size_t(p)]));
    matern(to, 0, kPairs.count, unit, to);
  }

  // K = U^T U, U in place of the upper triangle of K; whole lines, so what is below the diagonal has no meaning. And U^T a = k: each
  // step of that is made while the next row of U waits for its root.
  void factor() {
    Line<double> left[kNeighbours / kLine<double>];  // of k
    for (int l = 0; l < kNeighbours / kLine<double>; ++l) left[l] = Line<double>::at(k_ + l * kLine<double>);
    factor_lines<0>(left);
    factor_lines<1>(left);
    factor_lines<2>(left);
  }
  // The rows of U whose diagonal is in line `first`; each is kept in registers while the rows above are taken away.
  template <int first> void factor_lines(Line<double>* left) {
    constexpr int L = kLine<double>, N = kNeighbours / L - first;
    for (int64_t i = first * L; i < std::min<int64_t>((first + 1) * L, n_); ++i) {
      double* row = K_ + i * kNeighbours + first * L;
      Line<double> to[N];
      for (int l = 0; l < N; ++l) to[l] = Line<double>::at(row + l * L);
      for (int64_t j = 0; j < i; ++j) {
        const double* u = K_ + j * kNeighbours;
        Line<double> times = Line<double>::of(-u[i]);
        for (int l = 0; l < N; ++l) to[l].add_product(times, Line<double>::at(u + (first + l) * L));
      }
      for (int l = 0; l < N; ++l) to[l].to(row + l * L);
      scale(1 / std::sqrt(std::max(row[i - first * L], 1e-12)), row, size_t(N));
      double of_line[L];
      left[first].to(of_line);
      a_[i] = of_line[i - first * L] / row[i - first * L];
      Line<double> times = Line<double>::of(-a_[i]);
      for (int l = 0; l < N; ++l) left[first + l].add_product(times, Line<double>::at(row + l * L));
    }
  }
  // U x = a, x in place of a.
  void substitute(double* x) const {
    for (int64_t j = n_ - 1; j >= 0; --j) {
      const double* u = K_ + j * kNeighbours;
      double s = x[j];
      for (int64_t i = j + 1; i < n_; ++i) s -= u[i] * x[i];
      x[j] = s / u[j];
    }
  }

  int64_t n_ = 0;  // neighbours
  alignas(64) double pairs_[kPairs.count + 2 * kLine<double>] = {};
  alignas(64) double K_[kNeighbours * kNeighbours] = {}, a_[kNeighbours] = {}, b_[kAround] = {}, c_[kLatestNear] = {}, k_[kNeighbours] = {};
};

}  // namespace KS_MODULE
