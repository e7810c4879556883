// Kernel expansions f_c(x) = sum_j a_jc k(x_j, x), learnt one row at a time.
//
// Everything but the rule that learns from a round is here; the rules are in rules.hpp. Dense rows are measured eight at a time
// against the stored points; when a point is stored meanwhile, its column is measured again for the rows left, by the same
// operations, so the result is that of one row at a time to the bit.
#pragma once
#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "kernel.hpp"
#include "settings.hpp"

namespace KS_MODULE {

// splitmix64; the whole state is one number.
struct Random {
  uint64_t state = 0;
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  explicit Random(uint64_t seed = 0) : state(mix(seed + 0x9E3779B97F4A7C15u)) {}
  double uniform() { return double(mix(state += 0x9E3779B97F4A7C15u) >> 11) * 0x1p-53; }
  int64_t slot(int64_t n) { return std::min(n - 1, int64_t(uniform() * double(n))); }
};

// A point this close to the span of others, relative to k(x, x), counts as in it: kernel values are not more exact.
template <class T> constexpr double kDependent = sizeof(T) == 8 ? 1e-10 : 1e-5;

// How storage behaves: whether it grows with use (no budget in the algorithm), whether a run ends with the row that fills it.
struct Storage {
  bool grows = false, stops_when_full = false;
};

template <class T> class Expansion {
 public:
  // Learns from a round; false: the store is full and the point was needed, and nothing was changed.
  using Rule = std::function<bool(Expansion&, const Round<T>&)>;
  Settings set;
  Storage storage;
  Points<T> points;
  std::vector<Array<T>> weights;               // one array over the slots for each output
  std::vector<int64_t> born;                   // when each slot was filled
  Random random;
  int64_t clock = 0;                           // points stored so far
  double mistakes = 0, ledger = 0;             // Forgetron's M and Q; BSGD counts its rounds in the first
  std::vector<double> inverse;                 // Projectron's K^-1, budget x budget
  std::vector<double> slopes;                  // scratch of the rules: one per output

  Expansion(Settings s, Storage how, Kernel<T> kernel, Rule rule, bool keeps_inverse, uint64_t seed)
      : set(s), storage(how), random(seed), slopes(size_t(set.outputs)), rule_(std::move(rule)) {
    int64_t start = storage.grows ? std::min<int64_t>(set.budget, 64) : set.budget;
    points = Points<T>(std::move(kernel), set.width, start);
    for (int64_t c = 0; c < set.outputs; ++c) weights.emplace_back(size_t(points.slots()));
    born.assign(size_t(points.slots()), 0);
    if (keeps_inverse) inverse.assign(size_t(set.budget * set.budget), 0.0);
  }

  // The same with its outputs replaced.
  Expansion(const Expansion& o, const Mix& mix)
      : set(o.set),
        storage(o.storage),
        points(o.points),
        weights(mix.of(o.weights)),
        born(o.born),
        random(o.random),
        clock(o.clock),
        mistakes(o.mistakes),
        ledger(o.ledger),
        inverse(o.inverse),
        slopes(weights.size()),
        rule_(o.rule_) {
    set.outputs = mix.outputs();
  }

  int64_t count() const { return points.count; }
  bool full() const { return points.count >= set.budget; }
  bool no_room() const { return storage.grows && full(); }

  size_t nbytes() const {
    size_t total = points.nbytes() + born.size() * sizeof(int64_t) + inverse.size() * sizeof(double);
    for (const auto& w : weights) total += w.nbytes();
    return total;
  }

  void score(const Rows<T>& rows, double* out) {
    BlockEnd guard{block_end_};
    for (int64_t i = 0; i < rows.n; ++i) {
      const T* k = kernel_row(rows, i, rows.n);
      for (int64_t c = 0; c < set.outputs; ++c) out[i * set.outputs + c] = double(output(c, k));
    }
  }

  // Predict then learn rows from .. rows.n - 1; out gets the scores. Stops early after the row that fills the budget if the
  // storage says so, before a row whose score is not finite, and before a row that would need more than max_size points.
  // Returns the row to go on with.
  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    BlockEnd guard{block_end_};
    std::vector<T> f(size_t(set.outputs));
    why = Stop::done;
    for (int64_t i = from; i < rows.n; ++i) {
      const T* k = kernel_row(rows, i, rows.n);
      for (int64_t c = 0; c < set.outputs; ++c) {
        f[size_t(c)] = output(c, k);
        out[i * set.outputs + c] = double(f[size_t(c)]);
        if (!std::isfinite(f[size_t(c)])) {
          why = Stop::not_finite;
          return i;
        }
      }
      double weight = sample_weights ? sample_weights[i] : 1.0;
      if (weight == 0) continue;
      try {
        if (!rule_(*this, Round<T>{rows, i, k, f.data(), targets[i], weight})) why = Stop::full;
      } catch (const NotFinite&) {
        why = Stop::not_finite;
      }
      if (why != Stop::done) return i;
      if (storage.stops_when_full && full()) {
        why = Stop::full;
        return i + 1;
      }
    }
    return rows.n;
  }

  // Stores row i in a slot (count: a new one) with weight zero, and measures it against the rows left in the block.
  void place(int64_t slot, const Rows<T>& rows, int64_t i) {
    if (slot >= points.slots()) {
      int64_t capacity = std::min(set.budget, points.slots() * 2);
      points.grow(capacity);
      for (auto& w : weights) {
        Array<T> bigger(size_t(points.slots()));
        std::memcpy(bigger.data(), w.data(), w.nbytes());
        w = std::move(bigger);
      }
      born.resize(size_t(points.slots()), 0);
      block_end_ = std::min(block_end_, i + 1);  // measures have the old stride: measure the next row anew
    }
    points.put(slot, rows, i);
    for (auto& w : weights) w[size_t(slot)] = 0;
    born[size_t(slot)] = clock++;
    if (alone(rows)) return;
    with_form(points.kernel.form(), [&](auto form) { patch<form.value>(slot, rows, i); });
  }

  // The numbers of a point, whether it is stored dense or sparse.
  std::vector<T> point(int64_t slot) const {
    std::vector<T> spare, made(size_t(set.width) + 1);
    points.row(slot, spare).each(0, [&](int64_t d, T v) { made[size_t(d)] = v; });
    return made;
  }

  // The same for a point that is not a row of the data; the rows left in the block are measured anew.
  void place_made(int64_t slot, const T* point, int64_t i) {
    points.put(slot, Rows<T>{1, set.width, point}, 0);
    block_end_ = std::min(block_end_, i + 1);
  }

  // The weights and the random numbers as they are now, for a rule that may find out late that its step is not finite.
  void save() {
    saved_.resize(weights.size());
    for (size_t c = 0; c < weights.size(); ++c) {
      reserve(saved_[c], int64_t(weights[c].size()));
      std::memcpy(saved_[c].data(), weights[c].data(), weights[c].nbytes());
    }
    saved_random_ = random;
  }
  void undo() {
    for (size_t c = 0; c < weights.size(); ++c) std::memcpy(weights[c].data(), saved_[c].data(), weights[c].nbytes());
    random = saved_random_;
  }

  // Forgets points stored last, down to `count`.
  void forget(int64_t count) {
    for (auto& w : weights) std::fill(w.data() + count, w.data() + points.count, T(0));
    clock -= points.count - count;
    points.count = count;
  }

  int64_t oldest() const { return std::min_element(born.begin(), born.begin() + points.count) - born.begin(); }

  T output(int64_t c, const T* k) const { return dot(weights[size_t(c)].data(), k, size_t(points.tiles())); }

  // Distances or products behind the kernel values of the row in turn; until a point is stored.
  const T* measures(int64_t i) const { return measures_.data() + (i - block_start_) * points.slots(); }

  // Kernel values of a stored point against all stored points.
  const T* stored_row(int64_t slot) {
    Rows<T> one = points.row(slot, row_);
    reserve(stored_, points.slots());
    points.measure(one, 0, 1, points.tiles(), stored_.data(), points.slots());
    points.values(stored_.data(), stored_.data(), points.tiles());
    return stored_.data();
  }

 private:
  static constexpr int64_t kBlock = 8;

  struct BlockEnd {                            // forgets the block measured, also when a callable kernel raises
    int64_t& end;
    ~BlockEnd() { end = 0; }
  };

  static void reserve(Array<T>& a, int64_t n) {
    if (int64_t(a.size()) < n) a = Array<T>(size_t(n));
  }

  // Whether rows are measured one at a time.
  bool alone(const Rows<T>& rows) const { return rows.sparse() || points.sparse || points.kernel.callback; }

  const T* kernel_row(const Rows<T>& rows, int64_t i, int64_t end) {
    int64_t stride = points.slots();
    if (i >= block_end_) {
      block_start_ = i;
      block_end_ = alone(rows) ? i + 1 : std::min(end, i + kBlock);
      reserve(measures_, kBlock * stride);
      reserve(values_, stride);
      points.measure(rows, i, block_end_ - i, points.tiles(), measures_.data(), stride);
      measured_ = points.tiles();
    }
    const T* measures = measures_.data() + (i - block_start_) * stride;
    points.values(measures, values_.data(), points.tiles());
    return values_.data();
  }

  template <Form F> void patch(int64_t slot, const Rows<T>& rows, int64_t i) {
    int64_t stride = points.slots(), left = block_end_ - i - 1;
    if (left <= 0) return;
    if (points.tiles() > measured_) {          // a tile was opened: clear what an earlier block left there
      for (int64_t r = 0; r < kBlock; ++r) std::fill_n(measures_.data() + r * stride + measured_ * kLine<T>, kLine<T>, T(0));
      measured_ = points.tiles();
    }
    T acc[kBlock] = {};
    const T* x = rows.row(i);
    for (int64_t d = 0; d < set.width; ++d)
      for (int64_t r = 0; r < left; ++r) acc[r] = term<F>(x[(r + 1) * set.width + d], x[d], acc[r]);
    for (int64_t r = 0; r < left; ++r) {
      if (points.kernel.kind == Kernel<T>::spectrum) acc[r] = points.cosine(acc[r], std::sqrt(rows.square(i + 1 + r)), slot);
      measures_[size_t((i + 1 + r - block_start_) * stride + slot)] = acc[r];
    }
  }

  Rule rule_;
  int64_t block_start_ = 0, block_end_ = 0, measured_ = 0;
  Array<T> measures_, values_, stored_;
  std::vector<T> row_;
  std::vector<Array<T>> saved_;
  Random saved_random_;
};

}  // namespace KS_MODULE
