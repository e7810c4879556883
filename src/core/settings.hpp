// What a model is told once, what a round is, and why a run ends.
#pragma once
#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "loss.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace KS_MODULE {

// What every model is told. Its hyper-parameters are its own.
struct Settings {
  int64_t width = 0, outputs = 1, budget = 0;  // budget: how many points at most
  bool regression = false;
};

// How outputs become others when a class appears: new output c is factors[c] times old output sources[c]. A factor of 0: no old output
// says anything about this one.
struct Mix {
  std::vector<int64_t> sources;
  std::vector<double> factors;

  int64_t outputs() const { return int64_t(sources.size()); }

  // Weights, one array per output.
  template <class T> std::vector<Array<T>> of(const std::vector<Array<T>>& old) const {
    std::vector<Array<T>> made;
    made.reserve(sources.size());
    for (size_t c = 0; c < sources.size(); ++c) {
      Array<T>& w = made.emplace_back(old[size_t(sources[c])]);
      for (size_t j = 0; factors[c] != 1 && j < w.size(); ++j) w[j] = T(double(w[j]) * factors[c]);
    }
    return made;
  }
  // Numbers that stand together by output, `step` of each; `sides`: those of least squares, where two classes are -1 and +1.
  Array<double> of(const Array<double>& old, int64_t step, bool sides) const {
    auto made = Array<double>::unset(size_t(outputs() * step));
    for (size_t c = 0; c < sources.size(); ++c) {
      double factor = sides ? side(c) : factors[c];
      double* to = made.data() + int64_t(c) * step;
      const double* from = old.data() + sources[c] * step;
      for (int64_t i = 0; i < step; ++i) to[i] = factor == 0 ? 0.0 : 0.0 + from[i] * factor;  // 0 + makes a -0 a 0
    }
    return made;
  }
  double side(size_t c) const { return double(factors[c] > 0) - double(factors[c] < 0); }
};

// Gradient descent: every step subtracts eta (slope phi + lambda w) from the weights w.
struct Descent {
  Loss loss;
  double eta = 0, lambda = 0;
};

// Hyper-parameters by the names that the Python class gives them. A rule takes those it has; one left over is refused.
class Options {
 public:
  using Value = std::variant<double, std::string, Loss>;
  std::map<std::string, Value> values;

  template <class V> V take(const char* name) {
    auto found = values.find(name);
    if (found == values.end()) throw std::invalid_argument("the rule needs the option '" + std::string(name) + "'");
    V* value = std::get_if<V>(&found->second);
    if (!value) throw std::invalid_argument("the option '" + std::string(name) + "' has the wrong type");
    V taken = *value;
    values.erase(found);
    return taken;
  }
  double number(const char* name) { return take<double>(name); }
  std::string word(const char* name) { return take<std::string>(name); }
  Descent descent() { return {take<Loss>("loss"), number("eta"), number("lam")}; }

  void finish() const {
    if (!values.empty()) throw std::invalid_argument("the rule has no option '" + values.begin()->first + "'");
  }
};

// Thrown by a rule, which has changed nothing: a number is more than the model's precision can hold.
struct NotFinite {};

template <class T> void storable(double number) {
  if (!std::isfinite(T(number))) throw NotFinite();
}

template <class T> bool all_finite(const T* numbers, int64_t n) {
  return std::all_of(numbers, numbers + n, [](T v) { return std::isfinite(v); });
}

// Whether w + s x is finite in all n places. A sum of |w| and |s x| that stays far from the largest number needs no second look:
// `reach` bounds |w| from above and is kept by the caller, `size` bounds |x|.
template <class T> bool can_add(const T* w, double s, const T* x, int64_t n, double size, double& reach) {
  constexpr double far = double(std::numeric_limits<T>::max()) / 4;
  double next = reach + std::abs(s) * size;
  if (!(next < far)) {
    T largest = 0;
    for (int64_t j = 0; j < n; ++j) {
      T sum = w[j] + T(s) * x[j];
      if (!std::isfinite(sum)) return false;
      largest = std::max(largest, std::abs(sum));
    }
    next = double(largest) * (1 + 1e-6);
  }
  reach = next;
  return true;
}

enum class Stop { done, full, due, not_finite };  // due: something rare is to be done before the next row

template <class T> struct Round {
  const Rows<T>& rows;
  int64_t i;
  const T* k;                                  // kernel values against the stored points, or features
  const T* f;                                  // scores before learning, one per output
  double target, weight;
};

// The target of output c: one class against the rest where there are several outputs.
inline double target_of(int64_t outputs, int64_t c, double target) { return outputs == 1 ? target : c == int64_t(target) ? 1.0 : -1.0; }

// One-vs-rest slopes of a round; true if any is not zero.
template <class T> bool loss_slopes(const Loss& loss, const Round<T>& r, std::vector<double>& g) {
  bool any = false;
  for (size_t c = 0; c < g.size(); ++c) {
    g[c] = r.weight * loss.slope(double(r.f[c]), target_of(int64_t(g.size()), int64_t(c), r.target));
    any |= g[c] != 0;
  }
  return any;
}

}  // namespace KS_MODULE
