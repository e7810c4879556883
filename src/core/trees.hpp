// The trees expert of NewtonMixture: small regression trees, each fitted to what all others leave at the rows kept. Two rows are alike
// for it as often as they fall into the same leaves: a kernel of boxes that the data choose, where the other experts have balls.
//
// Rows are kept as bins: a feature's bin is how many of its edges, quantiles of the rows that the lasting memory was built from, are
// below its scaled value. A score is the sum of the trees of an output; all outputs get a new tree at once. It takes a Newton step:
// with the slopes g and curvatures h of the loss at the rows, each leaf has the value kRate sum g / (sum h + kRidge), and the split with
// the largest gain in (sum g)^2 / (sum h + kRidge) comes next, until there are kLeaves. When there are as many trees as there may be, the
// oldest leave before the next are fitted, so the sum follows the rows kept (backfitting).
//
// Sums of slopes and curvatures are sums of integers, exact in any order. A tree is fitted when the rows since the last one have
// paid for it, kWork additions each: the work per row is bounded and does not depend on chunks. Nothing is random: which rows and
// features a tree looks at follows from their numbers and the tree's.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "intrinsics.hpp"
#include "simd.hpp"

namespace KS_MODULE {

class Trees {
 public:
  using Bin = uint8_t;
  static constexpr int64_t kMostTrees = 512;   // of all outputs, if there are several
  static constexpr int64_t kLeaves = 16, kEdges = 254, kSlots = 256;
  static constexpr int64_t kRows = 40, kBytes = 1 << 20;  // rows kept per landmark, and bytes of their bins at most
  static constexpr int64_t kSampled = 4096, kFeatures = 32;  // rows and features that a tree looks at, at most
  static constexpr int64_t kFewest = 16, kMostOutputs = 32;  // fewer rows have no trees, nor have more outputs
  static constexpr int64_t kWork = 3500;
  static constexpr int64_t kAtOnce = 8;
  static constexpr int64_t kBins = kVectorBytes == 64 ? 16 : 8;  // looked at together
  static constexpr int32_t kCoarse = 16;       // every so many edges one that is looked at first
  static constexpr double kRate = 0.15, kRidge = 1, kLeast = 1;  // kLeast: curvature of a leaf
  static constexpr double kSteps = 1 << 17, kLargest = 1e30;  // steps up to the largest slope; of a target
  static constexpr int64_t kHigh = int64_t(1) << 32;  // a slope in units of this plus a curvature are one integer
  static constexpr float kNoEdge = std::numeric_limits<float>::max();

  struct Split {
    int32_t feature = 0, cut = kSlots, child[2] = {~0, ~0};  // rows of a larger bin go to child[1]; a child c < 0 is the leaf ~c
  };
  static constexpr int64_t kSplits = kLeaves - 1;

  int64_t width = 0, outputs = 1, budget = 0, capacity = 0;  // capacity: rows at most, 0 if there are no trees
  bool regression = false;
  int64_t next = 0, grown = 0, credit = 0;     // rows put and trees grown since they began; additions paid for
  int64_t varying = 0;                         // features with edges: a column of zeros costs nothing and changes nothing
  int64_t most_edges = 0;                      // of a feature: few rows, those of a small budget, have few values
  std::vector<float> edges;                    // most_edges per feature, rising; those not needed are kNoEdge
  std::vector<Bin> rows;                       // by slot
  std::vector<float> targets, weights, scores; // by slot; scores: one per output, of all trees
  std::vector<Split> splits;                   // kSplits per tree
  std::vector<double> values;                  // kLeaves per tree

  Trees() = default;
  // budget: landmarks, 0 for no trees.
  Trees(int64_t width_, int64_t outputs_, bool regression_, int64_t budget_)
      : width(width_), outputs(outputs_), budget(budget_), regression(regression_) {
    if (!budget || outputs > kMostOutputs || !width) return;
    capacity = std::min(kRows * budget, kBytes / width);
    most_edges = std::min(kEdges, std::max<int64_t>(kCoarse, 4 * budget));
    edges.assign(size_t(width * most_edges), kNoEdge);
    settle();
    query_.assign(size_t(width), 0);
    f_.assign(size_t(outputs), 0.0);
  }

  int64_t count() const { return std::min(next, capacity); }
  int64_t trees() const { return std::min(grown, most_trees()); }
  int64_t most_trees() const {                 // half a budget per output
    int64_t most = budget / 2;
    if (outputs > 1) most = std::min(most, kMostTrees / outputs);
    return std::max<int64_t>(1, most) * outputs;
  }

  size_t nbytes() const {                      // all that there may be is allocated at once
    return capacity ? 4 * edges.size() + size_t(capacity * (width + 4 * (2 + outputs))) +
                          size_t(most_trees()) * (kSplits * sizeof(Split) + 8 * kLeaves)
                    : 0;
  }

  // No rows and no trees; edges from n scaled rows.
  void begin(const std::vector<float>& z, int64_t n) {
    next = grown = credit = 0;
    allocate(0);
    splits.clear();
    values.clear();
    edges.assign(edges.size(), kNoEdge);
    std::vector<float> column(size_t(n), 0.0f), distinct;
    for (int64_t d = 0; d < width; ++d) {
      for (int64_t i = 0; i < n; ++i) column[size_t(i)] = z[size_t(i * width + d)];
      std::sort(column.begin(), column.end());
      distinct = column;
      distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
      float* to = edges.data() + d * most_edges;
      bool few = int64_t(distinct.size()) <= most_edges + 1;
      size_t last = 0;
      for (int64_t k = 1; k < (few ? int64_t(distinct.size()) : most_edges + 1); ++k) {  // between two values, one of them a quantile
        size_t at =
            few ? size_t(k)
                : size_t(std::lower_bound(distinct.begin(), distinct.end(), column[size_t(k * n / (most_edges + 1))]) - distinct.begin());
        if (at > last) *to++ = (distinct[at - 1] + distinct[at]) / 2;
        last = at;
      }
    }
    settle();
  }

  // The last bin of a feature with such edges, n at most.
  static int32_t last_bin(const float* edge, int64_t n) { return int32_t(std::find(edge, edge + n, kNoEdge) - edge); }
  const std::vector<int32_t>& last_bins() const { return last_bin_; }

  // After the edges were written: what follows from them.
  void settle() {
    varying = 0;
    coarse_.assign(size_t(width * kCoarse), kNoEdge);
    last_bin_.assign(size_t(width), 0);
    for (int64_t d = 0; d < width; ++d) {
      const float* edge = edges.data() + d * most_edges;
      last_bin_[size_t(d)] = last_bin(edge, most_edges);
      varying += edge[0] != kNoEdge;
      for (int64_t k = 1; k * kCoarse <= most_edges; ++k) coarse_[size_t(d * kCoarse + k - 1)] = edge[k * kCoarse - 1];
    }
  }

  // The scores of a scaled row.
  const double* look(const float* z) {
    for (int64_t d = 0; d < width; ++d) {
      int32_t at = kCoarse * below(coarse_.data() + d * kCoarse, z[d]);
      at = std::min(at, int32_t(most_edges - kCoarse));
      query_[size_t(d)] = Bin(std::min(at + below(edges.data() + d * most_edges + at, z[d]), last_bin_[size_t(d)]));
    }
    return sum();
  }

  // After the splits of a tree were written: how `walk` reads them.
  void unfold(int64_t t) {
    forks_.resize((splits.size() / kSplits + kAtOnce) * kForks);
    depth_.resize(splits.size() / kSplits + kAtOnce);
    Fork* fork = forks_.data() + t * kForks;
    int32_t below[kSplits] = {1};              // steps until a row is below a split; a split's children come after it
    for (int32_t k = 0; k < kSplits; ++k) {
      const Split& split = splits[size_t(t * kSplits + k)];
      fork[k] = {split.feature, int16_t(split.cut), {}};
      for (int side : {0, 1}) {
        int32_t child = split.child[side];
        fork[k].next[side] = uint8_t(child < 0 ? kSplits + ~child : child);
        if (child >= 0) below[child] = below[k] + 1;
      }
    }
    depth_[size_t(t)] = *std::max_element(below, below + kSplits);
    for (int32_t k = kSplits; k < kForks; ++k) fork[k] = {0, kSlots, {uint8_t(k), uint8_t(k)}};
  }
  void unfold() {
    for (int64_t t = 0; t < int64_t(splits.size()) / kSplits; ++t) unfold(t);
  }

  // Learns a row that trees with the same edges have kept, as if it came now.
  void learn(const Bin* row, double y, double weight) {
    std::copy_n(row, width, query_.data());
    sum();
    put(y, weight);
    pay(1);
  }

  // Keeps the row of the last look.
  void put(double y, double weight) { put(query_.data(), y, weight, f_.data()); }
  template <class F> void put(const Bin* row, double y, double weight, const F* f) {
    int64_t slot = next++ % capacity;
    allocate(count());
    std::copy_n(row, width, rows.data() + slot * width);
    targets[size_t(slot)] = float(std::min(std::max(y, -kLargest), kLargest));
    weights[size_t(slot)] = float(weight);
    for (int64_t c = 0; c < outputs; ++c) scores[size_t(slot * outputs + c)] = float(f[c]);
  }

  // So many rows pay for trees.
  void pay(int64_t n) {
    credit += n * kWork;
    while (next >= kFewest && credit >= price()) {
      credit -= price();
      grow();
    }
  }

  // Additions that a tree of each output takes: its sums, the search for splits, the slopes.
  int64_t price() const {
    int64_t n = count(), used = std::min(kFeatures, varying);
    return outputs * (3 * std::min(n, kSampled) * used + kLeaves * used * std::min(n, kSlots) / 2 + n * (4 * outputs + 12));
  }

  // Keeps what `from`, of fewer features, keeps; a new feature has no edges until the trees begin again.
  void take(const Trees& from) {
    if (!capacity || !from.capacity) return;
    std::copy(from.edges.begin(), from.edges.end(), edges.begin());
    settle();
    std::vector<Bin> row(size_t(width), 0);
    for (int64_t i = std::max<int64_t>(0, from.count() - capacity); i < from.count(); ++i) {
      size_t slot = size_t((from.next - from.count() + i) % from.capacity);
      std::copy_n(from.rows.data() + slot * size_t(from.width), from.width, row.data());
      put(row.data(), from.targets[slot], from.weights[slot], from.scores.data() + slot * size_t(outputs));
    }
    grown = from.grown;
    credit = from.credit;
    splits = from.splits;
    values = from.values;
    unfold();
  }

  void allocate(int64_t n) {
    size_t kept = size_t(capacity);
    rows.reserve(kept * size_t(width));
    scores.reserve(kept * size_t(outputs));
    for (auto* a : {&targets, &weights}) {
      a->reserve(kept);
      a->resize(size_t(n));
    }
    rows.resize(size_t(n * width));
    scores.resize(size_t(n * outputs));
    splits.reserve(size_t(most_trees() * kSplits));
    values.reserve(size_t(most_trees() * kLeaves));
  }

  // Whether a tree may have such splits: from a state.
  bool fit(const int32_t* split) const {
    for (int64_t at = 0; at < kSplits; ++at, split += 4) {
      if (split[0] < 0 || split[0] >= width || split[1] < 0 || split[1] > kSlots) return false;
      for (int side : {2, 3})                  // downwards, so that every path ends
        if (split[side] < -kLeaves || split[side] >= kSplits || (split[side] >= 0 && split[side] <= at)) return false;
    }
    return true;
  }

 private:
  struct Node {                                // a leaf of the tree that grows
    int64_t begin, end;                        // its rows in order_
    int32_t parent, side;                      // the split above it
    int32_t place;                             // of its sums
    int64_t total = 0;                         // of slopes and curvatures
    int32_t feature = 0, cut = 0;              // its best split, of features_
    double gain = 0;
  };

  struct Fork {                                // a split as `walk` reads it, or after kSplits of them a leaf, which leads to itself
    int32_t feature;
    int16_t cut;
    uint8_t next[2];
  };
  static constexpr int64_t kForks = kSplits + kLeaves;
  struct Both {
    int32_t slope, curvature;                  // in steps
  };

  const double* sum() {                        // the scores of query_
    std::fill(f_.begin(), f_.end(), 0.0);
    int64_t c = 0, n = trees();
    const Bin* row = query_.data();
    for (int64_t first = 0; first < n; first += kAtOnce) {
      const Fork* tree = forks_.data() + first * kForks;
      walk(
          std::min(kAtOnce, n - first), *std::max_element(depth_.begin() + first, depth_.begin() + first + kAtOnce),
          [&](int64_t k) { return tree + k * kForks; }, [&](int64_t) { return row; },
          [&](int64_t k, int64_t leaf) {
            f_[size_t(c)] += values[size_t((first + k) * kLeaves + leaf)];
            c = c + 1 == outputs ? 0 : c + 1;
          });
    }
    return f_.data();
  }

  // How many of kCoarse edges are below z. No branch depends on z: a processor cannot guess it.
  static int32_t below(const float* edge, float z) {
#if defined(__AVX512F__)
    return _mm_popcnt_u32(_mm512_cmp_ps_mask(_mm512_loadu_ps(edge), _mm512_set1_ps(z), _CMP_LT_OQ));
#elif defined(__AVX2__)
    __m256 at = _mm256_set1_ps(z);
    int low = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(edge), at, _CMP_LT_OQ));
    int high = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(edge + 8), at, _CMP_LT_OQ));
    return _mm_popcnt_u32(unsigned(low | high << 8));
#else
    int32_t count = 0;
    for (int32_t k = 0; k < kCoarse; ++k) count += edge[k] < z;
    return count;
#endif
  }

  // visit(k, leaf), k = 0 ... n - 1 in order, n <= kAtOnce, of n trees and one row, or of one tree and n rows. All go down together, and
  // one that has come to its leaf waits there: a processor can neither guess the path of a row nor do anything else while it waits
  // for the next split.
  template <class TreeOf, class RowOf, class F> static void walk(int64_t n, int32_t steps, TreeOf tree_of, RowOf row_of, F visit) {
    int32_t at[kAtOnce] = {};
    for (; steps; --steps)
      for (int64_t k = 0; k < kAtOnce; ++k) {
        const Fork& fork = tree_of(k)[at[k]];
        at[k] = fork.next[uint32_t(fork.cut - row_of(k)[fork.feature]) >> 31];  // whether the bin is larger
      }
    for (int64_t k = 0; k < n; ++k) visit(k, at[k] - kSplits);
  }

  // The scores of the rows kept with or without a tree.
  void add(int64_t t, double sign) {
    const Fork* tree = forks_.data() + t * kForks;
    for (int64_t first = 0, n = count(); first < n; first += kAtOnce) {
      const Bin* row[kAtOnce];                 // the last ones again and again, if there are too few
      for (int64_t k = 0; k < kAtOnce; ++k) row[k] = rows.data() + std::min(first + k, n - 1) * width;
      walk(
          std::min(kAtOnce, n - first), depth_[size_t(t)], [&](int64_t) { return tree; }, [&](int64_t k) { return row[k]; },
          [&](int64_t k, int64_t leaf) {
            scores[size_t((first + k) * outputs + t % outputs)] += float(sign * values[size_t(t * kLeaves + leaf)]);
          });
    }
  }

  // A tree of each output; all see the same slopes, so that the order of the outputs does not matter.
  void grow() {
    int64_t first = grown % most_trees();
    if (grown < most_trees()) {
      splits.resize(splits.size() + size_t(outputs * kSplits));
      values.resize(values.size() + size_t(outputs * kLeaves));
    } else {
      for (int64_t c = 0; c < outputs; ++c) add(first + c, -1);
    }
    std::fill_n(splits.begin() + first * kSplits, outputs * kSplits, Split());
    std::fill_n(values.begin() + first * kLeaves, outputs * kLeaves, 0.0);
    steps_.assign(scores.size(), 0.0f);
    for (int64_t c = 0; c < outputs; ++c) {
      choose(uint64_t(grown / outputs));
      if (!features_.empty()) grow(first + c);
    }
    for (int64_t c = 0; c < outputs; ++c) unfold(first + c);
    if (int64_t(order_.size()) == count())     // the trees have seen all rows: their leaves are known
      for (size_t i = 0; i < scores.size(); ++i) scores[i] += steps_[i];
    else
      for (int64_t c = 0; c < outputs; ++c) add(first + c, 1);
    grown += outputs;
  }

  void grow(int64_t t) {
    measure(t % outputs);
    nodes_.assign(1, {0, int64_t(order_.size()), -1, 0, 0});
    nodes_[0].total = total_of(0);
    sums_.resize(std::max(sums_.size(), size_t(kLeaves) * 2 * size()));
    fill(0);
    search(0);
    while (int64_t(nodes_.size()) < kLeaves) {
      auto best = std::max_element(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) { return a.gain < b.gain; });
      if (!(best->gain > 0)) break;
      split(t, size_t(best - nodes_.begin()));
    }
    for (size_t k = 0; k < nodes_.size(); ++k) {
      int64_t total = nodes_[k].total;
      double value = values[size_t(t * kLeaves) + k] = kRate * slope(total) / (curvature(total) + kRidge);
      for (int64_t i = nodes_[k].begin; i < nodes_[k].end; ++i) steps_[size_t(order_[size_t(i)] * outputs + t % outputs)] = float(value);
    }
  }

  // A leaf becomes two: itself and a new one. The sums of the smaller are taken, those of the other are the difference.
  void split(int64_t t, size_t at) {
    Node node = nodes_[at];
    size_t other = nodes_.size();
    int32_t number = int32_t(other) - 1, feature = features_[size_t(node.feature)];
    Split* to = splits.data() + t * kSplits;
    to[number] = {feature, node.cut, {~int32_t(at), ~int32_t(other)}};
    if (node.parent >= 0) to[node.parent].child[node.side] = number;
    int64_t middle = node.begin, moved = 0;    // no branch depends on a row: a processor cannot guess it
    moved_.resize(order_.size());
    for (int64_t k = node.begin; k < node.end; ++k) {
      int32_t i = order_[size_t(k)];
      bool high = rows[size_t(i * width + feature)] > node.cut;
      order_[size_t(middle)] = moved_[size_t(moved)] = i;
      middle += !high;
      moved += high;
    }
    std::copy_n(moved_.begin(), moved, order_.begin() + middle);
    size_t small = middle - node.begin <= node.end - middle ? at : other, large = small == at ? other : at;
    nodes_[at] = {node.begin, middle, number, 0, node.place};
    nodes_.push_back({middle, node.end, number, 1, int32_t(other)});
    if (large == other) std::swap(nodes_[at].place, nodes_[other].place);
    nodes_[small].total = total_of(small);
    nodes_[large].total = node.total - nodes_[small].total;
    if (int64_t(nodes_.size()) == kLeaves) return;  // the last split
    fill(small);
    int32_t* from = sums(large);
    const int32_t* less = sums(small);
    for (size_t b = 0; b < 2 * size(); ++b) from[b] -= less[b];
    search(at);
    search(other);
  }

  // The rows and the features that a tree looks at: some of those whose numbers, mixed with the tree's, are small.
  void choose(uint64_t number) {
    int64_t n = count(), chosen = 0;
    uint64_t inverse = ~uint64_t(0) / uint64_t(n);
    order_.resize(size_t(n));
    for (int64_t i = 0; i < n; ++i) {          // no branch depends on a row: a processor cannot guess it
      order_[size_t(chosen)] = int32_t(i);
      chosen += n <= kSampled || rest(mixed(uint64_t(i), number), uint64_t(n), inverse) < uint64_t(kSampled);
    }
    order_.resize(size_t(chosen));
    drawn_.clear();
    for (int64_t d = 0; d < width; ++d)
      if (edges[size_t(d * most_edges)] != kNoEdge) drawn_.push_back({mixed(~uint64_t(d), number), int32_t(d)});
    if (int64_t(drawn_.size()) > kFeatures) {
      std::sort(drawn_.begin(), drawn_.end());
      drawn_.resize(size_t(kFeatures));
    }
    features_.clear();
    for (const auto& drawn : drawn_) features_.push_back(drawn.second);
    std::sort(features_.begin(), features_.end());
    begins_.assign(1, 0);
    for (int32_t d : features_) begins_.push_back(begins_.back() + last_bin_[size_t(d)] / kBins * kBins + kBins);
  }
  // x % n, without a division where that can be: `inverse` is (2^64 - 1) / n, so the quotient that it gives is right or one too small.
  static uint64_t rest(uint64_t x, uint64_t n, [[maybe_unused]] uint64_t inverse) {
#if defined(__SIZEOF_INT128__)
    uint64_t left = x - uint64_t((static_cast<unsigned __int128>(x) * inverse) >> 64) * n;
    return left < n ? left : left - n;
#else
    return x % n;
#endif
  }
  static uint64_t mixed(uint64_t a, uint64_t b) {  // splitmix64
    uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xd1342543de82ef95u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  // Slopes and curvatures of the loss at the rows chosen, in steps.
  void measure(int64_t c) {
    both_.resize(size_t(count()));
    pairs_.clear();
    double most_slope = 1e-30, most_curvature = 1e-30;
    for (int32_t i : order_) {
      auto [g, h] = step(targets[size_t(i)], scores.data() + i * outputs, c);
      double w = weights[size_t(i)], slope = w * g, curvature = w * h;
      if (!std::isfinite(slope + curvature)) slope = curvature = 0;  // of a score that is not finite, in a state from elsewhere
      pairs_.push_back({slope, curvature});
      most_slope = std::max(most_slope, std::abs(slope));
      most_curvature = std::max(most_curvature, curvature);
    }
    slope_step_ = most_slope / kSteps;
    curvature_step_ = most_curvature / kSteps;
    for (size_t k = 0; k < order_.size(); ++k)
      both_[size_t(order_[k])] =
          int64_t(std::floor(pairs_[k].first / slope_step_ + 0.5)) * kHigh + int64_t(std::floor(pairs_[k].second / curvature_step_ + 0.5));
  }
  std::pair<double, double> step(double y, const float* f, int64_t c) const {
    if (regression) return {y - double(f[0]), 1.0};
    double p;
    if (outputs == 1) {
      p = 1 / (1 + std::exp(-double(f[0])));
      return {double(y > 0) - p, p * (1 - p)};
    }
    double top = *std::max_element(f, f + outputs), sum = 0;
    for (int64_t e = 0; e < outputs; ++e) sum += std::exp(double(f[e]) - top);
    p = std::exp(double(f[c]) - top) / sum;
    return {double(int64_t(y) == c) - p, p * (1 - p)};
  }
  static int64_t low(int64_t sum) { return sum & (kHigh - 1); }
  double curvature(int64_t sum) const { return double(low(sum)) * curvature_step_; }
  double slope(int64_t sum) const { return double((sum - low(sum)) / kHigh) * slope_step_; }

  size_t size() const { return size_t(begins_.back()); }
  int32_t* sums(size_t leaf) { return sums_.data() + size_t(nodes_[leaf].place) * 2 * size(); }
  int64_t total_of(size_t leaf) const {
    int64_t total = 0;
    for (int64_t k = nodes_[leaf].begin; k < nodes_[leaf].end; ++k) total += both_[size_t(order_[size_t(k)])];
    return total;
  }

  // The sums of a leaf by feature, of all bins up to each: of slopes, and from size() on of curvatures. Both fit 32 bits, in steps.
  void fill(size_t leaf) {
    bins_.resize(std::max(bins_.size(), size()));  // all of them 0
    struct {
      int64_t *sums, feature;
    } place[kFeatures], *end_of_features = place;
    for (size_t j = 0; j < features_.size(); ++j) *end_of_features++ = {bins_.data() + begins_[j], features_[j]};
    auto add = [&](int64_t first, auto count) {  // `count` rows at a time: where a feature is and begins is read once for all
      constexpr int N = decltype(count)::value;
      const Bin* row[N];
      int64_t both[N];
      for (int r = 0; r < N; ++r) {
        int32_t i = order_[size_t(first + r)];
        row[r] = rows.data() + i * width;
        both[r] = both_[size_t(i)];
      }
      for (auto* at = place; at < end_of_features; ++at)
        for (int r = 0; r < N; ++r) at->sums[row[r][at->feature]] += both[r];
    };
    int64_t k = nodes_[leaf].begin, end = nodes_[leaf].end;
    for (; k + 4 <= end; k += 4) add(k, std::integral_constant<int, 4>());
    for (; k < end; ++k) add(k, std::integral_constant<int, 1>());
    int32_t *slopes = sums(leaf), *curvatures = slopes + size();
    for (size_t j = 0; j < features_.size(); ++j) {
#if defined(__AVX2__)
      const __m256i apart = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
      __m256i before = _mm256_setzero_si256();
      for (int64_t b = begins_[j]; b < begins_[j + 1]; b += 4) {
        __m256i* at = reinterpret_cast<__m256i*>(bins_.data() + b);
        __m256i x = _mm256_loadu_si256(at);
        _mm256_storeu_si256(at, _mm256_setzero_si256());
        x = _mm256_add_epi64(x, _mm256_slli_si256(x, 8));
        x = _mm256_add_epi64(x, _mm256_blend_epi32(_mm256_setzero_si256(), _mm256_permute4x64_epi64(x, 0x55), 0xf0));
        __m256i sums = _mm256_permutevar8x32_epi32(_mm256_add_epi64(x, before), apart);
        before = _mm256_add_epi64(before, _mm256_permute4x64_epi64(x, 0xff));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(curvatures + b), _mm256_castsi256_si128(sums));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(slopes + b), _mm256_extracti128_si256(sums, 1));
      }
#else
      int64_t sum = 0;
      for (int64_t b = begins_[j]; b < begins_[j + 1]; ++b) {
        sum += std::exchange(bins_[size_t(b)], 0);
        slopes[b] = int32_t(sum >> 32);
        curvatures[b] = int32_t(sum);
      }
#endif
    }
  }

  // Which of kBins bins, with such sums up to each, may have a split with at least `enough`, in squared steps of slopes: bit b for bin
  // b. Most have none. With the slopes g, d and the curvatures l, r of both sides a split has enough if g^2 r + d^2 l >= enough l r. All
  // terms are positive, so rounding to 24 bits is less than what `enough` is lowered by.
  int32_t may_gain([[maybe_unused]] const int32_t* slopes, [[maybe_unused]] const int32_t* curvatures, [[maybe_unused]] Both all,
                   [[maybe_unused]] float enough) const {
#if defined(__AVX2__) && defined(__GNUC__) && !defined(KS_SCALAR)  // a vector has kBins floats
    using F = Vec<float>;
    using I = Int<float>;
    auto real = [](I x) { return __builtin_convertvector(x, F); };
    const float step = float(curvature_step_), ridge = float(kRidge);
    I g, h;
    std::memcpy(&g, slopes, sizeof g);
    std::memcpy(&h, curvatures, sizeof h);
    F left = real(g), right = real(all.slope - g), l = real(h) * step + ridge, r = real(all.curvature - h) * step + ridge;
    I fewer = left * left * r + right * right * l < l * r * enough;
#if defined(__AVX512F__)
    return _mm512_cmpeq_epi32_mask(bits<__m512i>(fewer), _mm512_setzero_si512());
#else
    return ~_mm256_movemask_ps(bits<__m256>(fewer)) & ((1 << kBins) - 1);
#endif
#else
    return (1 << kBins) - 1;
#endif
  }

  // The best split of a leaf.
  void search(size_t leaf) {
    Node& node = nodes_[leaf];
    double G = slope(node.total), H = curvature(node.total), before = G * G / (H + kRidge);
    if (H < 2 * kLeast) return;
    const Both all = {int32_t((node.total - low(node.total)) / kHigh), int32_t(low(node.total))};
    double enough = before * (1 - 1e-12);      // surely not more than what a better split has
    auto in_steps = [&] { return float(enough / slope_step_ / slope_step_ * (1 - 1e-5)); };
    float about = in_steps();
    for (size_t j = 0; j < features_.size(); ++j) {
      const int32_t *slopes = sums(leaf) + begins_[j], *curvatures = slopes + size();
      int32_t last = last_bin_[size_t(features_[j])];  // all rows are in the bins up to it
      for (int32_t first = 0; first < last; first += int32_t(kBins))
        for (int32_t b = first, may = may_gain(slopes + first, curvatures + first, all, about); may && b < last; ++b, may >>= 1) {
          if (!(may & 1)) continue;
          double g = double(slopes[b]) * slope_step_, h = double(curvatures[b]) * curvature_step_;
          if (h < kLeast || H - h < kLeast) continue;
          double left = h + kRidge, right = H - h + kRidge, both = g * g * right + (G - g) * (G - g) * left;
          if (both < enough * (left * right)) continue;  // most of them: without a division
          double gain = both / (left * right) - before;
          if (gain > node.gain + 1e-9 * (before + node.gain)) {  // of gains that differ by rounding only the first
            enough = (before + gain) * (1 - 1e-12);
            about = in_steps();
            node.gain = gain;
            node.feature = int32_t(j);
            node.cut = b;
          }
        }
    }
  }

  std::vector<float> steps_;                   // what the trees that grow add to the scores
  std::vector<float> coarse_;                  // of each feature every kCoarse-th edge
  std::vector<Bin> query_;
  std::vector<double> f_;
  std::vector<int32_t> last_bin_;              // of each feature
  std::vector<int32_t> order_, features_;      // of the tree that grows: rows by leaf, features
  std::vector<int64_t> begins_;                // where the sums of each feature begin: four bins at a time
  std::vector<std::pair<uint64_t, int32_t>> drawn_;
  std::vector<std::pair<double, double>> pairs_;
  std::vector<Node> nodes_;
  std::vector<int64_t> both_, bins_;
  std::vector<int32_t> sums_, moved_;
  std::vector<Fork> forks_;                    // kForks per tree
  std::vector<int32_t> depth_;                 // of each tree
  double slope_step_ = 1, curvature_step_ = 1;
};

}  // namespace KS_MODULE
