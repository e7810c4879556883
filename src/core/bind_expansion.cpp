#include "bind.hpp"
#include "rules.hpp"

namespace KS_MODULE {

template <class T> using BoundExpansion = Bound<T, Expansion<T>>;

template <class T> nb::dict expansion_state(BoundExpansion<T>& b) {
  auto guard = b.locked();
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
  auto guard = b.locked();
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


template <class T> static void bind_as(nb::module_& m, const std::string& suffix) {
  auto name = [&](const char* base) { return std::string(base) + suffix; };
  nb::class_<BoundExpansion<T>>(m, name("Expansion").c_str())
      .def(
          "__init__",
          [](BoundExpansion<T>* self, const std::string& rule, int64_t width, int64_t outputs, bool regression,
             const std::string& kernel, double gamma, double offset, int degree, nb::object function, int64_t budget,
             bool grows, const std::string& loss, double loss_width, double eta, double lambda, double C, double clip,
             const std::string& variant, uint64_t seed) {
            Settings s = settings_of(width, outputs, regression, budget, loss, loss_width, eta, lambda, C, clip, variant);
            require(budget >= 1, "sizes out of range");
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
}

void bind_expansion(nb::module_& m) {
  bind_as<double>(m, "64");
  bind_as<float>(m, "32");
}

}  // namespace KS_MODULE
