// From text to numbers: where the records of a text end, and rows of LIBSVM text.
// One module for all CPU levels. The interpreter lock is released while text is read, and nothing outside it is kept.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>
#if !defined(_WIN32)
#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A vector handed over to NumPy without a copy.
template <class T> nb::ndarray<nb::numpy, T> give(std::vector<T>&& made) {
  auto* kept = new std::vector<T>(std::move(made));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  static T nothing[1] = {};
  size_t shape[1] = {kept->size()};
  return nb::ndarray<nb::numpy, T>(kept->empty() ? nothing : kept->data(), 1, shape, owner);
}

// The newline that ends a record which may have quoted fields; null if there is none.
const char* end_of_quoted(const char* p, const char* stop, char delimiter) {
  bool at_start = true, inside = false;  // of a field; of quotes
  for (; p < stop; ++p) {
    if (inside) {
      if (*p != '"') continue;
      if (p + 1 < stop && p[1] == '"') ++p;
      else inside = false;
    } else if (*p == '\n') {
      return p;
    } else {
      inside = *p == '"' && at_start;
      at_start = *p == delimiter;
    }
  }
  return nullptr;
}

// Where the first `most` complete records of text[start:] end, just after their newline.
// With a delimiter, a field may stand in quotes ("" is a quote inside them) and then hold newlines.
std::vector<int64_t> ends_of(const char* text, int64_t size, int64_t start, int64_t most, char delimiter, bool quotes) {
  std::vector<int64_t> ends;
  const char *p = text + start, *stop = text + size;
  while (p < stop && int64_t(ends.size()) < most) {
    const char* end = static_cast<const char*>(std::memchr(p, '\n', size_t(stop - p)));
    if (end && quotes && std::memchr(p, '"', size_t(end - p))) end = end_of_quoted(p, stop, delimiter);
    if (!end) break;
    p = end + 1;
    ends.push_back(p - text);
  }
  return ends;
}

nb::ndarray<nb::numpy, int64_t> record_ends(Bytes text, int64_t start, int64_t most, const std::string& delimiter) {
  if (start < 0 || start > int64_t(text.size())) throw nb::value_error("start lies outside the text");
  std::vector<int64_t> ends;
  {
    nb::gil_scoped_release release;
    ends = ends_of(reinterpret_cast<const char*>(text.data()), int64_t(text.size()), start, most,
                   delimiter.empty() ? '\0' : delimiter[0], !delimiter.empty());
  }
  return give(std::move(ends));
}

// ---- numbers ----

// The C library's own reading, in the "C" locale: for the rare numbers that std::from_chars leaves open (out of range),
// and for all of them where the C++ library has no std::from_chars for double (libc++ before version 20).
double slow_double(const char* begin, const char* end, bool* good) {
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

enum class Number { good, not_a_number, not_finite };

// [begin, end) as Python's float() reads it, without surrounding blanks and underscores.
Number to_double(const char* begin, const char* end, double* out) {
  const char* p = begin;
  if (p < end && *p == '+') ++p;
  const char* digits = p;
  if (p < end && *p == '-' && p == begin) ++digits;
  if (digits == end) return Number::not_a_number;
  if ((*digits < '0' || *digits > '9') && *digits != '.') {  // a name, or nothing we know
    std::string name;
    for (const char* c = digits; c < end && name.size() < 9; ++c) name += char(*c | 0x20);
    bool known = name == "nan" || name == "inf" || name == "infinity";
    return known ? Number::not_finite : Number::not_a_number;
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
inline bool short_decimal(const char*& p, const char* end, double* out) {
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

// ---- LIBSVM ----

// The reasons for refusing a line; kernelstream.stream.libsvm has the words, in the same order.
enum Reason : int64_t {
  label_not_a_number, label_not_finite, label_not_whole, not_a_pair, index_not_a_number, index_not_finite, index_not_whole,
  index_below_1, index_too_large, index_not_increasing, index_too_wide, value_not_a_number, value_not_finite
};

struct Refusal {
  int64_t record, reason, start, end, index, last;  // the token stands at text[start:end]
};

struct Options {
  int64_t n_features;  // 0: any
  double largest;      // magnitude of a value
  bool labelled, whole_labels;
};

struct Parsed {
  std::vector<double> labels, values;
  std::vector<int32_t> starts{0}, indices;
  std::vector<int64_t> refused;
};

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

class Libsvm {
 public:
  Libsvm(const char* text, int64_t size, Options options) : text_(text), stop_(text + size), options_(options) {
    parsed.values.reserve(size_t(size / 8));
    parsed.indices.reserve(size_t(size / 8));
  }

  void run() {
    const char* line = text_;
    for (record_ = 0; line < stop_; ++record_) {
      const char* newline = static_cast<const char*>(std::memchr(line, '\n', size_t(stop_ - line)));
      const char* end = newline ? newline : stop_;
      size_t rows = parsed.labels.size(), entries = parsed.values.size();
      if (!read(line, end)) {
        parsed.labels.resize(rows);
        parsed.values.resize(entries);
        parsed.indices.resize(entries);
      } else if (parsed.labels.size() > rows) {
        parsed.starts.push_back(int32_t(parsed.values.size()));
      }
      line = end + 1;
    }
  }

  Parsed parsed;

 private:
  // One line; false if it is refused.
  bool read(const char* p, const char* end) {
    const char *from, *to;
    if (!token(p, end, &from, &to)) return true;
    double label = 0;
    if (options_.labelled || !std::memchr(from, ':', size_t(to - from))) {
      Number kind = to_double(from, to, &label);
      if (options_.labelled) {
        if (kind == Number::not_a_number) return refuse(label_not_a_number, from, to);
        if (kind == Number::not_finite) return refuse(label_not_finite, from, to);
        if (options_.whole_labels && (label != std::floor(label) || std::fabs(label) > 9007199254740992.0))
          return refuse(label_not_whole, from, to);
      } else if (kind != Number::good) {
        return refuse(label_not_a_number, from, to);
      }
      p = to;
    }
    parsed.labels.push_back(label);
    int64_t last = 0;
    for (;;) {
      if (ordinary_pair(p, end, &last)) continue;
      if (!token(p, end, &from, &to)) return true;
      p = to;
      const char* colon = static_cast<const char*>(std::memchr(from, ':', size_t(to - from)));
      if (!colon || colon == from || colon + 1 == to) return refuse(not_a_pair, from, to);
      int64_t index = 0;
      const char* c = from;
      for (; c < colon && *c >= '0' && *c <= '9' && index <= std::numeric_limits<int32_t>::max(); ++c)
        index = 10 * index + (*c - '0');
      if (c < colon) {  // too long, signed, or written as 1e3
        double wide;
        Number kind = to_double(from, colon, &wide);
        if (kind == Number::not_a_number) return refuse(index_not_a_number, from, to);
        if (kind == Number::not_finite) return refuse(index_not_finite, from, to);
        if (wide != std::floor(wide)) return refuse(index_not_whole, from, to);
        index = wide < -9e18 ? -int64_t(9e18) : wide > 9e18 ? int64_t(9e18) : int64_t(wide);
      }
      if (index < 1) return refuse(index_below_1, from, to, index);
      if (index > std::numeric_limits<int32_t>::max()) return refuse(index_too_large, from, to, index);
      if (index <= last) return refuse(index_not_increasing, from, to, index, last);
      if (options_.n_features && index > options_.n_features) return refuse(index_too_wide, from, to, index);
      double value;
      Number kind = to_double(colon + 1, to, &value);
      if (kind == Number::not_a_number) return refuse(value_not_a_number, from, to);
      if (kind == Number::not_finite || std::fabs(value) > options_.largest) return refuse(value_not_finite, from, to);
      parsed.indices.push_back(int32_t(index - 1));
      parsed.values.push_back(value);
      last = index;
    }
  }

  // Most pairs are plain: digits, a colon, a short decimal. False, and nothing is done, for all others, good or bad.
  bool ordinary_pair(const char*& p, const char* end, int64_t* last) {
    const char* c = p;
    while (c < end && is_blank(*c)) ++c;
    const char* first = c;
    int64_t index = 0;
    while (c < end && unsigned(*c - '0') < 10u && c - first < 9) index = 10 * index + (*c++ - '0');
    double value;
    if (c == end || *c++ != ':' || index <= *last || !short_decimal(c, end, &value)) return false;
    if ((c < end && !is_blank(*c) && *c != '#') || (options_.n_features && index > options_.n_features)) return false;
    parsed.indices.push_back(int32_t(index - 1));
    parsed.values.push_back(value);
    *last = index;
    p = c;
    return true;
  }

  // The next token before the end of the line or a comment.
  static bool token(const char* p, const char* end, const char** from, const char** to) {
    while (p < end && is_blank(*p)) ++p;
    if (p == end || *p == '#') return false;
    *from = p;
    while (p < end && !is_blank(*p) && *p != '#') ++p;
    *to = p;
    return true;
  }

  bool refuse(Reason reason, const char* from, const char* to, int64_t index = 0, int64_t last = 0) {
    for (int64_t v : {record_, int64_t(reason), int64_t(from - text_), int64_t(to - text_), index, last})
      parsed.refused.push_back(v);
    return false;
  }

  const char *text_, *stop_;
  Options options_;
  int64_t record_ = 0;
};

nb::tuple parse_libsvm(Bytes text, int64_t n_features, double largest, bool labelled, bool whole_labels) {
  if (text.size() > size_t(std::numeric_limits<int32_t>::max())) throw nb::value_error("the text is longer than 2 GB");
  Libsvm reader(reinterpret_cast<const char*>(text.data()), int64_t(text.size()),
                {n_features, largest, labelled, whole_labels});
  {
    nb::gil_scoped_release release;
    reader.run();
  }
  Parsed& p = reader.parsed;
  return nb::make_tuple(give(std::move(p.labels)), give(std::move(p.starts)), give(std::move(p.indices)),
                        give(std::move(p.values)), give(std::move(p.refused)));
}

}  // namespace

NB_MODULE(_text, m) {
  m.doc() = "From text to numbers.";
  m.def("record_ends", &record_ends, "text"_a, "start"_a, "most"_a, "delimiter"_a,
        "Where the first records of text[start:] end, at most so many; with a delimiter, quoted newlines do not count.");
  m.def("parse_libsvm", &parse_libsvm, "text"_a, "n_features"_a, "largest"_a, "labelled"_a, "whole_labels"_a,
        "Labels, row starts, 0-based indices, values; and six numbers for each line refused.");
}
