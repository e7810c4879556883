#include "expansion_state.hpp"
#include "lottery.hpp"
#include "selection.hpp"

KS_GLUE_BEGIN
namespace KS_MODULE {

template <class T> static void describe(State& s, Selection<T>& e) {
  int64_t n = describe_expansion<T>(s, e, e.each_feature() ? e.raw : e.points.panel, [&](const Rows<T>& rows, int64_t j) {
    e.place(j, rows, j);
    if (e.each_feature()) e.raw.put(j, rows, j);
  });
  s.line(e.each_feature() ? "gammas" : "gamma", e.gamma.data(), int64_t(e.gamma.size()));
  if (e.points.gammas.size()) s.line("point_gammas", e.points.gammas.data(), n);
  s.line("rounds", &e.rounds, 1);
  if (!s.reads()) return;
  for (double gamma : e.gamma) fits(gamma >= 0 && gamma <= e.search.high);
  counted(e.rounds);
  e.apply();
}

// Points of all candidates one after the other, and whose each is.
template <class T> static void describe(State& s, Lottery<T>& l) {
  int64_t N = int64_t(l.candidates.size());
  std::vector<int64_t> owners, slots;
  for (int64_t i = 0; i < N; ++i) owners.insert(owners.end(), size_t(l.candidates[size_t(i)].points.count), i);
  s.line("owners", owners);
  int64_t n = int64_t(owners.size());
  fits(n <= l.set.budget);
  std::vector<int64_t> counts(size_t(N), 0);
  for (int64_t owner : owners) {
    fits(owner >= 0 && owner < N);
    slots.push_back(counts[size_t(owner)]++);
  }
  auto owner = [&](int64_t j) -> Expansion<T>& { return l.candidates[size_t(owners[size_t(j)])]; };
  if (s.reads()) {
    for (Expansion<T>& e : l.candidates) {
      e.points.count = 0;
      e.set.budget = l.set.budget;
      for (auto& w : e.weights) w.clear();
    }
    fits(s.length("points", n) == n);
    s.points<T>("points", l.candidates[0].points.panel, 0, n,
                [&](const Rows<T>& rows, int64_t j) { owner(j).place(slots[size_t(j)], rows, j); });
  } else {
    s.write<T>("points", n, l.set.width, [&](int64_t j, int64_t d) { return owner(j).points.panel.at(slots[size_t(j)], d); });
  }
  s.grid<T>("weights", n, l.set.outputs, [&](int64_t j, int64_t c) -> T& { return owner(j).weights[size_t(c)][size_t(slots[size_t(j)])]; });
  s.line("losses", l.losses.data(), N);
  uint64_t random[2] = {l.random.state, uint64_t(l.rounds)};
  s.line("random", random, 2);
  l.random.state = random[0];
  l.rounds = counted(int64_t(random[1]));
}

template <class T> static void bind_as(nb::module_& m) {
  using B = Bound<T, Selection<T>>;
  auto selection = learner_class<T, Selection<T>>(m, "Selection");
  def_state(selection);
  selection
      .def(
          "__init__",
          [](B* self, bool each_point, int64_t width, int64_t outputs, bool regression, int64_t budget, bool grows, const AnyKernel& kernel,
             const Loss& loss, double eta, double rho, double decay, double low, double high, double nu, int64_t samples, bool logarithm,
             Vector<double> gamma, bool each_feature, uint64_t seed) {
            require(budget >= 1 && samples >= 1 && !(each_point && each_feature) && !(grows && each_feature) &&
                        int64_t(gamma.shape(0)) == (each_feature ? width : 1),
                    "sizes out of range");
            require(!each_point || kernel.name == "gaussian", "one scale per point is for the Gaussian kernel");
            new (self) B(std::in_place, settings_of(width, outputs, regression, budget), Storage{grows, false}, kernel.as<T>(), loss, eta,
                         each_point, Search{rho, decay, low, high, nu, samples, logarithm},
                         std::vector<double>(gamma.data(), gamma.data() + gamma.shape(0)), each_feature, seed);
          },
          nb::kw_only(), "each_point"_a = false, "width"_a, "outputs"_a, "regression"_a, "budget"_a, "grows"_a = false, "kernel"_a,
          "loss"_a, "eta"_a, "rho"_a, "decay"_a, "low"_a, "high"_a, "nu"_a = 0.0, "samples"_a = 1, "logarithm"_a = false, "gamma"_a,
          "each_feature"_a = false, "seed"_a = 0)
      .def_prop_ro(
          "gamma",
          [](B& b) {
            auto guard = b.locked();
            return copied(b.model.gamma);
          },
          nb::rv_policy::automatic);

  using L = Bound<T, Lottery<T>>;
  auto lottery = learner_class<T, Lottery<T>>(m, "Lottery");
  def_state(lottery);
  lottery
      .def(
          "__init__",
          [](L* self, int64_t width, int64_t outputs, bool regression, int64_t budget, const Loss& loss, double eta, Vector<double> gammas,
             double delta, double rate, uint64_t seed) {
            require(budget >= 1 && gammas.shape(0) >= 1, "sizes out of range");
            new (self) L(std::in_place, settings_of(width, outputs, regression, budget), Descent{loss, eta, 0}, gammas.data(),
                         gammas.shape(0), delta, rate, seed);
          },
          nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "budget"_a, "loss"_a, "eta"_a, "gammas"_a, "delta"_a, "rate"_a, "seed"_a)
      .def("chances",
           [](L& b) {
             auto guard = b.locked();
             return copied(b.model.chances());
           })
      .def_prop_ro("next", [](L& b) {
        auto guard = b.locked();
        return b.model.next();
      });
}

void bind_selection(nb::module_& m) {
  bind_as<double>(m);
  bind_as<float>(m);
}

}  // namespace KS_MODULE
KS_GLUE_END
