// The names of NewtonMixture's parts, the same in docs/default.md, Python, the state and here; and sets of them.
#pragma once
#include <initializer_list>
#include <stdexcept>
#include <string>

namespace KS_MODULE {

// The first four take Newton steps. An expert's number is also its number as a candidate of the aggregation.
struct Expert {
  enum Name { lasting, least_squares, recent, linear, window, trees, labels };
  static constexpr int count = 7, newtons = 4;
};

// What the local aggregation takes a mean of, beside its own stacks: the forecast of the aggregation, that of the neighbours'
// targets, the first corrected by the neighbours' residuals; the last two as means over more rows; and a mean over the nearest of the
// latest rows, of a stream.
struct LocalExpert {
  enum Name { aggregation, neighbours, corrected, smoothed, smoothed_corrected, latest };
  static constexpr int count = 6;
};

struct MemoryKind {
  enum Name { lasting, recent };
  static constexpr int count = 2;
};

// Why a memory is due: the first rows come (both memories, at 2, 4, 8, ... rows); twice as many rows have come since a change; the
// recent memory has beaten the lasting one; the recent memory's landmarks no longer cover the rows.
struct Reason {
  enum Name { first_rows, more_rows, beaten, uncovered };
  Name name = first_rows;
  double figure = 0;                           // rows; rows; the CUSUM; the coverage over what it was
  int64_t rounds = 0;                          // since the memory began, or since the CUSUM was 0
};
constexpr const char* kReasons[] = {"first_rows", "more_rows", "beaten", "uncovered"};

// Whatever the aggregation takes a mean of: the experts and the stacked forecasts.
constexpr const char* kCandidates[] = {"lasting", "least_squares", "recent", "linear",          "window",
                                       "trees",   "labels",        "stack",  "forgetting_stack"};
constexpr const char* kMemories[] = {"lasting", "recent"};

template <size_t N> int number_of(const char* const (&names)[N], const std::string& name) {
  for (size_t i = 0; i < N; ++i)
    if (name == names[i]) return int(i);
  throw std::invalid_argument("there is no " + name);
}

// A set of names of one kind.
template <class Kind> class Set {
 public:
  using Name = typename Kind::Name;
  constexpr Set() = default;
  constexpr Set(std::initializer_list<Name> members) {
    for (Name name : members) bits_ |= 1u << name;
  }
  static constexpr Set all() {
    Set set;
    set.bits_ = (1u << Kind::count) - 1;
    return set;
  }
  constexpr bool has(int name) const { return bits_ >> name & 1; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool full() const { return bits_ == all().bits_; }
  void add(Set more) { bits_ |= more.bits_; }
  void remove(Set less) { bits_ &= ~less.bits_; }

 private:
  unsigned bits_ = 0;
};
using ExpertSet = Set<Expert>;
using MemorySet = Set<MemoryKind>;

}  // namespace KS_MODULE
