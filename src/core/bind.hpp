// What all bindings share. Arrays come in as they are; the interpreter lock is released while rounds run, and each object
// has a lock of its own, so objects may be used from several threads. There is one bind_*.cpp for each family of models.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <mutex>
#include <utility>

#include "expansion.hpp"

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

inline void require(bool good, const std::string& message) {
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
      if (h.rows.starts[i] > h.rows.starts[i + 1]) require(false, "CSR row starts decrease at row " + std::to_string(i));
    for (int64_t i = 0; i < h.rows.n; ++i) {
      int64_t last = -1;
      for (int64_t e = h.rows.starts[i]; e < h.rows.starts[i + 1]; ++e) {
        int64_t d = h.rows.indices[e];
        if (d <= last || d >= width)
          require(false, "CSR columns of row " + std::to_string(i) + " must increase and stay below " + std::to_string(width));
        last = d;
      }
    }
    h.a = nb::cast(values);
    h.b = nb::cast(indices);
    h.c = nb::cast(starts);
    return h;
  }

  std::optional<std::pair<int64_t, int64_t>> first_not_finite() const {
    if (rows.n == 0) return {};
    const T* numbers = rows.sparse() ? rows.values + rows.starts[0] : rows.dense;
    int64_t count = rows.sparse() ? rows.starts[rows.n] - rows.starts[0] : rows.n * rows.width, at = 0;
    Line<T> sum = Line<T>::zero();              // x - x is 0 unless x is NaN or infinite
    for (; at + kLine<T> <= count; at += kLine<T>) {
      Line<T> line = Line<T>::at(numbers + at);
      line.apply([](Vec<T> v) { return v - v; });
      sum.add(line);
    }
    T total = sum.sum();
    for (; at < count; ++at) total += numbers[at] - numbers[at];
    std::optional<std::pair<int64_t, int64_t>> found;
    for (int64_t i = 0; total != 0 && !found && i < rows.n; ++i)
      rows.each(i, [&](int64_t d, T v) {
        if (!found && !std::isfinite(v)) found = {i, d};
      });
    return found;
  }

  HeldRows part(int64_t from, int64_t to) const {
    require(0 <= from && from <= to && to <= rows.n, "rows out of range");
    HeldRows h = *this;
    h.rows = rows.part(from, to);
    return h;
  }

  // The caller's memory, read only: (matrix,), or of CSR (values, indices, starts), whose starts[0] may be above 0 in a part.
  nb::tuple arrays() const {
    size_t n = size_t(rows.n), width = size_t(rows.width);
    if (!rows.sparse()) return nb::make_tuple(Made<const T>(rows.dense, {n, width}, a));
    size_t first = size_t(rows.starts[0]), count = size_t(rows.starts[n]) - first;
    return nb::make_tuple(Made<const T>(rows.values + first, {count}, a), Made<const int32_t>(rows.indices + first, {count}, b),
                          Made<const int64_t>(rows.starts, {n + 1}, c));
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

inline Settings settings_of(int64_t width, int64_t outputs, bool regression, int64_t budget, const std::string& loss,
                     double loss_width, double eta, double lambda, double C, double clip, const std::string& variant) {
  constexpr int64_t most = int64_t(1) << 31;   // so that products of two sizes stay in range
  require(width >= 0 && outputs >= 1 && budget >= 0 && width <= most && outputs <= most && budget <= most, "sizes out of range");
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

// A state comes from a file and may hold anything: whatever could lead out of an array or overflow is refused.
inline void fits(bool good) { require(good, "the state does not fit this learner"); }

inline bool is_count(int64_t n) { return n >= 0 && n < (int64_t(1) << 62); }   // can be counted up for ever

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
    return {next, why == Stop::done ? "done" : why == Stop::full ? "full" : why == Stop::due ? "due" : "not finite"};
  }

  size_t nbytes() const { return model.nbytes(); }

  // The lock, waited for without the interpreter lock: the thread that holds it may need that one for a callable kernel.
  std::unique_lock<std::mutex> locked() {
    nb::gil_scoped_release release;
    return std::unique_lock<std::mutex>(lock);
  }

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

// The families; each binds its classes for double (suffix "64") and float ("32").
void bind_expansion(nb::module_& m);
void bind_mapped(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_mixture(nb::module_& m);
void bind_adaptive(nb::module_& m);
void bind_second_order(nb::module_& m);
void bind_selection(nb::module_& m);

}  // namespace KS_MODULE
