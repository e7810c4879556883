#include <nanobind/stl/vector.h>

#include "bind.hpp"
#include "mixture_state.hpp"

namespace KS_MODULE {

template <class T> using BoundMixture = Bound<T, Mixture<T>>;

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
    std::copy_n(x.kept_rows.data() + slot * x.set.width, x.set.width, rows + i * x.set.width);
    targets[i] = x.kept_targets[size_t(slot)];
    weights[i] = x.kept_weights[size_t(slot)];
  }
  return made;
}

template <class N> static void add_number(nb::dict& state, const StateNumber<N>& number) {
  N* out;
  Made<N> array = make<N>({1}, &out);
  *out = *number.value;
  state[number.name.c_str()] = nb::cast(array);
}

template <class T> static nb::dict state(BoundMixture<T>& b) {
  auto guard = b.locked();
  Layout all = layout(b.model);
  nb::dict state;
  for (const StateArray& array : all.arrays) {
    double* out;
    Made<double> copy = array.matrix ? make<double>({array.rows.n, array.columns.n}, &out) : make<double>({array.rows.n}, &out);
    array.read(out);
    state[array.name.c_str()] = nb::cast(copy);
  }
  for (const auto& number : all.numbers) add_number(state, number);
  for (const auto& count : all.counts) add_number(state, count);
  return state;
}

// Whether targets are classes that the model has; two classes and regression take any number.
template <class T> static bool known_classes(const Mixture<T>& x, const double* targets, size_t n) {
  return x.set.outputs == 1 || std::all_of(targets, targets + n, [&](double y) { return y >= 0 && y < double(x.set.outputs); });
}

template <class A> static void get(nb::dict& given, const std::string& name, A& array) {
  require(given.contains(name.c_str()), "the state has no array " + name);
  require(nb::try_cast(given[name.c_str()], array), "the state's array " + name + " has the wrong shape or type");
}

template <class N> static std::vector<N> numbers_of(nb::dict& given, const std::vector<StateNumber<N>>& numbers) {
  std::vector<N> values;
  for (const auto& number : numbers) {
    Vector<N> array;
    get(given, number.name, array);
    require(array.shape(0) == 1, "the state's array " + number.name + " has the wrong shape");
    require(array(0) >= number.low && array(0) <= number.high, "the state's " + number.name + " is out of range");
    values.push_back(array(0));
  }
  return values;
}

template <class T> static void restore(BoundMixture<T>& b, nb::dict given) {
  auto guard = b.locked();
  Mixture<T>& x = b.model;
  Layout all = layout(x);
  // Everything is checked before anything is changed.
  std::vector<nb::ndarray<const double, nb::c_contig, nb::device::cpu>> arrays;
  for (const StateArray& array : all.arrays) {
    auto& from = arrays.emplace_back();
    get(given, array.name, from);
    bool fits = from.ndim() == (array.matrix ? 2 : 1) && from.shape(0) == array.rows.n && (!array.matrix || from.shape(1) == array.columns.n);
    require(fits, "the state's array " + array.name + " has the wrong shape");
    const double *begin = from.data(), *end = begin + from.size();
    require(std::all_of(begin, end, [](double v) { return std::isfinite(v); }), "the state's array " + array.name + " is not finite");
    if (array.name == "kept_targets") require(known_classes(x, begin, from.size()), "the state's classes are out of range");
    if (array.name == "kept_weights")
      require(std::all_of(begin, end, [](double v) { return v >= 0; }), "the state's weights must not be negative");
  }
  auto numbers = numbers_of(given, all.numbers);
  auto counts = numbers_of(given, all.counts);
  for (size_t i = 0; i < arrays.size(); ++i) all.arrays[i].write(arrays[i].data());
  for (size_t i = 0; i < numbers.size(); ++i) *all.numbers[i].value = numbers[i];
  for (size_t i = 0; i < counts.size(); ++i) *all.counts[i].value = counts[i];
  settle(x);
}

template <size_t N> static nb::object names_of(const char* const (&names)[N]) {
  nb::list list;
  for (const char* name : names) list.append(name);
  return nb::tuple(list);
}

static MemoryKind::Name memory_of(const std::string& name) { return MemoryKind::Name(number_of(kMemories, name)); }

template <class T> static void bind_as(nb::module_& m, const std::string& suffix) {
  using B = BoundMixture<T>;
  auto mixture = nb::class_<B>(m, ("Mixture" + suffix).c_str());
  mixture.attr("MEMORIES") = names_of(kMemories);
  mixture.attr("CANDIDATES") = names_of(kCandidates);
  mixture
      .def(
          "__init__",
          [](B* self, int64_t width, int64_t outputs, bool regression, int64_t budget, int64_t window, int64_t kept) {
            require(budget >= 1 && window >= 0 && kept >= 1, "sizes out of range");
            new (self) B(std::in_place, settings_of(width, outputs, regression, budget, "squared", 0, 0, 0, 0, 0, ""), window, kept);
          },
          nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "budget"_a, "window"_a, "kept"_a)
      .def("score", &B::score, "rows"_a)
      .def("run", &B::template run<>, "rows"_a, "start"_a, "targets"_a, "sample_weight"_a.none(), "scores"_a)
      .def(
          "build",
          [](B& b, const std::string& memory, Vector<double> centre, Vector<double> scale, double varying,
             const HeldRows<double>& points, double gamma, Matrix<double> whitening) {
            auto guard = b.locked();
            size_t width = size_t(b.model.set.width), n = size_t(points.rows.n);
            require(centre.shape(0) == width && scale.shape(0) == width && !points.rows.sparse() &&
                        size_t(points.rows.width) == width && n <= size_t(b.model.set.budget) && whitening.shape(0) == n &&
                        whitening.shape(1) == n,
                    "arrays of the wrong shape");
            b.model.build(memory_of(memory), centre.data(), scale.data(), varying, points.rows, gamma, whitening.data());
          },
          "memory"_a, "centre"_a, "scale"_a, "varying"_a, "landmarks"_a, "gamma"_a, "whitening"_a)
      .def(
          "replay",
          [](B& b, const std::string& memory, const HeldRows<double>& rows, Vector<double> targets, Vector<double> weights, bool trial,
             int64_t counted) {
            require(rows.rows.width == b.model.set.width && int64_t(targets.shape(0)) == rows.rows.n &&
                        int64_t(weights.shape(0)) == rows.rows.n,
                    "arrays of the wrong shape");
            const double *y = targets.data(), *w = weights.data();
            require(known_classes(b.model, y, targets.shape(0)), "class index out of range");
            MemoryKind::Name which = memory_of(memory);
            nb::gil_scoped_release release;
            std::lock_guard<std::mutex> guard(b.lock);
            return b.model.replay(which, rows.rows, y, w, trial, counted);
          },
          "memory"_a, "rows"_a, "targets"_a, "sample_weight"_a, "trial"_a, "counted"_a)
      .def(
          "standardise",
          [](B& b, double centre, double spread) {
            auto guard = b.locked();
            b.model.standardise(centre, spread);
          },
          "centre"_a, "spread"_a)
      .def(
          "only",
          [](B& b, const std::vector<std::string>& candidates) {
            std::vector<bool> included(size_t(b.model.aggregate.candidates()));
            for (const std::string& name : candidates) included[size_t(number_of(kCandidates, name))] = true;
            bool expert = std::find(included.begin(), included.begin() + Expert::count, true) != included.begin() + Expert::count;
            require(expert, "at least one expert is needed");
            auto guard = b.locked();
            b.model.aggregate.only(included);
          },
          "candidates"_a)
      .def(
          "widen_from",
          [](B& b, B& other) {
            auto guard = other.locked();
            const Settings &to = b.model.set, &from = other.model.set;
            require(&b != &other && to.width >= from.width && to.outputs == from.outputs && to.regression == from.regression,
                    "not a model of fewer features");
            return widen(b.model, other.model);
          },
          "other"_a)
      .def(
          "mix_outputs_from",
          [](B& b, B& other, Matrix<double> mix, Vector<double> kept_targets) {
            auto guard = other.locked();
            Mixture<T>&to = b.model, &from = other.model;
            require(&b != &other && to.set.width == from.set.width && to.capacity == from.capacity && to.set.budget == from.set.budget &&
                        to.window.size == from.window.size && !to.set.regression && !from.set.regression &&
                        int64_t(mix.shape(0)) == from.set.outputs && int64_t(mix.shape(1)) == to.set.outputs &&
                        int64_t(kept_targets.shape(0)) == to.capacity,
                    "arrays of the wrong shape");
            require(known_classes(to, kept_targets.data(), kept_targets.shape(0)), "class index out of range");
            mix_outputs(to, from, mix.data(), kept_targets.data());
          },
          "other"_a, "mix"_a, "kept_targets"_a)
      .def("kept", &kept<T>, "n"_a)
      .def("state", &state<T>)
      .def("restore", &restore<T>, "state"_a)
      .def_prop_ro("kept_targets",
                   [](B& b) {
                     auto guard = b.locked();
                     double* out;
                     Made<double> copy = make<double>({size_t(b.model.capacity)}, &out);
                     std::copy_n(b.model.kept_targets.data(), b.model.capacity, out);
                     return nb::cast(copy);
                   })
      .def_prop_ro("due",
                   [](B& b) {
                     std::vector<std::string> names;
                     for (int k = 0; k < MemoryKind::count; ++k)
                       if (b.model.due.has(k)) names.push_back(kMemories[k]);
                     return names;
                   })
      .def("gamma", [](B& b, const std::string& memory) { return b.model.memories[memory_of(memory)].landmarks.kernel.gamma; }, "memory"_a)
      .def_prop_ro("learnt", [](B& b) { return b.model.learnt; })
      .def_prop_ro("lasting_age", [](B& b) { return b.model.lasting_age; })
      .def_prop_ro("wide", [](B& b) { return b.model.wide; })
      .def_prop_ro("nbytes", &B::nbytes);
}

void bind_mixture(nb::module_& m) {
  bind_as<double>(m, "64");
  bind_as<float>(m, "32");
  m.def(
      "scaled_rows",
      [](Matrix<double> rows, Vector<double> centre, Vector<double> scale) {
        size_t n = rows.shape(0), width = rows.shape(1);
        require(centre.shape(0) == width && scale.shape(0) == width, "arrays of the wrong shape");
        double* out;
        Made<double> scaled = make<double>({n, width}, &out);
        std::vector<double> zero(width);
        for (size_t d = 0; d < width; ++d) zero[d] = soft_clip(-centre(d) * scale(d));
        for (size_t i = 0; i < n; ++i)
          for (size_t d = 0; d < width; ++d) *out++ = soft_clip((rows(i, d) - centre(d)) * scale(d)) - zero[d];
        return scaled;
      },
      "rows"_a, "centre"_a, "scale"_a);
}

}  // namespace KS_MODULE
