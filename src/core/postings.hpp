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

template <class T> class Postings {
 public:
  Postings() = default;
  explicit Postings(int64_t width, int64_t slots = 0) : width_(width), points_(size_t(slots)) {}

  int64_t width() const { return width_; }
  int64_t slots() const { return int64_t(points_.size()); }
  void grow(int64_t slots) { points_.resize(size_t(slots)); }
  size_t nbytes() const { return size_t(entries_) * 2 * sizeof(Entry) + points_.size() * sizeof(Point); }

  void put(int64_t slot, const Rows<T>& rows, int64_t i) {
    remove(slot);
    Point& point = points_[size_t(slot)];
    rows.each(i, [&](int64_t d, T v) {
      if (v == 0) return;
      point.columns.push_back(int32_t(d));
      point.values.push_back(v);
      lists_[int32_t(d)].push_back({int32_t(slot), v});
    });
    entries_ += int64_t(point.columns.size());
    point.starts[1] = int64_t(point.columns.size());
  }

  // The point of a slot as a sparse row.
  Rows<T> row(int64_t slot) const {
    const Point& point = points_[size_t(slot)];
    static const T nothing[1] = {0};
    return {1, width_, nullptr, point.values.empty() ? nothing : point.values.data(), point.columns.data(), point.starts};
  }

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
  struct Point {
    std::vector<int32_t> columns;
    std::vector<T> values;
    int64_t starts[2] = {0, 0};
  };

  void remove(int64_t slot) {
    Point& point = points_[size_t(slot)];
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
    point = Point();
  }

  int64_t width_ = 0, entries_ = 0;
  std::vector<Point> points_;
  std::unordered_map<int32_t, std::vector<Entry>> lists_;
};

}  // namespace KS_MODULE
