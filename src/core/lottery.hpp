// OKS: expansions with fixed kernels, one of which is drawn each round. The formulas are in the Python class.
#pragma once
#include "rules.hpp"

namespace KS_MODULE {

// OKS: one gradient-descent expansion for each candidate kernel; each round one of them is drawn, predicts and learns.
template <class T> class Lottery {
 public:
  Settings set;                                // budget: points of all candidates together
  Descent descent;
  double delta, rate;                          // rate < 0: the paper's, with the rounds so far for T
  std::vector<Expansion<T>> candidates;
  std::vector<double> losses;                  // importance-weighted, summed
  Random random;
  int64_t rounds = 0;

  Lottery(Settings s, Descent d, const double* gammas, size_t n, double smoothing, double learning_rate, uint64_t seed)
      : set(s), descent(d), delta(smoothing), rate(learning_rate), losses(n, 0.0), random(seed), chances_(n) {
    candidates.reserve(n);
    for (size_t i = 0; i < n; ++i)
      candidates.emplace_back(set, Storage{true, false}, Kernel<T>::named("gaussian", gammas[i], 0, 1), Gradient<Oldest>{d, {}}, false, 0);
  }

  int64_t count() const {
    int64_t total = 0;
    for (const auto& c : candidates) total += c.points.count;
    return total;
  }

  size_t nbytes() const {
    size_t total = losses.size() * sizeof(double);
    for (const auto& c : candidates) total += c.nbytes();
    return total;
  }

  // p = (1 - delta) q / sum q + delta / N,  q = exp(-rate losses)
  const std::vector<double>& chances() {
    double N = double(losses.size()), least = *std::min_element(losses.begin(), losses.end()), sum = 0;
    double step = rate >= 0 ? rate : std::sqrt(2 * (1 - delta) * std::log(N) / (N * double(rounds + 1)));
    for (size_t i = 0; i < losses.size(); ++i) sum += chances_[i] = std::exp(-step * (losses[i] - least));
    for (double& p : chances_) p = (1 - delta) * p / sum + delta / N;
    return chances_;
  }

  // The candidate that predicts and learns next. A function of the state: looking changes nothing.
  size_t next() {
    Random look = random;
    double u = look.uniform(), sum = 0;
    const std::vector<double>& p = chances();
    for (size_t i = 0; i + 1 < p.size(); ++i)
      if ((sum += p[i]) > u) return i;
    return p.size() - 1;
  }

  void score(const Rows<T>& rows, double* out) { candidates[next()].score(rows, out); }

  // The largest factor of eta at which a step expands nothing, as k(x, x) = 1. Only a slope without bound needs it.
  double most() const {
    double curvature = descent.loss.kind == Loss::squared ? 1 : descent.loss.kind == Loss::squared_hinge ? 2 : 0;
    return curvature > 0 ? 1 / (descent.eta * curvature) : std::numeric_limits<double>::infinity();
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    why = Stop::done;
    int64_t stored = count();
    const double limit = most();
    for (int64_t i = from; i < rows.n; ++i) {
      size_t drawn = next();
      Expansion<T>& f = candidates[drawn];
      double weight = sample_weights ? sample_weights[i] : 1.0, importance = weight / chances_[drawn];
      double factor = std::min(importance, limit);
      double* scores = out + i * set.outputs;
      int64_t before = f.points.count;
      f.set.budget = stored < set.budget ? set.budget : before;  // full when all together are
      f.run(rows.part(i, i + 1), 0, targets + i, &factor, scores, why);
      if (why != Stop::done) return i;
      if (weight == 0) continue;
      stored += f.points.count - before;
      double loss = 0;
      for (int64_t c = 0; c < set.outputs; ++c) loss += descent.loss.value(scores[c], target_of(set.outputs, c, targets[i]));
      if (!std::isfinite(losses[drawn] + importance * loss)) {
        f.forget(before);
        why = Stop::not_finite;
        return i;
      }
      losses[drawn] += importance * loss;
      random.uniform();
      ++rounds;
    }
    return rows.n;
  }

 private:
  std::vector<double> chances_;
};

}  // namespace KS_MODULE
