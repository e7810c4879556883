// NewtonMixture's rounds: seven experts on scaled rows, their aggregation, and the signs that something is to be rebuilt.
//
// What the aggregation sees of an expert, in classification: its score as the logit of the class (of class 1 against 0 where there
// is one output), kSquaredLogit times that where the expert is fitted by least squares to -1 and +1, bounded by kLogit. After t rows such
// a score counts t / (t + kFewRows): a fit to few rows goes through nearly all of them, and its score of another is nearly -1 or +1, be it
// right or wrong.
//
// Scaling, landmarks and bandwidths are chosen in Python (learners/newton_mixture.py) from the rows kept here; a run stops when a
// memory is `due`, that is to be rebuilt. Everything is double, whatever the rows are. docs/default.md says where each of its
// paragraphs is in the code; the state's arrays and numbers are named in mixture_state.hpp.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "aggregate.hpp"
#include "diagonal.hpp"
#include "settings.hpp"
#include "labels.hpp"
#include "local.hpp"
#include "memory.hpp"
#include "names.hpp"
#include "newton.hpp"
#include "outliers.hpp"
#include "trees.hpp"
#include "window.hpp"

namespace KS_MODULE {

template <class T> class Mixture {
 public:
  // The lasting memory is due when the CUSUM of its losses less the recent one's, less kCusumSlack per round, is above kCusumLimit
  // after at least kCusumRounds rounds; the recent one when its coverage is below kLeastCoverage of what it was.
  static constexpr double kCusumLimit = 64, kCusumSlack = 0.01, kLeastCoverage = 0.75;
  static constexpr int64_t kCusumRounds = 32, kNever = std::numeric_limits<int64_t>::max();
  static constexpr double kSquaredLogit = 4, kFewRows = 20, kLogit = 15;
  // What is kept of the past in a round. Of `linear` much more than of `recent`: its prior variances are far above what is left of them
  // after some rows, so that the little which comes back in a round lets it follow within hundreds of rows.
  static constexpr double kRecentKeep = 0.999, kLinearKeep = 0.99997;
  // What experts begin with in the two aggregations: a share, and a weight in the stacks. `labels`, which sees no rows, and the local
  // experts have to earn their shares, means over neighbours more than the local kernel machine; and `window`, `trees` and means their
  // weights: in the first rows they know least.
  static constexpr Aggregate::Start kStart[Expert::count] = {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 0}, {1, 0}, {0.01, 0}};
  static constexpr Aggregate::Start kLocalStart[LocalExpert::count] = {{1, 0.75}, {0.3, 0.125}, {0.3, 0.125}, {0.1, 0}, {0.1, 0}, {0.1, 0}};
  static constexpr double kLeastCorrected = 0.005, kLeastProbability = 1e-6;  // what the local aggregation sees of probabilities
  static constexpr double kHeaviest = 1e6, kLightest = 1e-100;  // a heavier or lighter row counts as this
  static constexpr double kWeightKeep = 0.999;
  // A row with a larger target is refused, also one farther from the others in units of their spread: products of the two, and
  // squares of distances, stay finite.
  static constexpr double kLargest = 1e200, kFarthest = 1e100;

  Settings set;
  int64_t extra, capacity, m;                  // features before the kernel's; rows kept; features of an expert
  bool wide;                                   // no covariance over the inputs
  Memory memories[MemoryKind::count];
  Newton newtons[Expert::newtons];
  Diagonal diagonal;                           // the linear expert of wide rows, in place of its Newton
  Window window;
  Trees trees;
  Labels labels;
  Aggregate aggregate, local_aggregate;
  Outliers outliers;                           // of a regression
  Local local;
  Array<double> kept_rows, kept_targets, kept_weights;  // a ring of the last rows learnt
  std::vector<SparseRow<double>> kept_sparse;  // its rows, if they are wider than kWidestDense
  Array<double> kept_residuals;                // what the aggregation's forecast left of them; none without a local memory. Those of
                                               // rows not learnt yet may be missing: see `allow_residuals`
  double target_centre = 0, target_spread = 1;  // targets of a regression are learnt as (y - centre) / spread
  double weight_sum = 0, weight_squares = 0;   // of the last rows' weights, see `relative`
  double cusum = 0;
  double coverage_start = 0, coverage = 0;     // mean |phi|^2 of the recent memory, over its first `budget` rows and now
  int64_t learnt = 0;                          // rows
  int64_t lasting_age = 0, recent_age = 0;     // rows since the memory began
  int64_t cusum_age = 0;                       // rows since the CUSUM was 0
  int64_t ordered = 1;                         // 0: the rows learnt are a set, whose order means nothing; see `learn_set`
  int64_t next_rebuild = 2;                    // the age at which the lasting memory is due
  MemorySet due;
  Reason reasons[MemoryKind::count];           // why a memory is due
  bool relevance_due = false;                  // the features' relevances are to be estimated again
  std::vector<double> scales;                  // regression: of the rows of the last run, see `scale_of_forecast`
  bool held = false;                           // no memory is rebuilt, so that models of the same memories can be merged
  bool trees_wait = false;                     // a model from before there were trees: they take no part until they begin
  bool tamed = false;                          // a wild target was just moved: see `tame`

  Mixture(Settings s, int64_t window_size, int64_t capacity_, int64_t local_rows)
      : set(std::move(s)),
        wide(set.width > 3 * set.budget),
        memories{{set.width, set.budget}, {set.width, set.budget}},
        window(window_size, set.width, set.outputs),
        trees(set.width, set.outputs, set.regression, wide ? 0 : set.budget),
        labels(classes()),
        aggregate({std::begin(kStart), std::end(kStart)}, classes(), set.regression, {Expert::least_squares, Expert::window}),
        local_aggregate({std::begin(kLocalStart), std::end(kLocalStart)}, classes(), set.regression,
                        {LocalExpert::neighbours, LocalExpert::smoothed, LocalExpert::latest}),
        local(wide ? 0 : set.width, set.outputs, wide ? 0 : local_rows) {
    extra = extra_features();
    m = slots() + extra;
    capacity = capacity_;
    if (set.width > kWidestDense)
      kept_sparse.resize(size_t(capacity));
    else
      kept_rows = Array<double>(size_t(capacity * set.width));
    kept_targets = Array<double>(size_t(capacity));
    kept_weights = Array<double>(size_t(capacity));
    if (local.capacity) kept_residuals = Array<double>(size_t(capacity * set.outputs));
    begin_experts();
    if (wide) diagonal = Diagonal(set.width, set.outputs);
    aggregate.only(included());
    make_scratch();
  }

  // The same with its outputs replaced, as far as weights and targets go; its labels, residuals, trees and local memory are those of a
  // model that has learnt nothing, and so are the experts of wide rows, which see the outputs. What is read from a state is taken over,
  // and what follows from it.
  Mixture(const Mixture& o, const Mix& mix, int64_t local_rows)
      : set{o.set.width, mix.outputs(), o.set.budget, o.set.regression},
        extra(o.extra),
        capacity(o.capacity),
        m(o.m),
        wide(o.wide),
        memories{o.memories[0], o.memories[1]},
        window(o.window, set.outputs, mix.of(o.window.targets, o.window.points.slots(), true)),
        trees(set.width, set.outputs, set.regression, wide ? 0 : set.budget),
        labels(classes()),
        aggregate(o.aggregate, classes()),
        local_aggregate(o.local_aggregate, classes()),
        local(wide ? 0 : set.width, set.outputs, wide ? 0 : local_rows),
        kept_rows(o.kept_rows),
        kept_targets(o.kept_targets),
        kept_weights(o.kept_weights),
        kept_sparse(o.kept_sparse),
        target_centre(o.target_centre),
        target_spread(o.target_spread),
        weight_sum(o.weight_sum),
        weight_squares(o.weight_squares),
        cusum(o.cusum),
        coverage_start(o.coverage_start),
        coverage(o.coverage),
        learnt(o.learnt),
        lasting_age(o.lasting_age),
        recent_age(o.recent_age),
        cusum_age(o.cusum_age),
        ordered(o.ordered),
        next_rebuild(o.next_rebuild),
        twins_(o.twins_) {
    if (wide) {
      extra = extra_features();
      m = slots() + extra;
      begin_experts();
      diagonal = Diagonal(set.width, set.outputs);
    } else {
      for (int e = 0; e < Expert::newtons; ++e) newtons[e] = Newton(o.newtons[e], mix);
    }
    make_scratch();
  }

  // Experts that have learnt nothing.
  void begin_experts() {
    auto loss = set.regression ? NewtonLoss::squared : NewtonLoss::logistic;
    for (int e = 0; e < Expert::newtons; ++e)
      if (e != Expert::linear || !wide)
        newtons[e] = Newton(e == Expert::linear ? extra : m, set.outputs, e == Expert::least_squares ? NewtonLoss::squared : loss,
                            e == Expert::recent   ? kRecentKeep
                            : e == Expert::linear ? kLinearKeep
                                                  : 1);
    set_priors();
    for (Newton& newton : newtons)
      if (newton.m) newton.reset();
  }
  void make_scratch() {
    for (auto* a : {&features_[0], &features_[1]}) *a = Array<double>(size_t(kBlock * m));
    for (auto& p : products_) p = Array<double>(size_t(kBlock * m));
    z_.resize(size_t(Expert::count * classes()));
    raw_.resize(size_t(Expert::count * set.outputs));
    local_z_.resize(size_t(LocalExpert::count * classes()));
    local_raw_.resize(size_t(2 * set.outputs));
    bounded_.resize(size_t(classes()));
    residual_.resize(size_t(set.outputs));
  }

  // Prior variances: of each kernel feature, of the bias (1), and of the linear part, shared by the features that vary (1 for each
  // linear score of wide rows). In regression the experts differ in how smooth they expect the function to be.
  void set_priors() {
    double kernel[Expert::newtons] = {set.regression ? 30.0 : 10.0, set.regression ? 1.0 : 10.0, set.regression ? 30.0 : 10.0, 0};
    double linear[Expert::newtons] = {set.regression ? 90.0 : 30.0, set.regression ? 3.0 : 10.0, set.regression ? 90.0 : 30.0, 30.0};
    for (int e = 0; e < Expert::newtons; ++e) {
      if (!newtons[e].m) continue;
      double* prior = newtons[e].prior.data();
      *prior = 1;
      std::fill_n(prior + 1, wide ? set.outputs : set.width, wide ? 1.0 : linear[e] / memories[memory_of(e)].varying);
      if (e == Expert::linear) continue;
      std::fill_n(prior + extra, set.budget, kernel[e]);
      newtons[e].used = features_used(e);
    }
  }

  // Features that an expert of a memory's kernel sees: those of all landmarks, `recent` those of the first half (in whole lines), which
  // cost two fifths. Finer structure than these can hold, others know better, who keep more of the past. One from an older version,
  // which has learnt with all, goes on with all until its memory is rebuilt.
  int64_t features_used(int e) const {
    constexpr int64_t L = kLine<double>;
    int64_t all = extra + memories[memory_of(e)].used(), half = extra + ((set.budget + 1) / 2 + L - 1) / L * L;
    return e == Expert::recent && !newtons[e].weighs(half) ? std::min(all, half) : all;
  }

  // Before anything was learnt: the rows to come are a set. Nothing looks at their order: the experts and stacks that forget or
  // follow (recent, window, labels, forgetting_stack) take no part, linear forgets nothing, and no memory begins again because the rows
  // changed.
  void learn_set() {
    ordered = 0;
    settle_linear();
    aggregate.only(included());
    local_aggregate.only(included_locally());
  }
  // From now on the rows are a stream: what takes no part in a set begins, the recent memory with the rows kept.
  void learn_stream() {
    ordered = 1;
    flush();
    settle_linear();
    memories[MemoryKind::recent].landmarks.kernel.gamma = memories[MemoryKind::lasting].landmarks.kernel.gamma;  // a first guess
    aggregate.admit(included());
    local_aggregate.admit(included_locally());
    if (learnt) due.add({MemoryKind::recent});
  }
  // After `ordered`, or what is pending, changed: `linear` forgets in a stream and not in a set, and so did the rounds pending.
  void settle_linear() {
    Newton& linear = newtons[Expert::linear];
    linear.keep = ordered ? kLinearKeep : 1;
    linear.decay = 1;
    for (int64_t j = 0; j < linear.pending; ++j) linear.decay *= linear.keep;
  }
  // After `ordered` was read: the candidates that take part.
  void settle_candidates() {
    trees_wait = trees.capacity && aggregate.shares[Expert::trees] == 0;
    aggregate.include(included());
    local_aggregate.include(included_locally());
  }

  int64_t slots() const { return memories[0].slots(); }  // kernel features, padded
  int64_t extra_features() const { return (1 + (wide ? set.outputs : set.width) + kLine<double> - 1) / kLine<double> * kLine<double>; }

  // Memory for the residuals of the first n rows kept, those that were missing 0: for twice as many again and again, so that a new
  // class in the first rows moves few of them.
  void allow_residuals(int64_t n) {
    int64_t have = int64_t(kept_residuals.size()) / set.outputs;
    if (!local.capacity || n <= have) return;
    Array<double> more(size_t(residual_rows(n) * set.outputs));
    if (have) std::copy_n(kept_residuals.data(), have * set.outputs, more.data());
    kept_residuals = std::move(more);
  }
  int64_t residual_rows(int64_t n) const {
    int64_t rows = 64;
    while (rows < n) rows *= 2;
    return std::min(rows, capacity);
  }

  size_t nbytes() const {
    size_t total = diagonal.nbytes() + window.nbytes() + labels.nbytes() + kept_rows.nbytes() + kept_targets.nbytes() +
                   kept_weights.nbytes() + residual_bytes() + local.nbytes() + trees.nbytes();
    for (const Memory& memory : memories) total += memory.nbytes();
    for (const SparseRow<double>& row : kept_sparse) total += row.nbytes();
    for (const Newton& n : newtons)
      if (n.m) total += n.nbytes();
    return total;
  }

  size_t residual_bytes() const {              // of all rows, also those that are missing yet
    constexpr int64_t L = kLine<double>;
    return local.capacity ? size_t((capacity * set.outputs + L - 1) / L * L) * sizeof(double) : 0;
  }

  // scales: one per row, of a regression; may be left out.
  void score(const Rows<T>& rows, double* out, double* scales_ = nullptr) {
    for (int64_t i = 0; i < rows.n; i += kBlock) {
      int64_t n = std::min(kBlock, rows.n - i);
      measure(rows, i, n, used());
      for (int64_t r = 0; r < n; ++r) {
        copy_ = is_copy(rows, i + r);
        forecast(r, out + (i + r) * set.outputs);
        if (scales_) scales_[i + r] = scale_of_forecast();
      }
    }
  }

  // The neighbours of each row, the nearest first: visit(row, place, the learnt row's number from 0 on, distance, coefficient, target).
  template <class F> void neighbours(const Rows<T>& rows, F visit) {
    for (int64_t i = 0; i < rows.n; i += kBlock) {
      int64_t n = std::min(kBlock, rows.n - i);
      measure(rows, i, n, {MemoryKind::lasting});
      for (int64_t r = 0; r < n; ++r) {
        local.look(scaled_[MemoryKind::lasting], r);
        local.solve();
        for (size_t j = 0; j < local.near.size(); ++j) {
          Local::Near at = local.near[j];
          double y = local.targets[size_t(at.which)];
          visit(i + r, int64_t(j), learnt - 1 - local.age(at.which), std::sqrt(double(at.square)) / Local::kSteps, local.coefficients()[j],
                set.regression ? y * target_spread + target_centre : y);
        }
      }
    }
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* weights, double* out, Stop& why) {
    why = Stop::done;
    if (set.regression) scales.resize(size_t(rows.n));
    for (int64_t i = from; i < rows.n;) {
      int64_t n = std::min(kBlock - newtons[Expert::lasting].pending % kBlock, rows.n - i);
      measure(rows, i, n, used());
      prepare(n, experts());
      for (int64_t r = 0; r < n; ++r, ++i) {
        double* f = out + i * set.outputs;
        copy_ = is_copy(rows, i);
        forecast(r, f);
        if (set.regression) scales[size_t(i)] = scale_of_forecast();
        double weight = weights ? weights[i] : 1, y = standard(targets[i]);
        if (weight == 0) continue;
        weight = std::min(std::max(weight, kLightest), kHeaviest);
        if (!(std::abs(y) < kFarthest) || !(std::abs(targets[i]) < kLargest) || !finite(f)) {
          why = Stop::not_finite;
          return i;
        }
        if (set.regression && !learnt && !held) {  // all that is known of the targets until they are standardised
          target_centre = targets[i];
          y = 0;
        }
        if (set.regression && ordered) labels.follow(y, within_);
        double learnt_y = y, loose = y;
        if (set.regression) {
          learnt_y = outliers.bounded(y, aggregate.value(), aggregate.noise_rounds, local.capacity ? local.usual_residual() : 0);
          loose = outliers.loose;
        }
        keep(rows, i, learnt_y == y ? targets[i] : learnt_y * target_spread + target_centre, weight);
        if (set.regression && ordered) labels.came(y, outliers.last);
        y = learnt_y;
        weight_sum = kWeightKeep * weight_sum + weight;
        weight_squares = kWeightKeep * weight_squares + weight * weight;
        weight = relative(weight);
        learn(r, y, loose, weight * outliers.weight, experts());
        if (local.capacity) learn_local(y, loose, weight);
        learn_aggregation(y, loose, weight);
        check_memories(r);
        if (!due.empty() || relevance_due) {
          why = Stop::due;
          return i + 1;
        }
      }
    }
    return rows.n;
  }

  // The scale of the targets, from rows kept; both memories are to be rebuilt. What the aggregation made of the first two
  // targets, or of a wild one that was tamed, is forgotten: their scale was not known. Later its noise and the usual error are taken over
  // in the new units.
  void standardise(double centre, double spread) {
    bool unknown = lasting_age <= 2 || tamed;
    auto follow = [&](auto& part) { unknown ? part.restart() : part.rescale(target_spread / spread); };
    follow(aggregate);
    follow(local_aggregate);
    follow(outliers);
    if (unknown) kept_residuals.clear();
    tamed = false;
    labels.last_target = (labels.last_target * target_spread + target_centre - centre) / spread;
    target_centre = centre;
    target_spread = spread;
  }

  // Brings all covariances up to date; the experts stay in step.
  void flush() {
    for (Newton& newton : newtons)
      if (newton.pending) newton.flush();
  }

  // Empties the experts of a memory and gives it another scaling (of some columns, rising; all others were 0), landmarks (already
  // scaled) and bandwidth.
  void build(MemoryKind::Name which, const int32_t* columns, int64_t count, const double* centre, const double* scale, double varying,
             const Rows<double>& points, double gamma, const double* whitening) {
    Memory& memory = memories[which];
    int64_t n = points.n;
    memory.rescale(columns, count, centre, scale);
    memory.landmarks.kernel.gamma = gamma;
    memory.landmarks.count = 0;
    for (int64_t j = 0; j < n; ++j) memory.landmarks.put(j, points, j);
    memory.settle();
    Panel<double>& whitened = memory.whitening.own();
    for (int64_t i = 0; i < set.budget; ++i)
      for (int64_t j = 0; j < memory.slots(); ++j) whitened.at(i, j) = i < n && j <= i ? whitening[i * n + j] : 0;
    flush();
    memory.varying = varying;
    set_priors();
    if (which == MemoryKind::lasting) {
      if (local.capacity) local.clear();       // until `refill`
      newtons[Expert::lasting].reset();
      newtons[Expert::least_squares].reset();
      wide ? diagonal.reset() : newtons[Expert::linear].reset();
      next_rebuild = rebuild_after(lasting_age);
      cusum = 0;
      cusum_age = 0;
    } else {
      newtons[Expert::recent].reset();
      newtons[Expert::recent].used = features_used(Expert::recent);
      window.reset(gamma);
      recent_age = 0;
      coverage_start = coverage = 0;
    }
    due.remove({which});
  }

  // Teaches the experts of a memory rows learnt before, the oldest first. The recent memory, rebuilt after the lasting one, sees the
  // linear scores of wide rows as they are by then.
  void replay(MemoryKind::Name which, const Rows<double>& rows, const double* targets, const double* weights) {
    bool lasting = which == MemoryKind::lasting;
    Expert::Name first = lasting ? Expert::lasting : Expert::recent;
    ExpertSet experts{first};
    experts.add(lasting ? ExpertSet{Expert::least_squares, Expert::linear} : ExpertSet{Expert::window});
    for (int64_t i = 0; i < rows.n;) {
      int64_t n = std::min(kBlock - newtons[first].pending % kBlock, rows.n - i);
      measure(rows, i, n, {which});
      prepare(n, experts);
      for (int64_t r = 0; r < n; ++r, ++i) {
        consult(r, experts);
        double y = standard(targets[i]);
        learn(r, y, y, relative(weights[i]), experts);
      }
    }
    flush();
    if (lasting && trees.capacity) plant(rows, targets, weights);
  }

  // The trees begin again with rows learnt before, the oldest first, which pay for as many trees as new rows would.
  void plant(const Rows<double>& rows, const double* targets, const double* weights) {
    std::vector<float> all;
    for (int64_t i = 0; i < rows.n; ++i) {
      const float* z = tree_row(memories[MemoryKind::lasting].scaled(rows, i, 1), 0);
      all.insert(all.end(), z, z + set.width);
    }
    begin_trees(all, rows.n);
    for (int64_t i = 0; i < rows.n; ++i) {
      trees.look(all.data() + i * set.width);
      trees.put(standard(targets[i]), relative(weights[i]));
    }
    trees.pay(rows.n);
  }

  // The rows kept, as the classes are now: the trees of the old ones are gone, and new ones are paid for by new rows.
  void replant() {
    trees = Trees(set.width, set.outputs, set.regression, wide ? 0 : set.budget);
    if (!trees.capacity) return;
    std::vector<float> all;
    int64_t first = learnt - std::min({learnt, capacity, lasting_age});
    for (int64_t i = first; i < learnt; ++i) {
      const float* z = tree_row(memories[MemoryKind::lasting].scaled(kept_row(i % capacity), 0, 1), 0);
      all.insert(all.end(), z, z + set.width);
    }
    begin_trees(all, learnt - first);
    for (int64_t i = first; i < learnt; ++i) {
      trees.look(all.data() + (i - first) * set.width);
      trees.put(kept_targets[size_t(i % capacity)], relative(kept_weights[size_t(i % capacity)]));
    }
  }

  // After a merge: what looks at the last rows sees the last ones kept.
  void see_last() {
    if (!ordered || !learnt) return;
    window.reset(window.points.kernel.gamma);
    for (int64_t i = learnt - std::min({learnt, capacity, window.size}); i < learnt; ++i) {
      Rows<double> z = memories[MemoryKind::recent].scaled(kept_row(i % capacity), 0, 1);
      window.score(z, 0, raw_.data());         // `learn` needs what it leaves behind
      window.learn(z, 0, standard(kept_targets[size_t(i % capacity)]), relative(kept_weights[size_t(i % capacity)]));
    }
    double last = kept_targets[size_t((learnt - 1) % capacity)];
    if (set.regression)
      labels.last_target = standard(last);
    else
      labels.last = set.outputs == 1 ? last > 0 : int64_t(last);
  }

  // The local memory begins again: with the lasting memory's landmarks, another relevance of each feature, and rows learnt before,
  // the oldest first, the last row learnt the last.
  void refill(const Rows<double>& rows, const double* targets, const double* weights, const double* relevance) {
    local.clear();
    std::copy_n(relevance, set.width, local.relevance.data());
    place_landmarks();
    relevance_due = false;
    allow_residuals(std::min(learnt, capacity));
    for (int64_t i = 0; i < rows.n; ++i) {
      const double* left = kept_residuals.data() + (learnt - rows.n + i) % capacity * set.outputs;
      for (int64_t c = 0; c < set.outputs; ++c) residual_[size_t(c)] = float(set.regression ? left[c] / target_spread : left[c]);
      local.put(memories[MemoryKind::lasting].scaled(rows, i, 1), 0, standard(targets[i]), relative(weights[i]), residual_.data());
    }
  }

  // Whether the relevances have been due since the lasting memory had that age.
  bool passed_relevance(int64_t age) const {
    for (int64_t times : {4, 16, 64})
      if (age < times * capacity && times * capacity <= lasting_age) return true;
    return false;
  }

  // Another relevance of each feature; the local memory keeps its rows.
  void set_relevance(const double* relevance) {
    local.note_all();
    std::vector<double> before = local.relevance;
    std::copy_n(relevance, set.width, local.relevance.data());
    place_landmarks();
    local.rescale(before.data());
    relevance_due = false;
  }

  // Row of a slot of the ring.
  Rows<double> kept_row(int64_t slot) const {
    if (!kept_sparse.empty()) return kept_sparse[size_t(slot)].row(set.width);
    return {1, set.width, kept_rows.data() + slot * set.width};
  }

  void place_landmarks() {
    const Points<double>& landmarks = memories[MemoryKind::lasting].landmarks;
    std::vector<double> dense(size_t(std::max<int64_t>(1, landmarks.count * set.width)));
    std::vector<double> one;
    for (int64_t j = 0; j < landmarks.count; ++j)
      landmarks.row(j, one).each(0, [&](int64_t d, double v) { dense[size_t(j * set.width + d)] = v; });
    Rows<double> points;
    points.n = landmarks.count;
    points.width = set.width;
    points.dense = dense.data();
    local.place(points, memories[MemoryKind::lasting].zero.data());
  }

  // The next age at which the lasting memory is due: twice as old as now up to budget / 4, when each row tells much; then 4 budget, or
  // that divided by 4, 16, ..., at least twice as old as now.
  int64_t rebuild_after(int64_t age) const {
    if (age >= capacity) return kNever;
    if (4 * age < set.budget) return 2 * age;
    int64_t next = capacity;
    while (next / 4 >= 2 * age) next /= 4;
    return next;
  }

  // Only the ratios of weights matter. A weight is divided by sum w^2 / sum w of the last weights, so that all of them together
  // count as their effective number of rows, (sum w)^2 / sum w^2 (Kish): equal weights count as one row each, whatever they are, and
  // a few heavy rows are not taken for many independent ones.
  double relative(double weight) const { return weight * weight_sum / weight_squares; }

 private:
  static MemoryKind::Name memory_of(int expert) {
    return expert == Expert::recent || expert == Expert::window ? MemoryKind::recent : MemoryKind::lasting;
  }
  ExpertSet experts() const {
    return ordered ? ExpertSet::all() : ExpertSet{Expert::lasting, Expert::least_squares, Expert::linear, Expert::trees};
  }
  MemorySet used() const { return ordered ? MemorySet::all() : MemorySet{MemoryKind::lasting}; }
  std::vector<bool> included() const {
    std::vector<bool> all(size_t(aggregate.candidates()), true);
    all[Expert::window] = window.size > 0;
    all[Expert::trees] = trees.capacity > 0 && !trees_wait;
    for (int k = 0; k < aggregate.candidates(); ++k)
      if (!ordered && (k < Expert::count ? !experts().has(k) : k > Expert::count)) all[size_t(k)] = false;
    return all;
  }
  std::vector<bool> included_locally() const {
    std::vector<bool> all(size_t(local_aggregate.candidates()), true);
    if (!ordered) all[LocalExpert::latest] = all.back() = false;
    return all;
  }
  int64_t classes() const { return set.regression ? 1 : std::max<int64_t>(2, set.outputs); }
  double label_of(double y) const { return !set.regression && set.outputs == 1 ? double(y > 0) : y; }  // the class's number, or the target
  double standard(double y) const { return set.regression ? (y - target_centre) / target_spread : y; }
  bool is_copy(const Rows<T>& rows, int64_t i) const {  // of the row learnt last; asked for by the labels of classes
    return learnt && ordered && !set.regression && same_row(rows, i, kept_row((learnt - 1) % capacity), 0);
  }
  bool finite(const double* f) const {
    return std::all_of(f, f + set.outputs, [](double v) { return std::isfinite(v); });
  }

  // Both memories are the same until one of them begins again: then the features are made once.
  bool twins() {
    Memory &lasting = memories[MemoryKind::lasting], &recent = memories[MemoryKind::recent];
    if (lasting.changed || recent.changed) twins_ = lasting.same_as(recent);
    lasting.changed = recent.changed = false;
    return twins_;
  }

  // The rows as some memories scale them, and the features that the experts see; of wide rows always as the lasting one scales.
  template <class U> void measure(const Rows<U>& rows, int64_t i, int64_t n, MemorySet which) {
    for (int k = 0; k < MemoryKind::count; ++k) {
      Memory& memory = memories[k];
      Rows<double>& z = scaled_[k];
      bool copied = k == MemoryKind::recent && which.has(k) && which.has(MemoryKind::lasting) && twins();
      if (!copied && (which.has(k) || (wide && k == MemoryKind::lasting))) z = memory.scaled(rows, i, n);
      if (!which.has(k)) continue;
      double* out = features_[k].data();
      if (copied) {
        z = scaled_[MemoryKind::lasting];
        std::copy_n(features_[MemoryKind::lasting].data(), n * m, out);
        continue;
      }
      memory.features(z, out + extra, m);
      for (int64_t r = 0; r < n; ++r) {
        double* x = out + r * m;
        *x++ = 1;
        if (wide) continue;  // the linear expert's scores come here: see `consult`
        if (z.sparse()) std::copy_n(memory.zero.data(), set.width, x);
        z.each(r, [&](int64_t d, double v) { x[d] = v + memory.zero[size_t(d)]; });
      }
    }
  }

  double* feature_row(int expert, int64_t r) { return features_[memory_of(expert)].data() + r * m; }

  void prepare(int64_t n, ExpertSet experts) {
    for (int e = 0; e < Expert::newtons; ++e)
      if (!wide && experts.has(e)) newtons[e].prepare(feature_row(e, 0), n, m, products_[e].data());
  }

  // Scores of the experts asked for, into raw_.
  void consult(int64_t r, ExpertSet experts) {
    double* f = raw_.data();
    if (wide) {
      double* linear = f + Expert::linear * set.outputs;
      diagonal.score(memories[MemoryKind::lasting], scaled_[MemoryKind::lasting], r, linear);
      for (int e : {Expert::lasting, Expert::recent})
        for (int64_t c = 0; c < set.outputs; ++c) feature_row(e, r)[1 + c] = std::min(std::max(linear[c], -8.0), 8.0);
    }
    for (int e = 0; e < Expert::newtons; ++e)
      if (experts.has(e) && newtons[e].m) newtons[e].score(feature_row(e, r), f + e * set.outputs);
    if (experts.has(Expert::window) && window.size) window.score(scaled_[MemoryKind::recent], r, f + Expert::window * set.outputs);
    if (experts.has(Expert::trees) && trees.capacity)
      std::copy_n(trees.look(tree_row(scaled_[MemoryKind::lasting], r)), set.outputs, f + Expert::trees * set.outputs);
  }

  // The trees begin again, with edges from n rows as they see them.
  void begin_trees(const std::vector<float>& rows, int64_t n) {
    trees.begin(rows, n);
    if (!trees_wait) return;
    trees_wait = false;
    aggregate.admit(included());
  }

  // A row as the trees see it: scaled row r, moved back.
  const float* tree_row(const Rows<double>& z, int64_t r) {
    const auto& zero = memories[MemoryKind::lasting].zero;
    tree_row_.resize(size_t(set.width));
    if (z.sparse())
      for (int64_t d = 0; d < set.width; ++d) tree_row_[size_t(d)] = float(zero[size_t(d)]);
    z.each(r, [&](int64_t d, double v) { tree_row_[size_t(d)] = float(v + zero[size_t(d)]); });
    return tree_row_.data();
  }

  void forecast(int64_t r, double* out) {
    if (!ordered) std::fill(raw_.begin(), raw_.end(), 0.0);
    consult(r, experts());
    int64_t C = classes();
    for (int e = 0; e < Expert::labels; ++e)
      for (int64_t c = 0; c < C; ++c) {
        double f = set.outputs == C ? raw_[size_t(e * C + c)] : c ? raw_[size_t(e)] : 0;
        bool squared = e == Expert::least_squares || e == Expert::window;
        z_[size_t(e * C + c)] = set.regression ? f : squared ? squared_logit(f) : std::min(std::max(f, -kLogit), kLogit);
      }
    if (set.regression)
      z_[Expert::labels] = learnt ? standard(kept_targets[size_t((learnt - 1) % capacity)]) : 0;
    else
      labels.score(copy_, z_.data() + Expert::labels * C);
    const double* p = aggregate.forecast(z_.data());
    if (local.capacity) p = forecast_local(r, p);
    within_ = p[0];
    if (set.regression) {
      out[0] = (ordered && stays(r) ? labels.last_target : within_) * target_spread + target_centre;
      return;
    }
    p = bound_unseen(p);
    if (set.outputs == 1)
      out[0] = std::log(p[1]) - std::log(p[0]);
    else
      for (int64_t c = 0; c < C; ++c) out[c] = std::log(p[c]);
  }

  // No expert knows a class before its first row: what they say of it is chance. As long as all rows learnt are kept, such a class gets at
  // most what half a row of it would, beside the rows learnt and half a row of each class; so it is never the likeliest one.
  const double* bound_unseen(const double* p) {
    int64_t C = classes(), unseen = C;
    if (!learnt || learnt > capacity) return p;
    std::fill(bounded_.begin(), bounded_.end(), 0.0);
    for (int64_t i = 0; i < learnt && unseen; ++i) {
      double& seen = bounded_[size_t(label_of(kept_targets[size_t(i)]))];
      unseen -= int64_t(seen == 0);
      seen = 1;
    }
    if (!unseen) return p;
    double most = 0.5 / (double(learnt) + 0.5 * double(C)), of_seen = 0, of_unseen = 0;
    for (int64_t c = 0; c < C; ++c)
      if (bounded_[size_t(c)] > 0)
        of_seen += p[c];
      else
        of_unseen += std::min(p[c], most);
    for (int64_t c = 0; c < C; ++c) bounded_[size_t(c)] = bounded_[size_t(c)] > 0 ? p[c] * (1 - of_unseen) / of_seen : std::min(p[c], most);
    return bounded_.data();
  }

  // The logit of a score that is fitted by least squares.
  double squared_logit(double s) const {
    return double(learnt) / (double(learnt) + kFewRows) * std::min(std::max(kSquaredLogit * s, -kLogit), kLogit);
  }

  // Regression: how far the target of the row last forecast may be, up to a factor that is calibrated in Python. The usual error and the
  // error at the neighbours count alike (their geometric mean), times the deviation that the local kernel machine expects.
  double scale_of_forecast() const {
    double usual = outliers.usual_error;
    if (!local.capacity || local.near.empty()) return usual * target_spread;
    double here = std::sqrt(local.residual_square(usual * usual)), deviation = std::sqrt(Local::kRidge + local.variance());
    return std::sqrt(usual * here) * deviation * target_spread;
  }

  // The local aggregation's forecast, from that of the aggregation, p.
  const double* forecast_local(int64_t r, const double* p) {
    global_ = p;
    local.look(scaled_[MemoryKind::lasting], r);
    if (local.near.empty()) return p;
    local.solve();
    local.smooth();
    double* z = local_z_.data();
    int64_t C = classes();
    for (int64_t c = 0; c < C; ++c) z[c] = set.regression ? p[c] : std::log(std::max(p[c], kLeastProbability));
    double *f = local_raw_.data(), *g = f + set.outputs;
    auto see_targets = [&](LocalExpert::Name which) {
      for (int64_t c = 0; c < C; ++c) {
        double s = set.outputs == C ? f[c] : c ? f[0] : 0;
        z[which * C + c] = set.regression ? s : squared_logit(s);
      }
    };
    auto see = [&](LocalExpert::Name of_targets, LocalExpert::Name of_residuals) {
      double* corrected = z + of_residuals * C;
      see_targets(of_targets);
      for (int64_t c = 0; c < C; ++c) {
        double missing = set.outputs == C ? g[c] : c ? g[0] : -g[0];
        corrected[c] = set.regression ? p[c] + missing : std::log(std::max(p[c] + missing / 2, kLeastCorrected));
      }
    };
    local.forecast(local.near, local.coefficients(), f, g);
    see(LocalExpert::neighbours, LocalExpert::corrected);
    local.forecast(local.around, local.smooth_coefficients(), f, g);
    see(LocalExpert::smoothed, LocalExpert::smoothed_corrected);
    if (ordered) {
      local.look_back();
      local.smooth_latest();
      local.forecast(local.latest, local.latest_coefficients(), f, g);
      see_targets(LocalExpert::latest);
    } else {
      std::fill_n(z + LocalExpert::latest * C, C, 0.0);
    }
    return local_aggregate.forecast(z);
  }

  // Residuals are those of targets -1 and +1, or of a regression's: in the ring as the targets come, in the local memory standardised.
  // bounded: what the noise sees of the target y.
  void learn_local(double bounded, double y, double weight) {
    if (!local.near.empty()) local_aggregate.learn(label_of(y), bounded, weight, learnt);
    allow_residuals(std::min(learnt, capacity));
    double* left = kept_residuals.data() + (learnt - 1) % capacity * set.outputs;
    for (int64_t c = 0; c < set.outputs; ++c) {
      double residual = set.regression     ? y - global_[0]
                        : set.outputs == 1 ? y - (global_[1] - global_[0])
                                           : 2 * (double(int64_t(y) == c) - global_[c]);
      residual = std::min(std::max(residual, -Local::kLargest), Local::kLargest);
      left[c] = set.regression ? residual * target_spread : residual;
      residual_[size_t(c)] = float(residual);
    }
    local.put(y, weight, residual_.data());
  }

  // loose: the target as the recent expert and the local memory learn it.
  void learn(int64_t r, double y, double loose, double weight, ExpertSet experts) {
    const double* f = raw_.data();
    for (int e = 0; e < Expert::newtons; ++e)
      if (experts.has(e) && newtons[e].m) {
        if (wide) newtons[e].prepare(feature_row(e, r), 1, m, products_[e].data() + r * m);  // only now are they known
        newtons[e].learn(feature_row(e, r), products_[e].data() + r * newtons[e].m, f + e * set.outputs, e == Expert::recent ? loose : y,
                         weight);
      }
    if (wide && experts.has(Expert::linear)) {
      slopes_.assign(f + Expert::linear * set.outputs, f + (Expert::linear + 1) * set.outputs);
      residuals(slopes_.data(), y, weight);
      diagonal.learn(memories[MemoryKind::lasting], scaled_[MemoryKind::lasting], r, slopes_.data());
    }
    if (experts.has(Expert::window) && window.size) window.learn(scaled_[MemoryKind::recent], r, y, weight);
    if (experts.has(Expert::trees) && trees.capacity) {
      trees.put(y, weight);
      trees.pay(1);
    }
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

  void keep(const Rows<T>& rows, int64_t i, double y, double weight) {
    int64_t slot = learnt++ % capacity;
    if (!kept_sparse.empty()) {
      kept_sparse[size_t(slot)].assign(rows, i);
    } else {
      double* to = kept_rows.data() + slot * set.width;
      if (rows.sparse()) std::fill_n(to, set.width, 0.0);
      rows.each(i, [&](int64_t d, T v) { to[d] = double(v); });
    }
    kept_targets[size_t(slot)] = y;
    kept_weights[size_t(slot)] = weight;
  }

  // The round's forecasts: what the aggregation, the labels expert and the CUSUM learn from them.
  void learn_aggregation(double y, double loose, double weight) {
    double label = label_of(y);
    double behind = !ordered ? 0 : aggregate.loss(Expert::lasting, label) - aggregate.loss(Expert::recent, label);
    aggregate.learn(label_of(loose), y, weight, learnt);
    if (!ordered) return;
    if (!set.regression) labels.learn(int64_t(label), weight, copy_);
    cusum = std::max(0.0, cusum + behind - kCusumSlack);
    cusum_age = cusum > 0 ? cusum_age + 1 : 0;
  }

  // Regression: whether the target is expected where the last one was, an outlier. A row that is outlying too speaks for that: if outliers
  // have not come back more than they stayed it is enough. One so far away that it belongs to no other target is rather a wild one:
  // then some must have stayed.
  bool stays(int64_t r) {
    bool far = std::abs(labels.last_target - within_) > Outliers::kFar * outliers.usual_error;
    return labels.stays(0) || (labels.stays(far ? 1 : 2) && outlying(r));
  }

  // Whether a feature of the row is more than twice as far from its centre as in any row kept; of few rows that says nothing.
  bool outlying(int64_t r) {
    if (learnt < Outliers::kFirstErrors || !kept_sparse.empty()) return false;
    const Memory& memory = memories[MemoryKind::lasting];
    const float* z = tree_row(scaled_[MemoryKind::lasting], r);
    for (int64_t d = 0; d < set.width; ++d) {
      double farthest = 0;
      for (int64_t i = 0; i < std::min(learnt, capacity); ++i)
        farthest = std::max(farthest, std::abs(kept_rows[size_t(i * set.width + d)] - memory.centre[size_t(d)]));
      if (farthest > 0 && std::abs(double(z[d])) > std::abs(soft_clip(2 * farthest * memory.scale[size_t(d)]))) return true;
    }
    return false;
  }

  // A wild target among the first rows is moved, and all begins again with the rows kept.
  void tame() {
    if (learnt > capacity || learnt != lasting_age || aggregate.noise_rounds >= Outliers::kFirstErrors) return;
    if (!Outliers::tame(kept_targets.data(), learnt)) return;
    tamed = true;
    due.add(used());
    for (Reason& reason : reasons) reason = {Reason::first_rows, double(lasting_age), lasting_age};
  }

  // Whether a memory is due: the lasting one at certain ages, or because it loses against the recent one for good, and then it
  // begins again where that began; the recent one because its landmarks no longer cover the rows.
  void check_memories(int64_t r) {
    ++lasting_age;
    if (lasting_age == next_rebuild) {
      due.add(lasting_age == learnt ? used() : MemorySet{MemoryKind::lasting});
      for (Reason& reason : reasons)
        reason = {lasting_age == learnt ? Reason::first_rows : Reason::more_rows, double(lasting_age), lasting_age};
    }
    if (cusum > kCusumLimit && cusum_age >= kCusumRounds && learnt > capacity) {
      if (!held) lasting_age = std::min(cusum_age, capacity);
      due.add({MemoryKind::lasting});
      reasons[MemoryKind::lasting] = {Reason::beaten, cusum, cusum_age};
    }
    if (set.regression && !held) tame();
    relevance_due |= local.capacity && passed_relevance(lasting_age - 1);
    if (ordered) check_coverage(r);
    if (!held) return;
    due = {};
    relevance_due = false;
  }

  void check_coverage(int64_t r) {
    const double* phi = features_[MemoryKind::recent].data() + r * m + extra;
    double covered = dot(phi, phi, size_t(memories[MemoryKind::recent].used() / kLine<double>));
    if (++recent_age <= set.budget)
      coverage_start = coverage += (covered - coverage) / double(recent_age);
    else
      coverage += (covered - coverage) / double(set.budget);
    if (recent_age >= capacity && coverage < kLeastCoverage * coverage_start) {
      due.add({MemoryKind::recent});
      reasons[MemoryKind::recent] = {Reason::uncovered, coverage / coverage_start, recent_age};
    }
  }

  Array<double> features_[MemoryKind::count], products_[Expert::newtons];
  Rows<double> scaled_[MemoryKind::count];
  bool twins_ = false;
  std::vector<double> z_, raw_, slopes_, local_z_, local_raw_, bounded_;
  std::vector<float> residual_, tree_row_;
  bool copy_ = false;  // whether the row at hand is a copy of the one learnt last
  double within_ = 0;  // regression: the forecast of the row at hand, unless an outlier stays
  const double* global_ = nullptr;  // the aggregation's forecast of the row at hand
};

}  // namespace KS_MODULE
