// Second-order learners: the online Newton step over all points seen (KONS) or over the Nystrom features of a dictionary
// (PROS-N-KONS), and kernel recursive least squares.
//
// The online Newton step, u being what is left after the last round's step:
//   f = clip(u . phi, C), h = u . phi - f,   q = A^-1 phi, tau = phi . q,   g the slope of the loss at f
//   w = u - h / tau q  (the oblique projection),   A <- A + eta g^2 phi phi^T,   u <- w - A^-1 g phi
// and since A^-1 phi = q / (1 + eta g^2 tau) for the new A, both steps are one multiple of q. Several classes are learnt one against
// the rest over the same stored points: u and A are then of each class.
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
  throw std::invalid_argument("only curved losses have a curvature constant: squared, logistic and squared_hinge");
}

// The largest |l'(f)| for f in [-C, C] (Assumption 1's L).
inline double steepest_slope(const Loss& loss, double C, double y) {
  switch (loss.kind) {
    case Loss::squared: return C + std::abs(y);
    case Loss::squared_hinge: return 2 * (1 + C);
    case Loss::huber: return std::min(loss.width, C + std::abs(y));
    default: return 1;
  }
}

// The hyper-parameters of the online Newton step.
struct NewtonSettings {
  Loss loss;
  double C, eta;                               // eta 0: the curvature constant of the loss
  double dimension = 0;                        // above 0: eta_t = sqrt(dimension / (L^2 C^2 t)) instead (Theorem 1, sigma = 0)

  // Raises unless every round will have a step.
  void check() const {
    if (eta == 0 && dimension == 0) curvature_constant(loss, C, 0);
  }
};

// A round of the online Newton step, by numbers only.
struct NewtonRound {
  double f, h, g = 0, eta = 0;
  NewtonRound(double score, double C) : f(std::min(std::max(score, -C), C)), h(score - f) {}

  // A loss of weight v has slope v g and, for the same curvature, the constant sigma / v.
  void observe(const NewtonSettings& by, double y, double weight, double t) {
    g = weight * by.loss.slope(f, y);
    if (by.dimension > 0)
      eta = std::sqrt(by.dimension / t) / (steepest_slope(by.loss, by.C, y) * by.C) / weight;
    else
      eta = (by.eta > 0 ? by.eta : curvature_constant(by.loss, by.C, y)) / weight;
  }
  bool idle() const { return g == 0 && h == 0; }
  double gain() const { return eta * g * g; }                            // A grows by gain phi phi^T
  bool sound(double tau) const { return std::isfinite(tau) && std::isfinite(step(tau, 0)); }
  double step(double tau, double gain_) const { return h / tau + g / (1 + gain_ * tau); }   // u shrinks by step q
  double decrement(double tau) const { return gain() * tau / (1 + gain() * tau); }          // eta g^T A^-1 g for the new A
};

// What Sketched-KONS has beside KONS.
struct Coins {
  bool sketched = false, weighted = false;     // weighted: gradients are added as z / p, so that A is right in the mean
  double beta = 1, eps = 0, least = 1;         // least: the paper's gamma, the least probability of a coin
};

// KONS and Sketched-KONS: u = sum_s a_s phi_s, A = alpha I + Psi Psi^T with psi_s = g_s sqrt(eta_s) phi_s for every s whose coin
// came up (KONS: every s), so that q = (phi - Psi (Psi^T Psi + alpha I)^-1 Psi^T phi) / alpha. One coin for all classes, by the
// leverage score of sqrt(sum_c eta_c g_c^2) phi.
template <class T> class KernelNewton {
 public:
  Settings set;                                // budget: max_size
  NewtonSettings by;
  Store<T> store;
  std::vector<Array<double>> weights;          // one an output, and so are the factors
  std::vector<RidgeFactor> newtons;
  Coins coins;
  double least_decrement;                      // rounds whose Newton decrement is not above it are passed over
  RowSampler sampler;
  int64_t rounds = 0;                          // rounds learnt from

  KernelNewton(Settings s, NewtonSettings n, Kernel<double> kernel, double alpha, Coins coins_, double least_decrement_, uint64_t seed)
      : set(s),
        by(n),
        store(std::move(kernel), set.width, set.budget, true),
        newtons(size_t(set.outputs), RidgeFactor(alpha)),
        coins(coins_),
        least_decrement(least_decrement_),
        sampler(alpha, coins.beta, coins.eps, seed),
        taus_(size_t(set.outputs)) {
    by.check();
    for (int64_t c = 0; c < set.outputs; ++c) weights.emplace_back(size_t(store.points.slots()));
  }

  int64_t count() const { return store.count(); }
  bool counts_rounds() const { return by.dimension > 0; }

  size_t nbytes() const {
    size_t total = store.nbytes() + (coins.sketched ? sampler.dictionary.nbytes() : 0);
    for (const auto& w : weights) total += w.nbytes();
    for (const auto& newton : newtons) total += newton.nbytes();
    return total;
  }

  void score(const Rows<T>& rows, double* out) {
    for (int64_t i = 0; i < rows.n; ++i) {
      const double* k = store.row(rows, i);
      for (int64_t c = 0; c < set.outputs; ++c) *out++ = NewtonRound(output(c, k), by.C).f;
    }
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    why = Stop::done;
    for (int64_t i = from; i < rows.n; ++i) {
      const double* k = store.row(rows, i);
      double weight = sample_weights ? sample_weights[i] : 1.0;
      rounds_.clear();
      for (int64_t c = 0; c < set.outputs; ++c) {
        double u = output(c, k);
        rounds_.emplace_back(u, by.C);
        out[i * set.outputs + c] = rounds_.back().f;
        if (!std::isfinite(u)) why = Stop::not_finite;
      }
      if (why == Stop::done && weight != 0) why = learn(rows, i, k, targets[i], weight);
      if (why != Stop::done) return i;
    }
    return rows.n;
  }

  void grow_weights() {
    for (auto& w : weights) {
      if (int64_t(w.size()) >= store.points.slots()) continue;
      Array<double> bigger(size_t(store.points.slots()));
      std::memcpy(bigger.data(), w.data(), w.nbytes());
      w = std::move(bigger);
    }
  }

 private:
  double output(int64_t c, const double* k) const { return dot(weights[size_t(c)].data(), k, store.lines()); }

  Stop learn(const Rows<T>& rows, int64_t i, const double* k, double y, double weight) {
    double self = store.self(rows, i), total = 0;
    bool idle = true, small = true;
    for (size_t c = 0; c < rounds_.size(); ++c) {
      rounds_[c].observe(by, target_of(set.outputs, int64_t(c), y), weight, double(rounds + 1));
      idle &= rounds_[c].idle();
      total += rounds_[c].gain();
    }
    if (idle || self <= 0) return pass();
    int64_t slot = store.count();
    for (size_t c = 0; c < rounds_.size(); ++c) {
      const NewtonRound& round = rounds_[c];
      RidgeFactor& newton = newtons[c];
      double scale = scale_of(round), alpha = newton.ridge;
      newton.solve(k);
      double tau = taus_[c] = newton.residual(self) / alpha;
      const double* s = newton.back();
      double most = 4 * (std::abs(round.h / tau) + std::abs(round.g)) / alpha;  // bounds the step, whether the coin comes up or not
      if (!round.sound(tau) || !std::isfinite(scale * scale * self) || !std::isfinite(scale * scale * self / alpha) || !std::isfinite(most))
        return Stop::not_finite;
      for (int64_t j = 0; j < newton.size(); ++j)
        if (!std::isfinite(std::abs(weights[c][size_t(newton.slots[size_t(j)])]) + std::abs(most * newton.scales[size_t(j)] * s[j])))
          return Stop::not_finite;
      small &= round.h == 0 && round.decrement(tau) <= least_decrement;
    }
    if (small && least_decrement > 0) return pass();
    if (!std::isfinite(total * self / newtons[0].ridge)) return Stop::not_finite;
    if (store.full()) return Stop::full;
    // A zero slope leaves A as it is, and then there is no coin to flip; a projection must be stored all the same.
    double scale = set.outputs == 1 ? scale_of(rounds_[0]) : std::sqrt(total), chance = 1;
    bool kept = total != 0 && (!coins.sketched || sampler.flip(k, self, scale, slot, coins.least, &chance));
    double share = coins.weighted ? 1 / chance : 1;
    store.add(rows, i);
    grow_weights();
    for (size_t c = 0; c < rounds_.size(); ++c) {
      const NewtonRound& round = rounds_[c];
      RidgeFactor& newton = newtons[c];
      const double* s = newton.solution();
      double step = round.step(taus_[c], kept ? round.gain() * share : 0) / newton.ridge;
      for (int64_t j = 0; j < newton.size(); ++j) weights[c][size_t(newton.slots[size_t(j)])] += step * newton.scales[size_t(j)] * s[j];
      if (kept && round.g != 0) newton.append(slot, coins.weighted ? scale_of(round) / std::sqrt(chance) : scale_of(round), self);
      weights[c][size_t(slot)] = -step;
    }
    ++rounds;
    return Stop::done;
  }

  Stop pass() {
    ++rounds;
    return Stop::done;
  }

  static double scale_of(const NewtonRound& round) { return round.g * std::sqrt(round.eta); }

  std::vector<NewtonRound> rounds_;
  std::vector<double> taus_;
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
  std::vector<Array<double>> weights, inverses;  // of each output u, and A^-1 in rows of stride()
  int64_t rounds = 0;                          // rounds learnt from

  EmbeddedNewton(Settings s, NewtonSettings n, Kernel<double> kernel, double ridge, double beta, double eps, uint64_t seed)
      : set(s),
        by(n),
        store(std::move(kernel), set.width, set.budget, set.budget > 1024),
        sampler(ridge, beta, eps, seed, std::min<int64_t>(set.budget, 1024)),
        weights(size_t(set.outputs)),
        inverses(size_t(set.outputs)),
        steps_(size_t(set.outputs)),
        taus_(size_t(set.outputs)) {
    by.check();
  }

  int64_t count() const { return store.count(); }
  bool counts_rounds() const { return by.dimension > 0; }
  int64_t stride() const { return matrix.slots(); }
  size_t nbytes() const {
    size_t total = store.nbytes() + sampler.dictionary.nbytes() + matrix.nbytes();
    for (size_t c = 0; c < weights.size(); ++c) total += weights[c].nbytes() + inverses[c].nbytes();
    return total;
  }

  // M is rank x count; u is rank x outputs; A^-1 is rank x rank, one output after the other.
  void embed(const double* m, int64_t rank_, const double* u, const double* a) {
    rank = rank_;
    embedded = store.count();
    matrix = Panel<double>(store.points.tiles() * kLine<double>, rank);
    for (int64_t f = 0; f < rank; ++f)
      for (int64_t j = 0; j < embedded; ++j) matrix.at(f, j) = m[f * embedded + j];
    for (int64_t c = 0; c < set.outputs; ++c) {
      Array<double>&w = weights[size_t(c)] = Array<double>(size_t(stride())), &inverse = inverses[size_t(c)];
      inverse = Array<double>(size_t(rank * stride()));
      for (int64_t f = 0; f < rank; ++f) w[size_t(f)] = u[f * set.outputs + c];
      for (int64_t f = 0; f < rank; ++f) std::copy_n(a + (c * rank + f) * rank, rank, inverse.data() + f * stride());
    }
    steps_.assign(size_t(set.outputs), Array<double>(size_t(stride())));
    taus_.assign(size_t(set.outputs), 0.0);
  }

  void score(const Rows<T>& rows, double* out) {
    each(rows, 0, [&](int64_t i, const double*, const double* z) {
      for (int64_t c = 0; c < set.outputs; ++c) out[i * set.outputs + c] = NewtonRound(output(c, z), by.C).f;
      return true;
    });
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    int64_t next = rows.n;
    why = Stop::done;
    each(rows, from, [&](int64_t i, const double* k, const double* z) {
      double weight = sample_weights ? sample_weights[i] : 1.0;
      bool finite = true;
      rounds_.clear();
      for (int64_t c = 0; c < set.outputs; ++c) {
        double u = output(c, z);
        finite &= std::isfinite(u);
        rounds_.emplace_back(u, by.C);
        out[i * set.outputs + c] = rounds_.back().f;
        rounds_.back().observe(by, target_of(set.outputs, c, targets[i]), weight, double(rounds + 1));
      }
      if (finite && weight == 0) return true;
      if (!finite || !std::isfinite(store.self(rows, i) / sampler.dictionary.ridge) || !learn(z)) {
        why = Stop::not_finite;
        next = i;
        return false;
      }
      ++rounds;
      if (!grow(rows, i, k)) return true;
      why = Stop::full;
      next = i + 1;
      return false;
    });
    return next;
  }

 private:
  size_t lines() const { return size_t(stride() / kLine<double>); }
  double output(int64_t c, const double* z) const { return dot(weights[size_t(c)].data(), z, lines()); }
  static double shrink(const NewtonRound& round, double tau) { return -round.gain() / (1 + round.gain() * tau); }

  bool learn(const double* z) {
    for (size_t c = 0; c < rounds_.size(); ++c) {   // all are looked at before the first is changed
      const NewtonRound& round = rounds_[c];
      if (round.idle()) continue;
      Array<double>& step = steps_[c];
      for (int64_t f = 0; f < rank; ++f) step[size_t(f)] = dot(inverses[c].data() + f * stride(), z, lines());
      double tau = taus_[c] = dot(step.data(), z, lines());
      if (tau <= 0) return dot(z, z, lines()) == 0;   // z = 0: the dictionary says nothing about this row; else A^-1 has drifted
      if (!round.sound(tau)) return false;
      double size = double(largest(step.data(), lines())), reach = std::numeric_limits<double>::infinity();
      if (!std::isfinite(4 * shrink(round, tau) * size * size) ||
          !can_add(weights[c].data(), -round.step(tau, round.gain()), step.data(), stride(), size, reach))
        return false;
    }
    for (size_t c = 0; c < rounds_.size(); ++c) {
      const NewtonRound& round = rounds_[c];
      if (round.idle()) continue;
      const double tau = taus_[c], less = shrink(round, tau), *step = steps_[c].data();
      axpy(-round.step(tau, round.gain()), step, weights[c].data(), lines());
      if (less != 0)
        for (int64_t f = 0; f < rank; ++f) axpy(less * step[f], step, inverses[c].data() + f * stride(), lines());
    }
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

  Array<double> values_, features_;
  std::vector<Array<double>> steps_;
  std::vector<double> taus_;
  std::vector<NewtonRound> rounds_;
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
