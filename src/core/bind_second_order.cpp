// KONS, PROS-N-KONS, KRLS and the dictionaries KORS and ALD.
#include "second_order.hpp"
#include "state.hpp"

KS_GLUE_BEGIN
namespace KS_MODULE {

template <class T> static int64_t describe(State& s, Store<T>& store) {
  if (s.reads()) store.points.count = 0;
  return s.points<T>("points", store.points.panel, store.count(), store.limit, [&](const Rows<T>& rows, int64_t j) { store.add(rows, j); });
}

// A factor in the state: NAME (packed rows of L), NAME_slots, NAME_scales.
template <class T> static void describe(State& s, const std::string& name, RidgeFactor& factor, const Store<T>& store) {
  std::vector<int64_t> slots = factor.slots;
  std::vector<double> scales = factor.scales, selves, packed(slots.size() * (slots.size() + 1) / 2);
  if (!s.reads()) factor.copy_to(packed.data());
  s.line(name, packed);
  s.line(name + "_slots", slots);
  s.line(name + "_scales", scales);
  if (!s.reads()) return;
  fits(scales.size() == slots.size() && packed.size() == slots.size() * (slots.size() + 1) / 2);
  for (int64_t slot : slots) {
    fits(slot >= 0 && slot < store.count());
    selves.push_back(store.points.diagonal[size_t(slot)]);
  }
  factor.copy_from(packed.data(), slots, scales, selves);
}

template <class T> static void describe(State& s, RowSampler& sampler, const Store<T>& store) {
  describe(s, "dictionary", sampler.dictionary, store);
  s.line("random", &sampler.random.state, 1);
  s.line("online", &sampler.online, 1);
}

// The number of rounds, where the step depends on it.
template <class N> static void describe_rounds(State& s, N& n) {
  if (!n.counts_rounds()) return;
  s.line("rounds", &n.rounds, 1);
  counted(n.rounds);
}

template <class T> static void describe(State& s, KernelNewton<T>& n) {
  int64_t count = describe(s, n.store);
  if (s.reads()) {
    n.grow_weights();
  }
  s.weights("weights", n.weights, count);
  for (size_t c = 0; c < n.newtons.size(); ++c) describe(s, c ? "newton" + std::to_string(c) : "newton", n.newtons[c], n.store);
  if (n.coins.sketched) describe(s, n.sampler, n.store);
  describe_rounds(s, n);
}

template <class T> static void bind_kernel_newton(nb::module_& m) {
  using B = Bound<T, KernelNewton<T>>;
  auto c = learner_class<T, KernelNewton<T>>(m, "KernelNewton");
  def_state(c);
  c.def(
       "__init__",
       [](B* self, int64_t width, int64_t outputs, bool regression, const AnyKernel& kernel, int64_t budget, const Loss& loss, double C,
          double eta, double dimension, double alpha, double least_decrement, bool sketched, bool weighted, double beta, double eps,
          double least, uint64_t seed) {
         new (self) B(kernel.function, settings_of(width, outputs, regression, budget), NewtonSettings{loss, C, eta, dimension},
                      kernel.as<double>(), alpha, Coins{sketched, weighted, beta, eps, least}, least_decrement, seed);
       },
       nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "kernel"_a, "budget"_a, "loss"_a, "C"_a, "eta"_a, "dimension"_a = 0.0,
       "alpha"_a, "least_decrement"_a = 0.0, "sketched"_a = false, "weighted"_a = false, "beta"_a = 1.0, "eps"_a = 0.0, "least"_a = 1.0,
       "seed"_a = 0)
      .def_prop_ro("newton_count", [](B& b) {
        auto guard = b.locked();
        return b.model.newtons[0].size();
      });
}

template <class T> static void embed(EmbeddedNewton<T>& n, Matrix<double> matrix, Matrix<double> weights, Matrix<double> inverse) {
  size_t rank = matrix.shape(0);
  size_t outputs = size_t(n.set.outputs);
  fits(int64_t(matrix.shape(1)) == n.store.count() && weights.shape(0) == rank && weights.shape(1) == outputs &&
       inverse.shape(0) == outputs * rank && inverse.shape(1) == rank);
  n.embed(matrix.data(), int64_t(rank), weights.data(), inverse.data());
}

template <class T> static void describe(State& s, EmbeddedNewton<T>& n) {
  describe(s, n.store);
  describe(s, n.sampler, n.store);
  describe_rounds(s, n);
  if (s.reads()) {
    auto matrix = s.get<Matrix<double>>("matrix"), weights = s.get<Matrix<double>>("weights"), inverse = s.get<Matrix<double>>("inverse");
    if (matrix.shape(0)) embed(n, matrix, weights, inverse);
    return;
  }
  s.write<double>("matrix", n.rank, n.embedded, [&](int64_t f, int64_t j) { return n.matrix.at(f, j); });
  s.write<double>("weights", n.rank, n.set.outputs, [&](int64_t f, int64_t c) { return n.weights[size_t(c)][size_t(f)]; });
  s.write<double>("inverse", n.rank * n.set.outputs, n.rank,
                  [&](int64_t r, int64_t j) { return n.inverses[size_t(r / n.rank)][size_t(r % n.rank * n.stride() + j)]; });
}

template <class T> static void bind_embedded_newton(nb::module_& m) {
  using B = Bound<T, EmbeddedNewton<T>>;
  auto c = learner_class<T, EmbeddedNewton<T>>(m, "EmbeddedNewton");
  def_state(c);
  c.def(
       "__init__",
       [](B* self, int64_t width, int64_t outputs, bool regression, const AnyKernel& kernel, int64_t budget, const Loss& loss, double C,
          double eta, double dimension, double ridge, double beta, double eps, uint64_t seed) {
         new (self) B(kernel.function, settings_of(width, outputs, regression, budget), NewtonSettings{loss, C, eta, dimension},
                      kernel.as<double>(), ridge, beta, eps, seed);
       },
       nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "kernel"_a, "budget"_a, "loss"_a, "C"_a, "eta"_a, "dimension"_a = 0.0,
       "ridge"_a, "beta"_a, "eps"_a, "seed"_a)
      .def(
          "embed",
          [](B& b, Matrix<double> matrix, Matrix<double> weights, Matrix<double> inverse) {
            auto guard = b.locked();
            embed(b.model, matrix, weights, inverse);
          },
          "matrix"_a, "weights"_a, "inverse"_a);
}

template <class T> static void describe(State& s, RecursiveLeastSquares<T>& n) {
  int64_t count = describe(s, n.store);
  s.weights("weights", n.weights, count);
  describe(s, "factor", n.factor, n.store);
  fits(n.factor.size() == count);
  if (s.reads()) n.P.clear();
  s.grid<double>("P", count, count, [&](int64_t i, int64_t j) -> double& { return n.P[size_t(i * n.stride() + j)]; });
}

template <class T> static void bind_least_squares(nb::module_& m) {
  using B = Bound<T, RecursiveLeastSquares<T>>;
  auto c = learner_class<T, RecursiveLeastSquares<T>>(m, "RecursiveLeastSquares");
  def_state(c);
  c.def(
      "__init__",
      [](B* self, int64_t width, int64_t outputs, bool regression, const AnyKernel& kernel, int64_t budget, double nu) {
        new (self) B(kernel.function, settings_of(width, outputs, regression, budget), kernel.as<double>(), nu);
      },
      nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "kernel"_a, "budget"_a, "nu"_a);
}

template <class T> static void describe(State& s, Dictionary<T>& d) {
  int64_t count = describe(s, d.store);
  describe(s, d.sampler, d.store);
  s.line("born", d.born);
  fits(int64_t(d.born.size()) == count);
  s.line("seen", &d.seen, 1);
  counted(d.seen);
}

template <class T> static void bind_dictionary(nb::module_& m) {
  using B = Bound<T, Dictionary<T>>;
  auto c = model_class<T, Dictionary<T>>(m, "Dictionary");
  def_state(c);
  // An array with one row per row of `rows`, made and filled under the lock: how wide it is depends on the dictionary.
  auto made = [](B& b, const HeldRows<T>& h, bool leverages) {
    b.check(h.rows);
    auto guard = b.locked();
    double* out;
    size_t n = size_t(h.rows.n);
    Made<double> array = leverages ? make<double>({n}, &out) : make<double>({n, size_t(b.model.factor().size())}, &out);
    nb::gil_scoped_release release;
    leverages ? b.model.leverages(h.rows, out) : b.model.features(h.rows, out);
    return array;
  };
  c.def(
       "__init__",
       [](B* self, int64_t width, const AnyKernel& kernel, int64_t budget, bool sampled, double ridge, double beta, double eps, double nu,
          uint64_t seed) {
         new (self) B(kernel.function, settings_of(width, 1, true, budget), kernel.as<double>(), sampled, ridge, beta, eps, nu, seed);
       },
       nb::kw_only(), "width"_a, "kernel"_a, "budget"_a, "sampled"_a, "ridge"_a = 0.0, "beta"_a = 1.0, "eps"_a = 0.0, "nu"_a = 0.0,
       "seed"_a = 0)
      .def(
          "read",
          [](B& b, const HeldRows<T>& h) {
            b.check(h.rows);
            return b.alone([&] { return b.model.read(h.rows); });
          },
          "rows"_a)
      .def(
          "features", [made](B& b, const HeldRows<T>& h) { return made(b, h, false); }, "rows"_a)
      .def("leverages", [made](B& b, const HeldRows<T>& h) { return made(b, h, true); }, "rows"_a);
}

template <class T> static void bind_as(nb::module_& m) {
  bind_kernel_newton<T>(m);
  bind_embedded_newton<T>(m);
  bind_least_squares<T>(m);
  bind_dictionary<T>(m);
}

void bind_second_order(nb::module_& m) {
  bind_as<double>(m);
  bind_as<float>(m);
  m.def("curvature_constant", &curvature_constant, "loss"_a, "C"_a, "target"_a);
}

}  // namespace KS_MODULE
KS_GLUE_END
