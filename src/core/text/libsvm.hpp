// LIBSVM text: "label index:value index:value ...", one row per line. docs/sources.md states the grammar.
#pragma once
#include <cstring>
#include <limits>
#include <vector>

#include "numbers.hpp"

namespace text {

// The reasons for refusing a line; kernelstream.stream.libsvm has the words, in the same order.
enum Reason : int64_t {
  label_not_a_number,
  label_not_finite,
  label_not_whole,
  not_a_pair,
  index_not_a_number,
  index_not_finite,
  index_not_whole,
  index_below_1,
  index_too_large,
  index_not_increasing,
  index_too_wide,
  value_not_a_number,
  value_not_finite
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
        if (kind != Number::good) return refuse(label_not_finite, from, to);
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
      for (; c < colon && *c >= '0' && *c <= '9' && index <= std::numeric_limits<int32_t>::max(); ++c) index = 10 * index + (*c - '0');
      if (c < colon) {  // too long, signed, or written as 1e3
        double wide;
        Number kind = to_double(from, colon, &wide);
        if (kind == Number::not_a_number) return refuse(index_not_a_number, from, to);
        if (kind != Number::good) return refuse(index_not_finite, from, to);
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
      if (kind != Number::good || std::fabs(value) > options_.largest) return refuse(value_not_finite, from, to);
      parsed.indices.push_back(int32_t(index - 1));
      parsed.values.push_back(value);
      last = index;
    }
  }

  // Most pairs are plain: digits, a colon, a short decimal. False, and nothing is done, for all others, good or bad.
  KS_INLINE bool ordinary_pair(const char*& p, const char* end, int64_t* last) {
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
    for (int64_t v : {record_, int64_t(reason), int64_t(from - text_), int64_t(to - text_), index, last}) parsed.refused.push_back(v);
    return false;
  }

  const char *text_, *stop_;
  Options options_;
  int64_t record_ = 0;
};

}  // namespace text
