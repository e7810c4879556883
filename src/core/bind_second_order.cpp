// KONS, PROS-N-KONS, KRLS and the dictionaries KORS and ALD. States are dicts of arrays; `restore` takes the points and the rest.
#include "bind.hpp"
#include "second_order.hpp"

namespace KS_MODULE {
namespace {

using Doubles = Vector<double>;

template <class From, class To = From> Made<To> vector_out(const From* from, size_t n) {
  To* to;
  Made<To> made = make<To>({n}, &to);
  std::copy_n(from, n, to);
  return made;
}

template <class T> Made<T> points_out(const Store<T>& store) {
  const Points<double>& points = store.points;
  T* x;
  int64_t width = points.panel.width();
  Made<T> made = make<T>({size_t(points.count), size_t(width)}, &x);
  for (int64_t j = 0; j < points.count; ++j)
    for (int64_t d = 0; d < width; ++d) x[j * width + d] = T(points.panel.at(j, d));   // it was a T
  return made;
}

template <class T> void points_in(Store<T>& store, const Rows<T>& rows) {
  fits(rows.n <= store.limit && rows.width == store.points.panel.width());
  store.points.count = 0;
  for (int64_t j = 0; j < rows.n; ++j) store.add(rows, j);
}

// A factor in the state: NAME (packed rows of L), NAME_slots, NAME_scales.
void factor_out(nb::dict& state, const std::string& name, const RidgeFactor& factor) {
  size_t n = size_t(factor.size());
  double* packed;
  state[(name).c_str()] = make<double>({n * (n + 1) / 2}, &packed);
  factor.copy_to(packed);
  state[(name + "_slots").c_str()] = vector_out(factor.slots.data(), n);
  state[(name + "_scales").c_str()] = vector_out(factor.scales.data(), n);
}

template <class T> void factor_in(RidgeFactor& factor, const Store<T>& store, Doubles packed, Vector<int64_t> slots, Doubles scales) {
  size_t n = slots.shape(0);
  fits(scales.shape(0) == n && packed.shape(0) == n * (n + 1) / 2);
  std::vector<double> selves;
  for (size_t j = 0; j < n; ++j) {
    fits(slots(j) >= 0 && slots(j) < store.count());
    selves.push_back(store.points.diagonal[size_t(slots(j))]);
  }
  factor.copy_from(packed.data(), {slots.data(), slots.data() + n}, {scales.data(), scales.data() + n}, selves);
}

void sampler_out(nb::dict& state, const RowSampler& sampler) {
  factor_out(state, "dictionary", sampler.dictionary);
  state["random"] = vector_out(&sampler.random.state, 1);
  state["online"] = vector_out(&sampler.online, 1);
}

template <class T>
void sampler_in(RowSampler& sampler, const Store<T>& store, Doubles packed, Vector<int64_t> slots, Doubles scales,
                Vector<uint64_t> random, Doubles online) {
  factor_in(sampler.dictionary, store, packed, slots, scales);
  fits(random.shape(0) == 1 && online.shape(0) == 1);
  sampler.random.state = random(0);
  sampler.online = online(0);
}

Settings settings(int64_t width, int64_t outputs, bool regression, int64_t budget, const std::string& loss, double eta, double C) {
  return settings_of(width, outputs, regression, budget, loss, 0, eta, 0, C, 0, "");
}

template <class T> void bind_kernel_newton(nb::module_& m, const std::string& suffix) {
  using Model = Bound<T, KernelNewton<T>>;
  nb::class_<Model>(m, ("KernelNewton" + suffix).c_str())
      .def(
          "__init__",
          [](Model* self, int64_t width, bool regression, const std::string& kernel, double gamma, double offset, int degree,
             nb::object function, int64_t budget, const std::string& loss, double C, double eta, double alpha, bool sketched,
             double beta, double eps, double least, uint64_t seed) {
            new (self) Model(std::in_place, settings(width, 1, regression, budget, loss, eta, C),
                             kernel_of<double>(kernel, gamma, offset, degree, std::move(function)), alpha, sketched, beta, eps, least, seed);
          },
          nb::kw_only(), "width"_a, "regression"_a, "kernel"_a, "gamma"_a, "offset"_a, "degree"_a, "function"_a.none(),
          "budget"_a, "loss"_a, "C"_a, "eta"_a, "alpha"_a, "sketched"_a, "beta"_a, "eps"_a, "least"_a, "seed"_a)
      .def("score", &Model::score, "rows"_a)
      .def("run", &Model::template run<bool>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a, "stop_when_full"_a)
      .def("state",
           [](Model& b) {
             std::lock_guard<std::mutex> guard(b.lock);
             nb::dict state;
             state["points"] = points_out(b.model.store);
             double* w;
             state["weights"] = make<double>({size_t(b.model.store.count()), 1}, &w);
             std::copy_n(b.model.weights.data(), b.model.store.count(), w);
             factor_out(state, "newton", b.model.newton);
             if (b.model.sketched) sampler_out(state, b.model.sampler);
             return state;
           })
      .def(
          "restore",
          [](Model& b, const HeldRows<T>& points, Matrix<double> weights, Doubles newton, Vector<int64_t> newton_slots,
             Doubles newton_scales, std::optional<Doubles> dictionary, std::optional<Vector<int64_t>> dictionary_slots,
             std::optional<Doubles> dictionary_scales, std::optional<Vector<uint64_t>> random, std::optional<Doubles> online) {
            std::lock_guard<std::mutex> guard(b.lock);
            KernelNewton<T>& n = b.model;
            fits(weights.shape(0) == size_t(points.rows.n) && weights.shape(1) == 1);
            points_in(n.store, points.rows);
            n.grow_weights();
            n.weights.clear();
            std::copy_n(weights.data(), points.rows.n, n.weights.data());
            factor_in(n.newton, n.store, newton, newton_slots, newton_scales);
            if (!n.sketched) return;
            fits(dictionary && dictionary_slots && dictionary_scales && random && online);
            sampler_in(n.sampler, n.store, *dictionary, *dictionary_slots, *dictionary_scales, *random, *online);
          },
          "points"_a, "weights"_a, "newton"_a, "newton_slots"_a, "newton_scales"_a, "dictionary"_a.none() = nb::none(),
          "dictionary_slots"_a.none() = nb::none(), "dictionary_scales"_a.none() = nb::none(),
          "random"_a.none() = nb::none(), "online"_a.none() = nb::none())
      .def_prop_ro("count", [](Model& b) { return b.model.store.count(); })
      .def_prop_ro("newton_count", [](Model& b) { return b.model.newton.size(); })
      .def_prop_ro("dictionary_count", [](Model& b) { return b.model.sampler.dictionary.size(); })
      .def_prop_ro("nbytes", &Model::nbytes);
}

template <class T> void bind_embedded_newton(nb::module_& m, const std::string& suffix) {
  using Model = Bound<T, EmbeddedNewton<T>>;
  auto embed = [](EmbeddedNewton<T>& n, Matrix<double> matrix, Matrix<double> weights, Matrix<double> inverse) {
    size_t rank = matrix.shape(0);
    fits(int64_t(matrix.shape(1)) == n.store.count() && weights.shape(0) == rank && weights.shape(1) == 1 &&
         inverse.shape(0) == rank && inverse.shape(1) == rank);
    n.embed(matrix.data(), int64_t(rank), weights.data(), inverse.data());
  };
  nb::class_<Model>(m, ("EmbeddedNewton" + suffix).c_str())
      .def(
          "__init__",
          [](Model* self, int64_t width, bool regression, const std::string& kernel, double gamma, double offset, int degree,
             nb::object function, int64_t budget, const std::string& loss, double C, double eta, double ridge, double beta,
             double eps, uint64_t seed) {
            new (self) Model(std::in_place, settings(width, 1, regression, budget, loss, eta, C),
                             kernel_of<double>(kernel, gamma, offset, degree, std::move(function)), ridge, beta, eps, seed);
          },
          nb::kw_only(), "width"_a, "regression"_a, "kernel"_a, "gamma"_a, "offset"_a, "degree"_a, "function"_a.none(),
          "budget"_a, "loss"_a, "C"_a, "eta"_a, "ridge"_a, "beta"_a, "eps"_a, "seed"_a)
      .def("score", &Model::score, "rows"_a)
      .def("run", &Model::template run<bool>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a, "stop_when_full"_a)
      .def("embed",
           [embed](Model& b, Matrix<double> matrix, Matrix<double> weights, Matrix<double> inverse) {
             std::lock_guard<std::mutex> guard(b.lock);
             embed(b.model, matrix, weights, inverse);
           }, "matrix"_a, "weights"_a, "inverse"_a)
      .def("state",
           [](Model& b) {
             std::lock_guard<std::mutex> guard(b.lock);
             EmbeddedNewton<T>& n = b.model;
             nb::dict state;
             state["points"] = points_out(n.store);
             sampler_out(state, n.sampler);
             size_t rank = size_t(n.rank), count = size_t(n.embedded);
             double *matrix, *weights, *inverse;
             state["matrix"] = make<double>({rank, count}, &matrix);
             state["weights"] = make<double>({rank, 1}, &weights);
             state["inverse"] = make<double>({rank, rank}, &inverse);
             std::copy_n(n.weights.data(), rank, weights);
             for (size_t f = 0; f < rank; ++f) {
               for (size_t j = 0; j < count; ++j) matrix[f * count + j] = n.matrix.at(int64_t(f), int64_t(j));
               std::copy_n(n.inverse.data() + int64_t(f) * n.stride(), rank, inverse + f * rank);
             }
             return state;
           })
      .def(
          "restore",
          [embed](Model& b, const HeldRows<T>& points, Doubles dictionary, Vector<int64_t> slots, Doubles scales,
                  Vector<uint64_t> random, Doubles online, Matrix<double> matrix, Matrix<double> weights, Matrix<double> inverse) {
            std::lock_guard<std::mutex> guard(b.lock);
            points_in(b.model.store, points.rows);
            sampler_in(b.model.sampler, b.model.store, dictionary, slots, scales, random, online);
            if (matrix.shape(0)) embed(b.model, matrix, weights, inverse);
          },
          "points"_a, "dictionary"_a, "dictionary_slots"_a, "dictionary_scales"_a, "random"_a, "online"_a, "matrix"_a,
          "weights"_a, "inverse"_a)
      .def_prop_ro("count", [](Model& b) { return b.model.store.count(); })
      .def_prop_ro("nbytes", &Model::nbytes);
}

template <class T> void bind_least_squares(nb::module_& m, const std::string& suffix) {
  using Model = Bound<T, RecursiveLeastSquares<T>>;
  nb::class_<Model>(m, ("RecursiveLeastSquares" + suffix).c_str())
      .def(
          "__init__",
          [](Model* self, int64_t width, int64_t outputs, bool regression, const std::string& kernel, double gamma, double offset,
             int degree, nb::object function, int64_t budget, double nu) {
            new (self) Model(std::in_place, settings(width, outputs, regression, budget, "squared", nu, 0),
                             kernel_of<double>(kernel, gamma, offset, degree, std::move(function)));
          },
          nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "kernel"_a, "gamma"_a, "offset"_a, "degree"_a,
          "function"_a.none(), "budget"_a, "nu"_a)
      .def("score", &Model::score, "rows"_a)
      .def("run", &Model::template run<bool>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a, "stop_when_full"_a)
      .def("state",
           [](Model& b) {
             std::lock_guard<std::mutex> guard(b.lock);
             RecursiveLeastSquares<T>& n = b.model;
             size_t count = size_t(n.store.count());
             nb::dict state;
             state["points"] = points_out(n.store);
             state["weights"] = weights_out(n.weights, int64_t(count));
             factor_out(state, "factor", n.factor);
             double* P;
             state["P"] = make<double>({count, count}, &P);
             for (size_t j = 0; j < count; ++j) std::copy_n(n.P.data() + int64_t(j) * n.stride(), count, P + j * count);
             return state;
           })
      .def(
          "restore",
          [](Model& b, const HeldRows<T>& points, Matrix<double> weights, Doubles factor, Vector<int64_t> slots, Doubles scales,
             Matrix<double> P) {
            std::lock_guard<std::mutex> guard(b.lock);
            RecursiveLeastSquares<T>& n = b.model;
            size_t count = size_t(points.rows.n);
            fits(weights.shape(0) == count && P.shape(0) == count && P.shape(1) == count && slots.shape(0) == count);
            points_in(n.store, points.rows);
            weights_in(n.weights, weights);
            factor_in(n.factor, n.store, factor, slots, scales);
            n.P.clear();
            for (size_t j = 0; j < count; ++j) std::copy_n(P.data() + j * count, count, n.P.data() + int64_t(j) * n.stride());
          },
          "points"_a, "weights"_a, "factor"_a, "factor_slots"_a, "factor_scales"_a, "P"_a)
      .def_prop_ro("count", [](Model& b) { return b.model.store.count(); })
      .def_prop_ro("nbytes", &Model::nbytes);
}

template <class T> void bind_dictionary(nb::module_& m, const std::string& suffix) {
  using Model = Bound<T, Dictionary<T>>;
  using Held = HeldRows<T>;
  nb::class_<Model>(m, ("Dictionary" + suffix).c_str())
      .def(
          "__init__",
          [](Model* self, int64_t width, const std::string& kernel, double gamma, double offset, int degree, nb::object function,
             int64_t budget, bool sampled, double ridge, double beta, double eps, double nu, uint64_t seed) {
            new (self) Model(std::in_place, settings(width, 1, true, budget, "squared", 0, 0),
                             kernel_of<double>(kernel, gamma, offset, degree, std::move(function)), sampled, ridge, beta, eps, nu, seed);
          },
          nb::kw_only(), "width"_a, "kernel"_a, "gamma"_a, "offset"_a, "degree"_a, "function"_a.none(), "budget"_a, "sampled"_a,
          "ridge"_a, "beta"_a, "eps"_a, "nu"_a, "seed"_a)
      .def("read",
           [](Model& b, const Held& h) {
             fits(h.rows.width == b.model.set.width);
             nb::gil_scoped_release release;
             std::lock_guard<std::mutex> guard(b.lock);
             return b.model.read(h.rows);
           }, "rows"_a)
      .def("features",
           [](Model& b, const Held& h) {
             fits(h.rows.width == b.model.set.width);
             double* out;
             Made<double> made = make<double>({size_t(h.rows.n), size_t(b.model.factor().size())}, &out);
             nb::gil_scoped_release release;
             std::lock_guard<std::mutex> guard(b.lock);
             b.model.features(h.rows, out);
             return made;
           }, "rows"_a)
      .def("leverages",
           [](Model& b, const Held& h) {
             fits(h.rows.width == b.model.set.width);
             double* out;
             Made<double> made = make<double>({size_t(h.rows.n)}, &out);
             nb::gil_scoped_release release;
             std::lock_guard<std::mutex> guard(b.lock);
             b.model.leverages(h.rows, out);
             return made;
           }, "rows"_a)
      .def("state",
           [](Model& b) {
             std::lock_guard<std::mutex> guard(b.lock);
             nb::dict state;
             state["points"] = points_out(b.model.store);
             sampler_out(state, b.model.sampler);
             state["born"] = vector_out(b.model.born.data(), b.model.born.size());
             state["seen"] = vector_out(&b.model.seen, 1);
             return state;
           })
      .def(
          "restore",
          [](Model& b, const Held& points, Doubles dictionary, Vector<int64_t> slots, Doubles scales, Vector<uint64_t> random,
             Doubles online, Vector<int64_t> born, Vector<int64_t> seen) {
            std::lock_guard<std::mutex> guard(b.lock);
            fits(born.shape(0) == size_t(points.rows.n) && seen.shape(0) == 1 && is_count(seen(0)));
            points_in(b.model.store, points.rows);
            sampler_in(b.model.sampler, b.model.store, dictionary, slots, scales, random, online);
            b.model.born.assign(born.data(), born.data() + born.shape(0));
            b.model.seen = seen(0);
          },
          "points"_a, "dictionary"_a, "dictionary_slots"_a, "dictionary_scales"_a, "random"_a, "online"_a, "born"_a, "seen"_a)
      .def_prop_ro("count", [](Model& b) { return b.model.store.count(); })
      .def_prop_ro("nbytes", &Model::nbytes);
}

template <class T> void bind_as(nb::module_& m, const std::string& suffix) {
  bind_kernel_newton<T>(m, suffix);
  bind_embedded_newton<T>(m, suffix);
  bind_least_squares<T>(m, suffix);
  bind_dictionary<T>(m, suffix);
}

}  // namespace

void bind_second_order(nb::module_& m) {
  bind_as<double>(m, "64");
  bind_as<float>(m, "32");
  m.def("curvature_constant", [](const std::string& loss, double C, double y) { return curvature_constant(Loss::named(loss, 0), C, y); },
        "loss"_a, "C"_a, "target"_a);
}

}  // namespace KS_MODULE
