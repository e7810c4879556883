// The labels expert of NewtonMixture: it sees labels only, never a row.
#pragma once
#include <algorithm>
#include <cmath>

#include "simd.hpp"

namespace KS_MODULE {

// How often a class is followed by itself, and how frequent the others are. On streams whose labels come in runs this is worth a lot,
// on others it is the classes' frequencies. Rows that are a copy of the row before are counted apart from the others: a label may hold for
// as long as the row does, and end with it. In regression, where the expert's forecast is the target before as it was learnt: how often
// targets stay where an outlier was.
class Labels {
 public:
  static constexpr double kKeep = 0.998;
  int64_t classes = 1, last = -1;              // last: the class learnt last, -1 if there is none; in regression 0 if it was an outlier
  Array<double> repeats, changes, frequency;   // by class, in regression of outliers; recent rounds count more
  Array<double> copy_repeats, copy_changes;    // of rows that are a copy of the one before
  double last_target = 0;                      // of a regression, as it came, in the experts' units

  Labels() = default;
  explicit Labels(int64_t classes_)
      : classes(classes_),
        repeats(size_t(classes_)),
        changes(size_t(classes_)),
        frequency(size_t(classes_)),
        copy_repeats(size_t(classes_)),
        copy_changes(size_t(classes_)) {}
  size_t nbytes() const { return 5 * repeats.nbytes(); }

  // Logarithms of the classes' probabilities, of a row that is a copy of the one learnt last, or not.
  void score(bool copy, double* z) const {
    const Array<double>&same = copy ? copy_repeats : repeats, &other = copy ? copy_changes : changes;
    double total = 0;
    for (int64_t c = 0; c < classes; ++c) total += frequency[size_t(c)] + 0.5;
    double staying = last < 0 ? 0 : (same[size_t(last)] + 0.5) / (same[size_t(last)] + other[size_t(last)] + 1);
    double others = last < 0 ? total : total - (frequency[size_t(last)] + 0.5);
    for (int64_t c = 0; c < classes; ++c) z[c] = std::log(c == last ? staying : (1 - staying) * (frequency[size_t(c)] + 0.5) / others);
  }

  // Regression: whether the next target is expected where the last one was, an outlier. That is so if outliers have stayed at least
  // twice more than they came back; `more`: what else speaks for it counts as so many that stayed.
  bool stays(int more) const { return last == 0 && repeats[0] + more > changes[0] + 1; }

  // A target y after an outlier: nearer to that than to the forecast, or not.
  void follow(double y, double forecast) {
    if (last < 0) return;
    repeats[0] *= kKeep;
    changes[0] *= kKeep;
    (std::abs(y - last_target) < std::abs(y - forecast) ? repeats : changes)[0] += 1;
  }
  void came(double y, bool outlier) {
    last_target = y;
    last = outlier ? 0 : -1;
  }

  void learn(int64_t y, double weight, bool copy) {
    if (last >= 0) {
      Array<double>&same = copy ? copy_repeats : repeats, &other = copy ? copy_changes : changes;
      same[size_t(last)] *= kKeep;
      other[size_t(last)] *= kKeep;
      (y == last ? same : other)[size_t(last)] += weight;
    }
    for (int64_t c = 0; c < classes; ++c) frequency[size_t(c)] *= kKeep;
    frequency[size_t(y)] += weight;
    last = y;
  }
};

}  // namespace KS_MODULE
