// Models whose map follows the stream: NOLANA, DualSGD and RRF.
#include "adaptive.hpp"
#include "bind_mapped.hpp"
#include "dual.hpp"
#include "reparameterised.hpp"

KS_GLUE_BEGIN
namespace KS_MODULE {

template <class T> static void bind_adaptive_landmarks(nb::module_& m) {
  using B = Bound<T, Adaptive<T>>;
  mapped_class<T, Adaptive<T>, WatchedMap<T>>(m, "Adaptive")
      .def(
          "far",
          [](B& b, const HeldRows<T>& h, int64_t from) {
            b.check(h.rows);
            require(from >= 0, "rows out of range");
            return b.alone([&] { return b.model.far(h.rows, from); });
          },
          "rows"_a, "start"_a)
      .def(
          "move",
          [](B& b, int64_t slot, const HeldRows<T>& to, Matrix<T> matrix) {
            b.check(to.rows);
            require(slot >= 0 && slot < b.model.landmarks() && to.rows.n == 1 && int64_t(matrix.shape(1)) == b.model.landmarks() &&
                        int64_t(matrix.shape(0)) <= b.model.stride(),
                    "the landmark or the matrix does not fit the map");
            auto guard = b.locked();
            b.model.move(slot, to.rows, matrix.data(), int64_t(matrix.shape(0)));
          },
          "slot"_a, "to"_a, "matrix"_a)
      .def_prop_rw(
          "epsilon",
          [](B& b) {
            auto guard = b.locked();
            const Threshold& e = b.model.epsilon;
            return std::make_tuple(e.value, e.floor, e.up, e.down);
          },
          [](B& b, std::tuple<double, double, double, double> e) {
            auto guard = b.locked();
            b.model.epsilon = {std::get<0>(e), std::get<1>(e), std::get<2>(e), std::get<3>(e)};
          })
      .def_prop_ro("nearest", [](B& b) {
        auto guard = b.locked();
        return b.model.nearest;
      });
}

template <class T> static void describe(State& s, Dual<T>& e) {
  if (s.reads()) e.points.count = 0;
  int64_t n = s.points<T>("points", e.points, e.points.count, e.set.budget, [&](const Rows<T>& rows, int64_t j) {
    e.each(rows.part(j, j + 1), 0, [&](int64_t, const T* z) {
      e.place(j, rows, j, z);
      return true;
    });
  });
  s.grid<double>("gram", n, n, [&](int64_t i, int64_t j) -> double& { return e.gram(i, j); });
  s.weights("weights", e.weights, n);
  s.weights("map_weights", e.map_weights, e.stride());
  s.line("born", e.born.data(), n);
  for (int64_t j = 0; j < n; ++j) counted(e.born[size_t(j)]);
  int64_t clock[2] = {e.clock, e.rounds};
  s.line("clock", clock, 2);
  e.clock = counted(clock[0]);
  e.rounds = counted(clock[1]);
}

template <class T> static void bind_dual(nb::module_& m) {
  using B = Bound<T, Dual<T>>;
  auto c = learner_class<T, Dual<T>>(m, "Dual");
  def_state(c);
  c.def(
      "__init__",
      [](B* self, Matrix<T> frequencies, int64_t outputs, bool regression, int64_t budget, int64_t neighbours, const Loss& loss,
         double lambda, double delay, const AnyKernel& kernel) {
        require(budget >= 1 && neighbours >= 0 && lambda > 0 && delay >= 0, "sizes out of range");
        int64_t width = int64_t(frequencies.shape(0)), pairs = int64_t(frequencies.shape(1));
        new (self) B(kernel.function, settings_of(width, outputs, regression, budget), loss, kernel.as<T>(), frequencies.data(), pairs,
                     neighbours, lambda, delay);
      },
      "frequencies"_a, nb::kw_only(), "outputs"_a, "regression"_a, "budget"_a, "neighbours"_a, "loss"_a, "lam"_a, "delay"_a, "kernel"_a);
}

template <class T> static void describe(State& s, Reparameterised<T>& model) {
  s.weights("weights", model.weights, model.stride());
  s.line("log_scale", model.log_scale.data(), int64_t(model.log_scale.size()));
  if (s.reads()) model.renew();
}

template <class T> static void bind_reparameterised(nb::module_& m) {
  using B = Bound<T, Reparameterised<T>>;
  auto c = learner_class<T, Reparameterised<T>>(m, "Reparameterised");
  def_state(c);
  c.def(
      "__init__",
      [](B* self, Matrix<T> draws, double scale, double scale_step, int64_t outputs, bool regression, const Loss& loss, double eta,
         double lambda) {
        int64_t width = int64_t(draws.shape(0)), pairs = int64_t(draws.shape(1));
        new (self) B(std::in_place, settings_of(width, outputs, regression, 0), Descent{loss, eta, lambda}, draws.data(), pairs, scale,
                     scale_step);
      },
      "draws"_a, nb::kw_only(), "scale"_a, "scale_step"_a, "outputs"_a, "regression"_a, "loss"_a, "eta"_a, "lam"_a);
}

template <class T> static void bind_as(nb::module_& m) {
  bind_adaptive_landmarks<T>(m);
  bind_dual<T>(m);
  bind_reparameterised<T>(m);
}

void bind_adaptive(nb::module_& m) {
  bind_as<double>(m);
  bind_as<float>(m);
}

}  // namespace KS_MODULE
KS_GLUE_END
