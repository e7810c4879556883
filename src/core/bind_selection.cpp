#include "bind_expansion.hpp"
#include "selection.hpp"

namespace KS_MODULE {

template <class T> using BoundSelection = Bound<T, Selection<T>>;
template <class T> using BoundLottery = Bound<T, Lottery<T>>;

template <class V> static Made<V> vector_out(const V* from, int64_t n) {
  V* to;
  Made<V> made = make<V>({size_t(n)}, &to);
  std::copy_n(from, n, to);
  return made;
}

template <class T> static nb::dict selection_state(BoundSelection<T>& b) {
  auto guard = b.locked();
  Selection<T>& s = b.model;
  nb::dict state = expansion_state<T>(s);
  if (s.each_feature()) state["points"] = points_out(s.raw, s.points.count);
  state[s.each_feature() ? "gammas" : "gamma"] = vector_out(s.gamma.data(), int64_t(s.gamma.size()));
  if (s.points.gammas.size()) state["point_gammas"] = vector_out(s.points.gammas.data(), s.points.count);
  state["rounds"] = vector_out(&s.rounds, 1);
  return state;
}

template <class T>
static void selection_restore(BoundSelection<T>& b, const HeldRows<T>& points, Matrix<T> weights, Vector<int64_t> born,
                              Vector<uint64_t> random, Vector<double> ledger, Vector<int64_t> rounds,
                              std::optional<Vector<double>> gamma, std::optional<Vector<double>> gammas,
                              std::optional<Vector<T>> point_gammas) {
  auto guard = b.locked();
  Selection<T>& s = b.model;
  const auto& scales = s.each_feature() ? gammas : gamma;
  fits(scales && scales->shape(0) == s.gamma.size() && rounds.shape(0) == 1 && is_count(rounds(0)) &&
       point_gammas.has_value() == (s.points.gammas.size() > 0) &&
       (!point_gammas || int64_t(point_gammas->shape(0)) == points.rows.n));
  for (size_t d = 0; d < s.gamma.size(); ++d) fits((*scales)(d) >= 0 && (*scales)(d) <= s.search.high);
  expansion_restore<T>(s, points, weights, born, random, ledger, std::nullopt);
  s.rounds = rounds(0);
  std::copy_n(scales->data(), s.gamma.size(), s.gamma.begin());
  if (point_gammas) std::copy_n(point_gammas->data(), points.rows.n, s.points.gammas.data());
  if (s.each_feature())
    for (int64_t j = 0; j < points.rows.n; ++j) s.raw.put(j, points.rows, j);
  s.apply();
}

// Points of all candidates one after the other, and whose each is.
template <class T> static nb::dict lottery_state(BoundLottery<T>& b) {
  auto guard = b.locked();
  Lottery<T>& l = b.model;
  size_t n = size_t(l.count()), width = size_t(l.set.width), outputs = size_t(l.set.outputs), at = 0;
  T *x, *w;
  int64_t* o;
  uint64_t* r;
  nb::dict state;
  state["points"] = make<T>({n, width}, &x);
  state["weights"] = make<T>({n, outputs}, &w);
  state["owners"] = make<int64_t>({n}, &o);
  for (size_t i = 0; i < l.candidates.size(); ++i)
    for (int64_t j = 0; j < l.candidates[i].points.count; ++j, ++at) {
      for (size_t d = 0; d < width; ++d) x[at * width + d] = l.candidates[i].points.panel.at(j, int64_t(d));
      for (size_t c = 0; c < outputs; ++c) w[at * outputs + c] = l.candidates[i].weights[c][size_t(j)];
      o[at] = int64_t(i);
    }
  state["losses"] = vector_out(l.losses.data(), int64_t(l.losses.size()));
  state["random"] = make<uint64_t>({2}, &r);
  r[0] = l.random.state;
  r[1] = uint64_t(l.rounds);
  return state;
}

template <class T>
static void lottery_restore(BoundLottery<T>& b, const HeldRows<T>& points, Matrix<T> weights, Vector<int64_t> owners,
                            Vector<double> losses, Vector<uint64_t> random) {
  auto guard = b.locked();
  Lottery<T>& l = b.model;
  int64_t n = points.rows.n, N = int64_t(l.candidates.size());
  fits(n <= l.set.budget && points.rows.width == l.set.width && int64_t(weights.shape(0)) == n &&
       int64_t(weights.shape(1)) == l.set.outputs && int64_t(owners.shape(0)) == n && int64_t(losses.shape(0)) == N &&
       random.shape(0) == 2 && is_count(int64_t(random(1))));
  for (int64_t j = 0; j < n; ++j) fits(owners(size_t(j)) >= 0 && owners(size_t(j)) < N);
  for (auto& c : l.candidates) c.points.count = 0;
  for (int64_t j = 0; j < n; ++j) {
    Expansion<T>& f = l.candidates[size_t(owners(size_t(j)))];
    int64_t slot = f.points.count;
    f.set.budget = l.set.budget;
    f.place(slot, points.rows, j);
    for (size_t c = 0; c < f.weights.size(); ++c) f.weights[c][size_t(slot)] = weights(size_t(j), c);
  }
  std::copy_n(losses.data(), N, l.losses.begin());
  l.random.state = random(0);
  l.rounds = int64_t(random(1));
}

template <class T> static void bind_as(nb::module_& m, const std::string& suffix) {
  nb::class_<BoundSelection<T>>(m, ("Selection" + suffix).c_str())
      .def(
          "__init__",
          [](BoundSelection<T>* self, bool each_point, int64_t width, int64_t outputs, bool regression, int64_t budget,
             bool grows, const std::string& loss, double loss_width, double eta, double rho, double decay, double low,
             double high, double nu, int64_t samples, Vector<double> gamma, bool each_feature, uint64_t seed) {
            Settings s = settings_of(width, outputs, regression, budget, loss, loss_width, eta, 0, 0, 0, "");
            s.grows = grows;
            require(budget >= 1 && samples >= 1 && !(each_point && each_feature) && !(grows && each_feature) &&
                        int64_t(gamma.shape(0)) == (each_feature ? width : 1),
                    "sizes out of range");
            new (self) BoundSelection<T>(std::in_place, std::move(s), each_point, Search{rho, decay, low, high, nu, samples},
                                         std::vector<double>(gamma.data(), gamma.data() + gamma.shape(0)), each_feature, seed);
          },
          nb::kw_only(), "each_point"_a, "width"_a, "outputs"_a, "regression"_a, "budget"_a, "grows"_a, "loss"_a, "loss_width"_a,
          "eta"_a, "rho"_a, "decay"_a, "low"_a, "high"_a, "nu"_a, "samples"_a, "gamma"_a, "each_feature"_a, "seed"_a)
      .def("score", &BoundSelection<T>::score, "rows"_a)
      .def("run", &BoundSelection<T>::template run<bool>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a,
           "stop_when_full"_a)
      .def("state", &selection_state<T>)
      .def("restore", &selection_restore<T>, "points"_a, "weights"_a, "born"_a, "random"_a, "ledger"_a, "rounds"_a,
           "gamma"_a.none() = nb::none(), "gammas"_a.none() = nb::none(), "point_gammas"_a.none() = nb::none())
      .def_prop_ro("gamma", [](BoundSelection<T>& b) { return vector_out(b.model.gamma.data(), int64_t(b.model.gamma.size())); },
                   nb::rv_policy::automatic)
      .def_prop_ro("count", [](BoundSelection<T>& b) { return b.model.points.count; })
      .def_prop_ro("nbytes", &BoundSelection<T>::nbytes);

  nb::class_<BoundLottery<T>>(m, ("Lottery" + suffix).c_str())
      .def(
          "__init__",
          [](BoundLottery<T>* self, int64_t width, int64_t outputs, bool regression, int64_t budget, const std::string& loss,
             double loss_width, double eta, Vector<double> gammas, double delta, double rate, uint64_t seed) {
            Settings s = settings_of(width, outputs, regression, budget, loss, loss_width, eta, 0, 0, 0, "");
            s.grows = true;
            require(budget >= 1 && gammas.shape(0) >= 1, "sizes out of range");
            new (self) BoundLottery<T>(std::in_place, std::move(s), gammas.data(), gammas.shape(0), delta, rate, seed);
          },
          nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "budget"_a, "loss"_a, "loss_width"_a, "eta"_a, "gammas"_a,
          "delta"_a, "rate"_a, "seed"_a)
      .def("score", &BoundLottery<T>::score, "rows"_a)
      .def("run", &BoundLottery<T>::template run<>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a)
      .def("state", &lottery_state<T>)
      .def("restore", &lottery_restore<T>, "points"_a, "weights"_a, "owners"_a, "losses"_a, "random"_a)
      .def("chances",
           [](BoundLottery<T>& b) {
             auto guard = b.locked();
             return vector_out(b.model.chances().data(), int64_t(b.model.losses.size()));
           })
      .def_prop_ro("next", [](BoundLottery<T>& b) {
        auto guard = b.locked();
        return b.model.next();
      })
      .def_prop_ro("count", [](BoundLottery<T>& b) { return b.model.count(); })
      .def_prop_ro("nbytes", &BoundLottery<T>::nbytes);
}

void bind_selection(nb::module_& m) {
  bind_as<double>(m, "64");
  bind_as<float>(m, "32");
}

}  // namespace KS_MODULE
