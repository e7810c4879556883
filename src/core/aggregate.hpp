// One forecast out of several experts', followed as they gain and lose.
//
// The candidates are the experts themselves and two stacked ones: softmax(sum_e w_e z_e) of the experts' logits z_e (in
// regression sum_e w_e z_e of their values), w learnt by online Newton steps from the mean of the main experts, one with all
// the past, one forgetting 1 in 1000 rounds. The forecast is the candidates' mean weighted by fixed share: weights times likelihood, then
// kShare of the total spread evenly (the last expert gets kLast of a share). Likelihoods below kLeast count as kLeast, so with classes sum_t -log(p_t + kLeast), p_t the
// forecast of the class that came, is at most the bounded log loss of the best sequence of the K candidates plus
// log(1 / q) + switches log(1 / (q kShare)) + kShare T, q the least of the candidates' shares; and the best stacked weights are tracked at the usual log T each. In regression
// the likelihood is that of a Gaussian whose variance is kTail times the forecast's own recent mean squared error.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

namespace KS_MODULE {

class Aggregate {
 public:
  static constexpr int kStacks = 2;
  static constexpr double kShare = 1e-3, kStart = 0.5, kLeast = 1e-4, kQuietest = 1e-12;
  static constexpr double kLast = 0.01;        // the last expert, which looks at labels only, has to earn its weight
  static constexpr double kTail = 4;           // regression: errors have heavier tails than a normal law with their variance
  static constexpr double kKeep[kStacks] = {1.0, 0.999};

  int64_t experts = 0, main = 0, outputs = 1;  // main: experts that share the first stacked weights; outputs: classes, or 1
  bool regression = false;
  std::vector<double> weights;                 // fixed share's, over experts and then stacks
  std::vector<double> stack, covariance;       // of each stack in turn
  double noise = 1, rounds = 0;                // regression: mean squared error of the forecast, recent

  Aggregate() = default;
  Aggregate(int64_t experts_, int64_t main_, int64_t outputs_, bool regression_)
      : experts(experts_), main(main_), outputs(outputs_), regression(regression_), weights(size_t(candidates()), 1.0 / double(candidates())),
        stack(size_t(kStacks * experts), 1.0 / double(experts)), covariance(size_t(kStacks * experts * experts), 0.0),
        made_(size_t(candidates() * outputs)), z_(size_t(experts * outputs)), mean_(size_t(outputs)), g_(size_t(experts)),
        v_(size_t(experts)) {
    only((1 << candidates()) - 1);
  }

  // Begin with these candidates (a bit each) and leave the others out: for ablations.
  void only(int64_t mask) {
    mask_ = mask;
    noise = 1;
    rounds = 0;
    open_.assign(size_t(candidates()), 0.0);
    double many = 0, stacked = 0;
    for (int64_t k = 0; k < candidates(); ++k) {
      open_[size_t(k)] = double(mask >> k & 1) * (k == experts - 1 ? kLast : 1);
      many += open_[size_t(k)];
      if (k < main) stacked += open_[size_t(k)];
    }
    for (int64_t k = 0; k < candidates(); ++k) weights[size_t(k)] = open_[size_t(k)] /= many;
    std::fill(covariance.begin(), covariance.end(), 0.0);
    stacked_.assign(size_t(experts), 0.0);
    for (int64_t e = 0; e < experts; ++e)
      if (open_[size_t(e)] > 0) stacked_[size_t(e)] = stacked > 0 ? double(e < main) / stacked : 1;
    for (int s = 0; s < kStacks; ++s)
      for (int64_t e = 0; e < experts; ++e) {
        stack[size_t(s * experts + e)] = stacked_[size_t(e)];
        covariance[size_t((s * experts + e) * experts + e)] = start(e);
      }
  }

  void restart() { only(mask_); }
  int64_t candidates() const { return experts + kStacks; }
  const double* made(int64_t candidate) const { return made_.data() + candidate * outputs; }

  // The forecast (class probabilities, or a value) from the experts' logits or values, experts x outputs.
  const double* forecast(const double* z) {
    std::copy_n(z, experts * outputs, z_.data());
    std::copy_n(z, experts * outputs, made_.data());
    for (int s = 0; s < kStacks; ++s)
      for (int64_t c = 0; c < outputs; ++c) {
        double sum = 0;
        for (int64_t e = 0; e < experts; ++e) sum += stack[size_t(s * experts + e)] * z[e * outputs + c];
        made_[size_t((experts + s) * outputs + c)] = sum;
      }
    if (!regression)
      for (int64_t k = 0; k < candidates(); ++k) softmax(made_.data() + k * outputs);
    for (int64_t c = 0; c < outputs; ++c) {
      mean_[size_t(c)] = 0;
      for (int64_t k = 0; k < candidates(); ++k) mean_[size_t(c)] += weights[size_t(k)] * made_[size_t(k * outputs + c)];
    }
    return mean_.data();
  }

  // -log likelihood of a candidate's last forecast, bounded.
  double loss(int64_t k, double y) const {
    if (!regression) return -std::log(std::max(made(k)[int64_t(y)], kLeast));
    double miss = y - made(k)[0];
    return std::min(miss * miss / (kTail * 2 * noise), -std::log(kLeast));
  }

  // y: the class's number, or the target, of the row last forecast. No row counts for more than one.
  void learn(double y, double weight) {
    double total = 0;
    weight = std::min(weight, 1.0);
    for (int64_t k = 0; k < candidates(); ++k) total += weights[size_t(k)] *= std::exp(-weight * loss(k, y));
    for (int64_t k = 0; k < candidates(); ++k)
      weights[size_t(k)] = (1 - kShare) * weights[size_t(k)] / total + kShare * open_[size_t(k)];
    for (int s = 0; s < kStacks; ++s) restack(s, y, weight);
    if (regression) {
      double miss = y - mean_[0];
      rounds += 1;
      noise += (miss * miss - noise) * std::max(1 / (rounds + 1), 1e-3);
      noise = std::max(noise, kQuietest);
    }
  }

 private:
  double start(int64_t e) const { return open_[size_t(e)] > 0 ? (e == experts - 1 ? kLast : 1) * kStart : 0; }

  void softmax(double* z) const {
    double top = *std::max_element(z, z + outputs), sum = 0;
    for (int64_t c = 0; c < outputs; ++c) sum += z[c] = std::exp(z[c] - top);
    for (int64_t c = 0; c < outputs; ++c) z[c] /= sum;
  }

  void restack(int s, double y, double weight) {
    double *w = stack.data() + s * experts, *P = covariance.data() + s * experts * experts, h, residual = 1;
    const double* p = made(experts + s);
    if (kKeep[s] < 1) {
      for (int64_t i = 0; i < experts * experts; ++i) P[i] *= kKeep[s];
      for (int64_t e = 0; e < experts; ++e) {
        P[e * experts + e] += (1 - kKeep[s]) * start(e);
        w[e] = stacked_[size_t(e)] + std::sqrt(kKeep[s]) * (w[e] - stacked_[size_t(e)]);
      }
    }
    if (regression) {
      std::copy_n(z_.data(), experts, g_.data());
      h = weight / noise;
      double most = 3 * std::sqrt(noise);      // one outlier must not overturn the weights
      residual = h * std::min(std::max(y - p[0], -most), most);
    } else {                                   // d log p_y / dw, and the curvature along it
      double right = std::min(std::max(p[int64_t(y)], 1e-6), 1 - 1e-6);
      for (int64_t e = 0; e < experts; ++e) {
        g_[size_t(e)] = z_[size_t(e * outputs + int64_t(y))];
        for (int64_t c = 0; c < outputs; ++c) g_[size_t(e)] -= p[c] * z_[size_t(e * outputs + c)];
      }
      h = weight * right / (1 - right);
      residual = weight;
    }
    double along = 0;
    for (int64_t e = 0; e < experts; ++e) {
      v_[size_t(e)] = 0;
      for (int64_t d = 0; d < experts; ++d) v_[size_t(e)] += P[e * experts + d] * g_[size_t(d)];
      along += v_[size_t(e)] * g_[size_t(e)];
    }
    if (!(along > 0)) return;                  // nothing to learn, or P has no digits left in this direction
    double damp = 1 / (1 + h * along);
    for (int64_t e = 0; e < experts; ++e) w[e] += residual * damp * v_[size_t(e)];
    for (int64_t e = 0; e < experts; ++e)
      for (int64_t d = 0; d < experts; ++d) P[e * experts + d] -= h * damp * v_[size_t(e)] * v_[size_t(d)];
  }

  int64_t mask_ = 0;
  std::vector<double> open_, stacked_;         // what each candidate's weight, each expert's stacked weight is drawn to
  std::vector<double> made_, z_, mean_, g_, v_;
};

}  // namespace KS_MODULE
