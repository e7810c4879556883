#include <functional>
#include <map>

#include "bind.hpp"
#include "mixture.hpp"

namespace KS_MODULE {

template <class T> using BoundMixture = Bound<T, Mixture<T>>;

// One array of a model's state, element by element in its logical shape: no padding, whatever the layout inside.
struct Element {
  std::vector<size_t> shape;
  std::function<double&(size_t, size_t)> at;
};

// The arrays of a model by name. Their shapes follow from its width, outputs, budget and number of rows kept alone.
template <class T> static std::map<std::string, Element> elements(Mixture<T>& x) {
  std::map<std::string, Element> all;
  size_t width = size_t(x.set.width), outputs = size_t(x.set.outputs), budget = size_t(x.set.budget);
  auto flat = [&](const std::string& name, auto& array, size_t n) {
    all[name] = {{n}, [&array](size_t i, size_t) -> double& { return array[i]; }};
  };
  auto grid = [&](const std::string& name, auto& array, size_t n, size_t columns, size_t stride) {
    all[name] = {{n, columns}, [&array, stride](size_t i, size_t j) -> double& { return array[i * stride + j]; }};
  };
  auto panel = [&](const std::string& name, Panel<double>& p, size_t n, size_t columns, auto index) {
    all[name] = {{n, columns}, [&p, index](size_t i, size_t j) -> double& { return p.at(index(i), index(j)); }};
  };
  auto same = [](size_t i) { return int64_t(i); };
  for (auto* memory : {&x.lasting, &x.recent}) {
    std::string name = memory == &x.lasting ? "lasting_" : "recent_";
    flat(name + "centre", memory->centre, width);
    flat(name + "scale", memory->scale, width);
    panel(name + "landmarks", memory->landmarks.panel, budget, width, same);
    panel(name + "whitening", memory->whitening, budget, budget, same);
  }
  static const char* const names[] = {"lasting", "loose", "recent", "linear"};
  for (int e = 0; e < 4; ++e) {
    Newton& newton = x.newtons[e];
    if (!newton.m) continue;
    size_t kernel = e == Mixture<T>::kLinear ? 0 : budget, gap = kernel ? size_t(x.lasting.slots()) - budget : 0;
    size_t features = kernel + 1 + (x.wide ? outputs : width);
    auto index = [kernel, gap](size_t i) { return int64_t(i < kernel ? i : i + gap); };
    std::string name = names[e];
    panel(name + "_covariance", newton.covariance, features, features, index);
    all[name + "_weights"] = {{features, outputs}, [&newton, index](size_t i, size_t c) -> double& { return newton.weights[c][size_t(index(i))]; }};
    all[name + "_pending"] = {{size_t(kBlock), features}, [&newton, index](size_t j, size_t i) -> double& {
                                return newton.vectors[j * size_t(newton.m) + size_t(index(i))];
                              }};
    flat(name + "_coefficients", newton.coefficients, size_t(kBlock));
  }
  if (x.wide) {
    all["linear_weights"] = {{1 + width, outputs}, [&x](size_t i, size_t c) -> double& { return x.diagonal.weights[c * size_t(x.set.width + 1) + i]; }};
    flat("linear_squares", x.diagonal.squares, 1 + width);
  }
  size_t size = size_t(x.window.size), slots = size_t(x.window.points.slots());
  panel("window_points", x.window.points.panel, size, width, same);
  grid("window_kernel", x.window.kernel, size, size, slots);
  grid("window_inverse", x.window.inverse, size, size, slots);
  all["window_targets"] = {{size, outputs}, [&x, slots](size_t i, size_t c) -> double& { return x.window.targets[c * slots + i]; }};
  size_t classes = size_t(x.echo.classes);
  flat("echo_stays", x.echo.stays, classes);
  flat("echo_leaves", x.echo.leaves, classes);
  flat("echo_frequency", x.echo.frequency, classes);
  flat("shares", x.aggregate.weights, x.aggregate.weights.size());
  flat("stacks", x.aggregate.stack, x.aggregate.stack.size());
  flat("stack_covariances", x.aggregate.covariance, x.aggregate.covariance.size());
  grid("kept_rows", x.kept, size_t(x.capacity), width, width);
  flat("kept_targets", x.kept_targets, size_t(x.capacity));
  flat("kept_weights", x.kept_weights, size_t(x.capacity));
  return all;
}

template <class T> static std::vector<double*> scalars(Mixture<T>& x) {
  return {&x.centre, &x.spread, &x.alarm, &x.covered, &x.covers, &x.lasting.landmarks.kernel.gamma, &x.recent.landmarks.kernel.gamma,
          &x.window.points.kernel.gamma, &x.aggregate.noise, &x.aggregate.rounds, &x.newtons[Mixture<T>::kShort].remains,
          &x.lasting.active, &x.recent.active, &x.echo.value};
}

// Each with the values it may have.
struct Counter {
  int64_t* value;
  int64_t low, high;
};
template <class T> static std::vector<Counter> counters(Mixture<T>& x) {
  int64_t most = int64_t(1) << 62;
  return {{&x.learnt, 0, most}, {&x.age, 0, most}, {&x.next, 0, Mixture<T>::kNever}, {&x.rising, 0, most}, {&x.recent_age, 0, most},
          {&x.newtons[0].pending, 0, kBlock - 1}, {&x.lasting.landmarks.count, 0, x.set.budget},
          {&x.recent.landmarks.count, 0, x.set.budget}, {&x.window.points.count, 0, x.window.size},
          {&x.window.next, 0, std::max<int64_t>(0, x.window.size - 1)}, {&x.window.rounds, 0, most},
          {&x.echo.last, -1, x.echo.classes - 1}};
}

// The last n rows learnt, the oldest first: rows, targets, weights.
template <class T> static nb::tuple kept(BoundMixture<T>& b, int64_t n) {
  auto guard = b.locked();
  Mixture<T>& x = b.model;
  n = std::max<int64_t>(0, std::min({n, x.learnt, x.capacity}));
  double *rows, *targets, *weights;
  auto made = nb::make_tuple(make<double>({size_t(n), size_t(x.set.width)}, &rows), make<double>({size_t(n)}, &targets),
                             make<double>({size_t(n)}, &weights));
  for (int64_t i = 0; i < n; ++i) {
    int64_t slot = (x.learnt - n + i) % x.capacity;
    std::copy_n(x.kept.data() + slot * x.set.width, x.set.width, rows + i * x.set.width);
    targets[i] = x.kept_targets[size_t(slot)];
    weights[i] = x.kept_weights[size_t(slot)];
  }
  return made;
}

template <class T> static nb::dict state(BoundMixture<T>& b) {
  auto guard = b.locked();
  nb::dict made;
  for (auto& [name, element] : elements(b.model)) {
    double* out;
    bool matrix = element.shape.size() == 2;
    size_t rows = element.shape[0], columns = matrix ? element.shape[1] : 1;
    Made<double> array = matrix ? make<double>({rows, columns}, &out) : make<double>({rows}, &out);
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j) out[i * columns + j] = element.at(i, j);
    made[name.c_str()] = nb::cast(array);
  }
  auto numbers = scalars(b.model);
  double* number;
  Made<double> array = make<double>({numbers.size()}, &number);
  for (double* n : numbers) *number++ = *n;
  made["numbers"] = nb::cast(array);
  auto counts = counters(b.model);
  int64_t* count;
  Made<int64_t> whole = make<int64_t>({counts.size()}, &count);
  for (const Counter& c : counts) *count++ = *c.value;
  made["counters"] = nb::cast(whole);
  return made;
}

// Whether targets are classes that the model has; two classes and regression take any number.
template <class T> static bool known_classes(const Mixture<T>& x, const double* targets, size_t n) {
  return x.set.outputs == 1 || std::all_of(targets, targets + n, [&](double y) { return y >= 0 && y < double(x.set.outputs); });
}

template <class T> static void restore(BoundMixture<T>& b, nb::dict given) {
  auto guard = b.locked();
  Mixture<T>& x = b.model;
  auto all = elements(x);
  auto numbers = scalars(x);
  auto counts = counters(x);
  auto get = [&](const std::string& name, auto& array) {
    require(given.contains(name.c_str()), "the state has no array " + name);
    require(nb::try_cast(given[name.c_str()], array), "the state's array " + name + " has the wrong shape or type");
  };
  // Everything is checked before anything is changed.
  std::vector<nb::ndarray<const double, nb::c_contig, nb::device::cpu>> arrays;
  for (auto& [name, element] : all) {
    auto& array = arrays.emplace_back();
    get(name, array);
    bool fits = array.ndim() == element.shape.size();
    for (size_t d = 0; fits && d < array.ndim(); ++d) fits = array.shape(d) == element.shape[d];
    require(fits, "the state's array " + name + " has the wrong shape");
    require(std::all_of(array.data(), array.data() + array.size(), [](double v) { return std::isfinite(v); }),
            "the state's array " + name + " is not finite");
  }
  Vector<double> number;
  Vector<int64_t> count;
  get("numbers", number);
  get("counters", count);
  require(number.shape(0) == numbers.size() && count.shape(0) == counts.size(), "the state's numbers or counters are too many or too few");
  for (size_t i = 0; i < numbers.size(); ++i) require(std::isfinite(number(i)), "the state's numbers are not finite");
  require(number(1) > 0 && number(8) > 0 && number(11) >= 1 && number(12) >= 1, "the state's scales must be positive");
  require(number(5) > 0 && number(6) > 0 && number(7) > 0, "the state's bandwidths must be positive");
  require(number(10) > 0 && number(10) <= 1, "the state's share of the covariance that remains must be in (0, 1]");
  for (size_t i = 0; i < counts.size(); ++i)
    require(count(i) >= counts[i].low && count(i) <= counts[i].high, "the state's counter " + std::to_string(i) + " is out of range");
  size_t a = 0;
  for (auto& [name, element] : all) {            // a rebuild learns the rows kept again
    const auto& array = arrays[a++];
    if (name == "kept_targets") require(known_classes(x, array.data(), array.size()), "the state's classes are out of range");
    if (name == "kept_weights")
      require(std::all_of(array.data(), array.data() + array.size(), [](double v) { return v >= 0; }),
              "the state's weights must not be negative");
  }
  a = 0;
  for (auto& [name, element] : all) {
    const double* from = arrays[a++].data();
    for (size_t i = 0; i < element.shape[0]; ++i)
      for (size_t j = 0; j < (element.shape.size() == 2 ? element.shape[1] : 1); ++j) element.at(i, j) = *from++;
  }
  for (size_t i = 0; i < numbers.size(); ++i) *numbers[i] = number(i);
  for (size_t i = 0; i < counts.size(); ++i) *counts[i].value = count(i);
  x.set_priors();
  for (Newton& newton : x.newtons) newton.pending = x.newtons[0].pending;
  for (Memory* memory : {&x.lasting, &x.recent}) {
    memory->settle();
    memory->landmarks.renew();
  }
  x.window.points.renew();
}

template <class T> static void bind_as(nb::module_& m) {
  using B = BoundMixture<T>;
  learner_class<T, Mixture<T>>(m, "Mixture")
      .def(
          "__init__",
          [](B* self, int64_t width, int64_t outputs, bool regression, int64_t budget, int64_t window, int64_t kept) {
            require(budget >= 1 && window >= 0 && kept >= 1, "sizes out of range");
            new (self) B(std::in_place, settings_of(width, outputs, regression, budget), window, kept);
          },
          nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "budget"_a, "window"_a, "kept"_a)
      .def(
          "build",
          [](B& b, int64_t which, Vector<double> centre, Vector<double> scale, double active, const HeldRows<double>& points,
             double gamma, Matrix<double> whitening) {
            auto guard = b.locked();
            size_t width = size_t(b.model.set.width), n = size_t(points.rows.n);
            require((which == 1 || which == 2) && centre.shape(0) == width && scale.shape(0) == width && !points.rows.sparse() &&
                        size_t(points.rows.width) == width && n <= size_t(b.model.set.budget) && whitening.shape(0) == n &&
                        whitening.shape(1) == n,
                    "arrays of the wrong shape");
            b.model.build(which, centre.data(), scale.data(), active, points.rows, gamma, whitening.data());
          },
          "which"_a, "centre"_a, "scale"_a, "active"_a, "landmarks"_a, "gamma"_a, "whitening"_a)
      .def(
          "replay",
          [](B& b, int64_t which, const HeldRows<double>& rows, Vector<double> targets, Vector<double> weights, bool trial,
             int64_t counted) {
            require((which == 1 || which == 2) && rows.rows.width == b.model.set.width && int64_t(targets.shape(0)) == rows.rows.n &&
                        int64_t(weights.shape(0)) == rows.rows.n,
                    "arrays of the wrong shape");
            const double *y = targets.data(), *w = weights.data();
            require(known_classes(b.model, y, targets.shape(0)), "class index out of range");
            return b.alone([&] { return b.model.replay(which, rows.rows, y, w, trial, counted); });
          },
          "which"_a, "rows"_a, "targets"_a, "sample_weight"_a, "trial"_a, "counted"_a)
      .def(
          "standardise",
          [](B& b, double centre, double spread) {
            auto guard = b.locked();
            b.model.standardise(centre, spread);
          },
          "centre"_a, "spread"_a)
      .def(
          "only",
          [](B& b, int64_t candidates) {
            require(candidates > 0 && candidates < 1 << b.model.aggregate.candidates() && (candidates & 0x3F), "no such candidates");
            b.model.aggregate.only(candidates);
          },
          "candidates"_a)
      .def("kept", &kept<T>, "n"_a)
      .def("state", &state<T>)
      .def("restore", &restore<T>, "state"_a)
      .def_prop_ro("due", [](B& b) { return b.model.due; })
      .def_prop_ro("learnt", [](B& b) { return b.model.learnt; })
      .def_prop_ro("age", [](B& b) { return b.model.age; })
      .def_prop_ro("wide", [](B& b) { return b.model.wide; })
      .def_prop_ro("gammas", [](B& b) { return std::pair(b.model.lasting.landmarks.kernel.gamma, b.model.recent.landmarks.kernel.gamma); });
}

void bind_mixture(nb::module_& m) {
  bind_as<double>(m);
  bind_as<float>(m);
}

}  // namespace KS_MODULE
