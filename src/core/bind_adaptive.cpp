#include "adaptive.hpp"
#include "bind_mapped.hpp"

namespace KS_MODULE {

template <class T> static void bind_as(nb::module_& m, const std::string& suffix) {
  using Model = Bound<T, Adaptive<T>>;
  auto adaptive = nb::class_<Model>(m, ("Adaptive" + suffix).c_str());
  def_mapped(adaptive);
  def_landmarks<T, Adaptive<T>, WatchedMap<T>>(adaptive);
  adaptive
      .def("run", &Model::template run<>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a)
      .def("far",
           [](Model& b, const HeldRows<T>& h, int64_t from) {
             b.check(h.rows);
             nb::gil_scoped_release release;
             std::lock_guard<std::mutex> guard(b.lock);
             return b.model.far(h.rows, from);
           }, "rows"_a, "start"_a)
      .def("move",
           [](Model& b, int64_t slot, const HeldRows<T>& to, Matrix<T> matrix) {
             require(slot >= 0 && slot < b.model.landmarks() && to.rows.n == 1 && to.rows.width == b.model.set.width &&
                         int64_t(matrix.shape(1)) == b.model.landmarks() && int64_t(matrix.shape(0)) <= b.model.stride(),
                     "the landmark or the matrix does not fit the map");
             auto guard = b.locked();
             b.model.move(slot, to.rows, matrix.data(), int64_t(matrix.shape(0)));
           }, "slot"_a, "to"_a, "matrix"_a)
      .def_prop_rw("epsilon",
                   [](Model& b) {
                     const Threshold& e = b.model.epsilon;
                     return std::make_tuple(e.value, e.floor, e.up, e.down);
                   },
                   [](Model& b, std::tuple<double, double, double, double> e) {
                     b.model.epsilon = {std::get<0>(e), std::get<1>(e), std::get<2>(e), std::get<3>(e)};
                   })
      .def_prop_ro("nearest", [](Model& b) { return b.model.nearest; });
}

void bind_adaptive(nb::module_& m) {
  bind_as<double>(m, "64");
  bind_as<float>(m, "32");
}

}  // namespace KS_MODULE
