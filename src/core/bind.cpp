// Python's view of the core. Arrays come in as they are; the interpreter lock is released while rounds run, and each object
// has a lock of its own, so objects may be used from several threads.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <mutex>
#include <utility>

#include "linear.hpp"
#include "mapped.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace KS_MODULE {

template <class T> using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Made = nb::ndarray<nb::numpy, T>;

// A new NumPy array; `fill` writes it.
template <class T> Made<T> make(std::initializer_list<size_t> shape, T** data) {
  size_t size = 1;
  for (size_t s : shape) size *= s;
  T* memory = new T[size ? size : 1]();
  nb::capsule owner(memory, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  *data = memory;
  return Made<T>(memory, shape.size(), shape.begin(), owner);
}

void require(bool good, const std::string& message) {
  if (!good) throw nb::value_error(message.c_str());
}

// The arrays behind a Rows stay alive as long as it does.
template <class T> struct HeldRows {
  Rows<T> rows;
  nb::object a, b, c;

  static HeldRows dense(Matrix<T> x) {
    HeldRows h;
    h.rows.n = int64_t(x.shape(0));
    h.rows.width = int64_t(x.shape(1));
    static const T nothing[1] = {0};
    h.rows.dense = x.size() ? x.data() : nothing;
    h.a = nb::cast(x);
    return h;
  }

  static HeldRows csr(Vector<T> values, Vector<int32_t> indices, Vector<int64_t> starts, int64_t width) {
    require(starts.shape(0) >= 1 && values.shape(0) == indices.shape(0) && width >= 0, "malformed CSR arrays");
    HeldRows h;
    h.rows = {int64_t(starts.shape(0)) - 1, width, nullptr, values.data(), indices.data(), starts.data()};
    require(starts(0) == 0 && starts(size_t(h.rows.n)) == int64_t(values.shape(0)), "CSR row starts do not span the values");
    for (int64_t i = 0; i < h.rows.n; ++i)
      require(starts(size_t(i)) <= starts(size_t(i) + 1), "CSR row starts decrease at row " + std::to_string(i));
    for (int64_t i = 0; i < h.rows.n; ++i) {
      int64_t last = -1;
      for (int64_t e = starts(size_t(i)); e < starts(size_t(i) + 1); ++e) {
        int64_t d = indices(size_t(e));
        require(d > last && d < width, "CSR columns of row " + std::to_string(i) +
                                           " must increase and stay below " + std::to_string(width));
        last = d;
      }
    }
    h.a = nb::cast(values);
    h.b = nb::cast(indices);
    h.c = nb::cast(starts);
    return h;
  }

  std::optional<std::pair<int64_t, int64_t>> first_not_finite() const {
    std::optional<std::pair<int64_t, int64_t>> found;
    for (int64_t i = 0; i < rows.n; ++i) {
      T sum = 0;                                // x - x is 0 unless x is NaN or infinite
      rows.each(i, [&](int64_t, T v) { sum += v - v; });
      if (sum == 0) continue;
      rows.each(i, [&](int64_t d, T v) {
        if (!found && !std::isfinite(v)) found = {i, d};
      });
      return found;
    }
    return found;
  }

  HeldRows part(int64_t from, int64_t to) const {
    require(0 <= from && from <= to && to <= rows.n, "rows out of range");
    HeldRows h = *this;
    h.rows.n = to - from;
    if (rows.sparse())
      h.rows.starts += from;
    else
      h.rows.dense += from * rows.width;
    return h;
  }

  Made<T> array() const {
    T* x;
    Made<T> out = make<T>({size_t(rows.n), size_t(rows.width)}, &x);
    for (int64_t i = 0; i < rows.n; ++i) rows.each(i, [&](int64_t d, T v) { x[i * rows.width + d] = v; });
    return out;
  }
};

// k(x, points) through a Python callable, checked.
template <class T> typename Kernel<T>::Callback callback_of(nb::object function) {
  auto held = std::shared_ptr<nb::object>(new nb::object(std::move(function)), [](nb::object* o) {
    nb::gil_scoped_acquire gil;
    delete o;
  });
  return [held](const T* x, int64_t width, const T* points, int64_t n, T* out) {
    nb::gil_scoped_acquire gil;
    size_t one[2] = {1, size_t(width)}, many[2] = {size_t(n), size_t(width)};
    nb::object a = nb::cast(Made<const T>(x, 2, one), nb::rv_policy::copy);
    nb::object b = nb::cast(Made<const T>(points, 2, many), nb::rv_policy::copy);
    nb::object result = (*held)(a, b);
    nb::object asarray = nb::module_::import_("numpy").attr("asarray");
    nb::object array = asarray(result, sizeof(T) == 8 ? "float64" : "float32").attr("reshape")(-1);
    auto values = nb::cast<nb::ndarray<const T, nb::ndim<1>, nb::device::cpu>>(array);
    require(int64_t(values.shape(0)) == n, "the kernel returned " + std::to_string(values.shape(0)) +
                                               " values for " + std::to_string(n) + " points; kernel(X, Y) must return len(X) x len(Y)");
    for (int64_t j = 0; j < n; ++j) out[j] = values(size_t(j));
  };
}

template <class T> Kernel<T> kernel_of(const std::string& name, double gamma, double offset, int degree, nb::object function) {
  Kernel<T> k = Kernel<T>::named(name, gamma, offset, degree);
  if (k.kind == Kernel<T>::callable) k.callback = callback_of<T>(std::move(function));
  return k;
}

Settings settings_of(int64_t width, int64_t outputs, bool regression, int64_t budget, const std::string& loss,
                     double loss_width, double eta, double lambda, double C, double clip, const std::string& variant) {
  require(width >= 0 && outputs >= 1 && budget >= 0 && width <= (int64_t(1) << 31), "sizes out of range");
  Settings s;
  s.width = width;
  s.outputs = outputs;
  s.regression = regression;
  s.budget = budget;
  s.loss = Loss::named(loss, loss_width);
  s.eta = eta;
  s.lambda = lambda;
  s.C = C;
  s.clip = clip;
  s.variant = variant;
  return s;
}

using Targets = Vector<double>;
using Weights = std::optional<Vector<double>>;
using Ran = std::tuple<int64_t, std::string>;

// What Expansion, Mapped and Linear share in Python: scoring, running, their weights, a lock.
template <class T, class Model> struct Bound {
  Model model;
  std::mutex lock;
  template <class... A> explicit Bound(std::in_place_t, A&&... a) : model(std::forward<A>(a)...) {}

  Made<double> score(const HeldRows<T>& h) {
    check(h.rows);
    double* out;
    Made<double> made = make<double>({size_t(h.rows.n), size_t(model.set.outputs)}, &out);
    nb::gil_scoped_release release;
    std::lock_guard<std::mutex> guard(lock);
    model.score(h.rows, out);
    return made;
  }

  // Runs rows from `from` on, writing scores into `out`; returns the row to go on with and why it stopped.
  template <class... A>
  Ran run(const HeldRows<T>& h, int64_t from, Targets targets, Weights weights,
          nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> out, A... more) {
    const Rows<T>& rows = h.rows;
    check(rows);
    require(from >= 0 && int64_t(targets.shape(0)) == rows.n && int64_t(out.shape(0)) == rows.n &&
                int64_t(out.shape(1)) == model.set.outputs && (!weights || int64_t(weights->shape(0)) == rows.n),
            "targets, weights and scores must have one entry a row");
    if (model.set.outputs > 1)
      for (int64_t i = from; i < rows.n; ++i)
        require(targets(size_t(i)) >= 0 && targets(size_t(i)) < double(model.set.outputs), "class index out of range");
    const double* w = weights ? weights->data() : nullptr;
    const double* y = targets.data();
    double* f = out.data();
    nb::gil_scoped_release release;
    std::lock_guard<std::mutex> guard(lock);
    Stop why;
    int64_t next = model.run(rows, from, y, w, f, more..., why);
    return {next, why == Stop::done ? "done" : why == Stop::full ? "full" : "not finite"};
  }

  size_t nbytes() const { return model.nbytes(); }

 private:
  void check(const Rows<T>& rows) const {
    require(rows.width == model.set.width, "rows have " + std::to_string(rows.width) + " columns, the model " +
                                               std::to_string(model.set.width));
  }
};

// weights[c][0..n) as an n x outputs array, and back.
template <class T> Made<T> weights_out(const std::vector<Array<T>>& weights, int64_t n) {
  T* w;
  Made<T> made = make<T>({size_t(n), weights.size()}, &w);
  for (size_t c = 0; c < weights.size(); ++c)
    for (int64_t j = 0; j < n; ++j) w[size_t(j) * weights.size() + c] = weights[c][size_t(j)];
  return made;
}
template <class T> void weights_in(std::vector<Array<T>>& weights, const Matrix<T>& from) {
  require(from.shape(1) == weights.size() && (from.shape(0) <= weights[0].size()), "weights have the wrong shape");
  for (size_t c = 0; c < weights.size(); ++c) {
    weights[c].clear();
    for (size_t j = 0; j < from.shape(0); ++j) weights[c][j] = from(j, c);
  }
}

template <class T> using BoundExpansion = Bound<T, Expansion<T>>;
template <class T> using BoundMapped = Bound<T, Mapped<T>>;
template <class T> using BoundLinear = Bound<T, Linear<T>>;

template <class T> nb::dict expansion_state(BoundExpansion<T>& b) {
  std::lock_guard<std::mutex> guard(b.lock);
  Expansion<T>& e = b.model;
  int64_t n = e.points.count;
  nb::dict state;
  T* x;
  Made<T> points = make<T>({size_t(n), size_t(e.set.width)}, &x);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t d = 0; d < e.set.width; ++d) x[j * e.set.width + d] = e.points.panel.at(j, d);
  state["points"] = points;
  state["weights"] = weights_out(e.weights, n);
  int64_t* t;
  Made<int64_t> born = make<int64_t>({size_t(n)}, &t);
  std::copy_n(e.born.begin(), n, t);
  state["born"] = born;
  uint64_t* r;
  Made<uint64_t> random = make<uint64_t>({2}, &r);
  r[0] = e.random.state;
  r[1] = uint64_t(e.clock);
  state["random"] = random;
  double* q;
  Made<double> ledger = make<double>({2}, &q);
  q[0] = e.mistakes;
  q[1] = e.ledger;
  state["ledger"] = ledger;
  if (!e.inverse.empty()) {
    double* k;
    Made<double> inverse = make<double>({size_t(n), size_t(n)}, &k);
    for (int64_t j = 0; j < n; ++j) std::copy_n(e.inverse.begin() + j * e.set.budget, n, k + j * n);
    state["inverse"] = inverse;
  }
  return state;
}

template <class T>
void expansion_restore(BoundExpansion<T>& b, const HeldRows<T>& points, Matrix<T> weights, Vector<int64_t> born,
                       Vector<uint64_t> random, Vector<double> ledger, std::optional<Matrix<double>> inverse) {
  std::lock_guard<std::mutex> guard(b.lock);
  Expansion<T>& e = b.model;
  int64_t n = points.rows.n;
  require(n <= e.set.budget && points.rows.width == e.set.width && int64_t(weights.shape(0)) == n &&
              int64_t(born.shape(0)) == n && random.shape(0) == 2 && ledger.shape(0) == 2 &&
              int64_t(weights.shape(1)) == e.set.outputs,
          "the state does not fit this learner");
  require(inverse.has_value() == !e.inverse.empty(), "the state does not fit this learner");
  if (inverse) require(int64_t(inverse->shape(0)) == n && int64_t(inverse->shape(1)) == n, "the state does not fit this learner");
  e.points.count = 0;
  for (int64_t j = 0; j < n; ++j) e.place(j, points.rows, j);
  weights_in(e.weights, weights);
  for (int64_t j = 0; j < n; ++j) e.born[size_t(j)] = born(size_t(j));
  e.random.state = random(0);
  e.clock = int64_t(random(1));
  e.mistakes = ledger(0);
  e.ledger = ledger(1);
  if (inverse) {
    std::fill(e.inverse.begin(), e.inverse.end(), 0.0);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < n; ++l) e.inverse[size_t(j * e.set.budget + l)] = (*inverse)(size_t(j), size_t(l));
  }
}

// Kernel values (or, if `measures`, distances and products) of all rows of x against all rows of y.
template <class T>
Made<T> kernel_matrix(const HeldRows<T>& x, const HeldRows<T>& y, const std::string& name, double gamma, double offset,
                      int degree, bool measures) {
  require(x.rows.width == y.rows.width, "X has " + std::to_string(x.rows.width) + " columns, Y " + std::to_string(y.rows.width));
  T* out;
  Made<T> made = make<T>({size_t(x.rows.n), size_t(y.rows.n)}, &out);
  Kernel<T> kernel = Kernel<T>::named(name, gamma, offset, degree);
  nb::gil_scoped_release release;
  Points<T> points(kernel, y.rows.width, y.rows.n);
  for (int64_t j = 0; j < y.rows.n; ++j) points.put(j, y.rows, j);
  constexpr int64_t block = 64;
  Array<T> scratch(size_t(block * points.slots()));
  for (int64_t i = 0; i < x.rows.n && y.rows.n; i += block) {
    int64_t n = std::min(block, x.rows.n - i);
    points.measure(x.rows, i, n, points.tiles(), scratch.data(), points.slots());
    for (int64_t r = 0; r < n; ++r) {
      T* row = scratch.data() + r * points.slots();
      if (!measures) points.values(row, row, points.tiles());
      std::copy_n(row, y.rows.n, out + (i + r) * y.rows.n);
    }
  }
  return made;
}

template <class T> Made<T> kernel_diagonal(const HeldRows<T>& x, const std::string& name, double gamma, double offset, int degree) {
  T* out;
  Made<T> made = make<T>({size_t(x.rows.n)}, &out);
  Points<T> points(Kernel<T>::named(name, gamma, offset, degree), x.rows.width, 0);
  for (int64_t i = 0; i < x.rows.n; ++i) out[i] = points.self(x.rows, i);
  return made;
}

Made<double> loss_values(const std::string& name, double width, Vector<double> f, Vector<double> y) {
  require(f.shape(0) == y.shape(0), "scores and targets differ in length");
  Loss loss = Loss::named(name, width);
  double* out;
  Made<double> made = make<double>({3, f.shape(0)}, &out);
  for (size_t i = 0; i < f.shape(0); ++i) {
    out[i] = loss.value(f(i), y(i));
    out[f.shape(0) + i] = loss.slope(f(i), y(i));
    out[2 * f.shape(0) + i] = loss.curvature(f(i), y(i));
  }
  return made;
}

template <class T> void bind(nb::module_& m, const std::string& suffix) {
  auto name = [&](const char* base) { return std::string(base) + suffix; };
  using Held = HeldRows<T>;

  nb::class_<Held>(m, name("Rows").c_str())
      .def_static("dense", &Held::dense, "x"_a)
      .def_static("csr", &Held::csr, "values"_a, "indices"_a, "starts"_a, "width"_a)
      .def("first_not_finite", &Held::first_not_finite)
      .def("part", &Held::part, "start"_a, "stop"_a)
      .def("array", &Held::array)
      .def_prop_ro("n", [](const Held& h) { return h.rows.n; })
      .def_prop_ro("width", [](const Held& h) { return h.rows.width; })
      .def_prop_ro("sparse", [](const Held& h) { return h.rows.sparse(); });

  nb::class_<BoundExpansion<T>>(m, name("Expansion").c_str())
      .def(
          "__init__",
          [](BoundExpansion<T>* self, const std::string& rule, int64_t width, int64_t outputs, bool regression,
             const std::string& kernel, double gamma, double offset, int degree, nb::object function, int64_t budget,
             bool grows, const std::string& loss, double loss_width, double eta, double lambda, double C, double clip,
             const std::string& variant, uint64_t seed) {
            Settings s = settings_of(width, outputs, regression, budget, loss, loss_width, eta, lambda, C, clip, variant);
            s.grows = grows;
            new (self) BoundExpansion<T>(std::in_place, std::move(s), kernel_of<T>(kernel, gamma, offset, degree, std::move(function)),
                                         rule_named<T>(rule), rule.rfind("projectron", 0) == 0, seed);
          },
          "rule"_a, nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "kernel"_a, "gamma"_a, "offset"_a, "degree"_a,
          "function"_a.none(), "budget"_a, "grows"_a, "loss"_a, "loss_width"_a, "eta"_a, "lam"_a, "C"_a, "clip"_a,
          "variant"_a, "seed"_a)
      .def("score", &BoundExpansion<T>::score, "rows"_a)
      .def("run", &BoundExpansion<T>::template run<bool>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(),
           "scores"_a, "stop_when_full"_a)
      .def("state", &expansion_state<T>)
      .def("restore", &expansion_restore<T>, "points"_a, "weights"_a, "born"_a, "random"_a, "ledger"_a,
           "inverse"_a.none() = nb::none())
      .def_prop_ro("count", [](BoundExpansion<T>& b) { return b.model.points.count; })
      .def_prop_ro("nbytes", &BoundExpansion<T>::nbytes);

  auto mapped = nb::class_<BoundMapped<T>>(m, name("Mapped").c_str());
  mapped
      .def_static(
          "landmarks",
          [](const Held& landmarks, Matrix<T> matrix, const std::string& kernel, double gamma, double offset, int degree,
             nb::object function, int64_t outputs, bool regression, const std::string& loss, double loss_width, double eta,
             double lambda) {
            require(int64_t(matrix.shape(1)) == landmarks.rows.n, "the matrix must have one column a landmark");
            Settings s = settings_of(landmarks.rows.width, outputs, regression, 0, loss, loss_width, eta, lambda, 0, 0, "");
            return new BoundMapped<T>(
                std::in_place, std::move(s), std::make_unique<LandmarkMap<T>>(kernel_of<T>(kernel, gamma, offset, degree, std::move(function)),
                                                               landmarks.rows, matrix.data(), int64_t(matrix.shape(0))));
          },
          "landmarks"_a, "matrix"_a, nb::kw_only(), "kernel"_a, "gamma"_a, "offset"_a, "degree"_a, "function"_a.none(),
          "outputs"_a, "regression"_a, "loss"_a, "loss_width"_a, "eta"_a, "lam"_a)
      .def_static(
          "fourier",
          [](Matrix<T> frequencies, int64_t outputs, bool regression, const std::string& loss, double loss_width, double eta,
             double lambda) {
            int64_t width = int64_t(frequencies.shape(0)), pairs = int64_t(frequencies.shape(1));
            Settings s = settings_of(width, outputs, regression, 0, loss, loss_width, eta, lambda, 0, 0, "");
            return new BoundMapped<T>(std::in_place, std::move(s), std::make_unique<FourierMap<T>>(frequencies.data(), width, pairs));
          },
          "frequencies"_a, nb::kw_only(), "outputs"_a, "regression"_a, "loss"_a, "loss_width"_a, "eta"_a, "lam"_a)
      .def("score", &BoundMapped<T>::score, "rows"_a)
      .def("run", &BoundMapped<T>::template run<>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a)
      .def("features",
           [](BoundMapped<T>& b, const Held& h) {
             T* out;
             Made<T> made = make<T>({size_t(h.rows.n), size_t(b.model.stride())}, &out);
             nb::gil_scoped_release release;
             std::lock_guard<std::mutex> guard(b.lock);
             b.model.features(h.rows, out);
             return made;
           }, "rows"_a)
      .def_prop_rw("weights", [](BoundMapped<T>& b) { return weights_out(b.model.weights, b.model.stride()); },
                   [](BoundMapped<T>& b, Matrix<T> w) { weights_in(b.model.weights, w); })
      .def_prop_ro("nbytes", &BoundMapped<T>::nbytes);

  nb::class_<BoundLinear<T>>(m, name("Linear").c_str())
      .def(
          "__init__",
          [](BoundLinear<T>* self, int64_t width, int64_t outputs, bool regression, double epsilon, double C,
             const std::string& variant) {
            new (self) BoundLinear<T>(std::in_place, settings_of(width, outputs, regression, 0, "epsilon_insensitive", epsilon, 0, 0, C, 0, variant));
          },
          nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "epsilon"_a, "C"_a, "variant"_a)
      .def("score", &BoundLinear<T>::score, "rows"_a)
      .def("run", &BoundLinear<T>::template run<>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a)
      .def_prop_rw("weights", [](BoundLinear<T>& b) { return weights_out(b.model.weights, b.model.set.width); },
                   [](BoundLinear<T>& b, Matrix<T> w) { weights_in(b.model.weights, w); })
      .def_prop_ro("nbytes", &BoundLinear<T>::nbytes);

  m.def("kernel_matrix", &kernel_matrix<T>, "x"_a, "y"_a, "kernel"_a, "gamma"_a, "offset"_a, "degree"_a, "measures"_a);
  m.def("kernel_diagonal", &kernel_diagonal<T>, "x"_a, "kernel"_a, "gamma"_a, "offset"_a, "degree"_a);
}

}  // namespace KS_MODULE

#define KS_MODULE_ENTRY(name, m) NB_MODULE(name, m)
KS_MODULE_ENTRY(KS_MODULE, m) {
  m.doc() = "Kernel rows and round loops of kernelstream, compiled for one CPU level.";
  KS_MODULE::bind<double>(m, "64");
  KS_MODULE::bind<float>(m, "32");
  m.def("loss_values", &KS_MODULE::loss_values, "loss"_a, "width"_a, "scores"_a, "targets"_a);
}
