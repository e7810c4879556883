#include "expansion_state.hpp"
#include "rules.hpp"

KS_GLUE_BEGIN
namespace KS_MODULE {

static Options options_of(const nb::kwargs& given) {
  Options options;
  for (auto [name, value] : given) {
    Options::Value& to = options.values[nb::cast<std::string>(name)];
    if (nb::isinstance<Loss>(value))
      to = nb::cast<Loss>(value);
    else if (nb::isinstance<nb::str>(value))
      to = nb::cast<std::string>(value);
    else
      to = nb::cast<double>(value);
  }
  return options;
}

template <class T> static void bind_as(nb::module_& m) {
  using B = Bound<T, Expansion<T>>;
  auto c = learner_class<T, Expansion<T>>(m, "Expansion");
  def_state(c);
  def_mixed(c);
  c.def(
      "__init__",
      [](B* self, const std::string& rule, int64_t width, int64_t outputs, bool regression, const AnyKernel& kernel, int64_t budget,
         bool grows, bool stops_when_full, uint64_t seed, nb::kwargs options) {
        require(budget >= 1, "sizes out of range");
        Options left = options_of(options);
        auto learn = rule_named<T>(rule, left);
        left.finish();
        new (self) B(kernel.function, settings_of(width, outputs, regression, budget), Storage{grows, stops_when_full}, kernel.as<T>(),
                     std::move(learn), keeps_inverse(rule), seed);
      },
      "rule"_a, nb::kw_only(), "width"_a, "outputs"_a, "regression"_a, "kernel"_a, "budget"_a, "grows"_a = false,
      "stops_when_full"_a = false, "seed"_a = 0, "options"_a);
}

void bind_expansion(nb::module_& m) {
  bind_as<double>(m);
  bind_as<float>(m);
}

}  // namespace KS_MODULE
KS_GLUE_END
