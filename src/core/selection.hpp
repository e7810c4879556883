// Learning the kernel with the weights: expansions whose kernel's scale takes gradient steps (OKS-SIL with any kernel that has one,
// OKL-GD with the Gaussian). The formulas are in the Python classes.
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

// An expansion in a kernel whose scale is learnt: one for all (`gamma` has one entry), one a feature (an entry each: rows and points
// are then scaled, by sqrt(gamma) for a Gaussian kernel, and the points as they came are kept beside), or one a point, given to it
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

  Selection(Settings s, Storage storage, Kernel<T> kernel, Loss l, double step, bool each_point, Search how, std::vector<double> start,
            bool each_feature, uint64_t seed)
      : Base(s, storage, std::move(kernel), each_point ? newest_moves : all_move, false, seed),
        loss(l),
        eta(step),
        search(how),
        gamma(std::move(start)),
        each_feature_(each_feature),
        f_(size_t(set.outputs)),
        row_(size_t(set.width) + 1) {
    points.kernel.gamma = 1;
    if (each_point) points.gammas = Array<T>(size_t(points.slots()));
    if (each_feature_) {
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
    for (size_t d = 0; d < gamma.size(); ++d) roots_[d] = points.kernel.input_scale(gamma[d]);
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
    const double self = double(points.self(r.rows, r.i));
    if (!(self > 0)) return;
    storable<double>(self * self);
    int64_t slot = points.count;
    std::copy_n(r.f, set.outputs, f_.begin());
    if (this->full()) {
      sample(r.k);
      if (!(residual(rows, i, self) > search.nu * self)) {  // dependent: the step goes to the sampled points
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
    for (size_t c = 0; c < weights.size(); ++c) f_[c] += T(steps_[c] * self);           // f^w
    if (search.rho > 0 && loss_slopes(loss, at(r), slopes)) descend(r, rows, i);
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

  // Draws `samples` slots without replacement, each time in proportion to |k| among those left: first a line of slots, then one of it.
  void sample(const T* k) {
    constexpr size_t L = kLine<double>;
    size_t lines = (size_t(points.count) + L - 1) / L;
    chance_.assign(lines * L, 0.0);
    std::transform(k, k + points.count, chance_.begin(), [](T v) { return std::abs(double(v)); });
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
  double residual(const Rows<T>& rows, int64_t i, double self) {
    size_t n = sampled_.size(), lines = (size_t(set.width) + kLine<double> - 1) / kLine<double>, stride = lines * kLine<double>;
    const Panel<T>& from = each_feature_ ? raw : points.panel;
    near_.assign((n + 1) * stride, 0.0);       // the sampled points, then x, scaled
    auto scale = [&](int64_t d) { return each_feature_ ? roots_[size_t(d)] : roots_[0]; };
    for (size_t a = 0; a < n; ++a)
      for (int64_t d = 0; d < set.width; ++d) near_[a * stride + size_t(d)] = double(from.at(sampled_[a], d)) * scale(d);
    rows.each(i, [&](int64_t d, T v) { near_[n * stride + size_t(d)] = double(v) * scale(d); });
    const Kernel<T>& by = points.kernel;
    Kernel<double> other{typename Kernel<double>::Kind(by.kind), 1, double(by.offset), by.degree, {}};
    auto kernel = [&](size_t a, size_t b) {
      if (by.kind != Kernel<T>::gaussian) {
        double value = 0;
        with_form(other.form(), [&](auto form) {
          for (size_t d = 0; d < size_t(set.width); ++d) value = term<form.value>(near_[a * stride + d], near_[b * stride + d], value);
        });
        other.with_value([&](auto of) {
          double lane[sizeof(Vec<double>) / sizeof(double)];
          store<double>(lane, of(splat<double>(value)));
          value = lane[0];
        });
        return value;
      }
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
      K_[a * n + a] = by.unit_diagonal() ? 1 : kernel(a, a);
      psi_[a] = kernel(a, n);
    }
    alpha_ = &solver_.solve(K_, psi_);
    double explained = 0;
    for (size_t a = 0; a < n; ++a) explained += psi_[a] * (*alpha_)[a];
    return std::max(0.0, self - explained);
  }

  // One gradient step of the scales on the loss, `slopes` being its slopes in the outputs:
  // d loss / d gamma = sum_j (sum_c slope_c a_jc) d k_j / d (gamma m_j) m_j, m_j the distance or product, or its term along each
  // feature; for the Gaussian kernel, - sum_j (sum_c slope_c a_jc) k_j |x - x_j|^2.
  void descend(const Round<T>& r, const Rows<T>& rows, int64_t i) {
    size_t tiles = size_t(points.tiles());
    if (pull_.size() < size_t(points.slots())) pull_ = Array<T>(size_t(points.slots()));
    pull_.clear();
    for (size_t c = 0; c < weights.size(); ++c) axpy(T(slopes[c]), weights[c].data(), pull_.data(), tiles);
    // The derivative of k in gamma times the measure, and its sign: e^-v has -e^-v.
    const Kernel<T>& by = points.kernel;
    const T* measures = this->measures(r.i);
    bool exponential = by.kind == Kernel<T>::gaussian || by.kind == Kernel<T>::laplacian || by.kind == Kernel<T>::chi_squared;
    const double unit = exponential ? -1 : 1 / double(by.gamma);
    if (exponential) {
      for (size_t j = 0; j < tiles * kLine<T>; ++j) pull_[j] *= r.k[j];
    } else {
      if (slopes_.size() < pull_.size()) slopes_ = Array<T>(pull_.size());
      points.slopes(measures, slopes_.data(), int64_t(tiles));
      for (size_t j = 0; j < tiles * kLine<T>; ++j) pull_[j] *= slopes_[j];
    }
    double own = 0;                            // the new point's; at distance 0 it adds nothing
    const T square = by.form() == Form::product ? r.rows.square(r.i) : T(0);
    if (by.form() == Form::product) {
      for (size_t c = 0; c < weights.size(); ++c) own += slopes[c] * steps_[c];
      by.with_slope([&](auto of) {
        T lane[sizeof(Vec<T>) / sizeof(T)];
        store<T>(lane, of(splat<T>(square)));
        own *= double(lane[0]);
      });
    }
    if (!each_feature_) return move(gamma[0], unit * (double(dot(pull_.data(), measures, tiles)) + own * double(square)));
    std::fill(row_.begin(), row_.end(), T(0));
    rows.each(i, [&](int64_t d, T v) { row_[size_t(d)] = v; });
    along_.clear();
    with_form(by.form(), [&](auto form) {
      for (size_t t = 0; t < tiles; ++t) {
        Line<T> pull = Line<T>::at(pull_.data() + t * kLine<T>);
        for (int64_t d = 0; d < set.width; ++d) {
          T* to = along_.data() + size_t(d) * kLine<T>;
          Line<T> sum = Line<T>::at(to), term = Line<T>::zero();
          Panel<T>::template accumulate<form.value>(term, splat<T>(row_[size_t(d)]), Line<T>::at(raw.line(int64_t(t), d)));
          sum.add_product(pull, term);
          sum.to(to);
        }
      }
    });
    for (int64_t d = 0; d < set.width; ++d) {
      double x = double(row_[size_t(d)]);
      move(gamma[size_t(d)], unit * (double(Line<T>::at(along_.data() + size_t(d) * kLine<T>).sum()) + own * x * x));
    }
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
  Array<T> pull_, along_, slopes_;
  Rows<T> source_;
  int64_t span_[2] = {0, 0};
};

}  // namespace KS_MODULE
