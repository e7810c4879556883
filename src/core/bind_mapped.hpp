// What the bindings of linear models over a map of landmarks share.
#pragma once
#include "mapped.hpp"
#include "state.hpp"

KS_GLUE_BEGIN
namespace KS_MODULE {

// Features and weights of a model over a map, and a constructor "landmarks" from points, a matrix and a kernel; Landmarks is the map.
template <class T, class Model, class Landmarks> nb::class_<Bound<T, Model>> mapped_class(nb::module_& m, const char* name) {
  using B = Bound<T, Model>;
  auto c = learner_class<T, Model>(m, name);
  c.def(
       "features",
       [](B& b, const HeldRows<T>& h) {
         b.check(h.rows);
         T* out;
         Made<T> made = make<T>({size_t(h.rows.n), size_t(b.model.stride())}, &out);
         b.alone([&] { b.model.features(h.rows, out); });
         return made;
       },
       "rows"_a)
      .def_prop_rw(
          "weights",
          [](B& b) {
            auto guard = b.locked();
            T* out;
            size_t outputs = b.model.weights.size();
            Made<T> made = make<T>({size_t(b.model.stride()), outputs}, &out);
            for (size_t j = 0; j < size_t(b.model.stride()); ++j)
              for (size_t c = 0; c < outputs; ++c) *out++ = b.model.weights[c][j];
            return made;
          },
          [](B& b, Matrix<T> from) {
            auto guard = b.locked();
            auto& weights = b.model.weights;
            require(from.shape(1) == weights.size() && from.shape(0) <= weights[0].size(), "weights have the wrong shape");
            for (size_t c = 0; c < weights.size(); ++c) {
              weights[c].clear();
              for (size_t j = 0; j < from.shape(0); ++j) weights[c][j] = from(j, c);
            }
            b.model.weights_changed();
          },
          nb::for_getter(nb::rv_policy::automatic))  // a new array, owned by nobody else
      .def_static(
          "landmarks",
          [](const HeldRows<T>& landmarks, Matrix<T> matrix, const AnyKernel& kernel, int64_t outputs, bool regression, const Loss& loss,
             double eta, double lambda) {
            require(landmarks.rows.n >= 1 && int64_t(matrix.shape(1)) == landmarks.rows.n,
                    "the matrix must have one column per landmark, of which there must be one at least");
            return new B(kernel.function, settings_of(landmarks.rows.width, outputs, regression, 0), Descent{loss, eta, lambda},
                         std::make_unique<Landmarks>(kernel.as<T>(), landmarks.rows, matrix.data(), int64_t(matrix.shape(0))));
          },
          "landmarks"_a, "matrix"_a, nb::kw_only(), "kernel"_a, "outputs"_a, "regression"_a, "loss"_a, "eta"_a, "lam"_a);
  return c;
}

}  // namespace KS_MODULE
KS_GLUE_END
