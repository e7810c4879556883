// The state of a NewtonMixture by name: every array and every number, where it stands and what it may be. What changes a
// model's shape (more features, more classes) is here too, because it moves arrays from one layout to another.
#pragma once
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "mixture.hpp"

namespace KS_MODULE {

// One axis of an array of the state: where its entries stand in memory. Padding has no place in a state.
struct Axis {
  size_t n = 1;
  int64_t step = 1;                            // from one entry to the next
  bool slots = false;                          // the slots of a panel of width `step`
  size_t kernel = 0;                           // entries that stand last in memory, from `last` on, but come first in the state
  int64_t last = 0;

  int64_t offset(size_t i) const {
    constexpr int64_t L = kLine<double>;
    int64_t at = int64_t(i) + (i < kernel ? last : -int64_t(kernel));
    return slots ? at / L * L * step + at % L : at * step;
  }
  int64_t end() const {
    int64_t most = 0;
    for (size_t i = 0; i < n; ++i) most = std::max(most, offset(i) + 1);
    return most;
  }
  bool operator==(const Axis& o) const { return n == o.n && step == o.step && slots == o.slots && kernel == o.kernel && last == o.last; }
};

struct StateArray {
  // How an array follows a change of the classes: not at all; a column per output, of scores or of targets -1 and +1; an entry per
  // class; or the ring of rows kept, whose capacity may change with the width.
  enum Role { plain, scores, sides, classes, ring };
  std::string name;
  double* data;
  Axis rows, columns;
  bool matrix;
  Role role = plain;

  double& at(size_t i, size_t j) const { return data[rows.offset(i) + columns.offset(j)]; }
  size_t size() const { return rows.n * columns.n; }
  bool same_shape(const StateArray& o) const { return rows.n == o.rows.n && columns.n == o.columns.n; }

  // All entries, row after row: into `out`, and from `in`.
  void read(double* out) const {
    each_row([&](const double* row, const int64_t* offset) {
      for (size_t j = 0; j < columns.n; ++j) *out++ = row[offset[j]];
    });
  }
  void write(const double* in) const {
    each_row([&](double* row, const int64_t* offset) {
      for (size_t j = 0; j < columns.n; ++j) row[offset[j]] = *in++;
    });
  }
  // Entries that both have.
  void copy_corner(const StateArray& from) const {
    if (rows == from.rows && columns == from.columns) {  // and the padding between them
      if (size()) std::copy_n(from.data, rows.end() + columns.end() - 1, data);
      return;
    }
    size_t n = std::min(columns.n, from.columns.n);
    std::vector<int64_t> to_offset(n), from_offset(n);
    for (size_t j = 0; j < n; ++j) {
      to_offset[j] = columns.offset(j);
      from_offset[j] = from.columns.offset(j);
    }
    for (size_t i = 0; i < std::min(rows.n, from.rows.n); ++i) {
      double* to = data + rows.offset(i);
      const double* old = from.data + from.rows.offset(i);
      for (size_t j = 0; j < n; ++j) to[to_offset[j]] = old[from_offset[j]];
    }
  }

 private:
  template <class F> void each_row(F f) const {
    std::vector<int64_t> offset(columns.n);
    for (size_t j = 0; j < columns.n; ++j) offset[j] = columns.offset(j);
    for (size_t i = 0; i < rows.n; ++i) f(data + rows.offset(i), offset.data());
  }
};

// A number of the state, with the least and the most that it may be.
template <class N> struct StateNumber {
  std::string name;
  N* value;
  N low, high;
};

struct Layout {
  std::vector<StateArray> arrays;
  std::vector<StateNumber<double>> numbers;
  std::vector<StateNumber<int64_t>> counts;

  const StateArray* find(const std::string& name) const {
    for (const StateArray& array : arrays)
      if (array.name == name) return &array;
    return nullptr;
  }
};

// Shapes follow from width, outputs, budget, size of the window and number of rows kept alone.
template <class T> Layout layout(Mixture<T>& x) {
  Layout all;
  if (x.newtons[Expert::lasting].pending == kBlock) x.flush();  // a state has no full block
  size_t width = size_t(x.set.width), outputs = size_t(x.set.outputs), budget = size_t(x.set.budget);
  auto vector = [&](const std::string& name, auto& array, size_t n, StateArray::Role role = StateArray::plain) {
    all.arrays.push_back({name, array.data(), {n}, {}, false, role});
  };
  auto matrix = [&](const std::string& name, double* data, Axis rows, Axis columns, StateArray::Role role = StateArray::plain) {
    all.arrays.push_back({name, data, rows, columns, true, role});
  };
  auto panel = [&](const std::string& name, Panel<double>& p, Axis rows, Axis columns) {
    rows.slots = true;
    rows.step = p.width();
    columns.step = kLine<double>;
    matrix(name, p.line(0, 0), rows, columns);
  };
  double positive = std::numeric_limits<double>::denorm_min(), most = std::numeric_limits<double>::max();
  int64_t many = int64_t(1) << 62;             // can be counted up for ever

  for (int k = 0; k < MemoryKind::count; ++k) {
    Memory& memory = x.memories[k];
    std::string name = kMemories[k];
    if (!memory.columns.sparse()) {
      vector(name + "_centre", memory.centre, width);
      vector(name + "_scale", memory.scale, width);
    }
    if (!memory.landmarks.sparse) panel(name + "_landmarks", memory.landmarks.panel, {budget}, {width});
    panel(name + "_whitening", memory.whitening.own(), {budget}, {budget});
    all.numbers.push_back({name + "_gamma", &memory.landmarks.kernel.gamma, positive, most});
    all.numbers.push_back({name + "_varying", &memory.varying, 1, most});
    all.counts.push_back({name + "_count", &memory.landmarks.count, 0, x.set.budget});
  }
  all.counts.push_back({"learnt", &x.learnt, 0, many});
  all.counts.push_back({"ordered", &x.ordered, 0, 1});
  all.counts.push_back({"lasting_age", &x.lasting_age, 0, many});
  all.counts.push_back({"recent_age", &x.recent_age, 0, many});
  all.counts.push_back({"next_rebuild", &x.next_rebuild, 0, Mixture<T>::kNever});
  all.numbers.push_back({"weight_sum", &x.weight_sum, 0, most});
  all.numbers.push_back({"weight_squares", &x.weight_squares, 0, most});
  all.numbers.push_back({"cusum", &x.cusum, -most, most});
  all.counts.push_back({"cusum_age", &x.cusum_age, 0, many});
  all.numbers.push_back({"coverage_start", &x.coverage_start, -most, most});
  all.numbers.push_back({"coverage", &x.coverage, -most, most});

  for (int e = 0; e < Expert::newtons; ++e) {
    Newton& newton = x.newtons[e];
    if (!newton.m) continue;
    size_t kernel = e == Expert::linear ? 0 : budget;
    Axis features{kernel + 1 + (x.wide ? outputs : width)};
    features.kernel = kernel;
    features.last = x.extra;
    std::string name = kCandidates[e];
    panel(name + "_covariance", newton.covariance.own(), features, features);
    matrix(name + "_weights", newton.weights.own(), features, {outputs, newton.m}, StateArray::scores);
    matrix(name + "_pending", newton.vectors.data(), {size_t(kBlock), newton.m}, features);
    vector(name + "_coefficients", newton.coefficients, size_t(kBlock));
  }
  all.counts.push_back({"pending", &x.newtons[Expert::lasting].pending, 0, kBlock - 1});
  all.numbers.push_back({"recent_decay", &x.newtons[Expert::recent].decay, positive, 1});
  if (x.wide && !x.diagonal.columns.sparse()) {
    matrix("linear_weights", x.diagonal.weights.data(), {1 + width, int64_t(outputs)}, {outputs});
    vector("linear_squares", x.diagonal.squares, 1 + width);
  }

  Window& window = x.window;
  size_t size = size_t(window.size);
  int64_t slots = window.points.slots();
  if (!window.points.sparse) panel("window_points", window.points.panel, {size}, {width});
  matrix("window_kernel", window.kernel.data(), {size, slots}, {size});
  matrix("window_inverse", window.inverse.data(), {size, slots}, {size});
  matrix("window_targets", window.targets.data(), {size}, {outputs, slots}, StateArray::sides);
  all.numbers.push_back({"window_gamma", &window.points.kernel.gamma, positive, most});
  all.counts.push_back({"window_count", &window.points.count, 0, window.size});
  all.counts.push_back({"window_next", &window.next, 0, std::max<int64_t>(0, window.size - 1)});
  all.counts.push_back({"window_rounds", &window.rounds, 0, many});

  size_t classes = size_t(x.labels.classes);
  vector("labels_repeats", x.labels.repeats, classes, StateArray::classes);
  vector("labels_changes", x.labels.changes, classes, StateArray::classes);
  vector("labels_frequency", x.labels.frequency, classes, StateArray::classes);
  vector("labels_copy_repeats", x.labels.copy_repeats, classes, StateArray::classes);
  vector("labels_copy_changes", x.labels.copy_changes, classes, StateArray::classes);
  all.counts.push_back({"labels_last", &x.labels.last, -1, x.labels.classes - 1});
  all.numbers.push_back({"labels_last_target", &x.labels.last_target, -most, most});

  vector("shares", x.aggregate.shares, x.aggregate.shares.size());
  vector("stack_weights", x.aggregate.stack_weights, x.aggregate.stack_weights.size());
  vector("stack_covariances", x.aggregate.stack_covariances, x.aggregate.stack_covariances.size());
  vector("confidences", x.aggregate.confidences, x.aggregate.confidences.size());
  vector("confidence_variances", x.aggregate.confidence_variances, x.aggregate.confidence_variances.size());
  all.numbers.push_back({"noise", &x.aggregate.noise, positive, most});
  all.numbers.push_back({"noise_rounds", &x.aggregate.noise_rounds, 0, most});
  all.numbers.push_back({"usual_error", &x.outliers.usual_error, positive, most});
  vector("first_errors", x.outliers.first_errors, x.outliers.first_errors.size());
  all.numbers.push_back({"outliers", &x.outliers.lately, 0, 1});

  if (x.kept_sparse.empty()) matrix("kept_rows", x.kept_rows.data(), {size_t(x.capacity), x.set.width}, {width}, StateArray::ring);
  vector("kept_targets", x.kept_targets, size_t(x.capacity), StateArray::ring);
  vector("kept_weights", x.kept_weights, size_t(x.capacity), StateArray::ring);
  if (x.local.capacity) {                      // the rows of the local memory, whose number changes, are not among these arrays
    x.allow_residuals(x.capacity);
    matrix("kept_residuals", x.kept_residuals.data(), {size_t(x.capacity), x.set.outputs}, {outputs}, StateArray::ring);
    vector("local_relevance", x.local.relevance, width);
    vector("local_shares", x.local_aggregate.shares, x.local_aggregate.shares.size());
    vector("local_stack_weights", x.local_aggregate.stack_weights, x.local_aggregate.stack_weights.size());
    vector("local_stack_covariances", x.local_aggregate.stack_covariances, x.local_aggregate.stack_covariances.size());
    vector("local_confidences", x.local_aggregate.confidences, x.local_aggregate.confidences.size());
    vector("local_confidence_variances", x.local_aggregate.confidence_variances, x.local_aggregate.confidence_variances.size());
    all.numbers.push_back({"local_noise", &x.local_aggregate.noise, positive, most});
    all.numbers.push_back({"local_noise_rounds", &x.local_aggregate.noise_rounds, 0, most});
    all.counts.push_back({"local_next", &x.local.next, 0, many});
  }
  if (x.trees.capacity) {                      // nor are the rows of the trees, and the trees
    all.counts.push_back({"trees_next", &x.trees.next, 0, many});
    all.counts.push_back({"trees_grown", &x.trees.grown, 0, many});
    all.counts.push_back({"trees_credit", &x.trees.credit, 0, many});
  }
  all.numbers.push_back({"target_centre", &x.target_centre, -most, most});
  all.numbers.push_back({"target_spread", &x.target_spread, positive, most});
  return all;
}

// What wide models store by column is not among the arrays: points, rows kept, scalings and the linear expert, as rows. How many each
// has, how wide they are, its row j, and how it is put back.
struct StoredRows {
  std::string name;
  int64_t count, width;
  std::function<Rows<double>(int64_t)> row;
  std::function<void(const Rows<double>&, int64_t)> put;
};

template <class T> std::vector<StoredRows> stored_rows(Mixture<T>& x) {
  std::vector<StoredRows> all;
  auto points = [&](const std::string& name, Points<double>& p) {
    if (p.sparse)
      all.push_back({name, p.count, x.set.width, [&](int64_t j) { return p.postings.row(j); },
                     [&](const Rows<double>& rows, int64_t j) { p.put(j, rows, j); }});
  };
  for (int k = 0; k < MemoryKind::count; ++k) points(std::string(kMemories[k]) + "_landmarks", x.memories[k].landmarks);
  points("window_points", x.window.points);
  if (!x.kept_sparse.empty())
    all.push_back({"kept_rows", x.capacity, x.set.width, [&](int64_t j) { return x.kept_row(j); },
                   [&](const Rows<double>& rows, int64_t j) { x.kept_sparse[size_t(j)].assign(rows, j); }});
  // value(slot, j): of a column that has a slot; set(column, j, value).
  auto by_column = [&](const std::string& name, int64_t count, int64_t width, const Columns& columns, auto value, auto set) {
    auto made = std::make_shared<SparseRow<double>>();
    auto row = [=, &columns](int64_t j) {
      std::vector<std::pair<int64_t, int64_t>> slots;  // by column
      for (int64_t slot = 0; slot < columns.count(); ++slot) slots.push_back({columns.column(slot), slot});
      std::sort(slots.begin(), slots.end());
      made->clear();
      for (auto [column, slot] : slots) {
        made->columns.push_back(int32_t(column));
        made->values.push_back(value(slot, j));
      }
      made->starts[1] = columns.count();
      return made->row(width);
    };
    all.push_back(
        {name, count, width, row, [=](const Rows<double>& rows, int64_t j) { rows.each(j, [&](int64_t d, double v) { set(d, j, v); }); }});
  };
  for (int k = 0; k < MemoryKind::count; ++k) {
    Memory& memory = x.memories[k];
    if (!memory.columns.sparse()) continue;
    std::string name = kMemories[k];
    auto slot_of = [&memory](int64_t d) {      // the slot of a column, made if it has none
      if (int64_t slot = memory.columns.find(d); slot >= 0) return size_t(slot);
      memory.set(d, 0, 1);
      return size_t(memory.columns.find(d));
    };
    by_column(
        name + "_centre", 1, x.set.width, memory.columns, [&](int64_t slot, int64_t) { return memory.centre[size_t(slot)]; },
        [=, &memory](int64_t d, int64_t, double v) { memory.centre[slot_of(d)] = v; });
    by_column(
        name + "_scale", 1, x.set.width, memory.columns, [&](int64_t slot, int64_t) { return memory.scale[size_t(slot)]; },
        [=, &memory](int64_t d, int64_t, double v) { memory.scale[slot_of(d)] = v; });
  }
  if (x.diagonal.columns.sparse()) {
    Diagonal& d = x.diagonal;
    by_column(
        "linear_weights", d.outputs, x.set.width + 1, d.columns,
        [&](int64_t slot, int64_t c) { return d.weights[size_t(slot * d.outputs + c)]; },
        [&](int64_t column, int64_t c, double v) { d.weights[d.add(column) * size_t(d.outputs) + size_t(c)] = v; });
    by_column(
        "linear_squares", 1, x.set.width + 1, d.columns, [&](int64_t slot, int64_t) { return d.squares[size_t(slot)]; },
        [&](int64_t column, int64_t, double v) { d.squares[d.add(column)] = v; });
  }
  return all;
}

// The stored rows of a model that has none, from one of other classes or of fewer features, which may be dense.
template <class T> void copy_stored(Mixture<T>& to, Mixture<T>& from) {
  auto points = [](Points<double>& into, const Points<double>& old) {
    std::vector<double> dense;
    for (int64_t j = 0; into.sparse && j < std::min(old.count, into.slots()); ++j) into.put(j, old.row(j, dense), 0);
  };
  for (int k = 0; k < MemoryKind::count; ++k) points(to.memories[k].landmarks, from.memories[k].landmarks);
  points(to.window.points, from.window.points);
  for (int k = 0; k < MemoryKind::count; ++k) {
    Memory &into = to.memories[k], &old = from.memories[k];
    for (int64_t slot = 0; into.columns.sparse() && slot < old.columns.count(); ++slot)
      into.set(old.columns.column(slot), old.centre[size_t(slot)], old.scale[size_t(slot)]);
  }
  Diagonal &into = to.diagonal, &old = from.diagonal;
  for (int64_t slot = 0; into.columns.sparse() && into.outputs == old.outputs && slot < old.columns.count(); ++slot) {
    size_t at = into.add(old.columns.column(slot));
    into.squares[at] = old.squares[size_t(slot)];
    std::copy_n(old.weights.data() + slot * old.outputs, old.outputs, into.weights.data() + at * size_t(old.outputs));
  }
  if (to.kept_sparse.empty()) return;
  for (int64_t i = std::max<int64_t>(0, from.learnt - std::min(from.capacity, to.capacity)); i < from.learnt; ++i)
    to.kept_sparse[size_t(i % to.capacity)].assign(from.kept_row(i % from.capacity), 0);
}

// After the state was written: what follows from it.
template <class T> void settle(Mixture<T>& x) {
  x.set_priors();
  x.settle_candidates();
  for (Newton& newton : x.newtons) newton.pending = x.newtons[Expert::lasting].pending;
  x.settle_linear();
  for (Memory& memory : x.memories) {
    memory.settle();
    memory.landmarks.renew();
  }
  x.window.points.renew();
  if (x.local.capacity) x.place_landmarks();
}

template <class N> void copy_numbers(const std::vector<StateNumber<N>>& to, const std::vector<StateNumber<N>>& from) {
  for (const auto& number : to)
    for (const auto& other : from)
      if (number.name == other.name) *number.value = *other.value;
}
template <class T> void copy_numbers(Mixture<T>& to, Mixture<T>& from) {
  Layout a = layout(to), b = layout(from);
  copy_numbers(a.numbers, b.numbers);
  copy_numbers(a.counts, b.counts);
}

// Makes `to`, which has learnt nothing, what `from` would be had its rows had more features, always 0 so far. False if the experts
// see other features now, and the memories are to be rebuilt from the rows kept.
template <class T> bool widen(Mixture<T>& to, Mixture<T>& from) {
  for (int k = 0; k < MemoryKind::count; ++k) {  // a new feature is scaled as one that is always 0, and as uncertain as the prior says
    to.memories[k].varying = from.memories[k].varying;
    std::fill(to.memories[k].scale.begin(), to.memories[k].scale.end(), from.learnt > 1 ? 1.0 : 0.0);
  }
  to.set_priors();
  for (Newton& newton : to.newtons)
    if (newton.m) newton.reset();
  copy_numbers(to, from);
  Layout target = layout(to), source = layout(from);
  for (const StateArray& array : target.arrays) {
    const StateArray* old = source.find(array.name);
    if (old && array.role != StateArray::ring) array.copy_corner(*old);
  }
  copy_stored(to, from);
  int64_t n = std::min({from.learnt, from.capacity, to.capacity});
  for (const StateArray& array : target.arrays)
    if (array.role == StateArray::ring) {
      const StateArray* old = source.find(array.name);
      for (int64_t i = from.learnt - n; old && i < from.learnt; ++i)
        for (size_t j = 0; j < old->columns.n; ++j) array.at(size_t(i % to.capacity), j) = old->at(size_t(i % from.capacity), j);
    }
  bool same = to.wide == from.wide && to.set.budget == from.set.budget && to.window.size == from.window.size;
  if (!same) {
    to.newtons[Expert::recent].decay = 1;
    to.newtons[Expert::lasting].pending = 0;
    for (Memory& memory : to.memories) memory.landmarks.count = 0;
    to.window.points.count = to.window.next = 0;
  }
  settle(to);
  if (same && to.local.capacity && from.local.capacity)
    to.local.take(from.local, from.local.targets.data(), [&](const float* old, float* mine) { std::copy_n(old, to.set.outputs, mine); });
  else
    to.local.clear();
  to.trees = Trees(to.set.width, to.set.outputs, to.set.regression, to.wide ? 0 : to.set.budget);
  if (same) to.trees.take(from.trees);
  return same;
}

// What `from` is with its outputs replaced; `targets`: those of the rows kept, in the new code, and of the local memory. Wide rows'
// experts see the outputs: their memories are to be rebuilt.
template <class T>
Mixture<T> mixed(const Mixture<T>& from, const Mix& mix, int64_t local_rows, const double* targets, const float* local_targets) {
  Mixture<T> to(from, mix, local_rows);
  int64_t before = from.set.outputs, after = to.set.outputs;
  const std::vector<double>& factors = mix.factors;
  for (size_t c = 0; c < size_t(after); ++c)   // a class not seen was -1 all along
    if (factors[c] == 0) std::fill_n(to.window.targets.data() + int64_t(c) * to.window.points.slots(), to.window.size, -1.0);
  std::vector<int64_t> moved(size_t(from.labels.classes));  // where each class went
  if (before == 1 && after == 1)
    moved = factors[0] > 0 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{1, 0};
  else if (before == 1)
    moved = {std::min_element(factors.begin(), factors.end()) - factors.begin(),
             std::max_element(factors.begin(), factors.end()) - factors.begin()};
  else
    for (size_t c = 0; c < size_t(after); ++c)
      if (factors[c] != 0) moved[size_t(mix.sources[c])] = int64_t(c);
  auto follow = [&](Array<double>& mine, const Array<double>& old) {
    for (size_t c = 0; c < moved.size(); ++c) mine[size_t(moved[c])] = old[c];
  };
  follow(to.labels.repeats, from.labels.repeats);
  follow(to.labels.changes, from.labels.changes);
  follow(to.labels.frequency, from.labels.frequency);
  follow(to.labels.copy_repeats, from.labels.copy_repeats);
  follow(to.labels.copy_changes, from.labels.copy_changes);
  to.labels.last = from.labels.last < 0 ? -1 : moved[size_t(from.labels.last)];
  to.labels.last_target = from.labels.last_target;
  std::copy_n(targets, to.capacity, to.kept_targets.data());
  to.settle_candidates();
  to.replant();
  if (!to.local.capacity) return to;
  struct Run {                                 // outputs that stand together before and after
    int64_t from, to, count;
    double side;
  };
  std::vector<Run> runs;
  for (size_t c = 0; c < size_t(after); ++c) {
    int64_t source = mix.sources[c];
    double side = mix.side(c);
    if (side == 0) continue;
    if (!runs.empty() && runs.back().from + runs.back().count == source && runs.back().to + runs.back().count == int64_t(c) &&
        runs.back().side == side)
      ++runs.back().count;
    else
      runs.push_back({source, int64_t(c), 1, side});
  }
  auto turn = [&](const auto* old, auto* mine) {  // as the targets -1 and +1; nothing is left of a class not seen
    using Number = std::remove_pointer_t<decltype(mine)>;
    std::fill_n(mine, after, Number(0));
    for (const Run& run : runs)
      for (int64_t c = 0; c < run.count; ++c) mine[run.to + c] += old[run.from + c] * Number(run.side);
  };
  int64_t kept = std::min(to.learnt, to.capacity);
  to.kept_residuals = Array<double>::unset(size_t(to.residual_rows(kept) * after));
  for (int64_t i = 0; i < kept; ++i) turn(from.kept_residuals.data() + i * before, to.kept_residuals.data() + i * after);
  std::fill(to.kept_residuals.data() + kept * after, to.kept_residuals.data() + to.kept_residuals.size(), 0.0);
  to.local.relevance = from.local.relevance;
  to.place_landmarks();
  to.local.take(from.local, local_targets, turn);
  return to;
}

}  // namespace KS_MODULE
