// Rows of 16-bit steps: squares of their distances, and which of many squares are small. Sums of integers are exact in any order, so
// these few functions may be written for each level and give the same numbers.
#pragma once
#include <algorithm>
#include <cstdint>

#include "intrinsics.hpp"

namespace KS_MODULE {

using Step = int16_t;

// The squares of kTogether distances |a(r) - b(r)|^2, entries d to end (a multiple of 16 of them): one sum over the lanes for all.
#if defined(__AVX512BW__)
constexpr int kTogether = 8;
using Together = __m256i;
template <class A, class B> inline Together squares(A a, B b, int64_t d, int64_t end) {
  const Step *from[kTogether], *to[kTogether];
  for (int r = 0; r < kTogether; ++r) {
    from[r] = a(r);
    to[r] = b(r);
  }
  auto whole = [](const Step* at) { return _mm512_loadu_si512(at); };
  auto half = [](const Step* at) { return _mm512_zextsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))); };
  auto square = [&](int r, auto load) {
    __m512i apart = _mm512_sub_epi16(load(from[r] + d), load(to[r] + d));
    return _mm512_madd_epi16(apart, apart);
  };
  __m512i sum[kTogether];
  for (int r = 0; r < kTogether; ++r) sum[r] = end - d < 32 ? square(r, half) : square(r, whole);
  for (d += 32; d + 32 <= end; d += 32)
    for (int r = 0; r < kTogether; ++r) sum[r] = _mm512_add_epi32(sum[r], square(r, whole));
  if (d < end)
    for (int r = 0; r < kTogether; ++r) sum[r] = _mm512_add_epi32(sum[r], square(r, half));
  auto pairs = [](__m512i x, __m512i y) { return _mm512_add_epi32(_mm512_unpacklo_epi32(x, y), _mm512_unpackhi_epi32(x, y)); };
  auto fours = [](__m512i x, __m512i y) { return _mm512_add_epi32(_mm512_unpacklo_epi64(x, y), _mm512_unpackhi_epi64(x, y)); };
  __m512i low = fours(pairs(sum[0], sum[1]), pairs(sum[2], sum[3])), high = fours(pairs(sum[4], sum[5]), pairs(sum[6], sum[7]));
  __m512i all = _mm512_add_epi32(_mm512_shuffle_i32x4(low, high, 0x88), _mm512_shuffle_i32x4(low, high, 0xdd));
  all = _mm512_add_epi32(all, _mm512_shuffle_i32x4(all, all, 0xb1));
  return _mm512_castsi512_si256(_mm512_shuffle_i32x4(all, all, 0x08));
}
inline void store(int32_t* to, Together x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x); }
inline void add(int64_t* to, Together x) { _mm512_storeu_si512(to, _mm512_add_epi64(_mm512_loadu_si512(to), _mm512_cvtepi32_epi64(x))); }
#elif defined(__AVX2__)
constexpr int kTogether = 4;
using Together = __m128i;
template <class A, class B> inline Together squares(A a, B b, int64_t d, int64_t end) {
  auto load = [](const Step* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); };
  const Step *from[kTogether], *to[kTogether];
  __m256i sum[kTogether];
  for (int r = 0; r < kTogether; ++r) {
    from[r] = a(r);
    to[r] = b(r);
    sum[r] = _mm256_setzero_si256();
  }
  for (; d < end; d += 16)
    for (int r = 0; r < kTogether; ++r) {
      __m256i apart = _mm256_sub_epi16(load(from[r] + d), load(to[r] + d));
      sum[r] = _mm256_add_epi32(sum[r], _mm256_madd_epi16(apart, apart));
    }
  __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]), _mm256_hadd_epi32(sum[2], sum[3]));
  return _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}
inline void store(int32_t* to, Together x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), x); }
inline void add(int64_t* to, Together x) {
  __m256i* at = reinterpret_cast<__m256i*>(to);
  _mm256_storeu_si256(at, _mm256_add_epi64(_mm256_loadu_si256(at), _mm256_cvtepi32_epi64(x)));
}
#else
constexpr int kTogether = 1;
using Together = int32_t;
template <class A, class B> inline Together squares(A a, B b, int64_t d, int64_t end) {
  const Step *from = a(0), *to = b(0);
  int32_t sum = 0;
  for (; d < end; ++d) {
    Step apart = Step(from[d] - to[d]);
    sum += int32_t(apart) * int32_t(apart);
  }
  return sum;
}
inline void store(int32_t* to, Together x) { *to = x; }
inline void add(int64_t* to, Together x) { *to += x; }
#endif

// Fetches a row that will be needed.
inline void fetch([[maybe_unused]] const Step* row, [[maybe_unused]] int64_t stride) {
#if defined(__AVX2__)
  for (int64_t d = 0; d < stride; d += 32) _mm_prefetch(reinterpret_cast<const char*>(row + d), _MM_HINT_T0);
#endif
}

// The numbers i < n with from[i] <= at_most, rising; `to` has place for n + 16.
template <class S> inline void choose(const S* from, int64_t n, S at_most, int32_t* to) {
  int64_t i = 0;
#if defined(__AVX512F__)
  if constexpr (sizeof(S) == 4) {
    __m512i number = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), most = _mm512_set1_epi32(at_most);
    for (; i + 16 <= n; i += 16) {
      __mmask16 chosen = _mm512_cmple_epi32_mask(_mm512_loadu_si512(from + i), most);
      _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(chosen, number));
      to += _mm_popcnt_u32(chosen);
      number = _mm512_add_epi32(number, _mm512_set1_epi32(16));
    }
  }
#endif
  for (; i < n; ++i) {
    *to = int32_t(i);
    to += from[i] <= at_most;
  }
}

}  // namespace KS_MODULE
