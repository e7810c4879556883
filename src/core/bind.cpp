// The module: rows, kernels, losses and the reasons why a run ends; the families of models bind themselves.
#include "bind.hpp"
#include "scaling.hpp"

namespace KS_MODULE {

enum class Part { value, measure, slope };

// Of all rows of x against all rows of y: kernel values, the distances or products behind them, or the derivatives of the first in
// the second.
template <class T> Made<T> kernel_matrix(const HeldRows<T>& x, const HeldRows<T>& y, const AnyKernel& by, Part part) {
  require(x.rows.width == y.rows.width, "X has " + std::to_string(x.rows.width) + " columns, Y " + std::to_string(y.rows.width));
  T* out;
  Made<T> made = make<T>({size_t(x.rows.n), size_t(y.rows.n)}, &out);
  Kernel<T> kernel = by.as<T>();
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
      if (part == Part::value) points.values(row, row, points.tiles());
      if (part == Part::slope) points.slopes(row, row, points.tiles());
      std::copy_n(row, y.rows.n, out + (i + r) * y.rows.n);
    }
  }
  return made;
}

// The derivatives of the distances or products of row i with the points in each entry of the row: `n` x width.
template <class T> static void measure_gradient(const Points<T>& points, const T* x, int64_t n, T* out) {
  const int64_t width = points.panel.width();
  T square = 0;
  for (int64_t d = 0; d < width; ++d) square += x[d] * x[d];
  for (int64_t j = 0; j < n; ++j) {
    T size = 0, product = 0;
    for (int64_t d = 0; d < width; ++d) {
      T p = points.panel.at(j, d), gap = x[d] - p, sum = x[d] + p;
      T& g = out[j * width + d];
      size += p * p;
      product += x[d] * p;
      switch (points.kernel.form()) {
        case Form::product: g = p; break;
        case Form::square_distance: g = 2 * gap; break;
        case Form::absolute_distance: g = T(gap > 0) - T(gap < 0); break;
        case Form::chi_distance: g = sum > 0 ? gap / sum * (2 - gap / sum) : T(0); break;
        case Form::minimum: g = T(x[d] < p); break;
      }
    }
    if (points.kernel.kind != Kernel<T>::spectrum) continue;
    T below = std::sqrt(square) * std::sqrt(size);
    for (int64_t d = 0; d < width; ++d) {
      T& g = out[j * width + d];
      g = below > 0 ? (g - product / square * x[d]) / below : T(0);
    }
  }
}

// d k(x_i, y_j) / d x_i: n x m x width.
template <class T> Made<T> kernel_input_gradient(const HeldRows<T>& x, const HeldRows<T>& y, const AnyKernel& by) {
  require(x.rows.width == y.rows.width, "X has " + std::to_string(x.rows.width) + " columns, Y " + std::to_string(y.rows.width));
  T* out;
  const int64_t n = x.rows.n, m = y.rows.n, width = x.rows.width;
  Made<T> made = make<T>({size_t(n), size_t(m), size_t(width)}, &out);
  Kernel<T> kernel = by.as<T>();
  require(!kernel.callback, "only kernels of kernelstream with a formula have a gradient");
  nb::gil_scoped_release release;
  Points<T> points(kernel, width, m, false);   // dense, as the result is
  for (int64_t j = 0; j < m; ++j) points.put(j, y.rows, j);
  Array<T> slopes(size_t(points.slots()));
  std::vector<T> row(size_t(width) + 1);
  for (int64_t i = 0; i < n && m; ++i) {
    points.measure(x.rows, i, 1, points.tiles(), slopes.data(), points.slots());
    points.slopes(slopes.data(), slopes.data(), points.tiles());
    std::fill(row.begin(), row.end(), T(0));
    x.rows.each(i, [&](int64_t d, T v) { row[size_t(d)] = v; });
    T* to = out + i * m * width;
    measure_gradient(points, row.data(), m, to);
    for (int64_t j = 0; j < m; ++j)
      for (int64_t d = 0; d < width; ++d) to[j * width + d] *= slopes[size_t(j)];
  }
  return made;
}

template <class T> Made<T> kernel_diagonal(const HeldRows<T>& x, const AnyKernel& by) {
  T* out;
  Made<T> made = make<T>({size_t(x.rows.n)}, &out);
  Points<T> points(by.as<T>(), x.rows.width, 0);
  for (int64_t i = 0; i < x.rows.n; ++i) out[i] = points.self(x.rows, i);
  return made;
}

// Value, slope and curvature, a row each.
static Made<double> loss_values(const Loss& loss, Vector<double> f, Vector<double> y) {
  require(f.shape(0) == y.shape(0), "scores and targets differ in length");
  double* out;
  Made<double> made = make<double>({3, f.shape(0)}, &out);
  for (size_t i = 0; i < f.shape(0); ++i) {
    out[i] = loss.value(f(i), y(i));
    out[f.shape(0) + i] = loss.slope(f(i), y(i));
    out[2 * f.shape(0) + i] = loss.curvature(f(i), y(i));
  }
  return made;
}

// Rows on a common scale, and what is known of the scales after those that count.
template <class T> static nb::tuple scale_csr(const HeldRows<T>& x, Vector<double> first, Vector<double> sums, Vector<double> squares,
                                              Vector<double> counts, Vector<double> quantities, double rows, Vector<double> counted) {
  for (const Vector<double>* array : {&first, &sums, &squares, &counts, &quantities})
    require(int64_t(array->shape(0)) == x.rows.width, "scales and rows differ in width");
  require(int64_t(counted.shape(0)) == x.rows.n, "there must be one mark per row");
  auto held = [](const Vector<double>& from) { return std::vector<double>(from.data(), from.data() + from.shape(0)); };
  Scales scales{held(first), held(sums), held(squares), held(counts), held(quantities), rows};
  std::unique_ptr<ScaledRows<T>> made;
  {
    nb::gil_scoped_release release;
    made = std::make_unique<ScaledRows<T>>(x.rows, scales, counted.data());
  }
  return nb::make_tuple(copied(made->values), copied(made->indices), copied(made->starts), copied(scales.first), copied(scales.sums),
                        copied(scales.squares), copied(scales.counts), scales.rows);
}

// A view of n numbers, read-only, that keeps the rows alive.
template <class V> static Made<const V> view(nb::handle self, const V* data, std::initializer_list<size_t> shape) {
  return Made<const V>(data, shape.size(), shape.begin(), self);
}

template <class T> static void bind_rows(nb::module_& m) {
  using Held = HeldRows<T>;
  nb::class_<Held>(m, sizeof(T) == 8 ? "Rows64" : "Rows32")
      .def_static("dense", &Held::dense, "x"_a)
      .def_static("csr", &Held::csr, "values"_a, "indices"_a, "starts"_a, "width"_a)
      .def("first_not_finite", &Held::first_not_finite)
      .def("first_negative", &Held::first_negative)
      .def("part", &Held::part, "start"_a, "stop"_a)
      .def("array", &Held::array, "The rows as a new dense array.")
      .def(
          "dense_view",
          [](nb::handle_t<Held> self) {
            const Rows<T>& r = nb::cast<const Held&>(self).rows;
            require(!r.sparse(), "these rows are sparse: csr_view() shows them, array() makes a dense copy");
            return view(self, r.dense, {size_t(r.n), size_t(r.width)});
          },
          "The rows of a dense array as they are: nothing is copied.", nb::rv_policy::automatic)
      .def(
          "csr_view",
          [](nb::handle_t<Held> self) {
            const Rows<T>& r = nb::cast<const Held&>(self).rows;
            require(r.sparse(), "these rows are dense: dense_view() shows them");
            size_t first = size_t(r.starts[0]), n = size_t(r.starts[r.n]) - first;
            int64_t* starts;
            Made<int64_t> indptr = make<int64_t>({size_t(r.n) + 1}, &starts);
            for (int64_t i = 0; i <= r.n; ++i) starts[i] = r.starts[i] - int64_t(first);
            return std::make_tuple(view(self, r.values + first, {n}), view(self, r.indices + first, {n}), indptr);
          },
          "Values, column indices and row starts of sparse rows, as SciPy's (data, indices, indptr); only the starts are copied.")
      .def_prop_ro("n", [](const Held& h) { return h.rows.n; })
      .def_prop_ro("width", [](const Held& h) { return h.rows.width; })
      .def_prop_ro("sparse", [](const Held& h) { return h.rows.sparse(); });

  m.def("scale_csr", &scale_csr<T>, "rows"_a, "first"_a, "sums"_a, "squares"_a, "counts"_a, "quantities"_a, "learnt"_a, "counted"_a);
  m.def("kernel_matrix", &kernel_matrix<T>, "x"_a, "y"_a, "kernel"_a, "part"_a = Part::value);
  m.def("kernel_input_gradient", &kernel_input_gradient<T>, "x"_a, "y"_a, "kernel"_a);
  m.def("kernel_diagonal", &kernel_diagonal<T>, "x"_a, "kernel"_a);
}

static void bind_basics(nb::module_& m) {
  nb::enum_<Stop>(m, "Stop", nb::is_arithmetic(), "Why a run ended; only a run that is done ended with its last row.")
      .value("done", Stop::done)
      .value("full", Stop::full)
      .value("due", Stop::due)
      .value("not_finite", Stop::not_finite);
  nb::enum_<Part>(m, "Part", "What a kernel matrix shows.")
      .value("value", Part::value)
      .value("measure", Part::measure, "the distances or products behind the values")
      .value("slope", Part::slope, "the derivatives of the values in the measures");
  nb::class_<AnyKernel>(m, "Kernel", nb::type_slots(holder_slots<AnyKernel>))
      .def(nb::init<const std::string&, double, double, int, nb::object>(), "name"_a, nb::kw_only(), "gamma"_a = 1.0, "offset"_a = 0.0,
           "degree"_a = 1, "function"_a.none() = nb::none())
      .def_ro("name", &AnyKernel::name)
      .def_ro("gamma", &AnyKernel::gamma);
  nb::class_<Loss>(m, "Loss")
      .def(
          "__init__", [](Loss* self, const std::string& name, double width) { new (self) Loss(Loss::named(name, width)); }, "name"_a,
          "width"_a = 0.0)
      .def("values", &loss_values, "scores"_a, "targets"_a);
  bind_rows<double>(m);
  bind_rows<float>(m);
}

}  // namespace KS_MODULE

#define KS_MODULE_ENTRY(name, m) NB_MODULE(name, m)
KS_MODULE_ENTRY(KS_MODULE, m) {
  m.doc() = "Kernel rows and round loops of kernelstream, compiled for one CPU level.";
  KS_MODULE::bind_basics(m);
  KS_MODULE::bind_expansion(m);
  KS_MODULE::bind_mapped(m);
  KS_MODULE::bind_linear(m);
  KS_MODULE::bind_mixture(m);
  KS_MODULE::bind_adaptive(m);
  KS_MODULE::bind_calibration(m);
  KS_MODULE::bind_second_order(m);
  KS_MODULE::bind_selection(m);
}
