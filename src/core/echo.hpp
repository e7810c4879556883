// The expert of NewtonMixture that looks at labels only.
#pragma once
#include <algorithm>
#include <cmath>

#include "simd.hpp"

namespace KS_MODULE {

// What the labels alone say: how often a label is followed by itself, and how frequent the others are. In regression, the
// target before. On streams whose labels come in runs this is worth a lot, on others it is the classes' frequencies.
class Echo {
 public:
  static constexpr double kKeep = 0.998;
  int64_t classes = 1, last = -1;
  Array<double> stays, leaves, frequency;      // by class; recent rounds count more
  double value = 0;                            // of a regression's last target

  Echo() = default;
  explicit Echo(int64_t classes_)
      : classes(classes_), stays(size_t(classes_)), leaves(size_t(classes_)), frequency(size_t(classes_)) {}
  size_t nbytes() const { return 3 * stays.nbytes(); }

  // Logarithms of the classes' probabilities.
  void score(double* z) const {
    double total = 0;
    for (int64_t c = 0; c < classes; ++c) total += frequency[size_t(c)] + 0.5;
    double staying = last < 0 ? 0 : (stays[size_t(last)] + 0.5) / (stays[size_t(last)] + leaves[size_t(last)] + 1);
    double others = last < 0 ? total : total - (frequency[size_t(last)] + 0.5);
    for (int64_t c = 0; c < classes; ++c)
      z[c] = std::log(c == last ? staying : (1 - staying) * (frequency[size_t(c)] + 0.5) / others);
  }

  void learn(int64_t y, double weight) {
    weight = std::min(weight, 1.0);
    if (last >= 0) {
      stays[size_t(last)] *= kKeep;
      leaves[size_t(last)] *= kKeep;
      (y == last ? stays : leaves)[size_t(last)] += weight;
    }
    for (int64_t c = 0; c < classes; ++c) frequency[size_t(c)] *= kKeep;
    frequency[size_t(y)] += weight;
    last = y;
  }
};

}  // namespace KS_MODULE
