// Learning the kernel with the weights: expansions whose Gaussian scale takes gradient steps (OKS-SIL, OKL-GD). The formulas are in
// the Python classes.
#pragma once
#include "expansion.hpp"
#include "pseudo_solver.hpp"
#include "rules.hpp"

namespace KS_MODULE {

// How the scale, or its logarithm, moves (step rho / t^decay, kept in [low, high]), and OKS-SIL's test of linear dependence.
struct Search {
  double rho = 0, decay = 0, low = 0, high = 0, nu = 0;
  int64_t samples = 1;
  bool logarithm = false;
};

// An expansion in a Gaussian kernel whose scale is learnt: one for all (`gamma` has one entry), one a feature (an entry each:
// rows and points are then scaled by sqrt(gamma), and the points as they came are kept beside), or one a point, given to it
// when it was stored (OKL-GD).
template <class T> class Selection : public Expansion<T> {
 public:
  using Base = Expansion<T>;
  using Base::points, Base::random, Base::set, Base::slopes, Base::weights;
  Loss loss;
  double eta;
  Search search;
  std::vector<double> gamma;
  int64_t rounds = 0;                          // rounds learnt from
  Panel<T> raw;                                // the points, unscaled; empty unless there is one scale a feature

  Selection(Settings s, Storage storage, Loss l, double step, bool each_point, Search how, std::vector<double> start, bool each_feature,
            uint64_t seed)
      : Base(s, storage, Kernel<T>::named("gaussian", each_feature ? 1.0 : start[0], 0, 1), each_point ? newest_moves : all_move, false,
             seed),
        loss(l),
        eta(step),
        search(how),
        gamma(std::move(start)),
        each_feature_(each_feature),
        f_(size_t(set.outputs)),
        row_(size_t(set.width) + 1) {
    if (each_point) points.gammas = Array<T>(size_t(points.slots()));
    if (each_feature_) {
      points = Points<T>(points.kernel, set.width, points.slots(), false);  // rescaled column by column: dense
      raw = Panel<T>(set.width, set.budget);
      along_ = Array<T>(size_t(set.width) * kLine<T>);
    }
    apply();
  }

  bool each_feature() const { return each_feature_; }
  size_t nbytes() const { return Base::nbytes() + raw.nbytes() + gamma.size() * (sizeof(double) + sizeof(T)); }

  void score(const Rows<T>& rows, double* out) {
    if (!each_feature_) return Base::score(rows, out);
    for (int64_t i = 0; i < rows.n; ++i) Base::score(scaled(rows, i), out + i * set.outputs);
  }

  int64_t run(const Rows<T>& rows, int64_t from, const double* targets, const double* sample_weights, double* out, Stop& why) {
    if (!each_feature_) return Base::run(rows, from, targets, sample_weights, out, why);
    why = Stop::done;
    for (int64_t i = from; i < rows.n; ++i) {  // one at a time: the scales may have moved
      source_ = rows.part(i, i + 1);
      Base::run(scaled(rows, i), 0, targets + i, sample_weights ? sample_weights + i : nullptr, out + i * set.outputs, why);
      if (why != Stop::done) return i;
    }
    return rows.n;
  }

  // Puts `gamma` to use.
  void apply() {
    roots_.resize(gamma.size());
    for (size_t d = 0; d < gamma.size(); ++d) roots_[d] = std::sqrt(gamma[d]);
    if (!each_feature_) {
      points.kernel.gamma = T(gamma[0]);
      return;
    }
    scales_.assign(roots_.begin(), roots_.end());
    points.rescale(raw, scales_.data());
  }

 private:
  // OKS-SIL: the scale belongs to all points.
  static bool all_move(Base& e, const Round<T>& r) {
    Selection& s = static_cast<Selection&>(e);
    Random before = s.random;
    try {
      s.sketch(r);
    } catch (const NotFinite&) {
      s.random = before;
      --s.rounds;
      throw;
    }
    return true;
  }

  void sketch(const Round<T>& r) {
    ++rounds;
    if (!loss_slopes(loss, r, slopes)) return;
    const Rows<T>& rows = each_feature_ ? source_ : r.rows;
    const int64_t i = each_feature_ ? 0 : r.i;
    int64_t slot = points.count;
    std::copy_n(r.f, set.outputs, f_.begin());
    if (this->full()) {
      sample(r.k);
      if (!(residual(rows, i) > search.nu)) {  // dependent: the step goes to the sampled points
        auto step = [&](size_t c, size_t a) { return T(-eta * slopes[c] * (*alpha_)[a]); };
        for (size_t c = 0; c < weights.size(); ++c)
          for (size_t a = 0; a < sampled_.size(); ++a) storable<T>(double(weights[c][size_t(sampled_[a])] + step(c, a)));
        for (size_t c = 0; c < weights.size(); ++c)
          for (size_t a = 0; a < sampled_.size(); ++a) weights[c][size_t(sampled_[a])] += step(c, a);
        return;
      }
      slot = lightest();
      for (size_t c = 0; c < weights.size(); ++c) f_[c] -= weights[c][size_t(slot)] * r.k[slot];
      loss_slopes(loss, at(r), slopes);        // of f^b: without the point that goes, the new one still at weight 0
    }
    steps_ = slopes;
    for (double& s : steps_) {
      s *= -eta;
      storable<T>(s);
    }
    if (slot < points.count)
      for (auto& w : weights) w[size_t(slot)] = 0;
    for (size_t c = 0; c < weights.size(); ++c) f_[c] += T(steps_[c]);               // f^w, as k(x, x) = 1
    if (search.rho > 0 && loss_slopes(loss, at(r), slopes)) descend(r, rows, i);  // the new point, at distance 0, adds nothing
    this->place(slot, r.rows, r.i);
    for (size_t c = 0; c < weights.size(); ++c) weights[c][size_t(slot)] = T(steps_[c]);
    if (each_feature_) raw.put(slot, rows, i);
    apply();
  }

  // OKL-GD: only the newest point was stored with the scale of now, so the loss depends on the scale through it alone.
  static bool newest_moves(Base& e, const Round<T>& r) {
    Selection& s = static_cast<Selection&>(e);
    bool learns = loss_slopes(s.loss, r, s.slopes);
    if (learns && s.no_room()) return false;
    for (double slope : s.slopes) storable<T>(s.eta * slope);
    ++s.rounds;
    if (!learns) return true;
    int64_t slot = s.points.count, newest = slot - 1;
    if (newest >= 0) {
      double pull = 0;
      for (size_t c = 0; c < s.weights.size(); ++c) pull += s.slopes[c] * double(s.weights[c][size_t(newest)]);
      s.move(s.gamma[0], -pull * double(r.k[newest]) * double(s.measures(r.i)[newest]));
    }
    s.place(slot, r.rows, r.i);
    s.points.gammas[size_t(slot)] = T(s.gamma[0]);
    for (size_t c = 0; c < s.weights.size(); ++c) s.weights[c][size_t(slot)] = T(-s.eta * s.slopes[c]);
    return true;
  }

  Round<T> at(const Round<T>& r) const { return {r.rows, r.i, r.k, f_.data(), r.target, r.weight}; }

  int64_t lightest() const {
    int64_t found = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < points.count; ++j) {
      double size = weight_sum(*this, j);
      if (size < least) least = size, found = j;
    }
    return found;
  }

  // Draws `samples` slots without replacement, each time in proportion to k among those left: first a line of slots, then one of it.
  void sample(const T* k) {
    constexpr size_t L = kLine<double>;
    size_t lines = (size_t(points.count) + L - 1) / L;
    chance_.assign(lines * L, 0.0);
    std::copy_n(k, points.count, chance_.begin());
    line_chance_.resize(lines);
    auto add_up = [&](size_t l) { line_chance_[l] = Line<double>::at(chance_.data() + l * L).sum(); };
    for (size_t l = 0; l < lines; ++l) add_up(l);
    // The first entry with which the sum exceeds the aim (rounding: else the last that is not zero); the aim left for it.
    auto find = [](const double* p, size_t n, double& aim) {
      size_t found = 0;
      double sum = 0, before = 0;
      for (size_t i = 0; i < n && !(sum > aim); ++i)
        if (p[i] > 0) before = sum, sum += p[found = i];
      aim -= before;
      return found;
    };
    sampled_.clear();
    for (int64_t draw = 0; draw < std::min(search.samples, points.count); ++draw) {
      double total = 0;
      for (double p : line_chance_) total += p;
      double aim = random.uniform() * total;
      size_t line = find(line_chance_.data(), lines, aim), pick = line * L + find(chance_.data() + line * L, L, aim);
      chance_[pick] = 0;
      add_up(line);
      sampled_.push_back(int64_t(pick));
    }
  }

  // delta = |k(x, .) - sum_a alpha_a k(x_a, .)|^2 at its least, over the sampled points; in double whatever T is.
  double residual(const Rows<T>& rows, int64_t i) {
    size_t n = sampled_.size(), lines = (size_t(set.width) + kLine<double> - 1) / kLine<double>, stride = lines * kLine<double>;
    near_.assign((n + 1) * stride, 0.0);       // the sampled points, then x, scaled
    auto scale = [&](int64_t d) { return each_feature_ ? roots_[size_t(d)] : roots_[0]; };
    std::vector<T> dense;
    for (size_t a = 0; a < n; ++a) {
      Rows<T> point = each_feature_ ? raw.row(sampled_[a], dense) : points.row(sampled_[a], dense);
      point.each(0, [&](int64_t d, T v) { near_[a * stride + size_t(d)] = double(v) * scale(d); });
    }
    rows.each(i, [&](int64_t d, T v) { near_[n * stride + size_t(d)] = double(v) * scale(d); });
    auto kernel = [&](size_t a, size_t b) {
      Line<double> sum = Line<double>::zero();
      for (size_t l = 0; l < lines; ++l) {
        Line<double> x = Line<double>::at(near_.data() + a * stride + l * kLine<double>);
        Line<double> z = Line<double>::at(near_.data() + b * stride + l * kLine<double>);
        for (int v = 0; v < kVecs<double>; ++v) x.v[v] -= z.v[v];
        sum.add_product(x, x);
      }
      return std::exp(-sum.sum());
    };
    K_.resize(n * n);
    psi_.resize(n);
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < a; ++b) K_[a * n + b] = K_[b * n + a] = kernel(a, b);
      K_[a * n + a] = 1;
      psi_[a] = kernel(a, n);
    }
    alpha_ = &solver_.solve(K_, psi_);
    double explained = 0;
    for (size_t a = 0; a < n; ++a) explained += psi_[a] * (*alpha_)[a];
    return std::max(0.0, 1 - explained);
  }

  // One gradient step of the scales on the loss, `slopes` being its slopes in the outputs:
  // d loss / d gamma = - sum_j (sum_c slope_c a_jc) k_j |x - x_j|^2, or that square along each feature.
  void descend(const Round<T>& r, const Rows<T>& rows, int64_t i) {
    size_t tiles = size_t(points.tiles());
    if (pull_.size() < size_t(points.slots())) pull_ = Array<T>(size_t(points.slots()));
    pull_.clear();
    for (size_t c = 0; c < weights.size(); ++c) axpy(T(slopes[c]), weights[c].data(), pull_.data(), tiles);
    for (size_t j = 0; j < tiles * kLine<T>; ++j) pull_[j] *= r.k[j];
    if (!each_feature_) return move(gamma[0], -double(dot(pull_.data(), this->measures(r.i), tiles)));
    std::fill(row_.begin(), row_.end(), T(0));
    rows.each(i, [&](int64_t d, T v) { row_[size_t(d)] = v; });
    along_.clear();
    for (size_t t = 0; t < tiles; ++t) {
      Line<T> pull = Line<T>::at(pull_.data() + t * kLine<T>);
      for (int64_t d = 0; d < set.width; ++d) {
        T* to = along_.data() + size_t(d) * kLine<T>;
        Line<T> sum = Line<T>::at(to), gap = Line<T>::at(raw.line(int64_t(t), d));
        for (int v = 0; v < kVecs<T>; ++v) {
          Vec<T> x = splat<T>(row_[size_t(d)]) - gap.v[v];
          sum.v[v] += pull.v[v] * (x * x);
        }
        sum.to(to);
      }
    }
    for (int64_t d = 0; d < set.width; ++d) move(gamma[size_t(d)], -double(Line<T>::at(along_.data() + size_t(d) * kLine<T>).sum()));
  }

  void move(double& g, double gradient) const {
    double step = search.rho * std::pow(double(rounds), -search.decay) * gradient;
    double to = search.logarithm ? g * std::exp(-g * step) : g - step;  // d loss / d log gamma = gamma d loss / d gamma
    if (std::isfinite(to)) g = std::min(std::max(to, search.low), search.high);
  }

  // Row i times the scales, as rows of one.
  Rows<T> scaled(const Rows<T>& rows, int64_t i) {
    if (!rows.sparse()) {
      scaled_.resize(size_t(set.width) + 1);
      for (int64_t d = 0; d < set.width; ++d) scaled_[size_t(d)] = rows.row(i)[d] * scales_[size_t(d)];
      return {1, set.width, scaled_.data()};
    }
    int64_t first = rows.starts[i], n = rows.starts[i + 1] - first;
    scaled_.resize(size_t(n) + 1);
    for (int64_t e = 0; e < n; ++e) scaled_[size_t(e)] = rows.values[first + e] * scales_[size_t(rows.indices[first + e])];
    span_[1] = n;
    return {1, set.width, nullptr, scaled_.data(), rows.indices + first, span_};
  }

  bool each_feature_;
  std::vector<T> f_, row_, scaled_, scales_;
  std::vector<double> steps_, roots_, chance_, line_chance_, near_, K_, psi_;
  std::vector<int64_t> sampled_;
  const std::vector<double>* alpha_ = nullptr;
  PseudoSolver solver_;
  Array<T> pull_, along_;
  Rows<T> source_;
  int64_t span_[2] = {0, 0};
};

}  // namespace KS_MODULE
