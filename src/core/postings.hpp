// Stored points of wide rows: only what is not zero, by point and by column.
//
// The product of a row with all points goes over the row's columns, and for each over the points that have it. So the time and the
// memory are in proportion to the non-zeros, and a point's product is one chain of operations over the columns in order.
#pragma once
#include <unordered_map>
#include <vector>

#include "rows.hpp"

namespace KS_MODULE {

// Rows wider than this are stored sparse.
constexpr int64_t kWidestDense = 4096;

// What is not zero of a row.
template <class T> struct SparseRow {
  std::vector<int32_t> columns;
  std::vector<T> values;
  int64_t starts[2] = {0, 0};

  template <class U> void assign(const Rows<U>& rows, int64_t i) {
    clear();
    rows.each(i, [&](int64_t d, U v) {
      if (v == 0) return;
      columns.push_back(int32_t(d));
      values.push_back(T(v));
    });
    starts[1] = int64_t(columns.size());
  }
  void clear() {
    columns.clear();
    values.clear();
    starts[1] = 0;
  }
  Rows<T> row(int64_t width) const {
    static const T nothing[1] = {0};
    return {1, width, nullptr, values.empty() ? nothing : values.data(), columns.data(), starts};
  }
  size_t nbytes() const { return columns.size() * (sizeof(T) + sizeof(int32_t)) + sizeof(starts); }
};

template <class T> class Postings {
 public:
  Postings() = default;
  explicit Postings(int64_t width, int64_t slots = 0) : width_(width), points_(size_t(slots)) {}

  int64_t width() const { return width_; }
  int64_t slots() const { return int64_t(points_.size()); }
  void grow(int64_t slots) { points_.resize(size_t(slots)); }
  size_t nbytes() const { return size_t(entries_) * 2 * sizeof(Entry) + points_.size() * sizeof(SparseRow<T>); }

  void put(int64_t slot, const Rows<T>& rows, int64_t i) {
    remove(slot);
    SparseRow<T>& point = points_[size_t(slot)];
    point.assign(rows, i);
    for (size_t e = 0; e < point.columns.size(); ++e) lists_[point.columns[e]].push_back({int32_t(slot), point.values[e]});
    entries_ += int64_t(point.columns.size());
  }

  // The point of a slot as a sparse row.
  Rows<T> row(int64_t slot) const { return points_[size_t(slot)].row(width_); }

  // Calls visit(slot, x, p) for every stored entry p of a point in a column in which row i is x, not 0.
  template <class F> void each(const Rows<T>& rows, int64_t i, F visit) const {
    rows.each(i, [&](int64_t d, T x) {
      if (x == 0) return;
      auto list = lists_.find(int32_t(d));
      if (list == lists_.end()) return;
      for (const Entry& e : list->second) visit(e.slot, x, e.value);
    });
  }

  void clear() {
    for (int64_t slot = 0; slot < slots(); ++slot) remove(slot);
  }

 private:
  struct Entry {
    int32_t slot;
    T value;
  };

  void remove(int64_t slot) {
    SparseRow<T>& point = points_[size_t(slot)];
    for (int32_t d : point.columns) {
      auto at = lists_.find(d);
      std::vector<Entry>& list = at->second;
      size_t e = 0;
      while (list[e].slot != slot) ++e;
      list[e] = list.back();
      list.pop_back();
      if (list.empty()) lists_.erase(at);
    }
    entries_ -= int64_t(point.columns.size());
    point.clear();
  }

  int64_t width_ = 0, entries_ = 0;
  std::vector<SparseRow<T>> points_;
  std::unordered_map<int32_t, std::vector<Entry>> lists_;
};

}  // namespace KS_MODULE
