// The state of an expansion as arrays, and back; for all bindings of expansions.
#pragma once
#include "bind.hpp"

namespace KS_MODULE {

// The first n points of a panel as rows.
template <class T> Made<T> points_out(const Panel<T>& panel, int64_t n) {
  T* x;
  Made<T> made = make<T>({size_t(n), size_t(panel.width())}, &x);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t d = 0; d < panel.width(); ++d) x[j * panel.width() + d] = panel.at(j, d);
  return made;
}

template <class T> nb::dict expansion_state(const Expansion<T>& e) {
  int64_t n = e.points.count;
  nb::dict state;
  state["points"] = points_out(e.points.panel, n);
  state["weights"] = weights_out(e.weights, n);
  int64_t* t;
  Made<int64_t> born = make<int64_t>({size_t(n)}, &t);
  std::copy_n(e.born.begin(), n, t);
  state["born"] = born;
  uint64_t* r;
  Made<uint64_t> random = make<uint64_t>({2}, &r);
  r[0] = e.random.state;
  r[1] = uint64_t(e.clock);
  state["random"] = random;
  double* q;
  Made<double> ledger = make<double>({2}, &q);
  q[0] = e.mistakes;
  q[1] = e.ledger;
  state["ledger"] = ledger;
  if (!e.inverse.empty()) {
    double* k;
    Made<double> inverse = make<double>({size_t(n), size_t(n)}, &k);
    for (int64_t j = 0; j < n; ++j) std::copy_n(e.inverse.begin() + j * e.set.budget, n, k + j * n);
    state["inverse"] = inverse;
  }
  return state;
}

template <class T>
void expansion_restore(Expansion<T>& e, const HeldRows<T>& points, Matrix<T> weights, Vector<int64_t> born,
                       Vector<uint64_t> random, Vector<double> ledger, std::optional<Matrix<double>> inverse) {
  int64_t n = points.rows.n;
  fits(n <= e.set.budget && points.rows.width == e.set.width && int64_t(weights.shape(0)) == n &&
       int64_t(born.shape(0)) == n && random.shape(0) == 2 && ledger.shape(0) == 2 &&
       int64_t(weights.shape(1)) == e.set.outputs);
  fits(inverse.has_value() == !e.inverse.empty());
  if (inverse) fits(int64_t(inverse->shape(0)) == n && int64_t(inverse->shape(1)) == n);
  fits(is_count(int64_t(random(1))));
  for (int64_t j = 0; j < n; ++j) fits(is_count(born(size_t(j))));
  e.points.count = 0;
  for (int64_t j = 0; j < n; ++j) e.place(j, points.rows, j);
  weights_in(e.weights, weights);
  for (int64_t j = 0; j < n; ++j) e.born[size_t(j)] = born(size_t(j));
  e.random.state = random(0);
  e.clock = int64_t(random(1));
  e.mistakes = ledger(0);
  e.ledger = ledger(1);
  if (inverse) {
    std::fill(e.inverse.begin(), e.inverse.end(), 0.0);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < n; ++l) e.inverse[size_t(j * e.set.budget + l)] = (*inverse)(size_t(j), size_t(l));
  }
}

}  // namespace KS_MODULE
