// Numbers by column where rows are so wide that few columns ever have any: columns get slots, and what belongs to a column stands at
// its slot. Of rows that are stored dense every column has a slot, its own number.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace KS_MODULE {

class Columns {
 public:
  Columns() = default;
  Columns(int64_t width, bool sparse) : sparse_(sparse), count_(sparse ? 0 : width) {}

  bool sparse() const { return sparse_; }
  int64_t count() const { return count_; }
  size_t nbytes() const { return columns_.size() * sizeof(int32_t) + table_.size() * sizeof(Place); }
  int64_t column(int64_t slot) const { return sparse_ ? columns_[size_t(slot)] : slot; }

  // The slot of a column, -1 if it has none.
  int64_t find(int64_t column) const {
    if (!sparse_) return column;
    if (table_.empty()) return -1;
    return table_[place(column)].slot;
  }
  int64_t add(int64_t column) {
    if (int64_t slot = find(column); slot >= 0) return slot;
    if (2 * size_t(++count_) > table_.size()) {  // at least half of it is free
      table_.assign(std::max<size_t>(16, 2 * table_.size()), {});
      for (size_t slot = 0; slot < columns_.size(); ++slot) table_[place(columns_[slot])] = {columns_[slot], int32_t(slot)};
    }
    table_[place(column)] = {int32_t(column), int32_t(count_ - 1)};
    columns_.push_back(int32_t(column));
    return count_ - 1;
  }
  // No column has a slot; of dense rows all keep theirs.
  void clear() {
    if (!sparse_) return;
    count_ = 0;
    columns_.clear();
    table_.clear();
  }

 private:
  struct Place {
    int32_t column = -1, slot = -1;
  };

  // Where the column stands in the table, or would.
  size_t place(int64_t column) const {
    size_t last = table_.size() - 1, at = size_t(uint64_t(column) * 0x9E3779B97F4A7C15u >> 32) & last;
    while (table_[at].slot >= 0 && table_[at].column != column) at = (at + 1) & last;
    return at;
  }

  bool sparse_ = false;
  int64_t count_ = 0;
  std::vector<int32_t> columns_;               // by slot
  std::vector<Place> table_;                   // its size is a power of two
};

}  // namespace KS_MODULE
