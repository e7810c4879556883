// How each expansion learns from a round: when it adds the point, what it drops, how it makes up for it.
// The formulas are in docs/conventions.md, the papers in the Python classes. A rule has the hyper-parameters that it takes from
// the options of the Python class, and returns false, having changed nothing, when it must add a point and storage has reached
// its limit. A new rule has its line in `rule_named` below.
#pragma once
#include <numeric>

#include "expansion.hpp"

namespace KS_MODULE {

// The margin of a round and the direction over the outputs that raises it.
struct Margin {
  double value = 0;
  int64_t up = 0, down = -1;
  double size = 1;                           // signed for one output: u = size e_up; otherwise u = (e_up - e_down) / 2

  template <class T> static Margin of(const T* f, int64_t outputs, double target) {
    Margin m;
    if (outputs == 1) {
      m.size = target;
      m.value = target * double(f[0]);
      return m;
    }
    m.up = int64_t(target);
    for (int64_t c = 0; c < outputs; ++c)
      if (c != m.up && (m.down < 0 || f[c] > f[m.down])) m.down = c;
    m.size = 0.5;
    m.value = double(f[m.up]) - double(f[m.down]);
    return m;
  }
  double hinge() const { return value < 1 ? 1 - value : 0; }
  template <class F> void each(F visit) const {      // visit(output, u_output)
    visit(up, size);
    if (down >= 0) visit(down, -size);
  }
};

// Throws unless the weights of a slot stay finite when a step along the margin is added.
template <class T> void can_add_along(const Expansion<T>& e, int64_t slot, const Margin& m, double step) {
  m.each([&](int64_t c, double u) { storable<T>(double(e.weights[size_t(c)][size_t(slot)] + T(step * u))); });
}

template <class T> void add_along(Expansion<T>& e, int64_t slot, const Margin& m, double step) {
  m.each([&](int64_t c, double u) { e.weights[size_t(c)][size_t(slot)] += T(step * u); });
}

template <class T> double weight_sum(const Expansion<T>& e, int64_t slot) {     // |a_slot|_1
  double s = 0;
  for (const auto& w : e.weights) s += std::abs(double(w[size_t(slot)]));
  return s;
}

// ---- perceptrons ----

template <class T> bool perceptron(Expansion<T>& e, const Round<T>& r) {
  Margin m = Margin::of(r.f, e.set.outputs, r.target);
  if (m.value > 0) return true;
  if (e.no_room()) return false;
  storable<T>(r.weight);
  int64_t slot = e.full() ? e.random.slot(e.points.count) : e.points.count;     // RBP when there is a budget
  e.place(slot, r.rows, r.i);
  add_along(e, slot, m, r.weight);
  return true;
}

template <class T> bool forgetron(Expansion<T>& e, const Round<T>& r) {
  Margin m = Margin::of(r.f, e.set.outputs, r.target);
  if (m.value > 0) return true;
  storable<T>(r.weight);
  double mistakes = e.mistakes + 1;
  int64_t slot = e.points.count;
  if (e.full()) {
    slot = e.oldest();
    const T* k = e.stored_row(slot);
    double s = weight_sum(e, slot), mu = 0;
    for (int64_t c = 0; c < e.set.outputs; ++c) {
      double a = double(e.weights[size_t(c)][size_t(slot)]);
      double f = double(e.output(c, k));
      m.each([&](int64_t up, double u) { f += up == c ? r.weight * u * double(r.k[slot]) : 0; });
      mu += a > 0 ? f : a < 0 ? -f : 0;
    }
    double A = s * s - 2 * s * mu, B = 2 * s, C = e.ledger - 15.0 / 32 * mistakes;
    double phi = A + B + C <= 0 ? 1 : -2 * C / (B + std::sqrt(B * B - 4 * A * C));
    double ledger = e.ledger + (A * phi * phi + B * phi);
    storable<T>(phi);
    storable<double>(ledger);
    e.ledger = ledger;
    e.mistakes = mistakes;
    for (auto& w : e.weights) scale(T(phi), w.data(), size_t(e.points.tiles()));
    e.place(slot, r.rows, r.i);
    add_along(e, slot, m, r.weight * phi);
    return true;
  }
  e.mistakes = mistakes;
  e.place(slot, r.rows, r.i);
  add_along(e, slot, m, r.weight);
  return true;
}

// d = K^-1 k over the stored points, in double.
template <class T> std::vector<double> coefficients(const Expansion<T>& e, const T* k) {
  int64_t n = e.points.count;
  std::vector<double> d(size_t(n), 0.0);
  for (int64_t j = 0; j < n; ++j) {
    const double* row = e.inverse.data() + j * e.set.budget;
    double kj = double(k[j]);
    for (int64_t l = 0; l < n; ++l) d[size_t(l)] += row[l] * kj;
  }
  return d;
}

struct Projectron {
  bool on_margin;                              // Projectron++
  double eta;
  Projectron(bool margin, Options& o) : on_margin(margin), eta(o.number("eta")) {}
  template <class T> bool operator()(Expansion<T>& e, const Round<T>& r) const;
};

template <class T> bool Projectron::operator()(Expansion<T>& e, const Round<T>& r) const {
  Margin m = Margin::of(r.f, e.set.outputs, r.target);
  if (m.value > 0 && !(on_margin && m.value < 1)) return true;
  int64_t n = e.points.count, B = e.set.budget;
  double self = double(e.points.self(r.rows, r.i));
  if (!(self > 0)) return true;
  std::vector<double> d = coefficients(e, r.k);
  double p = 0;
  for (int64_t j = 0; j < n; ++j) p += double(r.k[j]) * d[size_t(j)];
  double delta2 = std::max(0.0, self - p), delta = std::sqrt(delta2), step = r.weight;
  if (m.value > 0) {
    if (!(p > 0)) return true;
    double hinge = m.hinge(), allowance = n < B ? delta / eta : 0;   // a full budget projects, however far
    step *= std::min({hinge / p, 2 * (hinge - allowance) / p, 1.0});
    if (!(step > 0)) return true;
  } else if (delta > eta && delta2 > kDependent<T> * self && n < B) {
    storable<T>(step);
    double most = 1;
    for (double v : d) most = std::max(most, std::abs(v));
    storable<double>(4 * most * most / delta2);
    for (int64_t j = 0; j <= n; ++j) {                      // border K^-1
      double dj = j < n ? d[size_t(j)] : -1;
      for (int64_t l = 0; l <= n; ++l) e.inverse[size_t(j * B + l)] += dj * (l < n ? d[size_t(l)] : -1) / delta2;
    }
    e.place(n, r.rows, r.i);
    add_along(e, n, m, step);
    return true;
  }
  for (int64_t j = 0; j < n; ++j) can_add_along(e, j, m, step * d[size_t(j)]);
  for (int64_t j = 0; j < n; ++j) add_along(e, j, m, step * d[size_t(j)]);
  return true;
}

// ---- passive-aggressive ----

struct PassiveAggressive {
  enum Variant { pa, pa1, pa2 };
  Variant variant;
  double C, epsilon;
  PassiveAggressive(const std::string& name, double C_, double epsilon_) : variant(named(name)), C(C_), epsilon(epsilon_) {}
  explicit PassiveAggressive(Options& o) : PassiveAggressive(o.word("variant"), o.number("C"), o.number("epsilon")) {}

  static Variant named(const std::string& name) {
    const char* names[] = {"PA", "PA-I", "PA-II"};
    for (int v = 0; v < 3; ++v)
      if (name == names[v]) return Variant(v);
    throw std::invalid_argument("unknown variant '" + name + "'");
  }

  // The size of a step for a violation and the squared norm of the example.
  double step(double violation, double norm, double weight) const {
    if (violation <= 0 || !(norm > 0)) return 0;
    if (variant == pa2) return violation / (norm + 1 / (2 * weight * C));
    double tau = violation / norm;
    return variant == pa ? tau : std::min(weight * C, tau);
  }

  // For regression the "margin" points towards the target and its violation is the epsilon-insensitive loss.
  template <class T> Margin aim(const Settings& set, const T* f, double target, double& violation) const {
    if (!set.regression) {
      Margin m = Margin::of(f, set.outputs, target);
      violation = m.hinge();
      return m;
    }
    Margin m;
    m.size = target > double(f[0]) ? 1 : -1;
    violation = std::max(0.0, std::abs(target - double(f[0])) - epsilon);
    return m;
  }

  template <class T> bool operator()(Expansion<T>& e, const Round<T>& r) const;
};

template <class T> bool PassiveAggressive::operator()(Expansion<T>& e, const Round<T>& r) const {
  double violation;
  Margin m = aim(e.set, r.f, r.target, violation);
  if (violation <= 0) return true;
  double tau = step(violation, double(e.points.self(r.rows, r.i)), r.weight);
  if (tau <= 0) return true;
  if (e.no_room()) return false;
  storable<T>(tau);
  int64_t slot = e.points.count;
  e.place(slot, r.rows, r.i);
  add_along(e, slot, m, tau);
  return true;
}

struct BudgetedPassiveAggressive {
  double C;
  explicit BudgetedPassiveAggressive(Options& o) : C(o.number("C")) {}
  template <class T> bool operator()(Expansion<T>& e, const Round<T>& r) const;
};

template <class T> bool BudgetedPassiveAggressive::operator()(Expansion<T>& e, const Round<T>& r) const {
  Margin m = Margin::of(r.f, e.set.outputs, r.target);
  double violation = m.hinge(), self = double(e.points.self(r.rows, r.i));
  if (violation <= 0 || !(self > 0)) return true;
  double tau = std::min(r.weight * C, violation / self);
  storable<T>(tau);
  if (!e.full()) {
    int64_t slot = e.points.count;
    e.place(slot, r.rows, r.i);
    add_along(e, slot, m, tau);
    return true;
  }
  int64_t drop = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < e.points.count; ++j) {
    double a2 = 0, kj = double(r.k[j]);
    for (const auto& w : e.weights) a2 += double(w[size_t(j)]) * double(w[size_t(j)]);
    double loss = a2 * (double(e.points.diagonal[size_t(j)]) - kj * kj / self);
    if (loss < least) least = loss, drop = j;
  }
  double share = double(r.k[drop]) / self;
  for (size_t c = 0; c < e.weights.size(); ++c) e.slopes[c] = double(e.weights[c][size_t(drop)]) * share;
  for (double weight : e.slopes) storable<T>(2 * (std::abs(weight) + tau));
  e.place(drop, r.rows, r.i);
  for (size_t c = 0; c < e.weights.size(); ++c) e.weights[c][size_t(drop)] = T(e.slopes[c]);
  add_along(e, drop, m, tau);
  return true;
}

// ---- gradient descent ----

// The slot of the point that is removed.
struct Oldest {
  static constexpr bool rescales = false;
  template <class T> int64_t operator()(Expansion<T>& e) const { return e.oldest(); }
};

// BOGD: chooses the slot to drop and rescales what stays.
struct Unbiased {
  static constexpr bool rescales = true;
  std::string removal;
  double bound;                                // of the weights that stay
  template <class T> int64_t operator()(Expansion<T>& e) const;
};

template <class T> int64_t Unbiased::operator()(Expansion<T>& e) const {
  int64_t n = e.points.count, drop = 0;
  std::vector<double> size(size_t(n), 0.0), chance(size_t(n), 1 / double(n));
  double total = 0;
  if (removal != "uniform")
    for (int64_t j = 0; j < n; ++j) {
      size[size_t(j)] = weight_sum(e, j) * std::sqrt(std::max(0.0, double(e.points.diagonal[size_t(j)])));
      total += size[size_t(j)];
    }
  if (removal == "smallest") return std::min_element(size.begin(), size.end()) - size.begin();
  storable<double>(total);
  if (total > 0) {
    double left = 0, u = e.random.uniform(), sum = 0;
    for (int64_t j = 0; j < n; ++j) left += chance[size_t(j)] = std::max(0.0, 1 - double(n - 1) * size[size_t(j)] / total);
    for (double& p : chance) p /= left;        // at least 1: those that would be negative are zero
    for (drop = 0; drop < n - 1; ++drop)
      if ((sum += chance[size_t(drop)]) > u) break;
  } else {
    drop = e.random.slot(n);
  }
  const T most = T(bound);
  for (auto& w : e.weights)
    for (int64_t j = 0; j < n; ++j) {
      double stays = 1 - chance[size_t(j)];    // 0 only for a point without weight
      T a = stays > 0 ? T(double(w[size_t(j)]) / stays) : T(0);
      if (!std::isfinite(most)) storable<T>(double(a));
      w[size_t(j)] = a > most ? most : a < -most ? -most : a;
    }
  return drop;
}

template <class Removal> struct Gradient {
  Descent descent;
  Removal removal;

  template <class T> bool operator()(Expansion<T>& e, const Round<T>& r) const {
    const double eta = descent.eta, lambda = descent.lambda;
    bool learns = loss_slopes(descent.loss, r, e.slopes);
    if (learns && e.no_room()) return false;
    for (double slope : e.slopes) storable<T>(eta * slope);
    bool removes = learns && e.full();
    if (removes && Removal::rescales) e.save();
    if (lambda != 0)
      for (auto& w : e.weights) scale(T(1 - eta * lambda), w.data(), size_t(e.points.tiles()));
    if (!learns) return true;
    int64_t slot = e.points.count;
    try {
      if (removes) slot = removal(e);
    } catch (const NotFinite&) {
      e.undo();
      throw;
    }
    e.place(slot, r.rows, r.i);
    for (size_t c = 0; c < e.weights.size(); ++c) e.weights[c][size_t(slot)] = T(-eta * e.slopes[c]);
    return true;
  }
};

// BSGD: the Pegasos step, eta_t = 1 / (1 / eta + lambda t), then one point less when there is one too many (the budget of the core is
// that of the learner and one more). Merging is for the Gaussian kernel, for which
// k(x_a, h x_a + (1 - h) x_b) = k(x_a, x_b)^((1 - h)^2).
struct BudgetedDescent {
  Descent descent;
  bool merging;
  template <class T> bool operator()(Expansion<T>& e, const Round<T>& r) const;

 private:
  struct Merged {
    double h = 0, size2 = -1;                  // of z = h x_a + (1 - h) x_b: |a_z|^2
    void consider(double at, double size) {
      if (size > size2) h = at, size2 = size;
    }
  };
  template <class T> void shrink(Expansion<T>& e, int64_t i) const;
  template <class T> static void drop(Expansion<T>& e, int64_t slot, int64_t i);
  template <class T> static double product(const Expansion<T>& e, int64_t a, int64_t b) {
    double s = 0;
    for (const auto& w : e.weights) s += double(w[size_t(a)]) * double(w[size_t(b)]);
    return s;
  }

  // |a_z|^2 is largest at the best h: a grid, then bisection of the slope beside its best point.
  template <class F, class G> static Merged best(F size2, G slope, int halvings) {
    constexpr int cells = 8;
    Merged found;
    for (int g = 0; g <= cells; ++g) found.consider(double(g) / cells, size2(double(g) / cells));
    double low = std::max(0.0, found.h - 1.0 / cells), high = std::min(1.0, found.h + 1.0 / cells);
    for (int step = 0; step < halvings; ++step) {
      double middle = (low + high) / 2;
      (slope(middle) > 0 ? low : high) = middle;
    }
    found.consider((low + high) / 2, size2((low + high) / 2));
    return found;
  }
};

template <class T> bool BudgetedDescent::operator()(Expansion<T>& e, const Round<T>& r) const {
  const double t = e.mistakes + 1, eta = 1 / (1 / descent.eta + descent.lambda * t);
  bool learns = loss_slopes(descent.loss, r, e.slopes);
  for (double slope : e.slopes) storable<T>(4 * eta * slope * eta * slope);      // squares of weights are compared
  e.mistakes = t;
  for (auto& w : e.weights) scale(T(1 - eta * descent.lambda), w.data(), size_t(e.points.tiles()));
  if (!learns) return true;
  int64_t slot = e.points.count;
  e.place(slot, r.rows, r.i);
  for (size_t c = 0; c < e.weights.size(); ++c) e.weights[c][size_t(slot)] = T(-eta * e.slopes[c]);
  if (e.full()) shrink(e, r.i);
  return true;
}

template <class T> void BudgetedDescent::shrink(Expansion<T>& e, int64_t i) const {
  int64_t n = e.points.count, a = 0;
  double least = std::numeric_limits<double>::infinity();
  constexpr double smaller = 1 - 1e-9;         // points of one weight are equal but for rounding: the lowest slot of them
  for (int64_t j = 0; j < n; ++j) {            // the smallest |a_j phi_j|^2
    double size = product(e, j, j) * double(e.points.diagonal[size_t(j)]);
    if (size < smaller * least) least = size, a = j;
  }
  if (!merging || n < 2) return drop(e, a, i);
  const T* k = e.stored_row(a);
  const double aa = product(e, a, a);
  int64_t b = a == 0;                          // of weights whose squares are infinite none is the best: another point all the same
  double ab = 0, bb = 0, log_k = 0, loss_b = std::numeric_limits<double>::infinity();
  auto size2 = [&](double h) {                 // |a_z|^2, a_z = a_a k^((1 - h)^2) + a_b k^(h^2)
    double to_a = std::exp((1 - h) * (1 - h) * log_k), to_b = std::exp(h * h * log_k);
    return aa * to_a * to_a + 2 * ab * to_a * to_b + bb * to_b * to_b;
  };
  auto slope = [&](double h) {                 // the sign of its derivative, log k being at most 0
    double to_a = std::exp((1 - h) * (1 - h) * log_k), to_b = std::exp(h * h * log_k);
    return (aa * to_a + ab * to_b) * (1 - h) * to_a - (ab * to_a + bb * to_b) * h * to_b;
  };
  for (int64_t j = 0; j < n; ++j) {
    if (j == a) continue;
    ab = product(e, a, j), bb = product(e, j, j), log_k = std::log(double(k[j]));
    double loss_j = aa + bb + 2 * ab * double(k[j]) - best(size2, slope, 12).size2;
    if (loss_j < loss_b) loss_b = loss_j, b = j;
  }
  ab = product(e, a, b), bb = product(e, b, b), log_k = std::log(double(k[b]));
  double h = best(size2, slope, 50).h, to_a = std::exp((1 - h) * (1 - h) * log_k), to_b = std::exp(h * h * log_k);
  std::vector<T> z = e.point(a), other = e.point(b);
  for (size_t d = 0; d < z.size(); ++d) z[d] = T(h * double(z[d]) + (1 - h) * double(other[d]));
  e.place_made(b, z.data(), i);
  for (auto& w : e.weights) w[size_t(b)] = T(double(w[size_t(a)]) * to_a + double(w[size_t(b)]) * to_b);
  drop(e, a, i);
}

template <class T> void BudgetedDescent::drop(Expansion<T>& e, int64_t slot, int64_t i) {
  int64_t last = e.points.count - 1;
  if (slot != last) {
    e.place_made(slot, e.point(last).data(), i);
    for (auto& w : e.weights) w[size_t(slot)] = w[size_t(last)];
    e.born[size_t(slot)] = e.born[size_t(last)];
  }
  e.forget(last);
}

template <class T> typename Expansion<T>::Rule rule_named(const std::string& name, Options& o) {
  if (name == "perceptron") return perceptron<T>;
  if (name == "forgetron") return forgetron<T>;
  if (name == "projectron" || name == "projectron++") return Projectron(name == "projectron++", o);
  if (name == "passive-aggressive") return PassiveAggressive(o);
  if (name == "bpa-s") return BudgetedPassiveAggressive(o);
  if (name == "kogd" || name == "truncated-kogd") return Gradient<Oldest>{o.descent(), {}};
  if (name == "bogd") {
    Descent descent = o.descent();
    return Gradient<Unbiased>{descent, {o.word("removal"), o.number("clip") * descent.eta}};
  }
  if (name == "bsgd") {
    Descent descent = o.descent();
    return BudgetedDescent{descent, o.word("maintenance") == "merging"};
  }
  throw std::invalid_argument("unknown rule '" + name + "'");
}

// Whether a rule needs the inverse of the kernel matrix of the stored points.
inline bool keeps_inverse(const std::string& rule) { return rule.rfind("projectron", 0) == 0; }

}  // namespace KS_MODULE
