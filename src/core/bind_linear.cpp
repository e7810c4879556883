#include "bind.hpp"
#include "linear.hpp"

namespace KS_MODULE {

template <class T> using BoundLinear = Bound<T, Linear<T>>;

template <class T> static void bind_as(nb::module_& m, const std::string& suffix) {
  auto name = [&](const char* base) { return std::string(base) + suffix; };
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
                   [](BoundLinear<T>& b, Matrix<T> w) { weights_in(b.model.weights, w); },
                   nb::for_getter(nb::rv_policy::automatic))  // a new array, owned by nobody else
      .def_prop_ro("nbytes", &BoundLinear<T>::nbytes);
}

void bind_linear(nb::module_& m) {
  bind_as<double>(m, "64");
  bind_as<float>(m, "32");
}

}  // namespace KS_MODULE
