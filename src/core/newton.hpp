// Online Newton steps on explicit features, the covariance brought up to date a block of rounds at a time.
//
// The model is w ~ N(W, P) over m features. A round forgets towards the prior (P <- keep P + (1 - keep) diag(prior),
// W <- sqrt(keep) W), then takes one Newton step: with v = P x, s = x.v and the loss's curvature h and residual g at the score,
// W += v g / (1 + h s), P -= h / (1 + h s) v v^T. P itself is only rewritten every kBlock rounds; until then the v's of the
// block are kept aside, and a product P x is that with the stored P, corrected for them. So P is read once for a whole block
// of rows that are at hand: it is rewritten tile by tile while the products with the next block's rows are made, because P is larger
// than a cache. The result is the same to the bit when rows come one by one. Only one half of P is computed and the
// other is its mirror image, so P stays symmetric to the bit, however many rounds there are.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "intrinsics.hpp"
#include "panel.hpp"
#include "settings.hpp"

namespace KS_MODULE {

constexpr int64_t kBlock = 16;

inline double logistic(double f) { return f >= 0 ? 1 / (1 + std::exp(-f)) : std::exp(f) / (1 + std::exp(f)); }

// a = y - logistic(f + s a), y being 0 or 1: the residual after the step that it causes. One root, between 0 and 2 y - 1, by
// Newton's method; a step that leaves the bracket or does not halve the one before is replaced by bisection.
inline double implicit_residual(double f, double s, double y) {
  double low = y > 0 ? 0 : -1, high = y > 0 ? 1 : 0, a = (low + high) / 2, last = 1;
  for (int round = 0; round < 100; ++round) {
    double p = logistic(f + s * a), miss = y - p - a;
    (miss > 0 ? low : high) = a;
    double next = a + miss / (1 + s * p * (1 - p));
    if (!(next > low && next < high && std::abs(next - a) <= last / 2)) next = (low + high) / 2;
    last = std::abs(next - a);
    if (last <= 1e-12) return next;
    a = next;
  }
  return a;
}

enum class NewtonLoss { squared, logistic };

// The weights of each output. Copies share them until one of them is about to be written, and a model made for a new class shares those
// of the model before it: with many classes they are most of a model, so they are copied in the pass that first changes them.
class OutputWeights {
 public:
  OutputWeights() = default;
  OutputWeights(int64_t m, int64_t outputs) : m_(m), outputs_(outputs), data_(zeros(m * outputs)) {}

  // Those of `o` mixed; `sides`: of least squares, where a class not seen was -1 all along, through the constant, the first feature.
  OutputWeights(const OutputWeights& o, const Mix& mix, bool sides) : m_(o.m_), outputs_(mix.outputs()) {
    OutputWeights old = o;
    if (!old.columns_.empty()) old.own();
    auto fresh = zeros(m_);
    (*fresh)[0] = sides ? -1 : 0;
    auto of_old = [](double factor) { return factor == 0 || factor == 1; };
    bool moved = std::all_of(mix.factors.begin(), mix.factors.end(), of_old);
    data_ = moved ? old.data_ : std::make_shared<Array<double>>(mix.of(*old.data_, m_, sides));
    fresh_ = fresh;
    for (size_t c = 0; c < mix.factors.size(); ++c) {
      int64_t place = moved ? mix.sources[c] : int64_t(c);
      columns_.push_back(mix.factors[c] == 0 ? fresh->data() : data_->data() + place * m_);
    }
  }

  size_t nbytes() const { return size_t(m_ * outputs_) * sizeof(double); }
  const double* of(int64_t c) const { return columns_.empty() ? data_->data() + c * m_ : columns_[size_t(c)]; }

  // Calls f(weights) for each output, to change them.
  template <class F> void each(F f) {
    bool elsewhere = !columns_.empty(), copied = elsewhere || data_.use_count() > 1;
    std::atomic_thread_fence(std::memory_order_acquire);  // as in SharedPanel
    auto to = copied ? std::make_shared<Array<double>>(Array<double>::unset(size_t(m_ * outputs_))) : data_;
    for (int64_t c = 0; c < outputs_; ++c) {   // output by output: together they are more than a cache holds
      double* w = to->data() + c * m_;
      const double* from = of(c);
      if (elsewhere)
        for (int64_t i = 0; i < m_; ++i) w[i] = 0.0 + from[i];  // as Mix does: a -0 becomes 0
      else if (copied)
        std::copy_n(from, m_, w);
      f(w);
    }
    data_ = std::move(to);
    columns_.clear();
    fresh_.reset();
  }
  double* own() {                              // all of them, one output after the other
    each([](double*) {});
    return data_->data();
  }

 private:
  static std::shared_ptr<Array<double>> zeros(int64_t n) { return std::make_shared<Array<double>>(size_t(n)); }

  int64_t m_ = 0, outputs_ = 0;
  std::shared_ptr<Array<double>> data_;        // outputs x m, unless there are columns
  std::vector<const double*> columns_;         // where those of each output stand, in `data_` or `fresh_`
  std::shared_ptr<Array<double>> fresh_;       // of a class not seen
};

class Newton {
 public:
  static constexpr int kMostSteps = 64;
  int64_t m = 0, outputs = 1, pending = 0;
  int64_t used = 0;                            // features from here on (a whole number of lines) are not looked at since `reset`
  double keep = 1, decay = 1;                  // decay: what the pending rounds leave of the stored P, keep^pending
  NewtonLoss loss = NewtonLoss::squared;
  SharedPanel<double> covariance;
  Array<double> prior;
  OutputWeights weights;
  Array<double> vectors;                       // the v's of the block, and their coefficients
  Array<double> coefficients{size_t(kBlock)};

  Newton() = default;
  // `features` is a whole number of lines; a feature with prior 0 is padding.
  Newton(int64_t features, int64_t outputs_, NewtonLoss loss_, double keep_)
      : m(features),
        outputs(outputs_),
        used(features),
        keep(keep_),
        loss(loss_),
        covariance(features, features),
        prior(size_t(features)),
        weights(features, outputs_),
        vectors(size_t(kBlock * features)),
        gradient_(size_t(outputs_)),
        scaled_(size_t(kBlock * features)) {}

  // The same with its outputs replaced.
  Newton(const Newton& o, const Mix& mix)
      : m(o.m),
        outputs(mix.outputs()),
        pending(o.pending),
        used(o.used),
        keep(o.keep),
        decay(o.decay),
        loss(o.loss),
        covariance(o.covariance),
        prior(o.prior),
        weights(o.weights, mix, o.loss == NewtonLoss::squared),
        vectors(o.vectors),
        coefficients(o.coefficients),
        gradient_(size_t(outputs)),
        scaled_(size_t(kBlock * m)) {}

  size_t nbytes() const { return covariance->nbytes() + prior.nbytes() + vectors.nbytes() + coefficients.nbytes() + weights.nbytes(); }

  void reset() {
    pending = 0;
    decay = 1;
    vectors.clear();
    coefficients.clear();
    weights = OutputWeights(m, outputs);
    Panel<double>& P = covariance.own();
    P.clear();
    for (int64_t i = 0; i < m; ++i) P.at(i, i) = prior[size_t(i)];
  }

  void score(const double* x, double* f) const {
    for (int64_t c = 0; c < outputs; ++c) f[c] = dot(weights.of(c), x, lines());
  }

  // Whether it has a weight other than 0 from this feature on.
  bool weighs(int64_t first) const {
    for (int64_t c = 0; c < outputs; ++c)
      if (std::any_of(weights.of(c) + std::min(first, m), weights.of(c) + m, [](double w) { return w != 0; })) return true;
    return false;
  }

  // Stored P times n rows, each `stride` apart; they serve `learn` until the block is full. If it is, P is rewritten first.
  void prepare(const double* x, int64_t n, int64_t stride, double* products) {
    Rows<double> rows;
    rows.n = n;
    rows.width = stride;
    rows.dense = x;
    bool full = pending == kBlock, fused = full && n >= Panel<double>::kRows;
    if (fused) {
      scale_vectors();
      constexpr int N = Panel<double>::kTiles;
      for (int64_t t = 0, tiles = used / kLine<double>; t < tiles; t += N) {
        for (int64_t u = t; u < std::min(t + N, tiles); ++u) flush_tile(u);  // complete now: the rest came from the tiles before
        if (t + N <= tiles)
          covariance->template some_tiles<Form::product, N>(rows, 0, n, t, used, products, m);
        else
          covariance->template some_tiles<Form::product, 1>(rows, 0, n, t, used, products, m);
      }
      finish_flush();
    } else {
      if (full) flush();
      covariance->template dense<Form::product>(rows, 0, n, used / kLine<double>, products, m, false, used);
    }
  }

  // `f`: the score of x; `product`: what `prepare` made of it; y: target, -1 or +1, or the class's number.
  void learn(const double* x, const double* product, const double* f, double y, double weight) {
    double shrink = 1;
    if (keep < 1) {
      shrink = std::sqrt(keep);
      decay *= keep;
      for (int64_t j = 0; j < pending; ++j) coefficients[size_t(j)] *= keep;
    }
    double* v = vectors.data() + pending * m;
    double along[kBlock];                      // what the pending rounds take from P x
    for (int64_t j = 0; j < pending; ++j) along[j] = -coefficients[size_t(j)] * dot(vectors.data() + j * m, x, lines());
    auto correct = [&](size_t l, auto count) { // `count` lines at a time: each is a chain of sums
      constexpr int N = decltype(count)::value;
      Line<double> to[N];
      for (int n = 0; n < N; ++n) {
        size_t at = (l + n) * kLine<double>;
        Line<double> p = Line<double>::at(product + at), d = Line<double>::at(prior.data() + at);
        d.apply([&](Vec<double> u) { return u * (1 - decay); });
        p.apply([&](Vec<double> u) { return u * decay; });
        to[n] = Line<double>::zero();
        to[n].add_product(d, Line<double>::at(x + at));
        to[n].add(p);
      }
      for (int64_t j = 0; j < pending; ++j)
        for (int n = 0; n < N; ++n)
          to[n].add_product(Line<double>::of(along[j]), Line<double>::at(vectors.data() + j * m + (l + n) * kLine<double>));
      for (int n = 0; n < N; ++n) to[n].to(v + (l + n) * kLine<double>);
    };
    size_t l = 0;
    for (; l + 4 <= lines(); l += 4) correct(l, std::integral_constant<int, 4>());
    for (; l < lines(); ++l) correct(l, std::integral_constant<int, 1>());
    double s = std::max(0.0, dot(v, x, lines()));
    double h = residual(f, shrink, y, weight, s), damp = 1 / (1 + h * s);
    const double* g = gradient_.data();
    weights.each([&](double* w) {
      if (keep < 1) scale(shrink, w, lines());
      axpy(*g++ * damp, v, w, lines());
    });
    coefficients[size_t(pending++)] = h * damp;  // a full block is flushed when `prepare` is called next
  }

  // Rewrite P; nothing is pending then.
  void flush() {
    scale_vectors();
    for (int64_t t = 0; t < used / kLine<double>; ++t) flush_tile(t);
    finish_flush();
  }

 private:
  size_t lines() const { return size_t(used / kLine<double>); }

  // -c v, column by column what one column of P needs.
  void scale_vectors() {
    constexpr int L = kLine<double>;
    for (int64_t j = 0; j < pending; j += D)   // what is written for rounds that are not pending is not read
      for (int64_t d = 0; d < used; d += L) {
        Line<double> v[D];
        for (int u = 0; u < D; ++u) {
          v[u] = Line<double>::at(vectors.data() + (j + u) * m + d);
          v[u].apply([&](Vec<double> x) { return x * -coefficients[size_t(j + u)]; });
        }
        turn(v, scaled_.data() + d * kBlock + j, kBlock);
      }
  }

  // Of a tile of rows the columns from its diagonal block on, and their mirror image.
  void flush_tile(int64_t t) {
    if (pending == kBlock)                     // nearly always: a loop of known length
      flush_tile(t, std::integral_constant<int64_t, kBlock>());
    else
      flush_tile(t, pending);
  }
  template <class Count> void flush_tile(int64_t t, Count count) {
    constexpr int L = kLine<double>;
    Panel<double>& P = covariance.own();
    Line<double> lane[kBlock];
    for (int64_t j = 0; j < count; ++j) lane[j] = Line<double>::at(vectors.data() + j * m + t * L);
    // Nothing is read from members in the loop: for all the compiler knows, what is written there may be one of them.
    double *block = P.line(t, t * L), *image = block, kept = decay;  // image: where a tile's mirror image begins
    const double *factor = scaled_.data() + t * L * kBlock, *end = P.line(t, used);
    int64_t apart = P.width() * L;    // of two tiles
    int part = 0;                              // of the tile that the image is in
    for (double* column = block; column < end; column += D * L, factor += D * kBlock) {
      Line<double> acc[D];
      for (int u = 0; u < D; ++u) {
        acc[u] = Line<double>::at(column + u * L);
        if (kept < 1) acc[u].apply([&](Vec<double> p) { return p * kept; });
      }
      for (int64_t j = 0; j < count; ++j)
        for (int u = 0; u < D; ++u) acc[u].add_product(Line<double>::of(factor[u * kBlock + j]), lane[j]);
      for (int u = 0; u < D; ++u) acc[u].to(column + u * L);
      if (image != block) turn(acc, image + part, L);
      part = (part + D) % L;
      if (!part) image += apart;
    }
    for (int i = 0; i < L; ++i)
      for (int d = 0; d < i; ++d) block[d * L + i] = block[i * L + d];
    if (decay < 1)
      for (int i = 0; i < L; ++i) block[i * L + i] += (1 - decay) * prior[size_t(t * L + i)];
  }

  void finish_flush() {
    pending = 0;
    decay = 1;
  }

  // D columns at a time: their lines stay in registers.
  static constexpr int D = kVectorBytes == 64 ? 8 : 4;

  // D columns written as rows: to[i stride + u] is entry i of column u.
  static void turn(const Line<double>* column, double* to, int64_t stride) {
#if defined(__AVX512F__)
    __m512d c[D];
    for (int u = 0; u < D; ++u) std::memcpy(&c[u], &column[u], sizeof c[u]);
    for (int odd = 0; odd < 2; ++odd) {        // rows 0, 2, 4, 6, then the others
      auto two = [&](int u) { return odd ? _mm512_unpackhi_pd(c[u], c[u + 1]) : _mm512_unpacklo_pd(c[u], c[u + 1]); };
      __m512d a = two(0), b = two(2), e = two(4), f = two(6);
      __m512d ab = _mm512_shuffle_f64x2(a, b, 0x88), ef = _mm512_shuffle_f64x2(e, f, 0x88);
      __m512d AB = _mm512_shuffle_f64x2(a, b, 0xdd), EF = _mm512_shuffle_f64x2(e, f, 0xdd);
      _mm512_storeu_pd(to + odd * stride, _mm512_shuffle_f64x2(ab, ef, 0x88));
      _mm512_storeu_pd(to + (2 + odd) * stride, _mm512_shuffle_f64x2(AB, EF, 0x88));
      _mm512_storeu_pd(to + (4 + odd) * stride, _mm512_shuffle_f64x2(ab, ef, 0xdd));
      _mm512_storeu_pd(to + (6 + odd) * stride, _mm512_shuffle_f64x2(AB, EF, 0xdd));
    }
#elif defined(__AVX2__)
    auto half = [](const Line<double>& line, int which) {
      double lane[kLine<double>];
      line.to(lane);
      return _mm256_loadu_pd(lane + 4 * which);
    };
    for (int v = 0; v < 2; ++v, to += 4 * stride) {
      __m256d a = half(column[0], v), b = half(column[1], v), c = half(column[2], v), d = half(column[3], v);
      __m256d ab = _mm256_unpacklo_pd(a, b), cd = _mm256_unpacklo_pd(c, d), AB = _mm256_unpackhi_pd(a, b), CD = _mm256_unpackhi_pd(c, d);
      _mm256_storeu_pd(to, _mm256_permute2f128_pd(ab, cd, 0x20));
      _mm256_storeu_pd(to + stride, _mm256_permute2f128_pd(AB, CD, 0x20));
      _mm256_storeu_pd(to + 2 * stride, _mm256_permute2f128_pd(ab, cd, 0x31));
      _mm256_storeu_pd(to + 3 * stride, _mm256_permute2f128_pd(AB, CD, 0x31));
    }
#else
    constexpr int L = kLine<double>;
    double lane[D][L];
    for (int u = 0; u < D; ++u) column[u].to(lane[u]);
    for (int i = 0; i < L; ++i)
      for (int u = 0; u < D; ++u) to[i * stride + u] = lane[u][i];
#endif
  }

  // The step's residuals, into gradient_, and the curvature that goes with them.
  double residual(const double* f, double shrink, double y, double weight, double s) {
    double* g = gradient_.data();
    if (loss == NewtonLoss::squared) {
      for (int64_t c = 0; c < outputs; ++c) g[c] = weight * ((outputs == 1 ? y : int64_t(y) == c ? 1 : -1) - shrink * f[c]);
      return weight;
    }
    if (outputs == 1) {                        // exact along v: a plain Newton step overshoots far from the optimum
      double a = implicit_residual(shrink * f[0], weight * s, y > 0), p = (y > 0) - a;
      double h = weight * std::max(p * (1 - p), 1e-4);
      g[0] = weight * a * (1 + h * s);
      return h;
    }
    if (weight > 1 && s > 0) return heavy_residual(f, shrink, y, weight, s);
    return softmax_residual(f, shrink, y, weight, g);
  }

  // One curvature for all classes, that of the true one.
  double softmax_residual(const double* f, double shrink, double y, double weight, double* g) const {
    double top = f[0], sum = 0;
    for (int64_t c = 1; c < outputs; ++c) top = std::max(top, f[c]);
    for (int64_t c = 0; c < outputs; ++c) sum += g[c] = std::exp(shrink * (f[c] - top));
    double right = g[int64_t(y)] / sum;
    for (int64_t c = 0; c < outputs; ++c) g[c] = weight * ((int64_t(y) == c) - g[c] / sum);
    return weight * std::max(right * (1 - right), 0.02);
  }

  // A heavy row of several classes is learnt as that many equal rows one after the other (at most kMostSteps, heavier then): a plain
  // Newton step of its whole weight would go far too far. All these steps go along the same v, so they can be summed up: after a
  // step of curvature h, P x = v s' / s with s' = s / (1 + h s).
  double heavy_residual(const double* f, double shrink, double y, double weight, double s) {
    int steps = int(std::min<double>(std::ceil(weight), kMostSteps));
    scores_.resize(size_t(outputs));
    sums_.assign(size_t(outputs), 0.0);
    for (int64_t c = 0; c < outputs; ++c) scores_[size_t(c)] = shrink * f[c];
    double left = s;
    for (int step = 0; step < steps; ++step) {
      double h = softmax_residual(scores_.data(), 1, y, weight / steps, gradient_.data()), damp = 1 / (1 + h * left);
      for (int64_t c = 0; c < outputs; ++c) {
        double moved = gradient_[size_t(c)] * damp * left;
        scores_[size_t(c)] += moved;
        sums_[size_t(c)] += moved / s;
      }
      left *= damp;
    }
    double ratio = s / left;                   // of the one step with the same effect: 1 + h s
    for (int64_t c = 0; c < outputs; ++c) gradient_[size_t(c)] = sums_[size_t(c)] * ratio;
    return (ratio - 1) / s;
  }

  std::vector<double> scores_, sums_;
  std::vector<double> gradient_;
  Array<double> scaled_;
};

}  // namespace KS_MODULE
