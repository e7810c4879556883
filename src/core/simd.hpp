// Vectors of the machine this file is compiled for, and the few functions of them that the core needs.
//
// A `Line` is one cache line (64 bytes: 8 doubles or 16 floats) held in as many machine vectors as it takes. All element-wise
// arithmetic is written on lines, and each element is computed by the same sequence of operations wherever it stands, so
// results do not depend on how rows were grouped. Without GCC/Clang vector extensions a vector is one scalar.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace KS_MODULE {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T> struct Machine;
#if (defined(__GNUC__) || defined(__clang__)) && !defined(KS_SCALAR)
template <> struct Machine<double> {
  typedef double V __attribute__((vector_size(kVectorBytes)));
  typedef int64_t I __attribute__((vector_size(kVectorBytes)));
  using Scalar = int64_t;
};
template <> struct Machine<float> {
  typedef float V __attribute__((vector_size(kVectorBytes)));
  typedef int32_t I __attribute__((vector_size(kVectorBytes)));
  using Scalar = int32_t;
};
#else
template <> struct Machine<double> {
  using V = double;
  using I = int64_t;
  using Scalar = int64_t;
};
template <> struct Machine<float> {
  using V = float;
  using I = int32_t;
  using Scalar = int32_t;
};
#endif
template <class T> using Vec = typename Machine<T>::V;
template <class T> using Int = typename Machine<T>::I;

template <class T> constexpr int kLine = 64 / int(sizeof(T));                  // elements in a line
template <class T> constexpr int kVecs = 64 / int(sizeof(Vec<T>));             // machine vectors in a line

template <class To, class From> inline To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits() reinterprets, it does not convert");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
template <class T> inline Vec<T> splat(T x) { return x - Vec<T>{}; }  // x - 0 is x, and the compiler knows it
template <class T> inline Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T> inline void store(T* p, Vec<T> v) { std::memcpy(p, &v, sizeof v); }

template <class T> inline Vec<T> absolute(Vec<T> v) {
  using I = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  return bits<Vec<T>>(bits<Int<T>>(v) & typename Machine<T>::Scalar(~I(0) >> 1));
}

template <class T> struct Line {
  Vec<T> v[kVecs<T>];
  static Line zero() { return of(T(0)); }
  static Line of(T x) {
    Line l;
    for (int i = 0; i < kVecs<T>; ++i) l.v[i] = splat<T>(x);
    return l;
  }
  static Line at(const T* p) {
    Line l;
    for (int i = 0; i < kVecs<T>; ++i) l.v[i] = load<T>(p + i * (kLine<T> / kVecs<T>));
    return l;
  }
  void to(T* p) const {
    for (int i = 0; i < kVecs<T>; ++i) store<T>(p + i * (kLine<T> / kVecs<T>), v[i]);
  }
  void add(const Line& o) {
    for (int i = 0; i < kVecs<T>; ++i) v[i] += o.v[i];
  }
  void add_product(const Line& a, const Line& b) {
    for (int i = 0; i < kVecs<T>; ++i) v[i] += a.v[i] * b.v[i];
  }
  template <class F> void apply(F f) {
    for (int i = 0; i < kVecs<T>; ++i) v[i] = f(v[i]);
  }
  T sum() const {
    T lane[kLine<T>];
    to(lane);
    T s = 0;
    for (int i = 0; i < kLine<T>; ++i) s += lane[i];
    return s;
  }
};

// Constants of the argument reductions; series are Taylor's, long enough for the reduced range.
template <class T> struct Reduce;
template <> struct Reduce<double> {
  static constexpr double magic = 0x1.8p52, exp_low = -708.0, exp_high = 709.0;
  static constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
  static constexpr double pio2_1 = 0x1.921fb54400000p0, pio2_2 = 0x1.0b4611a600000p-34, pio2_3 = 0x1.3198a2e037073p-69;
  static constexpr double trig_limit = 1e6;
  static constexpr int mantissa = 52, exp_terms = 13, trig_terms = 8, log_terms = 11;
  static constexpr int64_t one = 0x3FF0000000000000;
};
template <> struct Reduce<float> {
  static constexpr float magic = 0x1.8p23f, exp_low = -87.0f, exp_high = 88.0f;
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  static constexpr float pio2_1 = 1.5703125f, pio2_2 = 4.837512969970703125e-4f, pio2_3 = 7.549789948768648e-8f;
  static constexpr float trig_limit = 2e3f;
  static constexpr int mantissa = 23, exp_terms = 7, trig_terms = 5, log_terms = 5;
  static constexpr int32_t one = 0x3F800000;
};

template <class T> constexpr T inverse_factorial(int n) {
  double f = 1;
  for (int k = 2; k <= n; ++k) f *= k;
  return T(1 / f);
}

// e^x; arguments below the smallest normal result give that result instead of a denormal or zero. NaN stays NaN.
template <class T> inline Vec<T> exp(Vec<T> x) {
  using R = Reduce<T>;
  x = x < R::exp_low ? splat<T>(R::exp_low) : x;
  x = x > R::exp_high ? splat<T>(R::exp_high) : x;
  Vec<T> shifted = x * T(1.4426950408889634) + R::magic;
  Vec<T> n = shifted - R::magic;
  Vec<T> r = x - n * R::ln2_high;
  r = r - n * R::ln2_low;
  Vec<T> p = splat<T>(inverse_factorial<T>(R::exp_terms));
  for (int k = R::exp_terms - 1; k >= 0; --k) p = p * r + inverse_factorial<T>(k);
  Int<T> scale = (bits<Int<T>>(shifted) << R::mantissa) + R::one;
  return p * bits<Vec<T>>(scale);
}

// The square root of each element.
template <class T> inline Vec<T> root(Vec<T> v) {
  T lane[sizeof(Vec<T>) / sizeof(T)];
  store<T>(lane, v);
  for (T& x : lane) x = std::sqrt(x);
  return load<T>(lane);
}

// log x for x >= 1: the exponent, and 2 atanh((m - 1) / (m + 1)) for the rest m between sqrt(1/2) and sqrt(2). Infinity counts as the
// power of two that it would be; NaN stays NaN.
template <class T> inline Vec<T> log(Vec<T> x) {
  using R = Reduce<T>;
  using S = typename Machine<T>::Scalar;
  Int<T> whole = bits<Int<T>>(x);
  Int<T> exponent = (whole >> R::mantissa) - S(R::one >> R::mantissa);
  Vec<T> m = bits<Vec<T>>((whole & S((S(1) << R::mantissa) - 1)) | S(R::one));
  Vec<T> n = bits<Vec<T>>(bits<Int<T>>(splat<T>(R::magic)) + exponent) - R::magic;
  n = m > T(1.4142135623730951) ? n + T(1) : n;
  m = m > T(1.4142135623730951) ? m * T(0.5) : m;
  Vec<T> z = (m - T(1)) / (m + T(1)), w = z * z, p = splat<T>(0);
  for (int k = R::log_terms; k >= 0; --k) p = p * w + T(1) / T(2 * k + 1);
  Vec<T> made = n * R::ln2_high + (z * p * T(2) + n * R::ln2_low);
  return x != x ? x : made;
}

// cos x and sin x for |x| below Reduce<T>::trig_limit.
template <class T> inline void sincos(Vec<T> x, Vec<T>& s, Vec<T>& c) {
  using R = Reduce<T>;
  Vec<T> shifted = x * T(0.6366197723675814) + R::magic;
  Vec<T> n = shifted - R::magic;
  Vec<T> r = x - n * R::pio2_1;
  r = r - n * R::pio2_2;
  r = r - n * R::pio2_3;
  Vec<T> r2 = r * r;
  Vec<T> sine = splat<T>(0), cosine = splat<T>(0);
  for (int k = R::trig_terms; k >= 0; --k) {
    T sign = k % 2 ? T(-1) : T(1);
    sine = sine * r2 + sign * inverse_factorial<T>(2 * k + 1);
    cosine = cosine * r2 + sign * inverse_factorial<T>(2 * k);
  }
  sine = sine * r;
  Int<T> q = bits<Int<T>>(shifted);
  constexpr int to_sign = 8 * int(sizeof(T)) - 2;
  Int<T> odd = (q & 1) != 0;
  Vec<T> first = odd ? cosine : sine, second = odd ? sine : cosine;
  s = bits<Vec<T>>(bits<Int<T>>(first) ^ ((q & 2) << to_sign));
  c = bits<Vec<T>>(bits<Int<T>>(second) ^ (((q + 1) & 2) << to_sign));
}

// An array aligned to cache lines, its length a whole number of lines, zeroed when made.
template <class T> class Array {
 public:
  Array() = default;
  explicit Array(size_t n) : size_(whole_lines(n)) { allocate(true); }
  // One whose numbers are still to be written, all of them.
  static Array unset(size_t n) {
    Array made;
    made.size_ = whole_lines(n);
    made.allocate(false);
    return made;
  }
  Array(const Array& o) : size_(o.size_) {
    allocate(false);
    if (data_) std::memcpy(static_cast<void*>(data_), o.data_, nbytes());
  }
  Array(Array&& o) noexcept
      : base_(std::exchange(o.base_, nullptr)), data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  Array& operator=(Array o) noexcept {
    std::swap(base_, o.base_);
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~Array() { std::free(base_); }
  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t nbytes() const { return size_ * sizeof(T); }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  void clear() {
    if (data_) std::memset(static_cast<void*>(data_), 0, nbytes());
  }

 private:
  static size_t whole_lines(size_t n) { return (n + kLine<T> - 1) / kLine<T> * kLine<T>; }

  // Large blocks come in few sizes, a quarter of a power of two apart. So an array that takes the place of a slightly smaller one, as
  // with each new class, gets the memory of an earlier one, and no new pages from the system. What is not used costs nothing.
  static size_t block(size_t bytes) {
    constexpr size_t large = size_t(1) << 16;
    if (bytes < large) return bytes;
    size_t step = large / 4;
    while (step * 8 <= bytes) step *= 2;
    return (bytes + step - 1) / step * step;
  }

  void allocate(bool zeros) {                  // calloc: large memory is zero when it comes
    if (size_ == 0) return;
    if (size_ > SIZE_MAX / 4 / sizeof(T)) throw std::bad_alloc();  // and not a product that wraps around
    size_t bytes = block(nbytes() + 64);
    base_ = zeros ? std::calloc(bytes, 1) : std::malloc(bytes);
    if (!base_) throw std::bad_alloc();
    data_ = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(base_) + 63) / 64 * 64);
  }

  void* base_ = nullptr;                       // data_ is its first cache line
  T* data_ = nullptr;
  size_t size_ = 0;
};

// sum_i a_i b_i over `lines` whole lines.
template <class T> inline T dot(const T* a, const T* b, size_t lines) {
  Line<T> acc[4] = {Line<T>::zero(), Line<T>::zero(), Line<T>::zero(), Line<T>::zero()};
  size_t l = 0;
  for (; l + 4 <= lines; l += 4)
    for (int u = 0; u < 4; ++u) acc[u].add_product(Line<T>::at(a + (l + u) * kLine<T>), Line<T>::at(b + (l + u) * kLine<T>));
  for (; l < lines; ++l) acc[0].add_product(Line<T>::at(a + l * kLine<T>), Line<T>::at(b + l * kLine<T>));
  acc[0].add(acc[1]);
  acc[2].add(acc[3]);
  acc[0].add(acc[2]);
  return acc[0].sum();
}

// y += s x over `lines` whole lines.
template <class T> inline void axpy(T s, const T* x, T* y, size_t lines) {
  Line<T> scale = Line<T>::of(s);
  for (size_t l = 0; l < lines; ++l) {
    Line<T> to = Line<T>::at(y + l * kLine<T>);
    to.add_product(scale, Line<T>::at(x + l * kLine<T>));
    to.to(y + l * kLine<T>);
  }
}

// The largest |x_i| over `lines` whole lines; a NaN counts as nothing.
template <class T> inline T largest(const T* x, size_t lines) {
  T lane[kLine<T>] = {};
  for (size_t i = 0; i < lines * kLine<T>; i += kLine<T>)
    for (int l = 0; l < kLine<T>; ++l) {
      T size = std::abs(x[i + size_t(l)]);
      lane[l] = size > lane[l] ? size : lane[l];
    }
  T most = 0;
  for (T size : lane) most = size > most ? size : most;
  return most;
}

template <class T> inline void scale(T s, T* y, size_t lines) {
  for (size_t l = 0; l < lines; ++l) {
    Line<T> to = Line<T>::at(y + l * kLine<T>);
    to.apply([s](Vec<T> v) { return v * s; });
    to.to(y + l * kLine<T>);
  }
}

}  // namespace KS_MODULE
