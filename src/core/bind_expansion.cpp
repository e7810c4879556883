#include "bind_expansion.hpp"
#include "rules.hpp"

namespace KS_MODULE {

template <class T> using BoundExpansion = Bound<T, Expansion<T>>;

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
      .def("state",
           [](BoundExpansion<T>& b) {
             auto guard = b.locked();
             return expansion_state(b.model);
           })
      .def("restore",
           [](BoundExpansion<T>& b, const HeldRows<T>& points, Matrix<T> weights, Vector<int64_t> born, Vector<uint64_t> random,
              Vector<double> ledger, std::optional<Matrix<double>> inverse) {
             auto guard = b.locked();
             expansion_restore(b.model, points, weights, born, random, ledger, inverse);
           },
           "points"_a, "weights"_a, "born"_a, "random"_a, "ledger"_a,
           "inverse"_a.none() = nb::none())
      .def_prop_ro("count", [](BoundExpansion<T>& b) { return b.model.points.count; })
      .def_prop_ro("nbytes", &BoundExpansion<T>::nbytes);
}

void bind_expansion(nb::module_& m) {
  bind_as<double>(m, "64");
  bind_as<float>(m, "32");
}

}  // namespace KS_MODULE
