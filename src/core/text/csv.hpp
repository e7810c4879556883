// Tables in text (CSV, TSV): records of fields. docs/sources.md states the grammar.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "numbers.hpp"
#include "utf8.hpp"
#include "words.hpp"

namespace text {

// The fields of one record, one after another.
class Fields {
 public:
  enum Fault { none, text_after_quote, quote_not_closed };

  // [begin, end) without its line end.
  Fields(const char* begin, const char* end, char delimiter) : p_(begin), end_(end), delimiter_(delimiter) {}

  // A record's text without its line end.
  static const char* before_line_end(const char* begin, const char* end) {
    if (end > begin && end[-1] == '\n') --end;
    if (end > begin && end[-1] == '\r') --end;
    return end;
  }

  // Only blanks, none of them the delimiter: such a line is left out.
  bool blank() const {
    for (const char* c = p_; c < end_; ++c)
      if ((*c != ' ' && *c != '\t') || *c == delimiter_) return false;
    return true;
  }

  // Whether a short decimal may have the delimiter in it, and would be read past it.
  static bool in_decimals(char delimiter) { return delimiter == '.' || delimiter == '-' || unsigned(delimiter - '0') < 10u; }

  // A number up to a delimiter that is not `in_decimals`, or the end: true, and the field is taken. Anything else is left for `next`.
  bool take_short_decimal(double* out) {
    const char* c = p_;
    if (!short_decimal(c, end_, out) || (c < end_ && *c != delimiter_)) return false;
    step(c);
    return true;
  }

  // Moves to the next field; false behind the last. Then [begin, end) is its text, without its quotes.
  bool next() {
    if (over_) return false;
    quoted = p_ < end_ && *p_ == '"';
    doubled = false;
    if (!quoted) {
      begin = p_;
      const char* c = p_;
      while (c < end_ && *c != delimiter_) ++c;
      end = c;
      step(c);
      return true;
    }
    begin = p_ + 1;
    const char* c = begin;
    for (;;) {
      const void* hit = c < end_ ? std::memchr(c, '"', size_t(end_ - c)) : nullptr;
      if (!hit) {
        note(quote_not_closed);
        end = end_;
        over_ = true;
        return true;
      }
      c = static_cast<const char*>(hit);
      if (c + 1 == end_ || c[1] != '"') break;
      doubled = true;
      c += 2;
    }
    end = c++;
    if (c < end_ && *c != delimiter_) note(text_after_quote);
    while (c < end_ && *c != delimiter_) ++c;
    step(c);
    return true;
  }

  // The field's text, where "" in quotes is one quote; kept in `pool` if it had to be written anew.
  std::string_view value(std::deque<std::string>& pool) const {
    if (!doubled) return {begin, size_t(end - begin)};
    std::string plain;
    for (const char* c = begin; c < end; ++c) {
      plain += *c;
      if (*c == '"') ++c;
    }
    return pool.emplace_back(std::move(plain));
  }

  const char *begin = nullptr, *end = nullptr;
  bool quoted = false, doubled = false;
  Fault fault = none;  // the first one

 private:
  void step(const char* c) {
    over_ = c == end_;
    p_ = c + (over_ ? 0 : 1);
  }
  void note(Fault what) {
    if (fault == none) fault = what;
  }
  const char *p_, *end_;
  char delimiter_;
  bool over_ = false;
};

// Fields that stand for a missing value; `MISSING` in kernelstream.stream.delimited.
constexpr std::string_view kMissing[] = {"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"};

inline bool is_missing(std::string_view field) {
  if (field.empty()) return true;
  if (field.size() > 4 || (field[0] != 'N' && field[0] != 'n' && field[0] != '?')) return false;
  for (std::string_view word : kMissing)
    if (field == word) return true;
  return false;
}

// A field as a number; blanks around it do not matter.
inline Number field_number(std::string_view field, double* out) {
  const char *begin = field.data(), *end = begin + field.size();
  while (begin < end && (is_blank(*begin) || *begin == '\n')) ++begin;
  while (begin < end && (is_blank(end[-1]) || end[-1] == '\n')) --end;
  return to_double(begin, end, out);
}

// What becomes of a column, and what a label is.
enum Role : uint8_t { left_out, number, category, label };
enum LabelKind : int { no_label, whole_label, number_label, text_label };

// The reasons for refusing a record; kernelstream.stream.delimited has the words, in the same order.
enum CsvReason : int64_t {
  field_count,
  after_quote,
  not_closed,
  field_not_a_number,
  field_not_finite,
  field_not_utf8,
  csv_label_missing,
  csv_label_not_a_number,
  csv_label_not_finite,
  csv_label_not_whole
};

struct CsvOptions {
  char delimiter;
  double largest;          // magnitude of a number
  LabelKind label_kind;
  const uint8_t* roles;    // of each column of the file
  const int32_t* places;   // of each column: its place among the numbers, or among the categories
  size_t columns, numbers, categories;
};

class Csv {
 public:
  explicit Csv(const CsvOptions& options)
      : codes(options.categories),
        words(options.categories + 1),
        missing(options.categories, -1),
        options_(options),
        not_utf8_(options.categories + 1) {}

  void run(const char* text, const int64_t* ends, size_t records) {
    text_ = text;
    numbers.reserve(records * options_.numbers);
    const bool in_decimals = Fields::in_decimals(options_.delimiter);
    int64_t start = 0;
    for (size_t i = 0; i < records; start = ends[i++]) {
      record_ = int64_t(i);
      Fields fields(text + start, Fields::before_line_end(text + start, text + ends[i]), options_.delimiter);
      if (fields.blank()) continue;
      if (in_decimals ? read<false>(fields) : read<true>(fields)) {
        rows.push_back(int32_t(i));
        continue;
      }
      numbers.resize(rows.size() * options_.numbers);
      for (auto& column : codes) column.resize(rows.size());
      labels.resize(options_.label_kind == whole_label || options_.label_kind == number_label ? rows.size() : 0);
      label_codes.resize(options_.label_kind == text_label ? rows.size() : 0);
    }
  }

  std::vector<int32_t> rows;        // the record of each good row
  std::vector<double> numbers;      // row after row; NaN is a missing value
  std::vector<double> labels;
  std::vector<std::vector<int32_t>> codes;  // of each column of categories
  std::vector<int32_t> label_codes;
  std::vector<Words> words;         // of each column of categories, then of the label
  std::vector<int32_t> missing;     // of each column of categories: the word that stands for a missing value, or -1
  std::vector<int64_t> refused;     // six numbers each

 private:
  struct Wrong {
    int64_t reason = -1, column = -1, start = 0, end = 0, quoted = 0;
  };

  template <bool kShortDecimals> bool read(Fields& fields) {
    size_t base = numbers.size();
    numbers.resize(base + options_.numbers);
    Wrong wrong;  // the first field that is
    size_t column = 0;
    for (;; ++column) {
      if (kShortDecimals && column < options_.columns && options_.roles[column] == number) {
        double value;
        if (fields.take_short_decimal(&value)) {  // fifteen digits at most: finite in any type
          numbers[base + size_t(options_.places[column])] = value;
          continue;
        }
      }
      if (!fields.next()) break;
      if (column >= options_.columns || wrong.reason >= 0) continue;
      int64_t reason = take(fields, column, base);
      if (reason >= 0) wrong = {reason, int64_t(column), fields.begin - text_, fields.end - text_, fields.doubled};
    }
    if (fields.fault != Fields::none)
      wrong = {fields.fault == Fields::text_after_quote ? after_quote : not_closed, -1, 0, 0, 0};
    else if (column != options_.columns)
      wrong = {field_count, -1, int64_t(column), 0, 0};
    if (wrong.reason < 0) return true;
    for (int64_t v : {record_, wrong.reason, wrong.column, wrong.start, wrong.end, wrong.quoted}) refused.push_back(v);
    return false;
  }

  // One field that is read; the reason to refuse it, or -1.
  int64_t take(const Fields& fields, size_t column, size_t base) {
    Role role = Role(options_.roles[column]);
    if (role == left_out || (role == label && options_.label_kind == no_label)) return -1;
    size_t kept = pool_.size();
    std::string_view value = fields.value(pool_);
    bool missing = is_missing(value);
    double number_value = 0;
    if (role == number) {
      Number kind = missing ? Number::nan : field_number(value, &number_value);
      if (kind == Number::not_a_number) return field_not_a_number;
      if (kind == Number::not_finite || std::fabs(number_value) > options_.largest) return field_not_finite;
      numbers[base + size_t(options_.places[column])] = kind == Number::nan ? std::nan("") : number_value;
    } else if (role == label && options_.label_kind != text_label) {
      if (missing) return csv_label_missing;
      Number kind = field_number(value, &number_value);
      if (kind == Number::not_a_number) return csv_label_not_a_number;
      if (kind != Number::good) return csv_label_not_finite;
      if (options_.label_kind == whole_label && (number_value != std::floor(number_value) || std::fabs(number_value) > kLargestWhole))
        return csv_label_not_whole;
      labels.push_back(number_value);
    } else {
      if (role == label && missing) return csv_label_missing;
      size_t group = role == label ? options_.categories : size_t(options_.places[column]);
      if (missing) value = {};  // all spellings are one
      auto [code, is_new] = words[group].number(0, value);
      if (is_new) not_utf8_[group].push_back(!is_utf8(value.data(), value.data() + value.size()));
      if (not_utf8_[group][size_t(code)]) return field_not_utf8;
      if (missing) this->missing[group] = code;
      (role == label ? label_codes : codes[group]).push_back(code);
      if (is_new) return -1;
    }
    if (pool_.size() > kept) pool_.pop_back();  // nothing points to it
    return -1;
  }

  const char* text_ = nullptr;
  int64_t record_ = 0;
  std::deque<std::string> pool_;  // values written anew that `words` points to
  const CsvOptions& options_;
  std::vector<std::vector<bool>> not_utf8_;  // of each word
};

// How many values of each column are present, are numbers, are whole numbers: by them a file's columns are told apart.
struct CsvCounts {
  std::vector<int64_t> present, numbers, whole;

  CsvCounts(const char* text, const int64_t* ends, size_t records, size_t columns, char delimiter)
      : present(columns), numbers(columns), whole(columns) {
    std::deque<std::string> pool;
    int64_t start = 0;
    for (size_t i = 0; i < records; start = ends[i++]) {
      const char *begin = text + start, *end = Fields::before_line_end(begin, text + ends[i]);
      Fields first(begin, end, delimiter), again(begin, end, delimiter);
      size_t count = 0;
      while (first.next()) ++count;
      if (again.blank() || first.fault != Fields::none || count != columns) continue;
      for (size_t column = 0; again.next(); ++column) {
        std::string_view value = again.value(pool);
        double number;
        if (!is_missing(value)) {
          ++present[column];
          Number kind = field_number(value, &number);
          if (kind == Number::good || kind == Number::not_finite) ++numbers[column];
          if (kind == Number::good && number == std::floor(number)) ++whole[column];
        }
        pool.clear();
      }
    }
  }
};

}  // namespace text
