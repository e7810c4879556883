// Numbers in text: what Python's float() reads, to the last bit, in ASCII and without underscores.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#if !defined(_WIN32)
#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif

#if defined(_MSC_VER)
#define KS_INLINE __forceinline
#else
#define KS_INLINE inline __attribute__((always_inline))
#endif

namespace text {

KS_INLINE bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

// The largest whole number up to which a double holds every one: labels beyond it are refused.
constexpr double kLargestWhole = 9007199254740992.0;

// The C library's own reading, in the "C" locale: for the rare numbers that std::from_chars leaves open (out of range),
// and for all of them where the C++ library has no std::from_chars for double (libc++ before version 20).
inline double slow_double(const char* begin, const char* end, bool* good) {
  std::string copy(begin, end);
  char* stopped = nullptr;
#if defined(_WIN32)
  static _locale_t plain = _create_locale(LC_NUMERIC, "C");
  double value = _strtod_l(copy.c_str(), &stopped, plain);
#else
  static locale_t plain = newlocale(LC_NUMERIC_MASK, "C", locale_t(0));
  double value = strtod_l(copy.c_str(), &stopped, plain);
#endif
  *good = stopped == copy.c_str() + copy.size();
  return value;
}

enum class Number { good, not_a_number, not_finite, nan };

// [begin, end) as Python's float() reads it, without surrounding blanks and underscores.
inline Number to_double(const char* begin, const char* end, double* out) {
  const char* p = begin;
  if (p < end && *p == '+') ++p;
  const char* digits = p;
  if (p < end && *p == '-' && p == begin) ++digits;
  if (digits == end) return Number::not_a_number;
  if ((*digits < '0' || *digits > '9') && *digits != '.') {  // a name, or nothing we know
    std::string name;
    for (const char* c = digits; c < end && name.size() < 9; ++c) name += char(*c | 0x20);
    if (name == "nan") return Number::nan;
    return name == "inf" || name == "infinity" ? Number::not_finite : Number::not_a_number;
  }
#if defined(__cpp_lib_to_chars)
  std::from_chars_result read = std::from_chars(p, end, *out);
  if (read.ec == std::errc() && read.ptr == end) return std::isfinite(*out) ? Number::good : Number::not_finite;
  if (read.ptr != end || read.ec != std::errc::result_out_of_range) return Number::not_a_number;
#else
  for (const char* c = digits; c < end; ++c)  // strtod would accept hexadecimal numbers
    if (!std::strchr("0123456789.eE+-", *c) || !*c) return Number::not_a_number;
#endif
  bool good;
  *out = slow_double(p, end, &good);
  if (!good) return Number::not_a_number;
  return std::isfinite(*out) ? Number::good : Number::not_finite;
}

// A short decimal such as -12.5 at p, which is moved behind it. Up to 15 digits are exact in a double and so is the power of
// ten, hence one correctly rounded division gives what from_chars would. Anything else: false, and p stays.
KS_INLINE bool short_decimal(const char*& p, const char* end, double* out) {
  static constexpr double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char* c = p;
  bool negative = c < end && *c == '-';
  if (negative) ++c;
  const char* first = c;
  uint64_t digits = 0;
  while (c < end && unsigned(*c - '0') < 10u && c - first < 16) digits = 10 * digits + unsigned(*c++ - '0');
  int64_t count = c - first, decimals = 0;
  if (c < end && *c == '.') {
    const char* point = ++c;
    while (c < end && unsigned(*c - '0') < 10u && c - point < 16) digits = 10 * digits + unsigned(*c++ - '0');
    decimals = c - point;
    count += decimals;
  }
  if (count == 0 || count > 15) return false;
  double value = double(digits);
  if (decimals) value /= powers[decimals];
  *out = negative ? -value : value;
  p = c;
  return true;
}

}  // namespace text
