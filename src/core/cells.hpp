// Rows kept, and the nearest ones of them, found through cells.
//
// A row kept is its scaled row times the features' relevances, in steps of 1 / kSteps, as 16-bit integers. Square distances are sums
// of integers, exact in any order: the nearest rows depend on neither the machine nor the chunks.
//
// Each row lies in one cell, each cell under one landmark, the nearest to its rows. A cell of more than kSplit rows is split in
// two halves along the line between two rows far apart. A query looks at the cells under its kProbed nearest landmarks (more, while
// these have fewer than kLeastProbed rows), the nearest mean first, until kMeasured rows have been measured. When the memory is full
// the oldest row leaves; an empty cell is free. Were there no free cell when one is needed, a row would lie in none, and would not be
// found.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <type_traits>
#include <vector>

#include "journal.hpp"
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

class Cells {
 public:
  using Step = KS_MODULE::Step;
  using Steps = std::vector<Step, LineAllocator<Step>>;
  static constexpr double kSteps = 512;
  static constexpr int64_t kProbed = 8, kSplit = 64, kMeasured = 512, kLeastProbed = 256;
  static constexpr int64_t kExact = 112;  // so many squares of differences below 8 kSteps fit 32 bits
  static constexpr int64_t kCells = 16;  // ranked at first: usually enough to have kMeasured rows
  static constexpr int64_t kAhead = 24;  // rows fetched ahead
  static constexpr int64_t kFirstRows = 256;  // allocated at first; then twice as many again and again
  static constexpr int64_t kCellsPerSplit = 4;  // cells at most, per kSplit rows allocated

  int64_t width = 0, stride = 0, capacity = 0;  // capacity: rows at most, 0 if there is no local memory
  int64_t count = 0, next = 0;  // rows kept; rows put since the memory began
  Steps rows;  // by slot
  std::vector<int32_t> cells;  // of each slot; -1: none
  std::vector<int32_t> landmark_of;  // of each cell, -1 if it is free
  std::vector<double> relevance;  // of each feature, in (0, 1]: what its scaled value is multiplied by

  struct Near {
    int64_t square;
    int32_t which;
    bool operator<(const Near& o) const { return square != o.square ? square < o.square : which < o.which; }
  };

  Cells() = default;
  Cells(int64_t width_, int64_t capacity_)
      : width(width_),
        stride(stride_of(width_)),
        capacity(capacity_),
        relevance(size_t(capacity_ ? width_ : 0), 1.0),
        zero_(relevance.size(), 0.0),
        query_(size_t(stride)) {}

  static int64_t stride_of(int64_t width) { return (width + 15) / 16 * 16; }
  // Bytes per landmark, whose first cell is there from the start, and per row kept.
  static int64_t landmark_bytes(int64_t width) { return cell_bytes(stride_of(width)); }
  static int64_t row_bytes(int64_t width) {
    int64_t stride = stride_of(width);
    return 2 * stride + 4 + (kCellsPerSplit * cell_bytes(stride) + kSplit - 1) / kSplit;
  }
  size_t nbytes() const {
    return size_t(allocated_ * (2 * stride + 4)) + (allocated_ ? most_cells() : 0) * size_t(cell_bytes(stride)) + 8 * relevance.size();
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
    count = next = allocated_ = 0;
    for (auto* a : {&cells, &landmark_of, &members_, &size_, &free_, &sums_}) *a = {};
    rows = means_ = {};
    cells_of_.assign(cells_of_.size(), {});
  }

  // The nearest rows to scaled row r, at most `wanted`.
  void look(const Rows<double>& z, int64_t r, int64_t wanted, std::vector<Near>& to) {
    steps(z, r, query_.data());
    rank();
    with_squares([&](auto& squares) { find(squares, wanted, to); });
  }

  // The nearest of the last rows to the row of the last query; of rows equally far the younger one comes first.
  void look_back(int64_t last_rows, int64_t wanted, std::vector<Near>& to) {
    int64_t n = std::min(count, last_rows), last = (next - 1) % capacity;
    auto slot = [&](int64_t age) { return last - age + (age > last ? capacity : 0); };
    with_squares([&](auto& squares) {
      squares.of_others.resize(size_t(n));
      measure([&](int64_t i) { return rows.data() + slot(i) * stride; }, n, squares.of_others.data());
      least(squares.of_others, wanted, to, [](int32_t i) { return i; });
    });
    to.resize(std::min(to.size(), size_t(wanted)));
    for (Near& row : to) row.which = int32_t(slot(row.which));
  }

  // Another row in place of the last query, about to be kept: scaled row r, or a row that is in steps already.
  void ask(const Rows<double>& z, int64_t r) {
    steps(z, r, query_.data());
    rank_nearest();
  }
  void ask(const Step* row, int64_t n) {
    std::copy_n(row, n, query_.data());
    std::fill(query_.begin() + n, query_.end(), Step(0));
    rank_nearest();
  }

  // Keeps the row of the last query; its slot, -1 if there is no landmark.
  int32_t put() {
    if (order_.empty()) return -1;
    int32_t slot = int32_t(next++ % capacity);
    if (count < capacity) {
      allocate(++count);
    } else {
      leave(slot);
    }
    std::copy_n(query_.data(), stride, rows.data() + slot * stride);
    int32_t cell = home_;
    if (cell < 0 || landmark_of[size_t(cell)] < 0) {  // not looked at, or its last row left to make place
      queue_.clear();
      add_cells(order_[0].which);
      with_squares([&](auto& squares) { cell = measure_cells(squares.of_others, queue_.size()); });
      if (cell < 0) cell = open(order_[0].which);
    }
    if (cell >= 0 && size_[size_t(cell)] > kSplit) cell = split(cell);
    enter(cell, slot);
    return slot;
  }

  // The slot of row i of those kept, the oldest being 0.
  size_t slot_of(int64_t i) const { return size_t((next - count + i) % capacity); }
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
      cells.reserve(size_t(allocated_));
      for (auto* a : {&landmark_of, &size_}) a->reserve(most_cells());
      members_.reserve(most_cells() * size_t(kSplit + 1));
      sums_.reserve(most_cells() * size_t(stride));
      means_.reserve(most_cells() * size_t(stride));
    }
    rows.resize(size_t(n * stride));
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
        cells_of_[size_t(landmark_of[c])].push_back(int32_t(c));
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

  // The same rows in the same slots and cells as `from`, which has kept no more than fit here, and none that left.
  void copy(const Cells& from) {
    clear();
    allocate(from.count);
    count = next = from.count;
    auto append = [](auto& to, const auto& old) { to.insert(to.end(), old.begin(), old.end()); };  // within what is reserved
    std::copy(from.rows.begin(), from.rows.end(), rows.begin());
    std::copy(from.cells.begin(), from.cells.end(), cells.begin());
    append(landmark_of, from.landmark_of);
    append(members_, from.members_);
    append(size_, from.size_);
    append(sums_, from.sums_);
    append(means_, from.means_);
    append(free_, from.free_);
    cells_of_ = from.cells_of_;
  }

 protected:
  int64_t allocated_ = 0;
  Journal journal_;

  // Square distances of the query, of as many bits as they need: f(those).
  template <class S> struct Squares {
    std::vector<S> of_landmarks, of_others;
  };
  template <class F> void with_squares(F f) { stride <= kExact ? f(narrow_) : f(wide_); }

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

 private:
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

  template <class S, class B> void measure(B b, int64_t n, S* out, bool far = false) const {  // of the query
    const Step* query = query_.data();
    measure([query](int64_t) { return query; }, b, n, out, far);
  }
  int64_t square(const Step* a, const Step* b) const {
    int64_t out;
    measure([a](int64_t) { return a; }, [b](int64_t) { return b; }, 1, &out);
    return out;
  }

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
      // The least of each of twice as many groups as are wanted: a bound that half of these are not above is one for all, and nearly as
      // good.
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

  template <class S> void find(Squares<S>& squares, int64_t wanted, std::vector<Near>& to) {
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
      int64_t all = int64_t(queue_.size()), ranked = std::min(kCells, all);
      for (int64_t i = 0; int64_t(slots_.size()) < kMeasured; ++i) {
        if (!i || i == int64_t(nearest_.size())) least(square, i ? ranked = std::min(4 * ranked, all) : ranked, nearest_, number);
        take(queue_[size_t(nearest_[size_t(i)].which)]);
      }
    }
    square.resize(slots_.size());
    measure([&](int64_t i) { return rows.data() + slots_[size_t(i)] * stride; }, int64_t(slots_.size()), square.data(), true);
    least(square, wanted, to, [&](int32_t i) { return age(slots_[size_t(i)]); });  // of rows equally far the younger one first
    to.resize(std::min(to.size(), size_t(wanted)));
    for (Near& row : to) row.which = slots_[size_t(row.which)];
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
    move_cell(c, landmark);
    cells_of_[size_t(landmark)].push_back(c);
    return c;
  }

  void move_cell(int32_t c, int32_t landmark) {
    journal_.note(Journal::landmark, c, landmark_of[size_t(c)]);
    landmark_of[size_t(c)] = landmark;
  }

  void enter(int32_t c, int32_t slot) {
    if (cells[size_t(slot)] != c) journal_.note(Journal::cell, slot, cells[size_t(slot)]);
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
    move_cell(c, -1);
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
  int32_t home_ = -1;  // the nearest cell under the nearest landmark, if the query was looked at
  Squares<int32_t> narrow_;
  Squares<int64_t> wide_;
  std::vector<int32_t> slots_, chosen_;
};

}  // namespace KS_MODULE
