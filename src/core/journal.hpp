// What a local memory was when it was marked: each change since then, with what was there before.
//
// A copy of a local memory would be most of a model, while most calls put few rows. Changes are noted as long as a mark is held, which
// has them. A journal belongs to the place where a local memory stands: it is neither copied nor moved with the rows. A change is noted
// before it is made, and in the list last of all: if memory runs out in between, going back still finds all it needs.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace KS_MODULE {

class Local;

class Journal {
 public:
  enum Kind : int32_t { cell, landmark, row, whole };
  struct Change {
    Kind kind;
    int32_t place, before;  // of a row or a whole: its number among those below
  };
  struct Changes {
    std::vector<Change> all;
    std::vector<int16_t> rows;  // those that others took the place of
    std::vector<float> known;  // of each: target, weight, residuals
    std::vector<std::shared_ptr<Local>> wholes;  // as it was before all changed at once
    std::vector<int64_t> marks;  // numbers of those that can be gone back to
  };
  struct Mark {
    std::shared_ptr<Changes> changes;
    int64_t number;
    size_t noted, cells;
    int64_t count, next;
  };

  Journal() = default;
  Journal(const Journal&) {}
  Journal& operator=(const Journal&) { return *this; }

  // Calls f(changes) if changes are to be noted. Once all has changed since the last mark there is nothing more to note.
  template <class F> void note(F f) const {
    if (all_changed_) return;
    if (auto changes = changes_.lock()) f(*changes);
  }
  void note(Kind kind, int64_t place, int64_t before) const {
    note([&](Changes& to) { to.all.push_back({kind, int32_t(place), int32_t(before)}); });
  }
  template <class L> void note_all(const L& local) {
    note([&](Changes& to) {
      to.wholes.push_back(std::make_shared<L>(local));
      to.all.push_back({whole, 0, int32_t(to.wholes.size() - 1)});
    });
    all_changed_ = true;
  }
  // Row number i, about to leave: f(changes) if it was there when the last mark was made.
  template <class F> void note_row(int64_t i, F f) const {
    if (i < next_) note(f);
  }

  Mark mark(size_t cells, int64_t count, int64_t next) {
    auto changes = changes_.lock();  // of a mark that is held
    if (!changes) changes_ = changes = std::make_shared<Changes>();
    changes->marks.push_back(++marks_);
    begin(next);
    return {changes, marks_, changes->all.size(), cells, count, next};
  }
  // Whether it made the mark, which has not been gone back behind. After that: neither the mark nor those made since serve again.
  bool knows(const Mark& mark) const {
    return mark.changes && mark.changes == changes_.lock() && place_of(mark) != mark.changes->marks.end();
  }
  void gone_back_to(const Mark& mark) {
    mark.changes->marks.erase(place_of(mark), mark.changes->marks.end());
    begin(mark.next);
  }

 private:
  static std::vector<int64_t>::const_iterator place_of(const Mark& mark) {
    const auto& marks = mark.changes->marks;
    return std::find(marks.begin(), marks.end(), mark.number);
  }
  void begin(int64_t next) {
    next_ = next;
    all_changed_ = false;
  }

  std::weak_ptr<Changes> changes_;
  int64_t marks_ = 0;
  int64_t next_ = 0;  // rows put before the last mark
  bool all_changed_ = false;
};

}  // namespace KS_MODULE
