// Models whose map follows the stream: NOLANA, DualSGD and RRF.
#include "adaptive.hpp"
#include "bind_mapped.hpp"
#include "dual.hpp"
#include "reparameterised.hpp"

namespace KS_MODULE {

template <class T> static void bind_landmarks(nb::module_& m, const std::string& suffix) {
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

template <class T> static void bind_dual(nb::module_& m, const std::string& suffix) {
  using Model = Bound<T, Dual<T>>;
  nb::class_<Model>(m, ("Dual" + suffix).c_str())
      .def(
          "__init__",
          [](Model* self, Matrix<T> frequencies, int64_t outputs, bool regression, int64_t budget, int64_t neighbours,
             const std::string& loss, double loss_width, double lambda, double delay, const std::string& kernel, double gamma,
             double offset, int degree, nb::object) {
            require(budget >= 1 && neighbours >= 0 && lambda > 0 && delay >= 0, "sizes out of range");
            int64_t width = int64_t(frequencies.shape(0));
            Settings s = settings_of(width, outputs, regression, budget, loss, loss_width, 0, lambda, 0, 0, "");
            new (self) Model(std::in_place, std::move(s), Kernel<T>::named(kernel, gamma, offset, degree), frequencies.data(),
                             int64_t(frequencies.shape(1)), neighbours, delay);
          },
          "frequencies"_a, nb::kw_only(), "outputs"_a, "regression"_a, "budget"_a, "neighbours"_a, "loss"_a, "loss_width"_a,
          "lam"_a, "delay"_a, "kernel"_a, "gamma"_a, "offset"_a, "degree"_a, "function"_a.none())
      .def("score", &Model::score, "rows"_a)
      .def("run", &Model::template run<>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a)
      .def("state",
           [](Model& b) {
             auto guard = b.locked();
             Dual<T>& e = b.model;
             int64_t n = e.points.count;
             nb::dict state;
             T* x;
             state["points"] = make<T>({size_t(n), size_t(e.set.width)}, &x);
             for (int64_t j = 0; j < n; ++j)
               for (int64_t d = 0; d < e.set.width; ++d) x[j * e.set.width + d] = e.points.panel.at(j, d);
             double* k;
             state["gram"] = make<double>({size_t(n), size_t(n)}, &k);
             for (int64_t i = 0; i < n; ++i)
               for (int64_t j = 0; j < n; ++j) k[i * n + j] = e.gram(i, j);
             state["weights"] = weights_out(e.weights, n);
             state["map_weights"] = weights_out(e.map_weights, e.stride());
             int64_t* t;
             state["born"] = make<int64_t>({size_t(n)}, &t);
             std::copy_n(e.born.begin(), n, t);
             state["clock"] = make<int64_t>({2}, &t);
             t[0] = e.clock;
             t[1] = e.rounds;
             return state;
           })
      .def("restore",
           [](Model& b, const HeldRows<T>& points, Matrix<double> gram, Matrix<T> weights, Matrix<T> map_weights,
              Vector<int64_t> born, Vector<int64_t> clock) {
             auto guard = b.locked();
             Dual<T>& e = b.model;
             int64_t n = points.rows.n;
             fits(n <= e.set.budget && points.rows.width == e.set.width && int64_t(gram.shape(0)) == n &&
                  int64_t(gram.shape(1)) == n && int64_t(weights.shape(0)) == n && int64_t(born.shape(0)) == n &&
                  clock.shape(0) == 2 && int64_t(map_weights.shape(0)) == e.stride());
             fits(is_count(clock(0)) && is_count(clock(1)));
             for (int64_t j = 0; j < n; ++j) fits(is_count(born(size_t(j))));
             e.points.count = 0;
             e.each(points.rows, 0, [&](int64_t j, const T* z) {
               e.place(j, points.rows, j, z);
               e.born[size_t(j)] = born(size_t(j));
               for (int64_t l = 0; l < n; ++l) e.gram(j, l) = gram(size_t(j), size_t(l));
               return true;
             });
             weights_in(e.weights, weights);
             weights_in(e.map_weights, map_weights);
             e.clock = clock(0);
             e.rounds = clock(1);
           },
           "points"_a, "gram"_a, "weights"_a, "map_weights"_a, "born"_a, "clock"_a)
      .def_prop_ro("count", [](Model& b) { return b.model.points.count; })
      .def_prop_ro("nbytes", &Model::nbytes);
}

template <class T> static void bind_reparameterised(nb::module_& m, const std::string& suffix) {
  using Model = Bound<T, Reparameterised<T>>;
  auto model = nb::class_<Model>(m, ("Reparameterised" + suffix).c_str());
  def_mapped(model);
  model
      .def(
          "__init__",
          [](Model* self, Matrix<T> draws, double scale, double scale_step, int64_t outputs, bool regression,
             const std::string& loss, double loss_width, double eta, double lambda) {
            int64_t width = int64_t(draws.shape(0));
            Settings s = settings_of(width, outputs, regression, 0, loss, loss_width, eta, lambda, 0, 0, "");
            new (self) Model(std::in_place, std::move(s), draws.data(), int64_t(draws.shape(1)), scale, scale_step);
          },
          "draws"_a, nb::kw_only(), "scale"_a, "scale_step"_a, "outputs"_a, "regression"_a, "loss"_a, "loss_width"_a, "eta"_a,
          "lam"_a)
      .def("run", &Model::template run<>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a)
      .def_prop_rw("log_scale",
                   [](Model& b) {
                     auto guard = b.locked();
                     double* out;
                     Made<double> made = make<double>({b.model.log_scale.size()}, &out);
                     std::copy(b.model.log_scale.begin(), b.model.log_scale.end(), out);
                     return made;
                   },
                   [](Model& b, Vector<double> from) {
                     require(from.shape(0) == b.model.log_scale.size(), "log_scale must have one entry an input");
                     auto guard = b.locked();
                     std::copy_n(from.data(), from.shape(0), b.model.log_scale.begin());
                     b.model.rescale();
                   },
                   nb::for_getter(nb::rv_policy::automatic));
}

template <class T> static void bind_as(nb::module_& m, const std::string& suffix) {
  bind_landmarks<T>(m, suffix);
  bind_dual<T>(m, suffix);
  bind_reparameterised<T>(m, suffix);
}

void bind_adaptive(nb::module_& m) {
  bind_as<double>(m, "64");
  bind_as<float>(m, "32");
}

}  // namespace KS_MODULE
