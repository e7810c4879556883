#include <nanobind/stl/vector.h>

#include <functional>
#include <numeric>

#include "mixture_state.hpp"
#include "state.hpp"

namespace KS_MODULE {

template <class T> using BoundMixture = Bound<T, Mixture<T>>;

// The last n rows learnt, the oldest first: rows (as the arrays of a state), targets, weights.
template <class T> static nb::tuple kept(BoundMixture<T>& b, int64_t n) {
  auto guard = b.locked();
  Mixture<T>& x = b.model;
  n = std::max<int64_t>(0, std::min({n, x.learnt, x.capacity}));
  double *targets, *weights;
  State rows;
  auto shown = [&](int64_t i, std::vector<double>&) { return x.kept_row((x.learnt - n + i) % x.capacity); };
  rows.rows<double, double>("kept_rows", n, n, x.set.width, !x.kept_sparse.empty(), shown, [](const Rows<double>&, int64_t) {});
  auto made = nb::make_tuple(rows.arrays, make<double>({size_t(n)}, &targets), make<double>({size_t(n)}, &weights));
  for (int64_t i = 0; i < n; ++i) {
    size_t slot = size_t((x.learnt - n + i) % x.capacity);
    targets[i] = x.kept_targets[slot];
    weights[i] = x.kept_weights[slot];
  }
  return made;
}

// Other targets for the last rows learnt, as many as are given, the oldest first.
template <class T> static void replace_kept_targets(BoundMixture<T>& b, Vector<double> targets) {
  auto guard = b.locked();
  Mixture<T>& x = b.model;
  int64_t n = int64_t(targets.shape(0));
  require(n <= std::min(x.learnt, x.capacity), "there are fewer rows kept");
  for (int64_t i = 0; i < n; ++i) x.kept_targets[size_t((x.learnt - n + i) % x.capacity)] = targets(size_t(i));
}

template <class N> static void add_number(nb::dict& state, const StateNumber<N>& number) {
  N* out;
  Made<N> array = make<N>({1}, &out);
  *out = *number.value;
  state[number.name.c_str()] = nb::cast(array);
}

// The rows of the local memory, row by row in the order of their slots.
template <class N, class A>
static void add_rows(nb::dict& state, const char* name, const std::vector<N, A>& from, size_t n, size_t width, size_t stride) {
  N* out;
  Made<N> copy = width == 1 && stride == 1 ? make<N>({n}, &out) : make<N>({n, width}, &out);
  for (size_t i = 0; i < n; ++i) std::copy_n(from.data() + i * stride, width, out + i * width);
  state[name] = nb::cast(copy);
}

static void add_local(nb::dict& state, const Local& local, bool filled) {
  size_t n = filled ? size_t(local.count) : 0;
  add_rows(state, "local_rows", local.rows, n, size_t(local.width), size_t(local.stride));
  add_rows(state, "local_targets", local.targets, n, 1, 1);
  add_rows(state, "local_weights", local.weights, n, 1, 1);
  float* residuals;
  Made<float> copy = make<float>({n, size_t(local.outputs)}, &residuals);
  std::copy_n(local.residuals.data(), n * size_t(local.outputs), residuals);
  state["local_residuals"] = nb::cast(copy);
  add_rows(state, "local_cells", local.cells, n, 1, 1);
  add_rows(state, "local_landmark_of", local.landmark_of, filled ? local.landmark_of.size() : 0, 1, 1);
}

static void add_trees(nb::dict& state, const Trees& trees, bool filled) {
  size_t n = filled ? size_t(trees.count()) : 0, width = size_t(trees.width), all = filled ? size_t(trees.trees()) : 0;
  float* edges;
  Made<float> copy = make<float>({width, size_t(Trees::kEdges)}, &edges);
  std::fill_n(edges, width * size_t(Trees::kEdges), Trees::kNoEdge);
  for (size_t d = 0; d < width; ++d)
    std::copy_n(trees.edges.data() + d * size_t(trees.most_edges), trees.most_edges, edges + d * size_t(Trees::kEdges));
  state["trees_edges"] = nb::cast(copy);
  int16_t* rows;                               // a model file has no shorter numbers
  Made<int16_t> bins = make<int16_t>({n, width}, &rows);
  std::copy_n(trees.rows.data(), n * width, rows);
  state["trees_rows"] = nb::cast(bins);
  add_rows(state, "trees_targets", trees.targets, n, 1, 1);
  add_rows(state, "trees_weights", trees.weights, n, 1, 1);
  float* scores;
  Made<float> of_rows = make<float>({n, size_t(trees.outputs)}, &scores);
  std::copy_n(trees.scores.data(), n * size_t(trees.outputs), scores);
  state["trees_scores"] = nb::cast(of_rows);
  int32_t* splits;
  Made<int32_t> four = make<int32_t>({all * size_t(Trees::kSplits), 4}, &splits);
  for (size_t t = 0; t < all * size_t(Trees::kSplits); ++t) {
    const Trees::Split& split = trees.splits[t];
    for (int32_t number : {split.feature, split.cut, split.child[0], split.child[1]}) *splits++ = number;
  }
  state["trees_splits"] = nb::cast(four);
  double* values;
  Made<double> of_leaves = make<double>({all, size_t(Trees::kLeaves)}, &values);
  std::copy_n(trees.values.begin(), all * size_t(Trees::kLeaves), values);
  state["trees_values"] = nb::cast(of_leaves);
}

// A model as it was, but for its local memory, and a mark of that.
template <class T> struct Snapshot {
  Mixture<T> rest;
  Journal::Mark mark;
};

// While a model is copied or written to without its local memory, that is elsewhere.
struct WithoutLocal {
  Local& local;
  Local kept;
  explicit WithoutLocal(Local& l) : local(l) { std::swap(local, kept); }
  ~WithoutLocal() { std::swap(local, kept); }
};

template <class T> static Snapshot<T>* snapshot(BoundMixture<T>& b) {
  auto guard = b.locked();
  Journal::Mark mark = b.model.local.mark();
  WithoutLocal without(b.model.local);
  return new Snapshot<T>{b.model, std::move(mark)};
}

// What the model was; a snapshot serves once, those taken since not at all.
template <class T> static void rollback(BoundMixture<T>& b, Snapshot<T>& snapshot) {
  auto guard = b.locked();
  require(b.model.local.knows(snapshot.mark), "not a snapshot of this model, or one that was used before");
  b.model.local.back_to(snapshot.mark);
  WithoutLocal without(b.model.local);
  b.model = std::move(snapshot.rest);
  snapshot.mark = {};                          // nothing is noted for it any more
}

// Two models that keep rows of the same kind swap a part.
template <class T, class P> static void swap_parts(BoundMixture<T>& a, BoundMixture<T>& b, P Mixture<T>::* part) {
  require(&a != &b, "a model cannot swap with itself");
  auto first = std::min(&a, &b)->locked(), second = std::max(&a, &b)->locked();  // in one order: two threads never wait for each other
  Mixture<T>&x = a.model, &y = b.model;
  require(x.set.width == y.set.width && x.set.outputs == y.set.outputs && x.local.capacity == y.local.capacity &&
              x.trees.capacity == y.trees.capacity,
          "not a model of such rows");
  for (Mixture<T>* model : {&x, &y}) model->local.note_all();
  std::swap(x.*part, y.*part);
}

// Without rings, the local memory and the trees look as if empty, but for their counts.
template <class T> static nb::dict state(BoundMixture<T>& b, bool rings) {
  auto guard = b.locked();
  Layout all = layout(b.model);
  nb::dict state;
  for (const StateArray& array : all.arrays) {
    double* out;
    Made<double> copy = array.matrix ? make<double>({array.rows.n, array.columns.n}, &out) : make<double>({array.rows.n}, &out);
    array.read(out);
    state[array.name.c_str()] = nb::cast(copy);
  }
  for (const auto& number : all.numbers) add_number(state, number);
  for (const auto& count : all.counts) add_number(state, count);
  if (b.model.local.capacity) add_local(state, b.model.local, rings);
  if (b.model.trees.capacity) add_trees(state, b.model.trees, rings);
  State rows;
  for (const StoredRows& stored : stored_rows(b.model)) {
    auto shown = [&](int64_t j, std::vector<double>&) { return stored.row(j); };
    rows.rows<double, double>(stored.name, stored.count, stored.count, stored.width, true, shown, stored.put);
  }
  state.update(rows.arrays);
  return state;
}

// Whether targets are classes that the model has; two classes and regression take any number.
static bool known_classes(int64_t outputs, const double* targets, size_t n) {
  return outputs == 1 || std::all_of(targets, targets + n, [&](double y) { return y >= 0 && y < double(outputs); });
}

template <class A> static void get(nb::dict& given, const std::string& name, A& array) {
  require(given.contains(name.c_str()), "the state has no array " + name);
  require(nb::try_cast(given[name.c_str()], array), "the state's array " + name + " has the wrong shape or type");
}

template <class N> static std::vector<N> numbers_of(nb::dict& given, const std::vector<StateNumber<N>>& numbers) {
  std::vector<N> values;
  for (const auto& number : numbers) {
    Vector<N> array;
    get(given, number.name, array);
    require(array.shape(0) == 1, "the state's array " + number.name + " has the wrong shape");
    require(array(0) >= number.low && array(0) <= number.high, "the state's " + number.name + " is out of range");
    values.push_back(array(0));
  }
  return values;
}

// Raises unless a local memory can keep such rows.
static void check_local(const Local& local, const Matrix<Local::Step>& rows, const Vector<float>& targets, const Vector<float>& weights,
                        const Matrix<float>& residuals) {
  size_t n = rows.shape(0), width = size_t(local.width), outputs = size_t(local.outputs);
  require(local.capacity && rows.shape(1) == width && residuals.shape(0) == n && residuals.shape(1) == outputs && targets.shape(0) == n &&
              weights.shape(0) == n,
          "the state's local memory has the wrong shape");
  auto finite = [](const float* a, size_t m) { return std::all_of(a, a + m, [](float v) { return std::isfinite(v); }); };
  require(finite(residuals.data(), n * outputs) && finite(targets.data(), n) && finite(weights.data(), n),
          "the state's local memory is not finite");
  require(std::all_of(weights.data(), weights.data() + n, [](float v) { return v >= 0; }), "the state's weights must not be negative");
  require(outputs == 1 || std::all_of(targets.data(), targets.data() + n, [&](float y) { return y >= 0 && y < float(outputs); }),
          "the state's classes are out of range");
  Local::Step most = Local::Step(4 * Local::kSteps);
  require(std::all_of(rows.data(), rows.data() + n * width, [&](Local::Step v) { return v >= -most && v <= most; }),
          "the state's local rows are out of range");
}

// The local memory of a state, checked; to be called after the rest of the state was written.
template <class T>
static std::function<void()> local_of(nb::dict& given, Mixture<T>& x, const std::vector<int64_t>& counts, const Layout& all) {
  Local& local = x.local;
  if (!local.capacity) return [] {};
  auto count_of = [&](const std::string& name) {
    for (size_t i = 0; i < counts.size(); ++i)
      if (all.counts[i].name == name) return counts[i];
    return int64_t(0);
  };
  Matrix<Local::Step> rows;
  Matrix<float> residuals;
  Vector<float> targets, weights;
  Vector<int32_t> cells, landmark_of;
  get(given, "local_rows", rows);
  get(given, "local_residuals", residuals);
  get(given, "local_targets", targets);
  get(given, "local_weights", weights);
  get(given, "local_cells", cells);
  get(given, "local_landmark_of", landmark_of);
  size_t n = rows.shape(0), width = size_t(local.width), outputs = size_t(local.outputs);
  int64_t next = count_of("local_next"), landmarks = count_of("lasting_count");
  require(int64_t(n) == std::min(next, local.capacity) && cells.shape(0) == n, "the state's local memory has the wrong shape");
  check_local(local, rows, targets, weights, residuals);
  Vector<double> relevance;
  get(given, "local_relevance", relevance);
  require(std::all_of(relevance.data(), relevance.data() + relevance.shape(0), [](double v) { return v > 0 && v <= 1; }),
          "the state's relevances must be in (0, 1]");
  require(landmark_of.shape(0) <= local.most_cells(int64_t(n), landmarks) &&
              Local::fit(cells.data(), n, landmark_of.data(), landmark_of.shape(0), landmarks),
          "the state's local cells are out of range");
  return [=, &local]() {
    local.clear();
    local.count = int64_t(n);
    local.next = next;
    local.allocate(local.count);
    for (size_t i = 0; i < n; ++i) std::copy_n(rows.data() + i * width, width, local.rows.data() + i * size_t(local.stride));
    std::copy_n(residuals.data(), n * outputs, local.residuals.data());
    std::copy_n(targets.data(), n, local.targets.data());
    std::copy_n(weights.data(), n, local.weights.data());
    std::copy_n(cells.data(), n, local.cells.data());
    local.landmark_of.assign(landmark_of.data(), landmark_of.data() + landmark_of.shape(0));
    local.settle();
  };
}

// Rows that the trees may keep.
static void check_tree_rows(const Trees& trees, const std::vector<int32_t>& last, const Matrix<int16_t>& rows, const Vector<float>& targets,
                            const Vector<float>& weights) {
  size_t n = rows.shape(0), outputs = size_t(trees.outputs);
  require(trees.capacity && rows.shape(1) == size_t(trees.width) && targets.shape(0) == n && weights.shape(0) == n,
          "the state's trees have the wrong shape");
  require(std::all_of(targets.data(), targets.data() + n,
                      [&](float y) { return std::isfinite(y) && (outputs == 1 || (y >= 0 && y < float(outputs))); }),
          "the state's classes are out of range");
  require(std::all_of(weights.data(), weights.data() + n, [](float v) { return v >= 0 && std::isfinite(v); }),
          "the state's weights must not be negative");
  for (size_t d = 0; d < last.size(); ++d)
    for (size_t i = 0; i < n; ++i) require(rows(i, d) >= 0 && rows(i, d) <= last[d], "the state's bins are out of range");
}

// The trees of a state, checked; to be called after the rest of the state was written.
template <class T>
static std::function<void()> trees_of(nb::dict& given, Mixture<T>& x, const std::vector<int64_t>& counts, const Layout& all) {
  Trees& trees = x.trees;
  if (!trees.capacity) return [] {};
  Trees sizes;                                 // what follows from the counts
  sizes.capacity = trees.capacity;
  sizes.outputs = trees.outputs;
  sizes.budget = trees.budget;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (all.counts[i].name == "trees_next") sizes.next = counts[i];
    if (all.counts[i].name == "trees_grown") sizes.grown = counts[i];
  }
  size_t n = size_t(sizes.count()), width = size_t(trees.width), outputs = size_t(trees.outputs), grown = size_t(sizes.trees());
  Matrix<float> edges, scores;
  Matrix<int16_t> rows;
  Vector<float> targets, weights;
  Matrix<int32_t> splits;
  Matrix<double> values;
  get(given, "trees_edges", edges);
  get(given, "trees_rows", rows);
  get(given, "trees_targets", targets);
  get(given, "trees_weights", weights);
  get(given, "trees_scores", scores);
  get(given, "trees_splits", splits);
  get(given, "trees_values", values);
  require(sizes.grown % trees.outputs == 0 && edges.shape(0) == width && edges.shape(1) == size_t(Trees::kEdges) && rows.shape(0) == n &&
              rows.shape(1) == width && targets.shape(0) == n && weights.shape(0) == n && scores.shape(0) == n &&
              scores.shape(1) == outputs && splits.shape(0) == grown * size_t(Trees::kSplits) && splits.shape(1) == 4 &&
              values.shape(0) == grown && values.shape(1) == size_t(Trees::kLeaves),
          "the state's trees have the wrong shape");
  auto finite = [](const auto* a, size_t m) { return std::all_of(a, a + m, [](auto v) { return std::isfinite(v); }); };
  require(finite(edges.data(), width * size_t(Trees::kEdges)) && finite(targets.data(), n) && finite(weights.data(), n) &&
              finite(scores.data(), n * outputs) && finite(values.data(), grown * size_t(Trees::kLeaves)),
          "the state's trees are not finite");
  std::vector<int32_t> last;
  for (size_t d = 0; d < width; ++d) {
    const float* edge = edges.data() + d * size_t(Trees::kEdges);
    last.push_back(Trees::last_bin(edge, Trees::kEdges));
    require(std::all_of(edge + trees.most_edges, edge + Trees::kEdges, [](float v) { return v == Trees::kNoEdge; }),
            "the state's trees have too many edges");
  }
  check_tree_rows(trees, last, rows, targets, weights);
  for (size_t t = 0; t < grown; ++t)
    require(trees.fit(splits.data() + t * size_t(Trees::kSplits) * 4), "the state's splits are out of range");
  return [=, &trees]() {
    trees.allocate(int64_t(n));
    for (size_t d = 0; d < width; ++d)
      std::copy_n(edges.data() + d * size_t(Trees::kEdges), trees.most_edges, trees.edges.data() + d * size_t(trees.most_edges));
    trees.settle();
    std::copy_n(rows.data(), n * width, trees.rows.data());
    std::copy_n(targets.data(), n, trees.targets.data());
    std::copy_n(weights.data(), n, trees.weights.data());
    std::copy_n(scores.data(), n * outputs, trees.scores.data());
    trees.splits.clear();
    for (const int32_t* s = splits.data(); s < splits.data() + splits.size(); s += 4) trees.splits.push_back({s[0], s[1], {s[2], s[3]}});
    trees.values.assign(values.data(), values.data() + values.size());
    trees.unfold();
  };
}

template <class T> static void restore(BoundMixture<T>& b, nb::dict given) {
  auto guard = b.locked();
  Mixture<T>& x = b.model;
  Layout all = layout(x);
  // Everything is checked before anything is changed.
  std::vector<nb::ndarray<const double, nb::c_contig, nb::device::cpu>> arrays;
  for (const StateArray& array : all.arrays) {
    auto& from = arrays.emplace_back();
    get(given, array.name, from);
    bool fits =
        from.ndim() == (array.matrix ? 2 : 1) && from.shape(0) == array.rows.n && (!array.matrix || from.shape(1) == array.columns.n);
    require(fits, "the state's array " + array.name + " has the wrong shape");
    const double *begin = from.data(), *end = begin + from.size();
    require(std::all_of(begin, end, [](double v) { return std::isfinite(v); }), "the state's array " + array.name + " is not finite");
    if (array.name == "kept_targets") require(known_classes(x.set.outputs, begin, from.size()), "the state's classes are out of range");
    auto is = [&](const char* part) { return array.name.find(part) != std::string::npos; };
    if (is("kept_weights") || is("confidence") || is("shares") || is("first_errors") || is("labels_"))
      require(std::all_of(begin, end, [](double v) { return v >= 0; }), "the state's array " + array.name + " must not be negative");
    if (is("shares")) require(std::abs(std::accumulate(begin, end, -1.0)) < 1e-6, "the state's array " + array.name + " does not sum to 1");
  }
  auto numbers = numbers_of(given, all.numbers);
  auto counts = numbers_of(given, all.counts);
  std::function<void()> write_local = local_of(given, x, counts, all), write_trees = trees_of(given, x, counts, all);
  Mixture<T> copy = x;                         // of wide models, whose stored rows are checked as they are read
  bool sparse = !x.kept_sparse.empty();
  if (sparse) {
    for (size_t i = 0; i < counts.size(); ++i) *layout(copy).counts[i].value = counts[i];
    for (Memory& memory : copy.memories) memory.rescale(nullptr, 0, nullptr, nullptr);
    copy.diagonal.reset();
    State rows(given);
    for (const StoredRows& stored : stored_rows(copy)) {
      auto put = [&](const Rows<double>& given_rows, int64_t j) {
        require(given_rows.all_finite(), "the state's " + stored.name + " are not finite");
        if (j < stored.count) stored.put(given_rows, j);
      };
      int64_t n = rows.rows<double, double>(
          stored.name, stored.count, std::max({x.capacity, x.set.budget, stored.count}), stored.width, true,
          [&](int64_t j, std::vector<double>&) { return stored.row(j); }, put);
      require(n >= stored.count, "the state has too few " + stored.name);
    }
  }
  if (sparse) {
    for (int k = 0; k < MemoryKind::count; ++k) {
      Memory &memory = x.memories[k], &read = copy.memories[k];
      memory.landmarks = std::move(read.landmarks);
      memory.columns = std::move(read.columns);
      memory.centre = std::move(read.centre);
      memory.scale = std::move(read.scale);
      memory.zero = std::move(read.zero);
    }
    x.diagonal = std::move(copy.diagonal);
    x.window.points = std::move(copy.window.points);
    x.kept_sparse = std::move(copy.kept_sparse);
  }
  for (size_t i = 0; i < arrays.size(); ++i) all.arrays[i].write(arrays[i].data());
  for (size_t i = 0; i < numbers.size(); ++i) *all.numbers[i].value = numbers[i];
  for (size_t i = 0; i < counts.size(); ++i) *all.counts[i].value = counts[i];
  settle(x);
  write_local();
  write_trees();
}

// The k nearest neighbours of each row: numbers of the learnt rows (-1 where there are fewer), distances, coefficients, targets.
template <class T> static nb::tuple neighbours(BoundMixture<T>& b, const HeldRows<T>& h, int64_t k) {
  b.check(h.rows);
  require(k >= 1 && k <= Local::kNeighbours, "k out of range");
  size_t n = size_t(h.rows.n);
  int64_t* rounds;
  double *distances, *coefficients, *targets;
  auto made = nb::make_tuple(make<int64_t>({n, size_t(k)}, &rounds), make<double>({n, size_t(k)}, &distances),
                             make<double>({n, size_t(k)}, &coefficients), make<double>({n, size_t(k)}, &targets));
  std::fill_n(rounds, n * size_t(k), -1);
  for (double* to : {distances, coefficients, targets}) std::fill_n(to, n * size_t(k), 0.0);
  b.alone([&] {
    if (!b.model.local.capacity) return;
    b.model.neighbours(h.rows, [&](int64_t i, int64_t j, int64_t round, double distance, double coefficient, double target) {
      if (j >= k) return;
      rounds[i * k + j] = round;
      distances[i * k + j] = distance;
      coefficients[i * k + j] = coefficient;
      targets[i * k + j] = target;
    });
  });
  return made;
}

template <size_t N> static nb::object names_of(const char* const (&names)[N]) {
  nb::list list;
  for (const char* name : names) list.append(name);
  return nb::tuple(list);
}

static MemoryKind::Name memory_of(const std::string& name) { return MemoryKind::Name(number_of(kMemories, name)); }

template <class T> static void bind_as(nb::module_& m) {
  using B = BoundMixture<T>;
  nb::class_<Snapshot<T>>(m, sizeof(T) == 8 ? "Snapshot64" : "Snapshot32");
  auto mixture = learner_class<T, Mixture<T>>(m, "Mixture");
  mixture.attr("MEMORIES") = names_of(kMemories);
  mixture.attr("CANDIDATES") = names_of(kCandidates);
  mixture.attr("REASONS") = names_of(kReasons);
  mixture.attr("NEIGHBOURS") = Local::kNeighbours;
  mixture
      .def(
          "__init__",
          [](B* self, int64_t width, int64_t outputs, bool regression, int64_t budget, int64_t window, int64_t kept, int64_t local) {
            require(budget >= 1 && window >= 0 && kept >= 1 && local >= 0 && local < int64_t(1) << 31, "sizes out of range");
            new (self) B(std::in_place, settings_of(width, outputs, regression, budget), window, kept, local);
          },
          nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "budget"_a, "window"_a, "kept"_a, "local"_a)
      .def(
          "build",
          [](B& b, const std::string& memory, Vector<int32_t> columns, Vector<double> centre, Vector<double> scale, double varying,
             const HeldRows<double>& points, double gamma, Matrix<double> whitening) {
            auto guard = b.locked();
            size_t width = size_t(b.model.set.width), n = size_t(points.rows.n), count = columns.shape(0);
            require(centre.shape(0) == count && scale.shape(0) == count && size_t(points.rows.width) == width &&
                        n <= size_t(b.model.set.budget) && whitening.shape(0) == n && whitening.shape(1) == n,
                    "arrays of the wrong shape");
            std::vector<int32_t> of(columns.data(), columns.data() + count);
            require(std::all_of(of.begin(), of.end(), [&](int32_t d) { return d >= 0 && size_t(d) < width; }), "columns out of range");
            b.model.build(memory_of(memory), of.data(), int64_t(count), centre.data(), scale.data(), varying, points.rows, gamma,
                          whitening.data());
          },
          "memory"_a, "columns"_a, "centre"_a, "scale"_a, "varying"_a, "landmarks"_a, "gamma"_a, "whitening"_a)
      .def(
          "replay",
          [](B& b, const std::string& memory, const HeldRows<double>& rows, Vector<double> targets, Vector<double> weights) {
            require(rows.rows.width == b.model.set.width && int64_t(targets.shape(0)) == rows.rows.n &&
                        int64_t(weights.shape(0)) == rows.rows.n,
                    "arrays of the wrong shape");
            const double *y = targets.data(), *w = weights.data();
            require(known_classes(b.model.set.outputs, y, targets.shape(0)), "class index out of range");
            MemoryKind::Name which = memory_of(memory);
            return b.alone([&] { return b.model.replay(which, rows.rows, y, w); });
          },
          "memory"_a, "rows"_a, "targets"_a, "sample_weight"_a)
      .def(
          "refill",
          [](B& b, const HeldRows<double>& rows, Vector<double> targets, Vector<double> weights, Vector<double> relevance) {
            auto guard = b.locked();
            Mixture<T>& x = b.model;
            int64_t n = rows.rows.n;
            require(x.local.capacity && rows.rows.width == x.set.width && int64_t(targets.shape(0)) == n &&
                        int64_t(weights.shape(0)) == n && int64_t(relevance.shape(0)) == x.set.width && n <= std::min(x.learnt, x.capacity),
                    "arrays of the wrong shape");
            require(known_classes(x.set.outputs, targets.data(), size_t(n)), "class index out of range");
            x.refill(rows.rows, targets.data(), weights.data(), relevance.data());
          },
          "rows"_a, "targets"_a, "sample_weight"_a, "relevance"_a)
      .def(
          "set_relevance",
          [](B& b, Vector<double> relevance) {
            auto guard = b.locked();
            const double* r = relevance.data();
            require(b.model.local.capacity && int64_t(relevance.shape(0)) == b.model.set.width &&
                        std::all_of(r, r + relevance.shape(0), [](double v) { return v > 0 && v <= 1; }),
                    "relevances must be in (0, 1], one per feature");
            b.model.set_relevance(r);
          },
          "relevance"_a)
      .def(
          "teach_trees",
          [](B& b, Matrix<int16_t> rows, Vector<float> targets, Vector<float> weights) {
            b.alone([&] {
              Trees& trees = b.model.trees;
              check_tree_rows(trees, trees.last_bins(), rows, targets, weights);
              std::vector<Trees::Bin> row(rows.shape(1));
              for (size_t i = 0; i < rows.shape(0); ++i) {
                std::copy_n(rows.data() + i * row.size(), row.size(), row.data());
                trees.learn(row.data(), targets(i), weights(i));
              }
            });
          },
          "rows"_a, "targets"_a, "sample_weight"_a)
      .def(
          "absorb",
          [](B& b, Matrix<Local::Step> rows, Vector<float> targets, Vector<float> weights, Matrix<float> residuals) {
            b.alone([&] {
              Local& local = b.model.local;
              check_local(local, rows, targets, weights, residuals);
              for (size_t i = 0; i < rows.shape(0); ++i)
                local.put(rows.data() + i * rows.shape(1), targets(i), weights(i), residuals.data() + i * residuals.shape(1));
            });
          },
          "rows"_a, "targets"_a, "sample_weight"_a, "residuals"_a)
      .def(
          "array",
          [](B& b, const std::string& name) {
            auto guard = b.locked();
            Layout all = layout(b.model);
            const StateArray* array = all.find(name);
            require(array != nullptr, "the state has no array " + name);
            double* out;
            Made<double> copy = array->matrix ? make<double>({array->rows.n, array->columns.n}, &out) : make<double>({array->rows.n}, &out);
            array->read(out);
            return nb::cast(copy);
          },
          "name"_a)
      .def("see_last",
           [](B& b) {
             auto guard = b.locked();
             b.model.see_last();
           })
      .def("learn_set",
           [](B& b) {
             auto guard = b.locked();
             require(b.model.learnt == 0, "rows were learnt before");
             b.model.learn_set();
           })
      .def("learn_stream",
           [](B& b) {
             auto guard = b.locked();
             if (!b.model.ordered) b.model.learn_stream();
           })
      .def(
          "standardise",
          [](B& b, double centre, double spread) {
            auto guard = b.locked();
            b.model.standardise(centre, spread);
          },
          "centre"_a, "spread"_a)
      .def(
          "only",
          [](B& b, const std::vector<std::string>& candidates) {
            std::vector<bool> included(size_t(b.model.aggregate.candidates()));
            for (const std::string& name : candidates) included[size_t(number_of(kCandidates, name))] = true;
            bool expert = std::find(included.begin(), included.begin() + Expert::count, true) != included.begin() + Expert::count;
            require(expert, "at least one expert is needed");
            auto guard = b.locked();
            b.model.aggregate.only(included);
          },
          "candidates"_a)
      .def(
          "widen_from",
          [](B& b, B& other) {
            auto guard = other.locked();
            const Settings &to = b.model.set, &from = other.model.set;
            require(&b != &other && to.width >= from.width && to.outputs == from.outputs && to.regression == from.regression,
                    "not a model of fewer features");
            return widen(b.model, other.model);
          },
          "other"_a)
      .def(
          "swap_local", [](B& b, B& other) { swap_parts(b, other, &Mixture<T>::local); }, "other"_a)
      .def(
          "swap_trees", [](B& b, B& other) { swap_parts(b, other, &Mixture<T>::trees); }, "other"_a)
      .def(
          "mixed",
          [](B& b, Vector<int64_t> sources, Vector<double> factors, Vector<double> kept_targets, Vector<float> local_targets,
             int64_t local) {
            auto guard = b.locked();
            Mixture<T>& from = b.model;
            Mix mix = mix_of(sources, factors, from.set.outputs);
            require(!from.set.regression && int64_t(kept_targets.shape(0)) == from.capacity &&
                        int64_t(local_targets.shape(0)) == from.local.count && (local > 0) == (from.local.capacity > 0),
                    "arrays of the wrong shape");
            std::vector<float> near(local_targets.data(), local_targets.data() + local_targets.shape(0));
            std::vector<double> kept(kept_targets.data(), kept_targets.data() + kept_targets.shape(0)), all(near.begin(), near.end());
            all.insert(all.end(), kept.begin(), kept.end());
            require(known_classes(mix.outputs(), all.data(), all.size()), "class index out of range");
            return new B(b.function, mixed(from, mix, local, kept.data(), near.data()));
          },
          "sources"_a, "factors"_a, "kept_targets"_a, "local_targets"_a, "local"_a)
      .def("neighbours", &neighbours<T>, "rows"_a, "k"_a)
      .def(
          "score_with_scales",
          [](B& b, const HeldRows<T>& h) {
            b.check(h.rows);
            double *scores, *scales;
            auto made = nb::make_tuple(make<double>({size_t(h.rows.n), size_t(b.model.set.outputs)}, &scores),
                                       make<double>({size_t(h.rows.n)}, &scales));
            b.alone([&] { b.model.score(h.rows, scores, scales); });
            return made;
          },
          "rows"_a)
      .def("take_scales",                      // of the last run; they are given once
           [](B& b) {
             auto guard = b.locked();
             double* out;
             Made<double> copy = make<double>({b.model.scales.size()}, &out);
             std::copy(b.model.scales.begin(), b.model.scales.end(), out);
             b.model.scales = {};
             return nb::cast(copy);
           })
      .def(
          "reason",
          [](B& b, const std::string& memory) {
            const Reason& reason = b.model.reasons[memory_of(memory)];
            return nb::make_tuple(int(reason.name), reason.figure, reason.rounds);
          },
          "memory"_a)
      .def("flush",
           [](B& b) {
             auto guard = b.locked();
             b.model.flush();
           })
      .def("snapshot", &snapshot<T>)
      .def("rollback", &rollback<T>, "snapshot"_a)
      .def("kept", &kept<T>, "n"_a)
      .def("replace_kept_targets", &replace_kept_targets<T>, "targets"_a)
      .def("state", &state<T>, "rings"_a = true)
      .def("restore", &restore<T>, "state"_a)
      .def_prop_ro("kept_targets",
                   [](B& b) {
                     auto guard = b.locked();
                     double* out;
                     Made<double> copy = make<double>({size_t(b.model.capacity)}, &out);
                     std::copy_n(b.model.kept_targets.data(), b.model.capacity, out);
                     return nb::cast(copy);
                   })
      .def_prop_ro("local_targets",
                   [](B& b) {
                     auto guard = b.locked();
                     float* out;
                     Made<float> copy = make<float>({b.model.local.targets.size()}, &out);
                     std::copy(b.model.local.targets.begin(), b.model.local.targets.end(), out);
                     return nb::cast(copy);
                   })
      .def_prop_rw(
          "held", [](B& b) { return b.model.held; }, [](B& b, bool held) { b.model.held = held; })
      .def(
          "passed_relevance", [](B& b, int64_t age) { return b.model.passed_relevance(age); }, "age"_a)
      .def_prop_ro("ordered", [](B& b) { return b.model.ordered != 0; })
      .def_prop_ro("relevance_due", [](B& b) { return b.model.relevance_due; })
      .def_prop_ro("local", [](B& b) { return b.model.local.capacity; })
      .def_prop_ro("trees", [](B& b) { return b.model.trees.capacity; })
      .def_static("local_row_bytes", &Local::row_bytes, "width"_a, "outputs"_a)
      .def_static("local_landmark_bytes", &Local::landmark_bytes, "width"_a)
      .def_prop_ro("due",
                   [](B& b) {
                     std::vector<std::string> names;
                     for (int k = 0; k < MemoryKind::count; ++k)
                       if (b.model.due.has(k)) names.push_back(kMemories[k]);
                     return names;
                   })
      .def(
          "gamma", [](B& b, const std::string& memory) { return b.model.memories[memory_of(memory)].landmarks.kernel.gamma; }, "memory"_a)
      .def_prop_ro("learnt", [](B& b) { return b.model.learnt; })
      .def_prop_ro("target_centre", [](B& b) { return b.model.target_centre; })
      .def_prop_ro("target_spread", [](B& b) { return b.model.target_spread; })
      .def_prop_ro("weight_unit", [](B& b) { return b.model.relative(1); })
      .def_prop_ro("lasting_age", [](B& b) { return b.model.lasting_age; })
      .def_prop_ro("wide", [](B& b) { return b.model.wide; });
}

void bind_mixture(nb::module_& m) {
  bind_as<double>(m);
  bind_as<float>(m);
  m.def(
      "scaled_rows",
      [](Matrix<double> rows, Vector<double> centre, Vector<double> scale) {
        size_t n = rows.shape(0), width = rows.shape(1);
        require(centre.shape(0) == width && scale.shape(0) == width, "arrays of the wrong shape");
        double* out;
        Made<double> scaled = make<double>({n, width}, &out);
        std::vector<double> zero(width);
        for (size_t d = 0; d < width; ++d) zero[d] = soft_clip(-centre(d) * scale(d));
        for (size_t i = 0; i < n; ++i)
          for (size_t d = 0; d < width; ++d) *out++ = soft_clip((rows(i, d) - centre(d)) * scale(d)) - zero[d];
        return scaled;
      },
      "rows"_a, "centre"_a, "scale"_a);
}

}  // namespace KS_MODULE
