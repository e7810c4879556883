#include "bind.hpp"
#include "mapped.hpp"

namespace KS_MODULE {

template <class T> using BoundMapped = Bound<T, Mapped<T>>;

template <class T> static void bind_as(nb::module_& m, const std::string& suffix) {
  auto name = [&](const char* base) { return std::string(base) + suffix; };
  using Held = HeldRows<T>;
  auto mapped = nb::class_<BoundMapped<T>>(m, name("Mapped").c_str());
  mapped
      .def_static(
          "landmarks",
          [](const Held& landmarks, Matrix<T> matrix, const std::string& kernel, double gamma, double offset, int degree,
             nb::object function, int64_t outputs, bool regression, const std::string& loss, double loss_width, double eta,
             double lambda) {
            require(int64_t(matrix.shape(1)) == landmarks.rows.n, "the matrix must have one column a landmark");
            Settings s = settings_of(landmarks.rows.width, outputs, regression, 0, loss, loss_width, eta, lambda, 0, 0, "");
            return new BoundMapped<T>(
                std::in_place, std::move(s), std::make_unique<LandmarkMap<T>>(kernel_of<T>(kernel, gamma, offset, degree, std::move(function)),
                                                               landmarks.rows, matrix.data(), int64_t(matrix.shape(0))));
          },
          "landmarks"_a, "matrix"_a, nb::kw_only(), "kernel"_a, "gamma"_a, "offset"_a, "degree"_a, "function"_a.none(),
          "outputs"_a, "regression"_a, "loss"_a, "loss_width"_a, "eta"_a, "lam"_a)
      .def_static(
          "fourier",
          [](Matrix<T> frequencies, int64_t outputs, bool regression, const std::string& loss, double loss_width, double eta,
             double lambda) {
            int64_t width = int64_t(frequencies.shape(0)), pairs = int64_t(frequencies.shape(1));
            Settings s = settings_of(width, outputs, regression, 0, loss, loss_width, eta, lambda, 0, 0, "");
            return new BoundMapped<T>(std::in_place, std::move(s), std::make_unique<FourierMap<T>>(frequencies.data(), width, pairs));
          },
          "frequencies"_a, nb::kw_only(), "outputs"_a, "regression"_a, "loss"_a, "loss_width"_a, "eta"_a, "lam"_a)
      .def("score", &BoundMapped<T>::score, "rows"_a)
      .def("run", &BoundMapped<T>::template run<>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a)
      .def("features",
           [](BoundMapped<T>& b, const Held& h) {
             b.check(h.rows);
             T* out;
             Made<T> made = make<T>({size_t(h.rows.n), size_t(b.model.stride())}, &out);
             nb::gil_scoped_release release;
             std::lock_guard<std::mutex> guard(b.lock);
             b.model.features(h.rows, out);
             return made;
           }, "rows"_a)
      .def_prop_rw("weights", [](BoundMapped<T>& b) { return weights_out(b.model.weights, b.model.stride()); },
                   [](BoundMapped<T>& b, Matrix<T> w) { weights_in(b.model.weights, w); },
                   nb::for_getter(nb::rv_policy::automatic))  // a new array, owned by nobody else
      .def_prop_ro("nbytes", &BoundMapped<T>::nbytes);
}

void bind_mapped(nb::module_& m) {
  bind_as<double>(m, "64");
  bind_as<float>(m, "32");
}

}  // namespace KS_MODULE
