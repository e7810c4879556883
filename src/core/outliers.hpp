// Outliers of a regression's targets: what of a far target is learnt.
//
// A target further from the forecast than kOutlier usual errors is an outlier, from round kOutlierRounds on. It is learnt as if it were
// that far; one further than kFar usual errors as if it were nearer, by the square of the ratio: so far away no target belongs to the
// others, and it says nothing of them. In the first kFirstErrors rounds, when the usual error is hardly known, it is to be kFar deviations
// of the targets away too. But where rows foretell far targets these are to be learnt: where an outlier does harm for some time only, or
// to few rows, that is by `recent` and in the local memory, it is bounded loosely after kLooseRounds rounds, by kLoose and kLooseFar in
// place of those, and the shares and stacks see it so. Who foretells outliers gains, the forecast comes nearer to them, and then they are
// none. And where the errors around the row are larger than elsewhere, all these bounds are in units of the usual error there; the experts
// learn the outlier with a weight that makes up for its distance, so that it moves them no more than one that is kOutlier usual errors
// away, and many of them do. Outliers one after another are a change, of the level or of the scale, and are learnt as they are: `lately`
// is drawn to 1 by an outlier by kOutlierPace, to 0 by any other target by kUsualPace, and beyond kChange there is a change. The usual
// error counts errors up to kCounted times itself (kFirstCounted times when the first ones are complete), and all of them in a change. So
// where more than 1 / kCounted^2 of the targets are far it grows until they are not: then they are no outliers, but the rule.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

namespace KS_MODULE {

class Outliers {
 public:
  static constexpr double kOutlier = 8, kFar = 20, kLoose = 100, kLooseFar = 300;
  static constexpr double kChange = 0.25, kOutlierPace = 0.1, kUsualPace = 0.5;
  static constexpr double kCounted = 4, kFirstCounted = 3, kLeastError = 1e-6;
  static constexpr int64_t kOutlierRounds = 8, kLooseRounds = 32, kFirstErrors = 64;
  static constexpr double kWild = 30, kWildest = 300;  // see `tame`
  static constexpr int64_t kFewTargets = 4, kTargets = 8;

  double usual_error = 1;            // root of the mean square of the targets' distances, large ones bounded
  std::vector<double> first_errors =
      std::vector<double>(size_t(kFirstErrors));  // these distances in the first rounds, whose quantile tells the usual error
  double lately = 0;                 // whether the last targets were outliers, from 0 to 1
  bool last = false;                 // whether the target last learnt was one
  double loose = 0, weight = 1;      // that target bounded loosely, and the weight of an outlier to the experts

  void restart() { *this = Outliers(); }

  // The targets' unit changes by this factor.
  void rescale(double factor) {
    usual_error = std::max(usual_error * factor, kLeastError);
    for (double& error : first_errors) error *= factor;
  }

  // The target to be learnt in place of y, whose forecast came after so many rounds. A single outlier must not pull the experts away; many
  // of them are no outliers, but a change. here: the usual error around the row, if that is larger than the usual error.
  double bounded(double y, double forecast, double rounds, double here) {
    here = std::max(here, usual_error);
    double miss = y - forecast, away = std::abs(miss), least_far = rounds < kFirstErrors ? kFar : 0;
    auto moved = [&](double bound, double far_) {
      double far = std::max(far_ * here, least_far), reach = std::min(away, bound * here);
      return forecast + std::copysign(away > far ? reach * (far / away) * (far / away) : reach, miss);
    };
    double bounded = moved(kOutlier, kFar);
    loose = rounds < kLooseRounds ? bounded : moved(kLoose, kLooseFar);
    last = rounds >= kOutlierRounds && away > kOutlier * usual_error;
    lately += last ? (1 - lately) * kOutlierPace : -lately * kUsualPace;
    bool change = last && lately >= kChange;
    weight = last && !change ? kOutlier * usual_error / std::min(away, kOutlier * here) : 1;
    count(away, rounds, change);
    if (!last || change) bounded = loose = y;
    return bounded;
  }

  // Among the first rows, when the usual error is hardly known: a target that is kWild times as far from the median as four in five are
  // (kWildest times while there are fewer than kTargets) says nothing about the others. It is moved to the distance of those four, unless
  // more than two, and one in 25, are so far. Whether one was moved.
  static bool tame(double* targets, int64_t n) {
    if (n < kFewTargets) return false;
    std::vector<double> sorted(targets, targets + n);
    std::nth_element(sorted.begin(), sorted.begin() + n / 2, sorted.end());
    double median = sorted[size_t(n / 2)];
    for (double& y : sorted) y = std::abs(y - median);
    std::sort(sorted.begin(), sorted.end());
    double usual = sorted[size_t((n - 1) * 4 / 5)], reach = (n < kTargets ? kWildest : kWild) * usual;
    int64_t far = sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), reach);
    if (!(usual > 0) || !far || far > std::max<int64_t>(2, n / 25)) return false;
    for (int64_t i = 0; i < n; ++i) {
      double away = targets[i] - median;
      if (std::abs(away) > reach) targets[i] = median + std::copysign(usual, away);
    }
    return true;
  }

 private:
  // What the distance of one more target says of the usual error.
  void count(double away, double rounds, bool change) {
    if (rounds < kFirstErrors) {
      first_errors[size_t(rounds)] = away;
      sorted_.assign(first_errors.begin(), first_errors.begin() + int64_t(rounds) + 1);
      auto middle = sorted_.begin() + int64_t(sorted_.size()) * 4 / 5;
      std::nth_element(sorted_.begin(), middle, sorted_.end());
      usual_error = *middle;  // exceeded by one in five
      // With all of them at hand: where many targets are far, they are the rule.
      for (double before = 0; rounds + 1 == kFirstErrors && usual_error > before;) {
        before = usual_error;
        double total = 0;
        for (double error : first_errors) total += std::min(error * error, kFirstCounted * kFirstCounted * before * before);
        usual_error = std::max(before, std::sqrt(total / kFirstErrors));
      }
    } else {
      double counted = change ? away : std::min(away, kCounted * usual_error), before = usual_error * usual_error;
      usual_error = std::sqrt(before + (counted * counted - before) * std::max(1 / (rounds + 1), 1e-3));
    }
    usual_error = std::max(usual_error, kLeastError);
  }

  std::vector<double> sorted_;
};

}  // namespace KS_MODULE
