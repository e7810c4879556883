// The labels expert of NewtonMixture: it sees labels only, never a row.
#pragma once
#include <algorithm>
#include <cmath>

#include "simd.hpp"

namespace KS_MODULE {

// How often a class is followed by itself, and how frequent the others are. In regression: the target before. On streams whose
// labels come in runs this is worth a lot, on others it is the classes' frequencies.
class Labels {
 public:
  static constexpr double kKeep = 0.998;
  int64_t classes = 1, last = -1;              // last: the class learnt last, -1 if there is none
  Array<double> repeats, changes, frequency;   // by class; recent rounds count more
  double last_target = 0;                      // of a regression, as the experts see it

  Labels() = default;
  explicit Labels(int64_t classes_)
      : classes(classes_), repeats(size_t(classes_)), changes(size_t(classes_)), frequency(size_t(classes_)) {}
  size_t nbytes() const { return 3 * repeats.nbytes(); }

  // Logarithms of the classes' probabilities.
  void score(double* z) const {
    double total = 0;
    for (int64_t c = 0; c < classes; ++c) total += frequency[size_t(c)] + 0.5;
    double staying = last < 0 ? 0 : (repeats[size_t(last)] + 0.5) / (repeats[size_t(last)] + changes[size_t(last)] + 1);
    double others = last < 0 ? total : total - (frequency[size_t(last)] + 0.5);
    for (int64_t c = 0; c < classes; ++c) z[c] = std::log(c == last ? staying : (1 - staying) * (frequency[size_t(c)] + 0.5) / others);
  }

  void learn(int64_t y, double weight) {
    if (last >= 0) {
      repeats[size_t(last)] *= kKeep;
      changes[size_t(last)] *= kKeep;
      (y == last ? repeats : changes)[size_t(last)] += weight;
    }
    for (int64_t c = 0; c < classes; ++c) frequency[size_t(c)] *= kKeep;
    frequency[size_t(y)] += weight;
    last = y;
  }
};

}  // namespace KS_MODULE
