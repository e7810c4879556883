#include "bind_mapped.hpp"

namespace KS_MODULE {

template <class T> static void bind_as(nb::module_& m, const std::string& suffix) {
  using Model = Bound<T, Mapped<T>>;
  auto mapped = nb::class_<Model>(m, ("Mapped" + suffix).c_str());
  def_mapped(mapped);
  def_landmarks<T, Mapped<T>, LandmarkMap<T>>(mapped);
  mapped
      .def_static(
          "fourier",
          [](Matrix<T> frequencies, int64_t outputs, bool regression, const std::string& loss, double loss_width, double eta,
             double lambda) {
            int64_t width = int64_t(frequencies.shape(0)), pairs = int64_t(frequencies.shape(1));
            Settings s = settings_of(width, outputs, regression, 0, loss, loss_width, eta, lambda, 0, 0, "");
            return new Model(std::in_place, std::move(s), std::make_unique<FourierMap<T>>(frequencies.data(), width, pairs));
          },
          "frequencies"_a, nb::kw_only(), "outputs"_a, "regression"_a, "loss"_a, "loss_width"_a, "eta"_a, "lam"_a)
      .def("run", &Model::template run<>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a);
}

void bind_mapped(nb::module_& m) {
  bind_as<double>(m, "64");
  bind_as<float>(m, "32");
}

}  // namespace KS_MODULE
