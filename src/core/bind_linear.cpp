#include "linear.hpp"
#include "state.hpp"

KS_GLUE_BEGIN
namespace KS_MODULE {

template <class T> static void describe(State& s, Linear<T>& model) {
  s.weights("weights", model.weights, model.set.width);
  if (s.reads()) model.weights_changed();
}

template <class T> static void bind_as(nb::module_& m) {
  using B = Bound<T, Linear<T>>;
  auto c = learner_class<T, Linear<T>>(m, "Linear");
  def_state(c);
  c.def(
      "__init__",
      [](B* self, int64_t width, int64_t outputs, bool regression, double epsilon, double C, const std::string& variant) {
        new (self) B(std::in_place, settings_of(width, outputs, regression, 0), PassiveAggressive(variant, C, epsilon));
      },
      nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "epsilon"_a, "C"_a, "variant"_a);
}

void bind_linear(nb::module_& m) {
  bind_as<double>(m);
  bind_as<float>(m);
}

}  // namespace KS_MODULE
KS_GLUE_END
