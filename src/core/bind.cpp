// The module: rows, kernel matrices and losses; the families of models bind themselves.
#include "bind.hpp"

namespace KS_MODULE {

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

template <class T> void bind_basics(nb::module_& m, const std::string& suffix) {
  using Held = HeldRows<T>;
  nb::class_<Held>(m, ("Rows" + suffix).c_str())
      .def_static("dense", &Held::dense, "x"_a)
      .def_static("csr", &Held::csr, "values"_a, "indices"_a, "starts"_a, "width"_a)
      .def("first_not_finite", &Held::first_not_finite)
      .def("part", &Held::part, "start"_a, "stop"_a)
      .def("array", &Held::array)
      .def("arrays", &Held::arrays)
      .def_prop_ro("n", [](const Held& h) { return h.rows.n; })
      .def_prop_ro("width", [](const Held& h) { return h.rows.width; })
      .def_prop_ro("sparse", [](const Held& h) { return h.rows.sparse(); });

  m.def("kernel_matrix", &kernel_matrix<T>, "x"_a, "y"_a, "kernel"_a, "gamma"_a, "offset"_a, "degree"_a, "measures"_a);
  m.def("kernel_diagonal", &kernel_diagonal<T>, "x"_a, "kernel"_a, "gamma"_a, "offset"_a, "degree"_a);
}

}  // namespace KS_MODULE

#define KS_MODULE_ENTRY(name, m) NB_MODULE(name, m)
KS_MODULE_ENTRY(KS_MODULE, m) {
  m.doc() = "Kernel rows and round loops of kernelstream, compiled for one CPU level.";
  KS_MODULE::bind_basics<double>(m, "64");
  KS_MODULE::bind_basics<float>(m, "32");
  m.def("loss_values", &KS_MODULE::loss_values, "loss"_a, "width"_a, "scores"_a, "targets"_a);
  KS_MODULE::bind_expansion(m);
  KS_MODULE::bind_mapped(m);
  KS_MODULE::bind_linear(m);
  KS_MODULE::bind_mixture(m);
  KS_MODULE::bind_adaptive(m);
  KS_MODULE::bind_second_order(m);
  KS_MODULE::bind_selection(m);
}
