#include "bind_mapped.hpp"

KS_GLUE_BEGIN
namespace KS_MODULE {

template <class T> static void describe(State& s, Mapped<T>& model) {
  s.weights("weights", model.weights, model.stride());
  if (s.reads()) model.weights_changed();
}

template <class T> static void bind_as(nb::module_& m) {
  using B = Bound<T, Mapped<T>>;
  auto c = mapped_class<T, Mapped<T>, LandmarkMap<T>>(m, "Mapped");
  def_state(c);
  def_mixed(c);
  c.def_static(
      "fourier",
      [](Matrix<T> frequencies, int64_t outputs, bool regression, const Loss& loss, double eta, double lambda) {
        int64_t width = int64_t(frequencies.shape(0)), pairs = int64_t(frequencies.shape(1));
        return new B(std::in_place, settings_of(width, outputs, regression, 0), Descent{loss, eta, lambda},
                     std::make_unique<FourierMap<T>>(frequencies.data(), width, pairs));
      },
      "frequencies"_a, nb::kw_only(), "outputs"_a, "regression"_a, "loss"_a, "eta"_a, "lam"_a);
}

void bind_mapped(nb::module_& m) {
  bind_as<double>(m);
  bind_as<float>(m);
}

}  // namespace KS_MODULE
KS_GLUE_END
