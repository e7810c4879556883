// Second-order learners: the online Newton step over all points seen (KONS) or over the Nystrom features of a dictionary
// (PROS-N-KONS), and kernel recursive least squares.
//
// The online Newton step, u being what is left after the last round's step:
//   f = clip(u . phi, C), h = u . phi - f,   q = A^-1 phi, tau = phi . q,   g the slope of the loss at f
//   w = u - h / tau q  (the oblique projection),   A <- A + eta g^2 phi phi^T,   u <- w - A^-1 g phi
// and since A^-1 phi = q / (1 + eta g^2 tau) for the new A, both steps are one multiple of q.
#pragma once
#include "mapped.hpp"
#include "ridge.hpp"

namespace KS_MODULE {

// The largest sigma with  l(b) >= l(a) + l'(a) (b - a) + sigma / 2 (l'(a) (b - a))^2  for all a, b in [-C, C]
// (Assumption 2); derived in learners/kons.py.
inline double curvature_constant(const Loss& loss, double C, double y) {
  if (loss.kind == Loss::squared) {
    double reach = C + std::abs(y);            // the steepest slope
    return 1 / (reach * reach);
  }
  if (loss.kind == Loss::logistic) return std::exp(-C);
  if (loss.kind == Loss::squared_hinge) return C <= 1 ? 1 / (2 * (1 + C) * (1 + C)) : (3 * C - 1) / (8 * C * C * (1 + C));
  throw std::invalid_argument("the online Newton step needs a curved loss: squared, logistic or squared_hinge");
}

// The hyper-parameters of the online Newton step.
struct NewtonSettings {
  Loss loss;
  double C, eta;                               // eta 0: the curvature constant of the loss
};

// A round of the online Newton step, by numbers only.
struct NewtonRound {
  double f, h, g = 0, eta = 0;
  NewtonRound(double score, double C) : f(std::min(std::max(score, -C), C)), h(score - f) {}

  // A loss of weight v has slope v g and, for the same curvature, the constant sigma / v.
  void observe(const NewtonSettings& by, double y, double weight) {
    g = weight * by.loss.slope(f, y);
    eta = (by.eta > 0 ? by.eta : curvature_constant(by.loss, by.C, y)) / weight;
  }
  bool idle() const { return g == 0 && h == 0; }
  double gain() const { return eta * g * g; }                            // A grows by gain phi phi^T
  bool sound(double tau) const { return std::isfinite(tau) && std::isfinite(step(tau, 0)); }
  double step(double tau, double gain_) const { return h / tau + g / (1 + gain_ * tau); }   // u shrinks by step q
};

// KONS and Sketched-KONS: u = sum_s a_s phi_s, A = alpha I + Psi Psi^T with psi_s = g_s sqrt(eta_s) phi_s for every s whose coin
// came up (KONS: every s), so that q = (phi - Psi (Psi^T Psi + alpha I)^-1 Psi^T phi) / alpha.
template <class T> class KernelNewton {
 public:
  Settings set;                                // budget: max_size
  NewtonSettings by;
  Store<T> store;
  Array<double> weights;
  RidgeFactor newton;
  bool sketched;
  double least;                                // Sketched-KONS's gamma, the least probability of a coin
  RowSampler sampler;

  KernelNewton(Settings s, NewtonSettings n, Kernel<double> kernel, double alpha, bool sketched_, double beta, double eps, double least_,
               uint64_t seed)
      : set(s),
        by(n),
        store(std::move(kernel), set.width, set.budget, true),
        weights(size_t(store.points.slots())),
        newton(alpha),
        sketched(sketched_),
        least(least_),
        sampler(alpha, beta, eps, seed) {
    curvature_constant(by.loss, by.C, 0);
  }

  int64_t count() const { return store.count(); }

  size_t nbytes() const { return store.nbytes() + weights.nbytes() + newton.nbytes() + (sketched ? sampler.dictionary.nbytes() : 0); }

  void score(const Rows<T>& rows, double* out) {
    for (int64_t i = 0; i < rows.n; ++i) out[i] = NewtonRound(output(store.row(rows, i)), by.C).f;
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    why = Stop::done;
    for (int64_t i = from; i < rows.n; ++i) {
      const double* k = store.row(rows, i);
      double u = output(k), weight = sample_weights ? sample_weights[i] : 1.0;
      NewtonRound round(u, by.C);
      out[i] = round.f;
      if (!std::isfinite(u))
        why = Stop::not_finite;
      else if (weight != 0)
        why = learn(rows, i, k, round, targets[i], weight);
      if (why != Stop::done) return i;
    }
    return rows.n;
  }

  void grow_weights() {
    if (int64_t(weights.size()) >= store.points.slots()) return;
    Array<double> bigger(size_t(store.points.slots()));
    std::memcpy(bigger.data(), weights.data(), weights.nbytes());
    weights = std::move(bigger);
  }

 private:
  double output(const double* k) const { return dot(weights.data(), k, store.lines()); }

  Stop learn(const Rows<T>& rows, int64_t i, const double* k, NewtonRound& round, double y, double weight) {
    double self = store.self(rows, i);
    round.observe(by, y, weight);
    if (round.idle() || self <= 0) return Stop::done;
    if (store.full()) return Stop::full;
    int64_t slot = store.count();
    double scale = round.g * std::sqrt(round.eta), alpha = newton.ridge;
    newton.solve(k);
    double tau = newton.residual(self) / alpha;
    const double* s = newton.back();
    double most = 4 * (std::abs(round.h / tau) + std::abs(round.g)) / alpha;  // bounds the step, whether the coin comes up or not
    if (!round.sound(tau) || !std::isfinite(scale * scale * self) || !std::isfinite(scale * scale * self / alpha) || !std::isfinite(most))
      return Stop::not_finite;
    for (int64_t j = 0; j < newton.size(); ++j)
      if (!std::isfinite(std::abs(weights[size_t(newton.slots[size_t(j)])]) + std::abs(most * newton.scales[size_t(j)] * s[j])))
        return Stop::not_finite;
    // A zero slope leaves A as it is, and then there is no coin to flip; a projection must be stored all the same.
    bool kept = round.g != 0 && (!sketched || sampler.flip(k, self, scale, slot, least));
    double step = round.step(tau, kept ? round.gain() : 0) / alpha;
    for (int64_t j = 0; j < newton.size(); ++j) weights[size_t(newton.slots[size_t(j)])] += step * newton.scales[size_t(j)] * s[j];
    if (kept) newton.append(slot, scale, self);
    store.add(rows, i);
    grow_weights();
    weights[size_t(slot)] = -step;
    return Stop::done;
  }
};

// PROS-N-KONS: the online Newton step on z(x) = M k_I(x), I the dictionary that KORS keeps of the rows themselves. The core runs
// until I grows; then the caller makes a new M and says how w and A go on.
template <class T> class EmbeddedNewton {
 public:
  Settings set;                                // budget: the dictionary's cap
  NewtonSettings by;
  Store<T> store;
  RowSampler sampler;
  int64_t rank = 0, embedded = 0;              // features, and the points they are made of
  Panel<double> matrix;                        // M; "points" are features, "columns" dictionary points
  Array<double> weights, inverse;              // u, and A^-1 in rows of stride()

  EmbeddedNewton(Settings s, NewtonSettings n, Kernel<double> kernel, double ridge, double beta, double eps, uint64_t seed)
      : set(s),
        by(n),
        store(std::move(kernel), set.width, set.budget, set.budget > 1024),
        sampler(ridge, beta, eps, seed, std::min<int64_t>(set.budget, 1024)) {
    curvature_constant(by.loss, by.C, 0);
  }

  int64_t count() const { return store.count(); }
  int64_t stride() const { return matrix.slots(); }
  size_t nbytes() const { return store.nbytes() + sampler.dictionary.nbytes() + matrix.nbytes() + weights.nbytes() + inverse.nbytes(); }

  // M is rank x count; u and A^-1 are rank and rank x rank.
  void embed(const double* m, int64_t rank_, const double* u, const double* a) {
    rank = rank_;
    embedded = store.count();
    matrix = Panel<double>(store.points.tiles() * kLine<double>, rank);
    for (int64_t f = 0; f < rank; ++f)
      for (int64_t j = 0; j < embedded; ++j) matrix.at(f, j) = m[f * embedded + j];
    weights = Array<double>(size_t(stride()));
    inverse = Array<double>(size_t(rank * stride()));
    step_ = Array<double>(size_t(stride()));
    std::copy_n(u, rank, weights.data());
    for (int64_t f = 0; f < rank; ++f) std::copy_n(a + f * rank, rank, inverse.data() + f * stride());
  }

  void score(const Rows<T>& rows, double* out) {
    each(rows, 0, [&](int64_t i, const double*, const double* z) {
      out[i] = NewtonRound(output(z), by.C).f;
      return true;
    });
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    int64_t next = rows.n;
    why = Stop::done;
    each(rows, from, [&](int64_t i, const double* k, const double* z) {
      double u = output(z), weight = sample_weights ? sample_weights[i] : 1.0;
      NewtonRound round(u, by.C);
      out[i] = round.f;
      if (std::isfinite(u) && weight == 0) return true;
      round.observe(by, targets[i], weight);
      if (!std::isfinite(u) || !std::isfinite(store.self(rows, i) / sampler.dictionary.ridge) || !learn(z, round)) {
        why = Stop::not_finite;
        next = i;
        return false;
      }
      if (!grow(rows, i, k)) return true;
      why = Stop::full;
      next = i + 1;
      return false;
    });
    return next;
  }

 private:
  size_t lines() const { return size_t(stride() / kLine<double>); }
  double output(const double* z) const { return dot(weights.data(), z, lines()); }

  bool learn(const double* z, const NewtonRound& round) {
    if (round.idle()) return true;
    for (int64_t f = 0; f < rank; ++f) step_[size_t(f)] = dot(inverse.data() + f * stride(), z, lines());
    double tau = dot(step_.data(), z, lines());
    if (tau <= 0) return dot(z, z, lines()) == 0;   // z = 0: the dictionary says nothing about this row; else A^-1 has drifted
    if (!round.sound(tau)) return false;
    double step = round.step(tau, round.gain()), shrink = -round.gain() / (1 + round.gain() * tau);
    double size = double(largest(step_.data(), lines())), reach = std::numeric_limits<double>::infinity();
    if (!std::isfinite(4 * shrink * size * size) || !can_add(weights.data(), -step, step_.data(), stride(), size, reach)) return false;
    axpy(-step, step_.data(), weights.data(), lines());
    if (shrink != 0)
      for (int64_t f = 0; f < rank; ++f) axpy(shrink * step_[size_t(f)], step_.data(), inverse.data() + f * stride(), lines());
    return true;
  }

  bool grow(const Rows<T>& rows, int64_t i, const double* k) {
    if (store.full()) return false;
    double self = store.self(rows, i);
    int64_t slot = store.count();
    if (!(self > 0) || !sampler.flip(k, self, 1, slot, 0)) return false;
    store.add(rows, i);
    return true;
  }

  // visit(row, kernel values, features) until it says false; the dictionary is fixed meanwhile, so rows go in blocks.
  template <class F> void each(const Rows<T>& rows, int64_t from, F visit) {
    const Points<double>& points = store.points;
    constexpr int64_t block = Map<double>::kBlock;
    int64_t width = points.tiles() * kLine<double>;
    if (int64_t(values_.size()) < block * width) values_ = Array<double>(size_t(block * width));
    if (int64_t(features_.size()) < block * stride()) features_ = Array<double>(size_t(block * stride()));
    for (int64_t i = from; i < rows.n; i += block) {
      int64_t n = std::min(block, rows.n - i);
      const double* k = values_.data();
      if (width) {
        points.measure(store.widen(rows, i, n), 0, n, points.tiles(), values_.data(), width);
        for (int64_t r = 0; r < n; ++r) points.values(values_.data() + r * width, values_.data() + r * width, points.tiles());
        Rows<double> all{n, width, k};
        matrix.template dense<Form::product>(all, 0, n, int64_t(lines()), features_.data(), stride());
      }
      for (int64_t r = 0; r < n; ++r)
        if (!visit(i + r, k + r * width, features_.data() + r * stride())) return;
    }
  }

  Array<double> values_, features_, step_;
};

// Kernel recursive least squares (Engel et al. 2004) on an ALD dictionary; K = L L^T is the dictionary's kernel matrix.
template <class T> class RecursiveLeastSquares {
 public:
  Settings set;                                // budget: the dictionary's cap
  double nu;
  Store<T> store;
  RidgeFactor factor;
  std::vector<Array<double>> weights;          // one an output
  Array<double> P;                             // (A^T A)^-1 in rows of stride()

  RecursiveLeastSquares(Settings s, Kernel<double> kernel, double nu_)
      : set(s),
        nu(nu_),
        store(std::move(kernel), set.width, set.budget, false),
        factor(0.0, set.budget),
        P(size_t(set.budget * stride())),
        Pa_(size_t(stride())) {
    for (int64_t c = 0; c < set.outputs; ++c) weights.emplace_back(size_t(stride()));
  }

  int64_t count() const { return store.count(); }
  int64_t stride() const { return (set.budget + kLine<double> - 1) / kLine<double> * kLine<double>; }
  size_t nbytes() const { return store.nbytes() + factor.nbytes() + P.nbytes() + weights.size() * size_t(stride()) * sizeof(double); }

  void score(const Rows<T>& rows, double* out) {
    for (int64_t i = 0; i < rows.n; ++i) outputs(store.row(rows, i), out + i * set.outputs);
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    why = Stop::done;
    std::vector<double> errors(size_t(set.outputs));
    for (int64_t i = from; i < rows.n; ++i) {
      const double* k = store.row(rows, i);
      double *f = out + i * set.outputs, weight = sample_weights ? sample_weights[i] : 1.0;
      outputs(k, f);
      for (int64_t c = 0; c < set.outputs; ++c) {
        if (!std::isfinite(f[c])) {
          why = Stop::not_finite;
          return i;
        }
        errors[size_t(c)] = target_of(set.outputs, c, targets[i]) - f[c];
      }
      if (weight == 0 || learn(rows, i, k, errors, weight)) continue;
      why = Stop::not_finite;
      return i;
    }
    return rows.n;
  }

 private:
  void outputs(const double* k, double* f) const {
    for (int64_t c = 0; c < set.outputs; ++c) f[c] = dot(weights[size_t(c)].data(), k, store.lines());
  }

  bool learn(const Rows<T>& rows, int64_t i, const double* k, const std::vector<double>& errors, double weight) {
    double self = store.self(rows, i);
    if (self <= 0) return true;
    if (!std::isfinite(self)) return false;
    factor.solve(k);
    double delta = factor.residual(self);
    const double* a = factor.back();           // K^-1 k
    size_t lines = store.lines();
    if (!store.full() && independent(delta, self, nu, store.count())) {
      int64_t slot = store.count();
      if (!std::isfinite(1 / weight)) return false;
      for (size_t c = 0; c < weights.size(); ++c)
        if (!std::isfinite(errors[c] / delta) || !can_step(c, -errors[c] / delta, a)) return false;
      for (size_t c = 0; c < weights.size(); ++c) {
        axpy(-errors[c] / delta, a, weights[c].data(), lines);
        weights[c][size_t(slot)] = errors[c] / delta;
      }
      P[size_t(slot * stride() + slot)] = 1 / weight;
      factor.append(slot, 1, self);
      store.add(rows, i);
      return true;
    }
    int64_t n = store.count();
    for (int64_t j = 0; j < n; ++j) Pa_[size_t(j)] = dot(P.data() + j * stride(), a, lines);
    double below = 1 / weight + dot(Pa_.data(), a, lines);
    if (!(below > 0)) return false;            // P has drifted and is no longer positive
    double scale = 1 / below, size = double(largest(Pa_.data(), lines));
    if (!std::isfinite(4 * scale * size * size)) return false;
    factor.forward(Pa_.data());
    const double* step = factor.back();        // K^-1 P a
    for (size_t c = 0; c < weights.size(); ++c)
      if (!can_step(c, scale * errors[c], step)) return false;
    for (int64_t j = 0; j < n; ++j) axpy(-scale * Pa_[size_t(j)], Pa_.data(), P.data() + j * stride(), lines);
    for (size_t c = 0; c < weights.size(); ++c) axpy(scale * errors[c], step, weights[c].data(), lines);
    return true;
  }

  bool can_step(size_t c, double s, const double* x) const {
    double reach = std::numeric_limits<double>::infinity();
    return can_add(weights[c].data(), s, x, store.count(), 0, reach);
  }

  Array<double> Pa_;
};

}  // namespace KS_MODULE
