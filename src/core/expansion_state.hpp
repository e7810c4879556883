// The state of an expansion.
#pragma once
#include "expansion.hpp"
#include "state.hpp"

KS_GLUE_BEGIN
namespace KS_MODULE {

// shown(j, dense) is point j as the state has it; put(rows, j) stores it.
template <class T, class Shown, class Put> int64_t describe_expansion(State& s, Expansion<T>& e, Shown shown, Put put) {
  if (s.reads()) e.points.count = 0;
  int64_t n = s.rows<T, T>("points", e.points.count, e.set.budget, e.set.width, e.points.sparse, shown, put);
  s.weights("weights", e.weights, n);
  s.line("born", e.born.data(), n);
  for (int64_t j = 0; j < n; ++j) counted(e.born[size_t(j)]);
  uint64_t random[2] = {e.random.state, uint64_t(e.clock)};
  s.line("random", random, 2);
  e.random.state = random[0];
  e.clock = counted(int64_t(random[1]));
  double ledger[2] = {e.mistakes, e.ledger};
  s.line("ledger", ledger, 2);
  e.mistakes = ledger[0];
  e.ledger = ledger[1];
  if (e.inverse.empty()) return n;
  if (s.reads()) std::fill(e.inverse.begin(), e.inverse.end(), 0.0);
  s.grid<double>("inverse", n, n, [&](int64_t i, int64_t j) -> double& { return e.inverse[size_t(i * e.set.budget + j)]; });
  return n;
}

template <class T> void describe(State& s, Expansion<T>& e) {
  auto shown = [&](int64_t j, std::vector<T>& dense) { return e.points.row(j, dense); };
  describe_expansion(s, e, shown, [&](const Rows<T>& rows, int64_t j) { e.place(j, rows, j); });
}

}  // namespace KS_MODULE
KS_GLUE_END
