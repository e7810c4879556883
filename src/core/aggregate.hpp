// The aggregation: one forecast out of several experts', followed as they gain and lose.
//
// The candidates are the experts themselves and two stacks: softmax(sum_e w_e z_e) of the experts' logits z_e (in regression
// sum_e w_e z_e of their values), w learnt by online Newton steps from the weights that experts begin with; `stack` with all the
// past, `forgetting_stack` forgetting 1 in 1000 rounds. The step of round t counts t / (t + kStackRounds): in the first rounds the
// experts change so much that how they compare then tells little of later rounds. A priori the stack weights are independent, but
// that their sum, which is right if the experts are, is known to a variance of kStackSum: without that a stack of experts that all
// erred in the first rounds soon says the opposite. Experts fitted by least squares do not know how sure they are: each such
// candidate's logits are multiplied by its confidence, learnt by the steps of a stack of this expert alone. The forecast is the
// candidates' mean weighted by their shares (fixed share): shares times likelihood, then kShared of the total spread as at the
// start. Likelihoods below kLeastLikelihood count as that, so with classes sum_t -log(p_t + kLeastLikelihood), p_t the forecast of
// the class that came, is at most the bounded log loss of the best sequence of the K candidates plus log(1 / q) + switches log(1 /
// (q kShared)) + kShared T, q the least of the shares at the start; and the best stack weights are tracked at the usual log T each.
// In regression the likelihood is that of a Gaussian whose variance is kHeavyTails times the forecast's own recent mean squared
// error, the noise.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

namespace KS_MODULE {

class Aggregate {
 public:
  static constexpr int kStacks = 2;
  static constexpr double kShared = 1e-3, kStackPrior = 0.5, kStackSum = 0.25, kLeastConfidence = 0.1, kLeastLikelihood = 1e-4,
                          kLeastNoise = 1e-12;
  static constexpr double kHeavyTails = 4;  // regression: errors have heavier tails than a normal law with their variance
  static constexpr double kKeep[kStacks] = {1.0, 0.999};
  static constexpr int kMostSteps = 64;  // of a stack, for one heavy row
  static constexpr double kStackRounds = 64;
  // What an expert begins with. share: over that of a stack; its weight in the stacks has a variance in proportion to it. weight: that
  // one, over the sum of the weights of the experts that take part.
  struct Start {
    double share, weight;
  };

  int64_t experts = 0, outputs = 1;  // outputs: classes, or 1
  bool regression = false;
  std::vector<double> shares;  // of the candidates: the experts, then the stacks
  std::vector<double> stack_weights, stack_covariances;  // of each stack in turn
  std::vector<double> confidences, confidence_variances;  // of the experts; a variance of 0: the confidence stays 1
  double noise = 1, noise_rounds = 0;  // regression: recent mean squared error of the forecast, over how many rounds

  // squares: the experts that are fitted by least squares, of which the confidence is learnt where there are classes.
  Aggregate(std::vector<Start> start, int64_t outputs_, bool regression_, std::vector<int64_t> squares)
      : experts(int64_t(start.size())),
        outputs(outputs_),
        regression(regression_),
        shares(size_t(candidates())),
        stack_weights(size_t(kStacks * experts)),
        stack_covariances(size_t(kStacks * experts * experts)),
        confidences(size_t(experts), 1.0),
        confidence_variances(size_t(experts), 0.0),
        start_(std::move(start)),
        squared_(regression_ ? std::vector<int64_t>() : std::move(squares)),
        forecasts_(size_t(candidates() * outputs)),
        z_(size_t(experts * outputs)),
        mean_(size_t(outputs)),
        g_(size_t(experts)),
        v_(size_t(experts)) {
    only(std::vector<bool>(size_t(candidates()), true));
  }

  // The same with other classes.
  Aggregate(const Aggregate& o, int64_t classes) : Aggregate(o) {
    outputs = classes;
    forecasts_.assign(size_t(candidates() * outputs), 0.0);
    z_.assign(size_t(experts * outputs), 0.0);
    mean_.assign(size_t(outputs), 0.0);
  }

  // Begin with these candidates and leave the others out.
  void only(std::vector<bool> included) {
    include(std::move(included));
    restart();
  }

  // What shares and stack weights begin with and are drawn to, with these candidates and no others; nothing else changes.
  void include(std::vector<bool> included) {
    included_ = std::move(included);
    start_shares_.assign(size_t(candidates()), 0.0);
    start_weights_.assign(size_t(experts), 0.0);
    double total = 0, weights = 0;
    int64_t number = std::count(included_.begin(), included_.begin() + experts, true);
    for (int64_t k = 0; k < candidates(); ++k) {
      if (!included_[size_t(k)]) continue;
      total += start_shares_[size_t(k)] = k < experts ? start_[size_t(k)].share : 1;
      if (k < experts) weights += start_weights_[size_t(k)] = start_[size_t(k)].weight;
    }
    for (double& share : start_shares_) share /= total;
    for (int64_t e = 0; e < experts; ++e)
      start_weights_[size_t(e)] = weights > 0 ? start_weights_[size_t(e)] / weights : double(included_[size_t(e)]) / double(number);
    double sum = kStackSum;
    for (int64_t e = 0; e < experts; ++e) sum += alone(e);
    start_covariance_.resize(size_t(experts * experts));
    for (int64_t e = 0; e < experts; ++e)
      for (int64_t d = 0; d < experts; ++d)
        start_covariance_[size_t(e * experts + d)] = double(e == d) * alone(e) - alone(e) * alone(d) / sum;
  }

  void restart() {
    noise = 1;
    noise_rounds = 0;
    shares = start_shares_;
    for (int s = 0; s < kStacks; ++s) {
      std::copy_n(start_weights_.begin(), experts, stack_weights.begin() + s * experts);
      std::copy_n(start_covariance_.begin(), experts * experts, stack_covariances.begin() + s * experts * experts);
    }
    std::fill(confidences.begin(), confidences.end(), 1.0);
    for (int64_t e : squared_) confidence_variances[size_t(e)] = kStackPrior;
  }

  // Go on with more candidates: each begins with what is shared in one round, an expert with no weight in the stacks, a stack as
  // the first one is.
  void admit(std::vector<bool> included) {
    std::vector<bool> before = included_;
    include(std::move(included));
    double total = 0;
    for (int64_t k = 0; k < candidates(); ++k) {
      bool added = included_[size_t(k)] && !before[size_t(k)];
      total += shares[size_t(k)] = added ? kShared * start_shares_[size_t(k)] : shares[size_t(k)];
      for (int s = 0; s < kStacks && added && k < experts; ++s)
        stack_covariances[size_t((s * experts + k) * experts + k)] = start_covariance_[size_t(k * experts + k)];
    }
    for (double& share : shares) share /= total;
    for (int s = 1; s < kStacks; ++s)
      if (!before[size_t(experts + s)]) {
        std::copy_n(stack_weights.begin(), experts, stack_weights.begin() + s * experts);
        std::copy_n(stack_covariances.begin(), experts * experts, stack_covariances.begin() + s * experts * experts);
      }
  }

  int64_t candidates() const { return experts + kStacks; }
  const double* forecast_of(int64_t candidate) const { return forecasts_.data() + candidate * outputs; }

  double value() const { return mean_[0]; }  // regression: the last forecast
  // The forecast (class probabilities, or a value) from the experts' logits or values, experts x outputs.
  const double* forecast(const double* z) {
    std::copy_n(z, experts * outputs, z_.data());
    for (int64_t e = 0; e < experts; ++e) expert_forecast(e);
    for (int s = 0; s < kStacks; ++s) restack_forecast(s);
    for (int64_t c = 0; c < outputs; ++c) {
      mean_[size_t(c)] = 0;
      for (int64_t k = 0; k < candidates(); ++k) mean_[size_t(c)] += shares[size_t(k)] * forecasts_[size_t(k * outputs + c)];
    }
    return mean_.data();
  }

  // -log likelihood of a candidate's last forecast, bounded.
  double loss(int64_t k, double y) const {
    if (!regression) return -std::log(std::max(forecast_of(k)[int64_t(y)], kLeastLikelihood));
    double miss = y - forecast_of(k)[0];
    return std::min(miss * miss / (kHeavyTails * 2 * noise), -std::log(kLeastLikelihood));
  }

  // The targets' unit changes by this factor.
  void rescale(double factor) { noise = std::max(noise * factor * factor, kLeastNoise); }

  // y: the class's number, or the target, of the row last forecast, the `learnt`th one; bounded: what the noise sees of the target. A
  // row of weight w counts as w equal rows that come at once: they tell more, but no more time passes (what is shared, what the stacks
  // forget).
  void learn(double y, double bounded, double weight, int64_t learnt) {
    double total = 0, least = 0;
    if (weight > 1) {  // so that not all products vanish
      least = loss(0, y);
      for (int64_t k = 1; k < candidates(); ++k)
        if (shares[size_t(k)] > 0) least = std::min(least, loss(k, y));
    }
    for (int64_t k = 0; k < candidates(); ++k) {
      bool known = weight == 1 && !regression;  // nearly always: no logarithm and exponential of it are needed
      total += shares[size_t(k)] *=
          known ? std::max(forecast_of(k)[int64_t(y)], kLeastLikelihood) : std::exp(-weight * (loss(k, y) - least));
    }
    for (int64_t k = 0; k < candidates(); ++k)
      shares[size_t(k)] = (1 - kShared) * shares[size_t(k)] / total + kShared * start_shares_[size_t(k)];
    weight *= double(learnt) / (double(learnt) + kStackRounds);
    int steps = regression || !(weight > 1) ? 1 : int(std::min<double>(std::ceil(weight), kMostSteps));
    for (int64_t e : squared_)
      for (int step = 0; step < steps; ++step) {  // one long step would go too far
        if (step) expert_forecast(e);
        learn_confidence(e, int64_t(y), weight / steps);
      }
    for (int s = 0; s < kStacks; ++s) {
      forget(s);
      for (int step = 0; step < steps; ++step) {
        if (step) restack_forecast(s);
        restack(s, y, weight / steps);
      }
    }
    if (regression) {
      double miss = bounded - mean_[0];
      noise_rounds += 1;
      noise += (miss * miss - noise) * std::max(1 / (noise_rounds + 1), 1e-3);
      noise = std::max(noise, kLeastNoise);
    }
  }

 private:
  // The prior variance of a stack weight, if nothing is known of the sum.
  double alone(int64_t e) const { return included_[size_t(e)] ? start_[size_t(e)].share * kStackPrior : 0; }

  void softmax(double* z) const {
    if (outputs == 2) {  // the same with one exponential: that of the larger one is 1
      bool less = z[0] < z[1];
      double small = std::exp(-std::abs(z[1] - z[0])), sum = 1 + small;
      z[less] = 1 / sum;
      z[!less] = small / sum;
      return;
    }
    double top = *std::max_element(z, z + outputs), sum = 0;
    for (int64_t c = 0; c < outputs; ++c) sum += z[c] = std::exp(z[c] - top);
    for (int64_t c = 0; c < outputs; ++c) z[c] /= sum;
  }

  void forget(int s) {
    double *w = stack_weights.data() + s * experts, *P = stack_covariances.data() + s * experts * experts;
    if (kKeep[s] == 1) return;
    for (int64_t i = 0; i < experts * experts; ++i) P[i] = kKeep[s] * P[i] + (1 - kKeep[s]) * start_covariance_[size_t(i)];
    for (int64_t e = 0; e < experts; ++e) w[e] = start_weights_[size_t(e)] + std::sqrt(kKeep[s]) * (w[e] - start_weights_[size_t(e)]);
  }

  // A Newton step of an expert's confidence from its last forecast.
  void learn_confidence(int64_t e, int64_t y, double weight) {
    double &confidence = confidences[size_t(e)], &variance = confidence_variances[size_t(e)];
    const double *p = forecast_of(e), *z = z_.data() + e * outputs;
    double right = std::min(std::max(p[y], 1e-6), 1 - 1e-6), g = z[y];
    for (int64_t c = 0; c < outputs; ++c) g -= p[c] * z[c];
    double damp = 1 / (1 + weight * right / (1 - right) * variance * g * g);
    confidence = std::max(confidence + weight * damp * variance * g, kLeastConfidence);
    variance *= damp;
  }

  // An expert's forecast of the row last forecast, with its confidence as it is now.
  void expert_forecast(int64_t e) {
    double* to = forecasts_.data() + e * outputs;
    for (int64_t c = 0; c < outputs; ++c) to[c] = confidences[size_t(e)] * z_[size_t(e * outputs + c)];
    if (!regression) softmax(to);
  }

  // A stack's forecast of the row last forecast, with its weights as they are now.
  void restack_forecast(int s) {
    double* to = forecasts_.data() + (experts + s) * outputs;
    stack_forecast(s, z_.data(), to);
    if (!regression) softmax(to);
  }

  void stack_forecast(int s, const double* z, double* to) const {
    for (int64_t c = 0; c < outputs; ++c) {
      double sum = 0;
      for (int64_t e = 0; e < experts; ++e) sum += stack_weights[size_t(s * experts + e)] * z[e * outputs + c];
      to[c] = sum;
    }
  }

  void restack(int s, double y, double weight) {
    double *w = stack_weights.data() + s * experts, *P = stack_covariances.data() + s * experts * experts, h, residual = 1;
    const double* p = forecast_of(experts + s);
    if (regression) {
      std::copy_n(z_.data(), experts, g_.data());
      h = weight / noise;
      double most = 3 * std::sqrt(noise);  // one outlier must not overturn the weights
      residual = h * std::min(std::max(y - p[0], -most), most);
    } else {  // d log p_y / dw, and the curvature along it
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
    if (!(along > 0)) return;  // nothing to learn, or P has no digits left in this direction
    double damp = 1 / (1 + h * along);
    for (int64_t e = 0; e < experts; ++e) w[e] += residual * damp * v_[size_t(e)];
    for (int64_t e = 0; e < experts; ++e)
      for (int64_t d = 0; d <= e; ++d)  // one half, and its mirror image: symmetric to the bit
        P[d * experts + e] = P[e * experts + d] -= h * damp * v_[size_t(e)] * v_[size_t(d)];
  }

  std::vector<Start> start_;
  std::vector<bool> included_;
  std::vector<double> start_shares_, start_weights_, start_covariance_;  // what shares and stacks begin with and are drawn to
  std::vector<int64_t> squared_;
  std::vector<double> forecasts_, z_, mean_, g_, v_;
};

}  // namespace KS_MODULE
