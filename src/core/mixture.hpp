// NewtonMixture's rounds: six experts on scaled rows, their aggregation, and the signs that something is to be rebuilt.
//
// What the aggregation sees of an expert, in classification: its score as the logit of the class (of class 1 against 0 where there
// is one output), kSquaredLogit times that where the expert is fitted by least squares to -1 and +1, bounded by kLogit.
//
// Scaling, landmarks and bandwidths are chosen in Python (learners/newton_mixture.py) from the rows kept here; a run stops as
// `due` when that is to be done again. Everything is double, whatever the rows are.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "aggregate.hpp"
#include "diagonal.hpp"
#include "echo.hpp"
#include "expansion.hpp"
#include "memory.hpp"
#include "newton.hpp"
#include "window.hpp"

namespace KS_MODULE {

template <class T> class Mixture {
 public:
  enum Expert { kLong, kLoose, kShort, kLinear, kWindow, kEcho, kExperts };
  enum Due { kDueLong = 1, kDueShort = 2 };
  static constexpr double kAlarm = 64, kSlack = 0.01, kUncovered = 0.75, kSquaredLogit = 4, kLogit = 15;
  static constexpr double kHeaviest = 1e6;     // a heavier row counts as this: more, and a covariance has no digits left
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max(), kFewest = 32;

  Settings set;
  int64_t tail, capacity, m;                   // features beside the kernel's; rows kept; features of an expert
  bool wide;                                   // no covariance over the inputs
  Memory lasting, recent;
  Newton newtons[4];
  Diagonal diagonal;
  Window window;
  Echo echo;
  Aggregate aggregate;
  Array<double> kept, kept_targets, kept_weights;  // a ring of the last rows learnt
  double centre = 0, spread = 1;               // targets of a regression are learnt as (y - centre) / spread
  double alarm = 0, covered = 0, covers = 0;   // CUSUM; the recent memory's mean |phi|^2, at its start and now
  int64_t learnt = 0, age = 0, next = 2, rising = 0, recent_age = 0, due = 0;
  // learnt: rows; age: rows since the lasting memory began; next: its age at the next rebuild; rising: rows since alarm was 0

  Mixture(Settings s, int64_t window_size, int64_t kept_rows)
      : set(std::move(s)), wide(set.width > 3 * set.budget), lasting(set.width, set.budget), recent(set.width, set.budget),
        window(window_size, set.width, set.outputs), echo(classes()), aggregate(kExperts, kWindow, classes(), set.regression) {
    tail = (1 + (wide ? set.outputs : set.width) + kLine<double> - 1) / kLine<double> * kLine<double>;
    m = lasting.slots() + tail;
    capacity = kept_rows;
    kept = Array<double>(size_t(capacity * set.width));
    kept_targets = Array<double>(size_t(capacity));
    kept_weights = Array<double>(size_t(capacity));
    auto loss = set.regression ? NewtonLoss::squared : NewtonLoss::logistic;
    for (int e = 0; e < 4; ++e)
      if (e != kLinear || !wide)
        newtons[e] = Newton(e == kLinear ? tail : m, set.outputs, e == kLoose ? NewtonLoss::squared : loss, e == kShort ? 0.999 : 1);
    set_priors();
    for (Newton& newton : newtons)
      if (newton.m) newton.reset();
    if (wide) diagonal = Diagonal(set.width, set.outputs);
    for (auto* a : {&features_[0], &features_[1]}) *a = Array<double>(size_t(kBlock * m));
    for (auto& p : products_) p = Array<double>(size_t(kBlock * m));
    if (!window.size) aggregate.only(((1 << aggregate.candidates()) - 1) & ~(1 << kWindow));
    z_.resize(size_t(kExperts * classes()));
    raw_.resize(size_t(kExperts * set.outputs));
  }

  // Prior variances: of each kernel feature, of the bias (1), and of the linear part, shared by the features that vary (1 for each
  // linear score of wide rows). In regression the experts differ in how smooth they expect the function to be.
  void set_priors() {
    double kernel[4] = {set.regression ? 30.0 : 10.0, set.regression ? 1.0 : 10.0, set.regression ? 30.0 : 10.0, 0};
    double linear[4] = {set.regression ? 90.0 : 30.0, set.regression ? 3.0 : 10.0, set.regression ? 90.0 : 30.0, 30.0};
    for (int e = 0; e < 4; ++e) {
      if (!newtons[e].m) continue;
      double* prior = newtons[e].prior.data();
      if (e != kLinear) prior = std::fill_n(prior, set.budget, kernel[e]) + (lasting.slots() - set.budget);
      *prior++ = 1;
      std::fill_n(prior, wide ? set.outputs : set.width, wide ? 1.0 : linear[e] / (e == kShort ? recent : lasting).active);
    }
  }

  size_t nbytes() const {
    size_t total = lasting.nbytes() + recent.nbytes() + diagonal.nbytes() + window.nbytes() + echo.nbytes() + kept.nbytes() +
                   kept_targets.nbytes() + kept_weights.nbytes();
    for (const Newton& n : newtons)
      if (n.m) total += n.nbytes();
    return total;
  }

  void score(const Rows<T>& rows, double* out) {
    for (int64_t i = 0; i < rows.n; i += kBlock) {
      int64_t n = std::min(kBlock, rows.n - i);
      measure(rows, i, n, kDueLong | kDueShort);
      for (int64_t r = 0; r < n; ++r) forecast(r, out + (i + r) * set.outputs);
    }
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* weights, double* out, Stop& why) {
    why = Stop::done;
    for (int64_t i = from; i < rows.n;) {
      int64_t n = std::min(kBlock - newtons[kLong].pending, rows.n - i);
      measure(rows, i, n, kDueLong | kDueShort);
      prepare(n, 0xF);
      for (int64_t r = 0; r < n; ++r, ++i) {
        double* f = out + i * set.outputs;
        forecast(r, f);
        double weight = weights ? std::min(weights[i], kHeaviest) : 1, y = standard(targets[i]);
        if (weight == 0) continue;
        if (!(std::abs(y) < 1e100) || !finite(f)) {
          why = Stop::not_finite;
          return i;
        }
        learn(r, y, weight, 0x1F);
        keep(rows, i, targets[i], weight);
        watch(r, y, weight);
        if (due) {
          why = Stop::due;
          return i + 1;
        }
      }
    }
    return rows.n;
  }

  // The scale of the targets, from rows kept; both memories are to be rebuilt. What the aggregation made of the first two
  // targets, whose scale was not known, is forgotten; later its noise is taken over in the new units.
  void standardise(double centre_, double spread_) {
    if (age <= 2)
      aggregate.restart();
    else
      aggregate.noise = std::max(aggregate.noise * (spread / spread_) * (spread / spread_), Aggregate::kQuietest);
    echo.value = (echo.value * spread + centre - centre_) / spread_;
    centre = centre_;
    spread = spread_;
  }

  // Empties the experts of a memory and gives it another scaling, landmarks (already scaled) and bandwidth.
  void build(int64_t which, const double* centre_, const double* scale_, double active, const Rows<double>& points, double gamma,
             const double* whitening) {
    Memory& memory = which == kDueLong ? lasting : recent;
    int64_t n = points.n;
    std::copy_n(centre_, set.width, memory.centre.data());
    std::copy_n(scale_, set.width, memory.scale.data());
    memory.settle();
    memory.landmarks.kernel.gamma = gamma;
    memory.landmarks.count = 0;
    for (int64_t j = 0; j < n; ++j) memory.landmarks.put(j, points, j);
    for (int64_t i = 0; i < set.budget; ++i)
      for (int64_t j = 0; j < memory.slots(); ++j) memory.whitening.at(i, j) = i < n && j < n ? whitening[i * n + j] : 0;
    for (Newton& newton : newtons)
      if (newton.pending) newton.flush();      // all stay in step
    memory.active = active;
    set_priors();
    if (which == kDueLong) {
      newtons[kLong].reset();
      newtons[kLoose].reset();
      wide ? diagonal.reset() : newtons[kLinear].reset();
      next = age >= capacity ? kNever : std::min(2 * std::max<int64_t>(age, 1), capacity);
      alarm = 0;
      rising = 0;
    } else {
      newtons[kShort].reset();
      window.reset(gamma);
      recent_age = 0;
      covered = covers = 0;
    }
    due &= ~which;
  }

  // Teaches the experts of a memory rows learnt before, the oldest first. `trial`: its first expert alone, by least squares, whose
  // progressive squared error is a better guide to the bandwidth than the logistic loss; it is returned, summed from row `counted`
  // on. Of wide rows the linear expert learns in a trial of the lasting memory too; the recent memory, rebuilt after the lasting
  // one, sees its scores as they are by then.
  double replay(int64_t which, const Rows<double>& rows, const double* targets, const double* weights, bool trial,
                int64_t counted) {
    Expert first = which == kDueLong ? kLong : kShort;
    int experts = 1 << first;
    if (!trial) experts |= which == kDueLong ? 1 << kLoose | 1 << kLinear : 1 << kWindow;
    if (wide) experts |= which == kDueLong ? 1 << kLinear : 0;
    double total = 0;
    NewtonLoss usual = newtons[first].loss;
    if (trial) newtons[first].loss = NewtonLoss::squared;
    for (int64_t i = 0; i < rows.n;) {
      int64_t n = std::min(kBlock - newtons[first].pending, rows.n - i);
      measure(rows, i, n, which);
      prepare(n, experts);
      for (int64_t r = 0; r < n; ++r, ++i) {
        double y = standard(targets[i]);
        consult(r, experts);
        if (trial && i >= counted) total += weights[i] * squared_error(raw_.data() + first * set.outputs, y);
        learn(r, y, weights[i], experts);
      }
    }
    for (Newton& newton : newtons)
      if (newton.pending) newton.flush();
    newtons[first].loss = usual;
    return total;
  }

 private:
  int64_t classes() const { return set.regression ? 1 : std::max<int64_t>(2, set.outputs); }
  double standard(double y) const { return set.regression ? (y - centre) / spread : y; }
  bool finite(const double* f) const {
    return std::all_of(f, f + set.outputs, [](double v) { return std::isfinite(v); });
  }

  template <class U> void measure(const Rows<U>& rows, int64_t i, int64_t n, int64_t which) {
    for (int64_t side : {int64_t(kDueLong), int64_t(kDueShort)}) {
      Memory& memory = side == kDueLong ? lasting : recent;
      Rows<double>& z = scaled_[side - 1];
      if ((which & side) || (wide && side == kDueLong)) z = memory.scaled(rows, i, n);
      if (!(which & side)) continue;
      double* out = features_[side - 1].data();
      memory.features(z, out, m);
      for (int64_t r = 0; r < n; ++r) {
        double* x = out + r * m + memory.slots();
        *x++ = 1;
        if (wide) continue;                    // the linear expert's scores come here: see `consult`
        if (z.sparse()) std::copy_n(memory.zero.data(), set.width, x);
        z.each(r, [&](int64_t d, double v) { x[d] = v + memory.zero[size_t(d)]; });
      }
    }
  }

  double* feature_row(int expert, int64_t r) {
    double* row = features_[expert == kShort].data() + r * m;
    return expert == kLinear ? row + lasting.slots() : row;
  }

  void prepare(int64_t n, int experts) {
    for (int e = 0; e < 4; ++e)
      if (!wide && (experts >> e & 1)) newtons[e].prepare(feature_row(e, 0), n, m, products_[e].data());
  }

  // Scores of the experts asked for, into raw_.
  void consult(int64_t r, int experts) {
    double* f = raw_.data();
    if (wide) {
      diagonal.score(lasting, scaled_[0], r, f + kLinear * set.outputs);
      for (int e : {int(kLong), int(kShort)})
        for (int64_t c = 0; c < set.outputs; ++c)
          feature_row(e, r)[lasting.slots() + 1 + c] = std::min(std::max(f[kLinear * set.outputs + c], -8.0), 8.0);
    }
    for (int e = 0; e < 4; ++e)
      if ((experts >> e & 1) && newtons[e].m) newtons[e].score(feature_row(e, r), f + e * set.outputs);
    if ((experts >> kWindow & 1) && window.size) window.score(scaled_[1], r, f + kWindow * set.outputs);
  }

  void forecast(int64_t r, double* out) {
    consult(r, 0x1F);
    int64_t C = classes();
    for (int e = 0; e < kEcho; ++e)
      for (int64_t c = 0; c < C; ++c) {
        double f = set.outputs == C ? raw_[size_t(e * C + c)] : c ? raw_[size_t(e)] : 0;
        if (!set.regression) f = std::min(std::max((e == kLoose || e == kWindow) ? kSquaredLogit * f : f, -kLogit), kLogit);
        z_[size_t(e * C + c)] = f;
      }
    if (set.regression)
      z_[kEcho] = echo.value;
    else
      echo.score(z_.data() + kEcho * C);
    const double* p = aggregate.forecast(z_.data());
    if (set.regression)
      out[0] = p[0] * spread + centre;
    else if (set.outputs == 1)
      out[0] = std::log(p[1]) - std::log(p[0]);
    else
      for (int64_t c = 0; c < C; ++c) out[c] = std::log(p[c]);
  }

  void learn(int64_t r, double y, double weight, int experts) {
    const double* f = raw_.data();
    for (int e = 0; e < 4; ++e)
      if ((experts >> e & 1) && newtons[e].m) {
        if (wide) newtons[e].prepare(feature_row(e, r), 1, m, products_[e].data() + r * m);  // only now are they known
        newtons[e].learn(feature_row(e, r), products_[e].data() + r * newtons[e].m, f + e * set.outputs, y, weight);
      }
    if (wide && (experts >> kLinear & 1)) {
      slopes_.assign(f + kLinear * set.outputs, f + (kLinear + 1) * set.outputs);
      residuals(slopes_.data(), y, weight);
      diagonal.learn(lasting, scaled_[0], r, slopes_.data());
    }
    if ((experts >> kWindow & 1) && window.size) window.learn(scaled_[1], r, y, weight);
  }

  void residuals(double* f, double y, double weight) const {
    if (set.regression) {
      f[0] = weight * (y - f[0]);
    } else if (set.outputs == 1) {
      f[0] = weight * ((y > 0) - logistic(f[0]));
    } else {
      double top = *std::max_element(f, f + set.outputs), sum = 0;
      for (int64_t c = 0; c < set.outputs; ++c) sum += f[c] = std::exp(f[c] - top);
      for (int64_t c = 0; c < set.outputs; ++c) f[c] = weight * ((int64_t(y) == c) - f[c] / sum);
    }
  }

  double squared_error(const double* f, double y) const {
    double total = 0;
    for (int64_t c = 0; c < set.outputs; ++c) {
      double miss = (set.outputs == 1 ? y : int64_t(y) == c ? 1 : -1) - f[c];
      total += miss * miss;
    }
    return total;
  }

  void keep(const Rows<T>& rows, int64_t i, double y, double weight) {
    int64_t slot = learnt++ % capacity;
    double* to = kept.data() + slot * set.width;
    if (rows.sparse()) std::fill_n(to, set.width, 0.0);
    rows.each(i, [&](int64_t d, T v) { to[d] = double(v); });
    kept_targets[size_t(slot)] = y;
    kept_weights[size_t(slot)] = weight;
  }

  // Aggregates the round, and sees whether a memory has had its time.
  void watch(int64_t r, double y, double weight) {
    double label = set.regression ? y : set.outputs == 1 ? double(y > 0) : y;
    double behind = aggregate.loss(kLong, label) - aggregate.loss(kShort, label);
    aggregate.learn(label, weight);
    if (set.regression)
      echo.value = y;
    else
      echo.learn(int64_t(label), weight);
    ++age;
    if (age == next) due |= age == learnt ? kDueLong | kDueShort : kDueLong;
    // The lasting memory loses against the recent one for good: it begins again where that began.
    alarm = std::max(0.0, alarm + behind - kSlack);
    rising = alarm > 0 ? rising + 1 : 0;
    if (alarm > kAlarm && rising >= kFewest && learnt > capacity) {
      age = std::min(rising, capacity);
      due |= kDueLong;
    }
    const double* phi = features_[1].data() + r * m;
    double share = dot(phi, phi, size_t(recent.slots() / kLine<double>));
    if (++recent_age <= set.budget)
      covered = covers += (share - covers) / double(recent_age);
    else
      covers += (share - covers) / double(set.budget);
    if (recent_age >= capacity && covers < kUncovered * covered) due |= kDueShort;
  }

  Array<double> features_[2], products_[4];
  Rows<double> scaled_[2];
  std::vector<double> z_, raw_, slopes_;
};

}  // namespace KS_MODULE
