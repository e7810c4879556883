// The local memory of NewtonMixture: many rows kept, the nearest ones found through cells, and a small kernel machine on those.
//
// A row kept is its scaled row times the features' relevances, in steps of 1 / kSteps, as 16-bit integers. Square distances are sums
// of integers, exact in any order: the nearest rows depend on neither the machine nor the chunks.
//
// Cells. Each row lies in one cell, each cell under one landmark, the nearest to its rows. A cell of more than kSplit rows is split in
// two halves along the line between two rows far apart. A query looks at the cells under its kProbed nearest landmarks (more, while
// these have fewer than kLeastProbed rows), the nearest mean first, until kMeasured rows have been measured. When the memory is full the oldest row leaves; an empty cell is free.
// Were there no free cell when one is needed, a row would lie in none, and would not be found.
//
// The kernel machine is kernel ridge regression on the kNeighbours nearest rows: coefficients a = (K + kRidge I)^-1 k with a Matern
// kernel (3/2) whose length is kLength times the median distance of the neighbours. sum_i a_i y_i forecasts the target, sum_i a_i r_i
// the residual r that the aggregation's forecast left at row i when that was learnt. Where labels are noisy a mean over more rows is
// better: the smoother, over the kAround nearest rows, weighs them by the same kernel, as long as their median distance; kNothing is
// the weight of the forecast 0.
//
// Where classes move, rows that are near but old tell what was. A second smoother takes the kLatestNear nearest of the last kLatest rows. Its
// kernel is short, kLatestLength times their median distance, so that a row much nearer than the others decides; a row also counts less with its
// age, and nothing at all when it leaves. kLatestNothing is of the order of the kernel at the median: where no row stands out it says little.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <new>
#include <vector>

#include "rows.hpp"
#include "simd.hpp"
#include "steps.hpp"
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace KS_MODULE {

// Memory that begins with a cache line: a row of 64 steps is two lines then, and not three. Much of it begins with a large page, and
// asks for such: rows far apart are looked at, and a processor knows where only so many pages are.
constexpr size_t kLargePage = size_t(1) << 21;
template <class T> struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U> LineAllocator(const LineAllocator<U>&) {}
  static std::align_val_t alignment(size_t n) { return std::align_val_t(n * sizeof(T) < 2 * kLargePage ? 64 : kLargePage); }
  T* allocate(size_t n) {
    void* p = ::operator new(n * sizeof(T), alignment(n));
#if defined(MADV_HUGEPAGE)
    if (size_t(alignment(n)) == kLargePage) madvise(p, n * sizeof(T) / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(p);
  }
  void deallocate(T* p, size_t n) { ::operator delete(p, alignment(n)); }
  bool operator==(const LineAllocator&) const { return true; }
  bool operator!=(const LineAllocator&) const { return false; }
};

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

class Local {
 public:
  using Step = KS_MODULE::Step;
  using Steps = std::vector<Step, LineAllocator<Step>>;
  static constexpr double kSteps = 512, kLength = 2, kRidge = 0.03, kNothing = 0.5, kLightest = 1e-9, kHeaviest = 1e3, kUsualRows = 4;
  static constexpr int64_t kNeighbours = 24, kAround = 64, kProbed = 8, kSplit = 64, kMeasured = 512, kLeastProbed = 256;
  static constexpr int64_t kLatest = 512, kLatestNear = 8;
  static constexpr double kLatestLength = 0.2, kLatestNothing = 0.03;
  static constexpr Pairs<kNeighbours> kPairs{};
  static constexpr int64_t kExact = 112;  // so many squares of differences below 8 kSteps fit 32 bits
  static constexpr int64_t kCells = 16;  // ranked at first: usually enough to have kMeasured rows
  static constexpr int64_t kAhead = 24;  // rows fetched ahead
  static constexpr int64_t kFirstRows = 256;  // allocated at first; then twice as many again and again
  static constexpr int64_t kCellsPerSplit = 4;  // cells at most, per kSplit rows allocated
  static constexpr double kLargest = 1e30;  // of a target, standardised

  int64_t width = 0, stride = 0, outputs = 1, capacity = 0;  // capacity: rows at most, 0 if there is no local memory
  int64_t count = 0, next = 0;  // rows kept; rows put since the memory began
  Steps rows;  // by slot
  std::vector<float> targets, weights, residuals;
  std::vector<int32_t> cells;  // of each slot; -1: none
  std::vector<int32_t> landmark_of;  // of each cell, -1 if it is free
  std::vector<double> relevance;  // of each feature, in (0, 1]: what its scaled value is multiplied by

  struct Near {
    int64_t square;
    int32_t which;
    bool operator<(const Near& o) const { return square != o.square ? square < o.square : which < o.which; }
  };
  std::vector<Near> near;  // the neighbours of the query, by slot, the nearest first
  std::vector<Near> around;  // and more of them: the rows that the smoother takes
  std::vector<Near> latest;  // the nearest of the last rows

  Local() = default;
  Local(int64_t width_, int64_t outputs_, int64_t capacity_)
      : width(width_),
        stride((width_ + 15) / 16 * 16),
        outputs(outputs_),
        capacity(capacity_),
        relevance(size_t(capacity_ ? width_ : 0), 1.0),
        zero_(relevance.size(), 0.0),
        query_(size_t(stride)) {}

  // Bytes per landmark, whose first cell is there from the start, and per row kept.
  static int64_t landmark_bytes(int64_t width) { return cell_bytes((width + 15) / 16 * 16); }
  static int64_t row_bytes(int64_t width, int64_t outputs) {
    int64_t stride = (width + 15) / 16 * 16;
    return 2 * stride + 4 * (3 + outputs) + (kCellsPerSplit * cell_bytes(stride) + kSplit - 1) / kSplit;
  }

  size_t nbytes() const {
    return size_t(allocated_ * (2 * stride + 4 * (3 + outputs))) + (allocated_ ? most_cells() : 0) * size_t(cell_bytes(stride)) +
           8 * relevance.size();
  }

  // The landmarks, scaled, and what 0 is when scaled.
  void place(const Rows<double>& points, const double* zero) {
    zero_.assign(zero, zero + width);
    landmarks_.assign(size_t(points.n * stride), 0);
    for (int64_t j = 0; j < points.n; ++j) steps(points, j, landmarks_.data() + j * stride);
    cells_of_.assign(size_t(points.n), {});
  }

  // Forgets all rows, and gives back their memory.
  void clear() {
    count = next = allocated_ = n_ = 0;
    for (auto* a : {&cells, &landmark_of, &members_, &size_, &free_, &sums_}) *a = {};
    for (auto* a : {&targets, &weights, &residuals}) *a = {};
    rows = means_ = {};
    cells_of_.assign(cells_of_.size(), {});
    near.clear();
    around.clear();
    latest.clear();
  }

  // Looks for the neighbours of scaled row r.
  void look(const Rows<double>& z, int64_t r) {
    steps(z, r, query_.data());
    rank();
    with_squares([&](auto& squares) { find(squares); });
  }

  // Keeps scaled row r; residual: one per output.
  void put(const Rows<double>& z, int64_t r, double y, double weight, const float* residual) {
    steps(z, r, query_.data());
    rank_nearest();
    put(y, weight, residual);
  }

  // Keeps the row of the last query.
  void put(double y, double weight, const float* residual) {
    if (order_.empty()) return;
    int32_t slot = int32_t(next++ % capacity);
    if (count < capacity) {
      allocate(++count);
    } else {
      leave(slot);
    }
    std::copy_n(query_.data(), stride, rows.data() + slot * stride);
    targets[size_t(slot)] = float(std::min(std::max(y, -kLargest), kLargest));
    weights[size_t(slot)] = float(weight);
    std::copy_n(residual, outputs, residuals.data() + slot * outputs);
    int32_t cell = home_;
    if (cell < 0 || landmark_of[size_t(cell)] < 0) {  // not looked at, or its last row left to make place
      queue_.clear();
      add_cells(order_[0].which);
      with_squares([&](auto& squares) { cell = measure_cells(squares.of_others, queue_.size()); });
      if (cell < 0) cell = open(order_[0].which);
    }
    if (cell >= 0 && size_[size_t(cell)] > kSplit) cell = split(cell);
    enter(cell, slot);
  }

  // Keeps a row that another local memory with the same scaling and relevances kept.
  void put(const Step* row, double y, double weight, const float* residual) {
    std::copy_n(row, width, query_.data());
    rank_nearest();
    put(y, weight, residual);
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

  // Looks for the nearest of the last rows; of rows equally far the younger one comes first.
  void look_back() {
    int64_t n = std::min(count, kLatest), last = (next - 1) % capacity;
    auto slot = [&](int64_t age) { return last - age + (age > last ? capacity : 0); };
    with_squares([&](auto& squares) {
      squares.of_others.resize(size_t(n));
      measure([&](int64_t i) { return rows.data() + slot(i) * stride; }, n, squares.of_others.data());
      least(squares.of_others, kLatestNear, latest, [](int32_t i) { return i; });
    });
    latest.resize(std::min(latest.size(), size_t(kLatestNear)));
    for (Near& row : latest) row.which = int32_t(slot(row.which));
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

  // Another relevance of each feature: the rows kept are moved, and put into cells again. The landmarks are to be placed before.
  void rescale(const double* from) {
    std::vector<double> ratio(size_t(stride), 0.0);
    for (int64_t d = 0; d < width; ++d) ratio[size_t(d)] = relevance[size_t(d)] / from[d];
    Local old(std::move(*this));
    *this = Local(old.width, old.outputs, old.capacity);
    relevance = old.relevance;
    landmarks_ = old.landmarks_;
    zero_ = old.zero_;
    cells_of_.assign(old.cells_of_.size(), {});
    for (int64_t i = 0; i < old.count; ++i) {
      size_t slot = size_t((old.next - old.count + i) % capacity);
      const Step* row = old.rows.data() + slot * size_t(stride);
      for (int64_t d = 0; d < stride; ++d) query_[size_t(d)] = Step(std::floor(row[d] * ratio[size_t(d)] + 0.5));
      rank_nearest();
      put(old.targets[slot], old.weights[slot], old.residuals.data() + slot * size_t(outputs));
    }
  }

  // How many rows were put after the one in a slot.
  int64_t age(int64_t slot) const { return (next - 1 - slot) % capacity; }

  // How many rows are allocated for n, and how many cells there may be.
  int64_t allocated(int64_t n) const {
    int64_t rows_ = std::min(kFirstRows, capacity);
    while (rows_ < n) rows_ = std::min(2 * rows_, capacity);
    return rows_;
  }
  size_t most_cells(int64_t n, int64_t n_landmarks) const { return size_t(n_landmarks + kCellsPerSplit * allocated(n) / kSplit); }

  // Memory for n rows and their cells. What is allocated depends on n alone.
  void allocate(int64_t n) {
    if (n > allocated_) {
      allocated_ = allocated(n);
      rows.reserve(size_t(allocated_ * stride));
      residuals.reserve(size_t(allocated_ * outputs));
      for (auto* a : {&targets, &weights}) a->reserve(size_t(allocated_));
      cells.reserve(size_t(allocated_));
      for (auto* a : {&landmark_of, &size_}) a->reserve(most_cells());
      members_.reserve(most_cells() * size_t(kSplit + 1));
      sums_.reserve(most_cells() * size_t(stride));
      means_.reserve(most_cells() * size_t(stride));
    }
    rows.resize(size_t(n * stride));
    residuals.resize(size_t(n * outputs));
    for (auto* a : {&targets, &weights}) a->resize(size_t(n));
    cells.resize(size_t(n));
  }

  // Whether rows may lie in such cells under such landmarks: from a state.
  static bool fit(const int32_t* cell, size_t n, const int32_t* landmark, size_t n_cells, int64_t n_landmarks) {
    std::vector<int64_t> used(n_cells);
    for (size_t i = 0; i < n; ++i) {
      if (cell[i] < -1 || cell[i] >= int64_t(n_cells)) return false;
      if (cell[i] >= 0 && ++used[size_t(cell[i])] > kSplit + 1) return false;
    }
    for (size_t c = 0; c < n_cells; ++c)
      if (landmark[c] < -1 || landmark[c] >= n_landmarks || (used[c] > 0) != (landmark[c] >= 0)) return false;
    return true;
  }

  // After the rows, their cells and landmark_of were written and the landmarks placed: what follows from them.
  void settle() {
    size_t n = landmark_of.size();
    members_.assign(n * size_t(kSplit + 1), -1);
    size_.assign(n, 0);
    cells_of_.assign(cells_of_.size(), {});
    sums_.assign(n * size_t(stride), 0);
    means_.assign(n * size_t(stride), 0);
    free_.clear();
    for (size_t c = 0; c < n; ++c)
      if (landmark_of[c] >= 0)
        hang(int32_t(c), landmark_of[c]);
      else
        free_.push_back(int32_t(c));
    std::make_heap(free_.begin(), free_.end(), std::greater<int32_t>());
    for (int64_t s = 0; s < count; ++s) {
      int32_t c = cells[size_t(s)];
      if (c < 0) continue;
      members_[size_t(c * (kSplit + 1) + size_[size_t(c)]++)] = int32_t(s);
      int32_t* sum = sums_.data() + c * stride;
      for (int64_t d = 0; d < stride; ++d) sum[d] += rows[size_t(s * stride + d)];
    }
    for (size_t c = 0; c < n; ++c) settle_mean(int32_t(c));
  }

  // Keeps what `from`, of fewer features or other outputs, keeps, the landmarks being placed; targets_: by slot of `from`;
  // residual(old, new) turns its residuals into ours.
  template <class F> void take(const Local& from, const float* targets_, F residual) {
    clear();
    if (width == from.width && from.next == from.count && from.count <= capacity) {  // the same rows in the same slots and cells
      allocate(from.count);
      count = next = from.count;
      std::copy(from.rows.begin(), from.rows.end(), rows.begin());
      std::copy_n(targets_, count, targets.begin());
      std::copy(from.weights.begin(), from.weights.end(), weights.begin());
      std::copy(from.cells.begin(), from.cells.end(), cells.begin());
      for (int64_t i = 0; i < count; ++i) residual(from.residuals.data() + i * from.outputs, residuals.data() + i * outputs);
      auto copy = [](auto& to, const auto& old) { to.insert(to.end(), old.begin(), old.end()); };  // within what is reserved
      copy(landmark_of, from.landmark_of);
      copy(members_, from.members_);
      copy(size_, from.size_);
      copy(sums_, from.sums_);
      copy(means_, from.means_);
      copy(free_, from.free_);
      cells_of_ = from.cells_of_;
      return;
    }
    std::vector<float> mine(size_t(outputs), 0.0f);
    for (int64_t i = std::max<int64_t>(0, from.count - capacity); i < from.count; ++i) {
      size_t slot = size_t((from.next - from.count + i) % from.capacity);
      std::fill(query_.begin(), query_.end(), Step(0));
      std::copy_n(from.rows.data() + slot * size_t(from.stride), from.width, query_.data());
      rank_nearest();
      residual(from.residuals.data() + slot * size_t(from.outputs), mine.data());
      put(targets_[slot], from.weights[slot], mine.data());
    }
  }

 private:
  double weight(const Near& row) const { return std::min(std::max(double(weights[size_t(row.which)]), kLightest), kHeaviest); }
  const Step* mean(int32_t cell) const { return means_.data() + cell * stride; }
  size_t most_cells() const { return most_cells(allocated_, int64_t(cells_of_.size())); }
  static int64_t cell_bytes(int64_t stride) { return 6 * stride + 4 * (kSplit + 4); }

  // Scaled rows are moved so that 0 stays 0; here they are moved back, so that the rounding does not depend on the origin.
  void steps(const Rows<double>& z, int64_t r, Step* to) const {
    auto step = [&](int64_t d, double v) { to[d] = Step(std::floor((v + zero_[size_t(d)]) * relevance[size_t(d)] * kSteps + 0.5)); };
    std::fill_n(to + width, stride - width, Step(0));
    if (z.sparse())
      for (int64_t d = 0; d < width; ++d) step(d, 0);
    z.each(r, step);
  }

  // Square distances of rows a(i) and b(i), i < n, 32 or 64 bits each. Each difference is below 8 kSteps. Rows b that are `far` apart
  // in memory are fetched ahead.
  template <class S, class A, class B> void measure(A a, B b, int64_t n, S* out, bool far = false) const {
    auto together = [&](auto number, S* to) {
      auto from = [&](int r) { return a(number(r)); };
      auto other = [&](int r) { return b(number(r)); };
      if constexpr (sizeof(S) == 4) {
        store(to, squares(from, other, 0, stride));
      } else {
        std::fill_n(to, kTogether, S(0));
        for (int64_t d = 0; d < stride; d += kExact) add(to, squares(from, other, d, std::min(d + kExact, stride)));
      }
    };
    int64_t i = 0;
    for (; i + kTogether <= n; i += kTogether) {
      for (int64_t r = i + kAhead; far && r < std::min(i + kAhead + kTogether, n); ++r) fetch(b(r), stride);
      together([i](int r) { return i + r; }, out + i);
    }
    if (i == n) return;
    S rest[kTogether];  // the last one again and again, if there are too few
    together([i, n](int r) { return std::min(i + r, n - 1); }, rest);
    std::copy_n(rest, n - i, out + i);
  }
  template <class S, class B> void measure(B b, int64_t n, S* out, bool far = false) const {  // of the query
    const Step* query = query_.data();
    measure([query](int64_t) { return query; }, b, n, out, far);
  }
  int64_t square(const Step* a, const Step* b) const {
    int64_t out;
    measure([a](int64_t) { return a; }, [b](int64_t) { return b; }, 1, &out);
    return out;
  }

  // Square distances of the query, of as many bits as they need: f(those).
  template <class S> struct Squares {
    std::vector<S> of_landmarks, of_others;
  };
  template <class F> void with_squares(F f) { stride <= kExact ? f(narrow_) : f(wide_); }

  // The landmarks nearest to the query, in order: at least kProbed of them, or the nearest alone, which a row to be kept needs.
  void rank() {
    rank_landmarks([&](const auto& squares) { rank(squares, kProbed); });
  }
  void rank_nearest() {
    rank_landmarks([&](const auto& squares) {
      const auto& all = squares.of_landmarks;
      order_.clear();
      if (all.empty()) return;
      auto square = least_of(all, all.size());
      order_.push_back({square, int32_t(std::find(all.begin(), all.end(), square) - all.begin())});
    });
  }
  template <class F> void rank_landmarks(F ranked) {
    with_squares([&](auto& squares) {
      size_t n = cells_of_.size();
      squares.of_landmarks.resize(n);
      measure([&](int64_t j) { return landmarks_.data() + j * stride; }, int64_t(n), squares.of_landmarks.data());
      ranked(squares);
    });
    home_ = -1;
  }
  template <class S> void rank(const Squares<S>& squares, int64_t wanted) {
    least(squares.of_landmarks, wanted, order_, [](int32_t j) { return j; });
  }

  // At least the `wanted` nearest, in order, by their number in `squares`; of those equally far the one with the least tie(number)
  // first. Few branches depend on the squares, because a processor cannot guess them.
  template <class S, class F> void least(const std::vector<S>& squares, int64_t wanted, std::vector<Near>& to, F tie) {
    constexpr int64_t kRanked = 128, kAtOnce = 16;
    using V = std::conditional_t<sizeof(S) == 4, Int<float>, Int<double>>;
    constexpr int64_t kLanes = int64_t(sizeof(V) / sizeof(S));
    auto lanes = [](const S* from) {
      V v;
      std::memcpy(&v, from, sizeof v);
      return v;
    };
    const S* square = squares.data();
    int64_t n = int64_t(squares.size()), groups = (2 * wanted + kAtOnce - 1) / kAtOnce * kAtOnce, found = n;
    S bound = std::numeric_limits<S>::max();
    auto count = [](const S* from, int64_t n, S at_most) {
      S total = 0;
      for (int64_t i = 0; i < n; ++i) total += from[i] <= at_most;
      return int64_t(total);
    };
    auto halve = [&](const S* from, int64_t n, int64_t most) {  // a bound that at least `wanted` and few more are not above
      S low = -1;
      bound = *std::max_element(from, from + wanted);
      for (found = count(from, n, bound); found > most && bound - low > 1;) {
        S middle = low + (bound - low) / 2;
        int64_t fewer = count(from, n, middle);
        (fewer < wanted ? low : bound) = middle;
        if (fewer >= wanted) found = fewer;
      }
    };
    if (groups <= kRanked && n > groups + groups / 2) {
      // The least of each of twice as many groups as are wanted: a bound that half of these are not above is one for all, and nearly as good.
      S least_of[kRanked] = {};
      for (int64_t g = 0; g < groups; g += kLanes) {
        V least = lanes(square + g);
        int64_t i = g + groups;
        for (; i + kLanes <= n; i += groups) {
          V other = lanes(square + i);
          least = other < least ? other : least;
        }
        std::memcpy(least_of + g, &least, sizeof least);
        for (; i < n; ++i) least_of[g] = std::min(least_of[g], square[i]);
      }
      halve(least_of, groups, wanted + wanted / 8);
      found = count(square, n, bound);
    } else if (n > std::max(std::min(wanted + wanted / 4, kRanked), wanted)) {
      halve(square, n, std::min(wanted + wanted / 4, kRanked));
    }
    chosen_.resize(size_t(n) + kAtOnce);
    choose(square, n, bound, chosen_.data());
    to.resize(size_t(found));
    auto closer = [&](const Near& a, const Near& b) { return a.square != b.square ? a.square < b.square : tie(a.which) < tie(b.which); };
    if (found > kRanked) {  // many of them, or many equally far
      for (size_t k = 0; k < to.size(); ++k) to[k] = {square[chosen_[k]], chosen_[k]};
      if (found > wanted) {
        std::nth_element(to.begin(), to.begin() + wanted, to.end(), closer);
        to.resize(size_t(wanted));
      }
      std::sort(to.begin(), to.end(), closer);
      return;
    }
    S among[kRanked] = {}, place[kRanked];  // the place of each is how many are before it
    for (int64_t k = 0; k < found; ++k) {
      among[k] = square[chosen_[size_t(k)]];
      to[size_t(k)].which = -1;
    }
    for (int64_t first = 0; first < found; first += kLanes) {
      V here = lanes(among + first), before = {};
      for (int64_t k = 0; k < found; ++k) before += among[k] < here ? V{} + S(1) : V{};
      std::memcpy(place + first, &before, sizeof before);
    }
    for (int64_t k = 0; k < found; ++k) {
      size_t at = size_t(place[k]);
      while (to[at].which >= 0) ++at;  // taken by one equally far
      to[at] = {among[k], chosen_[size_t(k)]};
    }
    for (size_t k = 1; k < to.size(); ++k) {
      size_t from = k - 1;
      if (to[k].square != to[from].square) continue;
      while (k < to.size() && to[k].square == to[from].square) ++k;
      std::sort(to.begin() + int64_t(from), to.begin() + int64_t(k), closer);
    }
  }

  void add_cells(int32_t landmark) {
    const std::vector<int32_t>& all = cells_of_[size_t(landmark)];
    queue_.insert(queue_.end(), all.begin(), all.end());
  }
  // The distances of the cells in the queue; the nearest of the first n, -1 if there is none.
  template <class S> int32_t measure_cells(std::vector<S>& squares, size_t n) {
    squares.resize(queue_.size());
    measure([&](int64_t i) { return mean(queue_[size_t(i)]); }, int64_t(queue_.size()), squares.data(), true);
    if (!n) return -1;
    int32_t best = std::numeric_limits<int32_t>::max();
    S square = least_of(squares, n);
    for (size_t i = 0; i < n; ++i)
      if (squares[i] == square) best = std::min(best, queue_[i]);
    return best;
  }
  // The least of the first n > 0 numbers, without a branch that depends on them.
  template <class S> static S least_of(const std::vector<S>& numbers, size_t n) {
    S least = numbers[0];
    for (size_t i = 1; i < n; ++i) least = std::min(least, numbers[i]);
    return least;
  }

  template <class S> void find(Squares<S>& squares) {
    queue_.clear();
    int64_t reached = 0;
    size_t first = 0, n = cells_of_.size();  // first: cells under the nearest landmark
    if (count <= kLeastProbed && n) {  // all rows: in what order does not matter
      add_cells(order_[0].which);
      first = queue_.size();
      for (size_t j = 0; j < n; ++j)
        if (int32_t(j) != order_[0].which) add_cells(int32_t(j));
      for (int32_t cell : queue_) reached += size_[size_t(cell)];
      n = 0;
    }
    for (size_t j = 0; j < n && (int64_t(j) < kProbed || reached < kLeastProbed); ++j) {
      if (j == order_.size()) rank(squares, std::max(4 * int64_t(j), kLeastProbed * int64_t(n) / count));
      size_t from = queue_.size();
      add_cells(order_[j].which);
      for (size_t i = from; i < queue_.size(); ++i) reached += size_[size_t(queue_[i])];
      if (!j) first = queue_.size();
    }
    std::vector<S>& square = squares.of_others;
    home_ = measure_cells(square, first);
    slots_.clear();
    auto take = [&](int32_t cell) {
      const int32_t* member = members_.data() + cell * (kSplit + 1);
      slots_.insert(slots_.end(), member, member + size_[size_t(cell)]);
    };
    if (reached <= kMeasured) {
      for (int32_t cell : queue_) take(cell);
    } else {
      auto number = [&](int32_t i) { return queue_[size_t(i)]; };
      int64_t all = int64_t(queue_.size()), wanted = std::min(kCells, all);
      for (int64_t i = 0; int64_t(slots_.size()) < kMeasured; ++i) {
        if (!i || i == int64_t(nearest_.size())) least(square, i ? wanted = std::min(4 * wanted, all) : wanted, nearest_, number);
        take(queue_[size_t(nearest_[size_t(i)].which)]);
      }
    }
    square.resize(slots_.size());
    measure([&](int64_t i) { return rows.data() + slots_[size_t(i)] * stride; }, int64_t(slots_.size()), square.data(), true);
    least(square, kAround, around, [&](int32_t i) { return age(slots_[size_t(i)]); });  // of rows equally far the younger one first
    around.resize(std::min(around.size(), size_t(kAround)));
    for (Near& row : around) row.which = slots_[size_t(row.which)];
    near.assign(around.begin(), around.begin() + std::min(kNeighbours, int64_t(around.size())));
  }

  // A new cell under a landmark, -1 if there is no free one.
  int32_t open(int32_t landmark) {
    if (free_.empty() && landmark_of.size() >= most_cells()) return -1;
    int32_t c;
    if (!free_.empty()) {
      std::pop_heap(free_.begin(), free_.end(), std::greater<int32_t>());
      c = free_.back();
      free_.pop_back();
    } else {
      c = int32_t(landmark_of.size());
      landmark_of.push_back(0);
      members_.resize(members_.size() + size_t(kSplit + 1));
      size_.push_back(0);
      sums_.resize(sums_.size() + size_t(stride));
      means_.resize(means_.size() + size_t(stride));
    }
    std::fill_n(sums_.begin() + c * stride, stride, 0);
    hang(c, landmark);
    return c;
  }
  void hang(int32_t c, int32_t landmark) {
    landmark_of[size_t(c)] = landmark;
    cells_of_[size_t(landmark)].push_back(c);
  }

  void enter(int32_t c, int32_t slot) {
    cells[size_t(slot)] = c;
    if (c < 0) return;
    members_[size_t(c * (kSplit + 1) + size_[size_t(c)])] = slot;
    move(c, slot, 1);
  }

  void leave(int32_t slot) {
    int32_t c = cells[size_t(slot)];
    if (c < 0) return;
    move(c, slot, -1);
    int32_t *member = members_.data() + c * (kSplit + 1), left = size_[size_t(c)];
    *std::find(member, member + left, slot) = member[left];
    if (left) return;
    std::vector<int32_t>& all = cells_of_[size_t(landmark_of[size_t(c)])];
    *std::find(all.begin(), all.end(), c) = all.back();
    all.pop_back();
    landmark_of[size_t(c)] = -1;
    free_.push_back(c);
    std::push_heap(free_.begin(), free_.end(), std::greater<int32_t>());
  }

  // The sum and mean of a cell with a row more or less.
  void move(int32_t c, int32_t slot, int sign) {
    size_[size_t(c)] += sign;
    int32_t* sum = sums_.data() + c * stride;
    const Step* row = rows.data() + slot * stride;
    for (int64_t d = 0; d < stride; ++d) sum[d] += sign * row[d];
    settle_mean(c);
  }
  void settle_mean(int32_t c) {
    const int32_t* sum = sums_.data() + c * stride;
    Step* mean = means_.data() + c * stride;
    double share = size_[size_t(c)] ? 1.0 / size_[size_t(c)] : 0;
    for (int64_t d = 0; d < stride; ++d) mean[d] = Step(std::floor(sum[d] * share + 0.5));
  }

  // Splits a cell that has no place left; the half that the query is nearer to, or -1 if there is no free cell.
  int32_t split(int32_t c) {
    int32_t other = open(landmark_of[size_t(c)]);
    if (other < 0) return -1;
    const int32_t* member = members_.data() + c * (kSplit + 1);
    std::vector<int32_t> all(member, member + size_[size_t(c)]);
    auto row = [&](int32_t s) { return rows.data() + s * stride; };
    auto farthest = [&](const Step* from) {
      Near best{-1, 0};
      for (int32_t s : all) best = std::max(best, Near{square(from, row(s)), s});
      return best.which;
    };
    int32_t a = farthest(mean(c)), b = farthest(row(a));
    std::vector<Near> along;
    for (int32_t s : all) along.push_back({square(row(a), row(s)) - square(row(b), row(s)), s});
    std::sort(along.begin(), along.end());
    std::fill_n(sums_.begin() + c * stride, stride, 0);
    size_[size_t(c)] = 0;
    for (size_t i = 0; i < along.size(); ++i) enter(i < along.size() / 2 ? c : other, along[i].which);
    return square(query_.data(), mean(c)) <= square(query_.data(), mean(other)) ? c : other;
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

  std::vector<double> zero_;
  std::vector<int32_t> members_;  // of each cell: its rows, kSplit + 1 places
  std::vector<int32_t> size_;  // of each cell: how many rows
  std::vector<int32_t> sums_;  // of each cell
  Steps means_;
  std::vector<std::vector<int32_t>> cells_of_;  // of each landmark, in any order
  std::vector<int32_t> free_;  // cells, a heap: the least number is taken first
  Steps landmarks_, query_;
  std::vector<Near> order_, nearest_;  // landmarks, cells
  std::vector<int32_t> queue_;  // cells to be looked at
  int64_t n_ = 0, allocated_ = 0;
  int32_t home_ = -1;  // the nearest cell under the nearest landmark, if the query was looked at
  Squares<int32_t> narrow_;
  Squares<int64_t> wide_;
  std::vector<int32_t> slots_, chosen_;
  alignas(64) double pairs_[kPairs.count + 2 * kLine<double>] = {};
  alignas(64) double K_[kNeighbours * kNeighbours] = {}, a_[kNeighbours] = {}, b_[kAround] = {}, c_[kLatestNear] = {}, k_[kNeighbours] = {};
};

}  // namespace KS_MODULE
