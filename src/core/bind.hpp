// What all bindings share: arrays, rows, kernels, and the Python class of a model. There is one bind_*.cpp per family of models.
//
// The rule for locks: each model has a lock, and nobody waits for it while holding the interpreter lock, for the thread that has it
// may need the interpreter lock to call a kernel written in Python. So a lock is taken through `locked` or `alone` only, and any
// number of threads may use one model: their calls come one after the other. A kernel function that uses its own model would wait
// for itself, and raises instead. What a caller may change meanwhile (arrays) is copied before it is trusted as an index.
#pragma once
#include "glue.hpp"
#include "kernel.hpp"
#include "settings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace KS_MODULE {

KS_GLUE_BEGIN

// ---- arrays ----

template <class T> using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Made = nb::ndarray<nb::numpy, T>;

// A new NumPy array of zeros, to be filled through `data`.
template <class T> Made<T> make(std::initializer_list<size_t> shape, T** data) {
  size_t size = 1;
  for (size_t s : shape) size *= s;
  T* memory = new T[size ? size : 1]();
  nb::capsule owner(memory, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  *data = memory;
  return Made<T>(memory, shape.size(), shape.begin(), owner);
}

template <class T> Made<T> copied(const std::vector<T>& from) {
  T* to;
  Made<T> made = make<T>({from.size()}, &to);
  std::copy(from.begin(), from.end(), to);
  return made;
}

inline void require(bool good, const std::string& message) {
  if (!good) throw nb::value_error(message.c_str());
}

// ---- rows ----

template <class T> Rows<T> rows_of(const Matrix<T>& x) {
  static const T nothing[1] = {0};             // no columns: still dense
  return {int64_t(x.shape(0)), int64_t(x.shape(1)), x.size() ? x.data() : nothing};
}

// Rows and what keeps their memory alive. Where the numbers of CSR rows stand is copied, then checked: another thread cannot change
// it any more. The numbers themselves are not copied.
template <class T> struct HeldRows {
  struct Places {
    std::vector<int32_t> indices;
    std::vector<int64_t> starts;
  };
  Rows<T> rows;
  Matrix<T> matrix;
  Vector<T> values;
  std::shared_ptr<const Places> places;

  static HeldRows dense(Matrix<T> x) {
    HeldRows h;
    h.rows = rows_of(x);
    h.matrix = std::move(x);
    return h;
  }

  static HeldRows csr(Vector<T> values, Vector<int32_t> indices, Vector<int64_t> starts, int64_t width) {
    require(starts.shape(0) >= 1 && values.shape(0) == indices.shape(0) && width >= 0, "malformed CSR arrays");
    auto places = std::make_shared<Places>();
    places->indices.assign(indices.data(), indices.data() + indices.shape(0));
    places->starts.assign(starts.data(), starts.data() + starts.shape(0));
    HeldRows h;
    const Rows<T>& r =
        h.rows = {int64_t(starts.shape(0)) - 1, width, nullptr, values.data(), places->indices.data(), places->starts.data()};
    require(r.starts[0] == 0 && r.starts[r.n] == int64_t(values.shape(0)), "CSR row starts do not span the values");
    for (int64_t i = 0; i < r.n; ++i)
      if (r.starts[i] > r.starts[i + 1]) require(false, "CSR row starts decrease at row " + std::to_string(i));
    for (int64_t i = 0; i < r.n; ++i) {
      int64_t last = -1;
      for (int64_t e = r.starts[i]; e < r.starts[i + 1]; ++e) {
        int64_t d = r.indices[e];
        if (d <= last || d >= width)
          require(false, "CSR columns of row " + std::to_string(i) + " must increase and stay below " + std::to_string(width));
        last = d;
      }
    }
    h.values = std::move(values);
    h.places = std::move(places);
    return h;
  }

  std::optional<std::pair<int64_t, int64_t>> first_not_finite() const {
    std::optional<std::pair<int64_t, int64_t>> found;
    if (rows.n == 0 || rows.all_finite()) return found;
    for (int64_t i = 0; !found && i < rows.n; ++i)
      rows.each(i, [&](int64_t d, T v) {
        if (!found && !std::isfinite(v)) found = {i, d};
      });
    return found;
  }

  // The first entry below zero: its row and column.
  std::optional<std::pair<int64_t, int64_t>> first_negative() const {
    std::optional<std::pair<int64_t, int64_t>> found;
    for (int64_t i = 0; !found && i < rows.n; ++i)
      rows.each(i, [&](int64_t d, T v) {
        if (!found && v < 0) found = {i, d};
      });
    return found;
  }

  HeldRows part(int64_t from, int64_t to) const {
    require(0 <= from && from <= to && to <= rows.n, "rows out of range");
    HeldRows h = *this;
    h.rows = rows.part(from, to);
    return h;
  }

  Made<T> array() const {
    T* x;
    Made<T> out = make<T>({size_t(rows.n), size_t(rows.width)}, &x);
    for (int64_t i = 0; i < rows.n; ++i) rows.each(i, [&](int64_t d, T v) { x[i * rows.width + d] = v; });
    return out;
  }
};

// ---- kernels ----

// A kernel as Python describes it, for both precisions.
struct AnyKernel {
  std::string name;
  double gamma, offset;
  int degree;
  nb::object function;                         // of a callable kernel, else None

  AnyKernel(const std::string& n, double g, double o, int d, nb::object f)
      : name(n), gamma(g), offset(o), degree(d), function(std::move(f)) {
    Kernel<double>::named(name, gamma, offset, degree);
    if (name == "precomputed") {
      auto table = nb::cast<Matrix<double>>(function);
      require(table.shape(0) == table.shape(1), "the matrix of a precomputed kernel must be square");
    }
  }

  // k(x, points) through the Python function, checked. The function belongs to the Bound that has the kernel.
  template <class T> Kernel<T> as() const {
    Kernel<T> kernel = Kernel<T>::named(name, gamma, offset, degree);
    if (kernel.kind == Kernel<T>::precomputed) {
      auto table = nb::cast<Matrix<double>>(function);
      kernel.callback = [values = table.data(), size = int64_t(table.shape(0))](const T* x, int64_t width, const T* points, int64_t n,
                                                                                T* out) {
        for (int64_t j = 0; j < n; ++j) {
          T row = width == 1 ? x[0] : T(-1), column = width == 1 ? points[j] : T(-1);
          if (!(row >= 0 && row < T(size) && column >= 0 && column < T(size)))
            throw std::invalid_argument("a precomputed kernel takes rows of one entry, the number of a row of its matrix");
          out[j] = T(values[int64_t(row) * size + int64_t(column)]);
        }
      };
    }
    if (kernel.kind != Kernel<T>::callable) return kernel;
    kernel.callback = [call = nb::handle(function)](const T* x, int64_t width, const T* points, int64_t n, T* out) {
      nb::gil_scoped_acquire gil;
      size_t one[2] = {1, size_t(width)}, many[2] = {size_t(n), size_t(width)};
      nb::object a = nb::cast(Made<const T>(x, 2, one), nb::rv_policy::copy);
      nb::object b = nb::cast(Made<const T>(points, 2, many), nb::rv_policy::copy);
      nb::object asarray = nb::module_::import_("numpy").attr("asarray");
      nb::object array = asarray(call(a, b), sizeof(T) == 8 ? "float64" : "float32").attr("reshape")(-1);
      auto values = nb::cast<nb::ndarray<const T, nb::ndim<1>, nb::device::cpu>>(array);
      if (int64_t(values.shape(0)) != n)
        require(false, "the kernel returned " + std::to_string(values.shape(0)) + " values for " + std::to_string(n) +
                           " points; kernel(X, Y) must return len(X) x len(Y)");
      for (int64_t j = 0; j < n; ++j) out[j] = values(size_t(j));
    };
    return kernel;
  }
};

// Shows Python's garbage collector the function that an object holds: it may lead back to the object. What leads back (a function,
// a dictionary, an instance) can be cleared, so this end need not be.
template <class Holder> int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<Holder>(self)->function.ptr());
  return 0;
}
template <class Holder> inline PyType_Slot holder_slots[] = {{Py_tp_traverse, (void*)traverse<Holder>}, {0, nullptr}};

// ---- models ----

inline Settings settings_of(int64_t width, int64_t outputs, bool regression, int64_t budget) {
  constexpr int64_t most = int64_t(1) << 31;   // so that products of two sizes stay in range
  require(width >= 0 && outputs >= 1 && budget >= 0 && width <= most && outputs <= most && budget <= most, "sizes out of range");
  return {width, outputs, budget, regression};
}

inline void check_width(int64_t given, int64_t width) {
  if (given != width) require(false, "rows have " + std::to_string(given) + " columns, the model " + std::to_string(width));
}

// A mutex that raises where it would wait for its own thread.
class Lock {
 public:
  void lock() {
    if (owner_ == std::this_thread::get_id()) throw std::runtime_error("a kernel function must not use the model that calls it");
    mutex_.lock();
    owner_ = std::this_thread::get_id();
  }
  void unlock() {
    owner_ = std::thread::id();
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_ = std::thread::id();
};

using Targets = Vector<double>;
using Weights = std::optional<Vector<double>>;
using Scores = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A model in Python: the model, the Python function of its kernel, and a lock.
template <class T, class M> struct Bound {
  using Model = M;
  Model model;
  nb::object function;

  template <class... A> explicit Bound(nb::object f, A&&... a) : model(std::forward<A>(a)...), function(std::move(f)) {}
  template <class... A> explicit Bound(std::in_place_t, A&&... a) : Bound(nb::object(), std::forward<A>(a)...) {}

  Bound* clone() {
    auto guard = locked();
    return new Bound(function, static_cast<const Model&>(model));
  }

  Made<double> score(const HeldRows<T>& h) {
    check(h.rows);
    double* out;
    Made<double> made = make<double>({size_t(h.rows.n), size_t(model.set.outputs)}, &out);
    alone([&] { model.score(h.rows, out); });
    return made;
  }

  // Runs rows from `from` on, writing scores into `out`; returns the row to go on with and why it stopped.
  std::pair<int64_t, Stop> run(const HeldRows<T>& h, int64_t from, Targets targets, Weights weights, Scores out) {
    const Rows<T>& rows = h.rows;
    check(rows);
    require(from >= 0 && int64_t(targets.shape(0)) == rows.n && int64_t(out.shape(0)) == rows.n &&
                int64_t(out.shape(1)) == model.set.outputs && (!weights || int64_t(weights->shape(0)) == rows.n),
            "targets, weights and scores must have one entry per row");
    std::vector<double> classes;               // checked and used by one thread only
    if (model.set.outputs > 1) {
      classes.assign(targets.data(), targets.data() + rows.n);
      for (int64_t i = from; i < rows.n; ++i)
        require(classes[size_t(i)] >= 0 && classes[size_t(i)] < double(model.set.outputs), "class index out of range");
    }
    Stop why;
    const double* y = classes.empty() ? targets.data() : classes.data();
    int64_t next = alone([&] { return model.run(rows, from, y, weights ? weights->data() : nullptr, out.data(), why); });
    return {next, why};
  }

  // The lock, waited for without the interpreter lock.
  std::unique_lock<Lock> locked() {
    nb::gil_scoped_release release;
    return std::unique_lock<Lock>(lock_);
  }

  // f() under the lock and without the interpreter lock.
  template <class F> auto alone(F f) {
    auto guard = locked();
    nb::gil_scoped_release release;
    return f();
  }

  void check(const Rows<T>& rows) const { check_width(rows.width, model.set.width); }

 private:
  Lock lock_;
};

template <class M, class = void> struct counts_points : std::false_type {};
template <class M> struct counts_points<M, std::void_t<decltype(std::declval<const M&>().count())>> : std::true_type {};

// The Python class of a model: its name with the precision; clone, nbytes, and count if it has points.
template <class T, class M> nb::class_<Bound<T, M>> model_class(nb::module_& m, const char* name) {
  using B = Bound<T, M>;
  nb::class_<B> c(m, (name + std::string(sizeof(T) == 8 ? "64" : "32")).c_str(), nb::type_slots(holder_slots<B>));
  c.def("clone", &B::clone).def_prop_ro("nbytes", [](B& b) {
    auto guard = b.locked();
    return b.model.nbytes();
  });
  if constexpr (counts_points<M>::value)
    c.def_prop_ro("count", [](B& b) {
      auto guard = b.locked();
      return b.model.count();
    });
  return c;
}

// The same for a model that learns: score and run too.
template <class T, class M> nb::class_<Bound<T, M>> learner_class(nb::module_& m, const char* name) {
  using B = Bound<T, M>;
  return model_class<T, M>(m, name)
      .def("score", &B::score, "rows"_a)
      .def("run", &B::run, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a);
}

// How Python describes that outputs become others; `before`: how many there are.
inline Mix mix_of(Vector<int64_t> sources, Vector<double> factors, int64_t before) {
  Mix mix;
  mix.sources.assign(sources.data(), sources.data() + sources.shape(0));
  mix.factors.assign(factors.data(), factors.data() + factors.shape(0));
  require(mix.outputs() >= 1 && mix.factors.size() == mix.sources.size(), "arrays of the wrong shape");
  require(std::all_of(mix.sources.begin(), mix.sources.end(), [&](int64_t k) { return k >= 0 && k < before; }), "output out of range");
  return mix;
}

// `mixed` of a class whose model can be made from another one and a Mix.
template <class T, class M> void def_mixed(nb::class_<Bound<T, M>>& c) {
  using B = Bound<T, M>;
  c.def(
      "mixed",
      [](B& b, Vector<int64_t> sources, Vector<double> factors) {
        auto guard = b.locked();
        return new B(b.function, static_cast<const M&>(b.model), mix_of(sources, factors, b.model.set.outputs));
      },
      "sources"_a, "factors"_a);
}

// The families; each binds its classes for double (suffix "64") and float ("32").
void bind_expansion(nb::module_& m);
void bind_mapped(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_mixture(nb::module_& m);
void bind_adaptive(nb::module_& m);
void bind_calibration(nb::module_& m);
void bind_second_order(nb::module_& m);
void bind_selection(nb::module_& m);

KS_GLUE_END

}  // namespace KS_MODULE
