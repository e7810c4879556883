// What the bindings of linear models over a map share.
#pragma once
#include "bind.hpp"
#include "mapped.hpp"

namespace KS_MODULE {

// Scoring, features and weights of a Mapped or what derives from it.
template <class T, class Model> void def_mapped(nb::class_<Bound<T, Model>>& c) {
  using B = Bound<T, Model>;
  c.def("score", &B::score, "rows"_a)
      .def("features",
           [](B& b, const HeldRows<T>& h) {
             b.check(h.rows);
             T* out;
             Made<T> made = make<T>({size_t(h.rows.n), size_t(b.model.stride())}, &out);
             nb::gil_scoped_release release;
             std::lock_guard<std::mutex> guard(b.lock);
             b.model.features(h.rows, out);
             return made;
           }, "rows"_a)
      .def_prop_rw("weights", [](B& b) { return weights_out(b.model.weights, b.model.stride()); },
                   [](B& b, Matrix<T> w) { weights_in(b.model.weights, w); },
                   nb::for_getter(nb::rv_policy::automatic))  // a new array, owned by nobody else
      .def_prop_ro("nbytes", &B::nbytes);
}

// A constructor "landmarks" from points, a matrix and a kernel; M is the map.
template <class T, class Model, class M> void def_landmarks(nb::class_<Bound<T, Model>>& c) {
  c.def_static(
      "landmarks",
      [](const HeldRows<T>& landmarks, Matrix<T> matrix, const std::string& kernel, double gamma, double offset, int degree,
         nb::object function, int64_t outputs, bool regression, const std::string& loss, double loss_width, double eta,
         double lambda) {
        require(landmarks.rows.n >= 1 && int64_t(matrix.shape(1)) == landmarks.rows.n,
                "the matrix must have one column a landmark, of which there must be one at least");
        Settings s = settings_of(landmarks.rows.width, outputs, regression, 0, loss, loss_width, eta, lambda, 0, 0, "");
        return new Bound<T, Model>(std::in_place, std::move(s),
                                   std::make_unique<M>(kernel_of<T>(kernel, gamma, offset, degree, std::move(function)),
                                                       landmarks.rows, matrix.data(), int64_t(matrix.shape(0))));
      },
      "landmarks"_a, "matrix"_a, nb::kw_only(), "kernel"_a, "gamma"_a, "offset"_a, "degree"_a, "function"_a.none(),
      "outputs"_a, "regression"_a, "loss"_a, "loss_width"_a, "eta"_a, "lam"_a);
}

}  // namespace KS_MODULE
