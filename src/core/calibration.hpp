// Adaptive conformal calibration of a regression's intervals. kernelstream/calibration.py says what it is for.
//
// The *scores* are the sizes of the errors of the last rows, each divided by the scale of its forecast. An interval of some coverage
// reaches as far as the score of a certain *level* among them. The level of each nominal coverage on a grid starts as that coverage, and
// is lowered a little by each row within the interval and raised by each row outside of it (Gibbs and Candes, 2021), in such a
// proportion that the levels stay where the share of rows within is the nominal one. Steps are kPace 4 c (1 - c) for the coverage c.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace KS_MODULE {

struct Calibration {
  static constexpr double kPace = 0.01, kLargest = 1e300;

  double *ring, *sorted;                       // the last scores, by round and by size
  int64_t size, count;                         // scores at most; scores so far
  double* levels;                              // of each nominal coverage, which increase
  const double* nominal;
  int64_t n_levels;

  int64_t held() const { return std::min(count, size); }

  // The level in use for any coverage: linear between those of the grid, which are made to increase; 0 and 1 stay what they are.
  double level_of(double coverage) const {
    double before = 0, level = 0;
    for (int64_t j = 0; j < n_levels; ++j) {
      double next = std::max(level, levels[j]);
      if (coverage <= nominal[j]) return level + (next - level) * (coverage - before) / (nominal[j] - before);
      before = nominal[j];
      level = next;
    }
    return level + (1 - level) * (coverage - before) / (1 - before);
  }

  double score_at(double level) const {
    int64_t m = held(), k = int64_t(std::ceil(level * double(m + 1))) - 1;
    return sorted[std::min(std::max<int64_t>(k, 0), m - 1)];
  }

  // How many scales an interval of this coverage reaches to each side; infinity if it would take more scores to know.
  double reach(double coverage) const {
    int64_t m = held();
    if (!(coverage * double(m + 1) <= double(m))) return std::numeric_limits<double>::infinity();
    return score_at(level_of(coverage));
  }

  void learn(double score) {
    score = std::min(score, kLargest);
    if (held() > 0)
      for (int64_t j = 0; j < n_levels; ++j) {
        double c = nominal[j], within = score <= score_at(levels[j]);
        levels[j] = std::min(std::max(levels[j] + kPace * 4 * c * (1 - c) * (c - within), 0.0), 1.0);
      }
    double* end = sorted + held();
    double& slot = ring[count % size];
    if (count >= size) {                       // the oldest leaves
      double* old = std::lower_bound(sorted, end, slot);
      std::copy(old + 1, end, old);
      --end;
    }
    double* at = std::upper_bound(sorted, end, score);
    std::copy_backward(at, end, end + 1);
    *at = slot = score;
    ++count;
  }
};

}  // namespace KS_MODULE
