// JSON lines: one object per line, of numbers and texts by name. docs/sources.md states the grammar.
#pragma once
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "numbers.hpp"
#include "utf8.hpp"
#include "words.hpp"

namespace text {

// What a line is refused for; kernelstream.stream.jsonl has the words, in the same order.
enum JsonReason : int64_t {
  no_name,
  no_colon,
  no_comma,
  no_value,
  string_not_closed,
  control_character,
  wrong_escape,
  wrong_number,
  text_after,
  brackets_differ,  // until here: not JSON
  not_utf8,
  not_an_object,
  half_of_a_pair,
  name_twice,
  which_label,
  json_label_missing,
  label_is_text,
  label_is_no_text,
  json_label_not_finite,
  json_label_not_whole,
  nested_value,
  value_is_not_finite
};

enum class Kind : uint8_t { number, text, truth, null, nested };
// A token is a category written as a number, true or false; a truth is a number whose first value is true or false.
enum class FeatureKind : uint8_t { number, category, token, truth };
enum class JsonLabel : int { unknown, whole, number, text, none };

struct JsonOptions {
  double largest;
  JsonLabel label;
  std::string target;  // empty: the first row with one name that may be it decides
  std::vector<std::string> dropped, forced;
};

class JsonLines {
 public:
  explicit JsonLines(JsonOptions options) : target(options.target), label(options.label), options_(std::move(options)) {
    has_target_ = !target.empty();
  }

  struct Feature {
    int32_t name;
    FeatureKind kind;
    std::string_view word;
  };

  void run(const char* text, const int64_t* ends, size_t records) {
    text_ = text;
    int64_t start = 0;
    for (size_t i = 0; i < records; start = ends[i++]) {
      record_ = int64_t(i);
      p_ = text + start;
      end_ = text + ends[i];
      const char* first = p_;
      while (first < end_ && (is_blank(*first) || *first == '\n')) ++first;
      if (first == end_) continue;
      while (is_space(end_[-1])) --end_;
      members_.clear();
      size_t entries = codes.size();
      if (line() && take()) {
        rows.push_back(int32_t(i));
        starts.push_back(int64_t(codes.size()));
      } else {
        codes.resize(entries);
        values.resize(entries);
      }
    }
  }

  std::vector<int32_t> rows;         // the record of each good row
  std::vector<int64_t> starts{0};    // of its entries
  std::vector<int32_t> codes;        // the feature of each entry
  std::vector<double> values;
  std::vector<double> labels;
  std::vector<int32_t> label_codes;  // of texts
  std::vector<Feature> features;
  std::vector<std::string_view> names;
  Words label_words;
  std::vector<int64_t> refused;      // five numbers each: record, reason, name or -1, where in the text it starts and ends
  std::string target;
  JsonLabel label;

 private:
  struct Member {
    int32_t name;
    Kind kind;
    double number;
    std::string_view text, written;  // its characters, if it is a text; and as it stands in the line
  };

  // ---- the text of a line ----

  bool line() {
    if (!is_utf8(p_, end_)) return refuse(not_utf8, -1);
    space();
    if (*p_ != '{') return refuse(not_an_object, -1, {p_, size_t(end_ - p_)});
    ++p_;
    space();
    if (p_ < end_ && *p_ == '}') {
      ++p_;
    } else {
      for (;;) {
        if (!member()) return false;
        space();
        if (p_ < end_ && *p_ == ',') {
          ++p_;
          space();
        } else if (p_ < end_ && *p_ == '}') {
          ++p_;
          break;
        } else {
          return refuse_here(no_comma);
        }
      }
    }
    space();
    return p_ == end_ || refuse_here(text_after);
  }

  bool member() {
    if (p_ == end_ || *p_ != '"') return refuse_here(no_name);
    int32_t name = usual_name();
    if (name < 0) {
      std::string_view written;
      if (!string(&written)) return false;
      name = name_number(written);
    }
    size_t place = members_.size();
    if (place < usual_.size())
      usual_[place] = name;
    else
      usual_.push_back(name);
    space();
    if (p_ == end_ || *p_ != ':') return refuse_here(no_colon);
    ++p_;
    space();
    Member member{name, Kind::null, 0, {}, {}};
    const char* begin = p_;
    if (!value(&member)) return false;
    member.written = {begin, size_t(p_ - begin)};
    members_.push_back(member);
    return true;
  }

  // Rows mostly have the same names in the same order: the name that stood here in the row before, or -1.
  int32_t usual_name() {
    if (members_.size() >= usual_.size()) return -1;
    int32_t number = usual_[members_.size()];
    std::string_view name = names[size_t(number)];
    if (roles_[size_t(number)].escaped || size_t(end_ - p_) < name.size() + 2 || p_[name.size() + 1] != '"' ||
        std::memcmp(p_ + 1, name.data(), name.size()) != 0)
      return -1;
    p_ += name.size() + 2;
    return number;
  }

  bool value(Member* member) {
    if (p_ == end_) return refuse_here(no_value);
    char c = *p_;
    if (c == '"') {
      member->kind = Kind::text;
      return string(&member->text);
    }
    if (c == '[' || c == '{') {
      member->kind = Kind::nested;
      return nested();
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
      member->kind = Kind::number;
      if (!number(&member->number)) return false;
    } else if (word("null")) {
      member->kind = Kind::null;
    } else if (word("true")) {
      member->kind = Kind::truth;
      member->number = 1;
    } else if (word("false")) {
      member->kind = Kind::truth;
    } else if (word("NaN") || word("Infinity")) {
      member->kind = Kind::number;
      member->number = c == 'N' ? std::nan("") : HUGE_VAL;
    } else {
      return refuse_here(no_value);
    }
    return true;
  }

  bool word(std::string_view expected) {
    if (size_t(end_ - p_) < expected.size() || std::memcmp(p_, expected.data(), expected.size()) != 0) return false;
    p_ += expected.size();
    return true;
  }

  bool digit() const { return p_ < end_ && unsigned(*p_ - '0') < 10u; }

  bool number(double* out) {
    const char* begin = p_;
    if (*p_ == '-') ++p_;
    if (word("Infinity")) {
      *out = -HUGE_VAL;
      return true;
    }
    if (!digit()) return refuse_here(wrong_number);
    if (*p_++ != '0')
      while (digit()) ++p_;
    if (p_ < end_ && *p_ == '.') {
      ++p_;
      if (!digit()) return refuse_here(wrong_number);
      while (digit()) ++p_;
    }
    if (p_ < end_ && (*p_ == 'e' || *p_ == 'E')) {
      ++p_;
      if (p_ < end_ && (*p_ == '+' || *p_ == '-')) ++p_;
      if (!digit()) return refuse_here(wrong_number);
      while (digit()) ++p_;
    }
    const char* c = begin;
    if (short_decimal(c, p_, out) && c == p_) return true;
    if (to_double(begin, p_, out) == Number::not_finite) *out = *begin == '-' ? -HUGE_VAL : HUGE_VAL;
    return true;
  }

  // A string in quotes; its characters stand in the text, or in the pool if some were written as escapes.
  bool string(std::string_view* out) {
    const char* begin = ++p_;
    while (p_ < end_ && *p_ != '"' && *p_ != '\\' && static_cast<unsigned char>(*p_) >= 0x20) ++p_;
    if (p_ < end_ && *p_ == '"') {
      *out = {begin, size_t(p_++ - begin)};
      return true;
    }
    std::string plain(begin, p_);
    while (p_ < end_ && *p_ != '"') {
      if (static_cast<unsigned char>(*p_) < 0x20) return refuse_here(control_character);
      if (*p_ != '\\') {
        plain += *p_++;
        continue;
      }
      if (!escape(&plain)) return false;
    }
    if (p_ == end_) return refuse_here(string_not_closed);
    ++p_;
    *out = pool_.emplace_back(std::move(plain));
    return true;
  }

  bool escape(std::string* out) {
    const char* start = p_++;
    if (p_ == end_) return refuse_here(string_not_closed);
    static constexpr std::string_view marks = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    size_t which = marks.find(*p_);
    if (which != std::string_view::npos) {
      *out += meant[which];
      ++p_;
      return true;
    }
    uint32_t code;
    if (*p_ != 'u' || !hex(&code)) {
      p_ = start;
      return refuse_here(wrong_escape);
    }
    if (code >= 0xD800 && code < 0xDC00 && end_ - p_ >= 2 && p_[0] == '\\' && p_[1] == 'u') {
      uint32_t second;
      const char* before = p_++;
      if (!hex(&second)) {
        p_ = before;
        return refuse_here(wrong_escape);
      }
      if (second >= 0xDC00 && second < 0xE000)
        code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
      else
        p_ = before;
    }
    if (code >= 0xD800 && code < 0xE000) half_ = true;  // told when the line is known to be JSON
    if (code < 0x80)
      *out += char(code);
    else if (code < 0x800)
      append(out, {0xC0 | code >> 6, 0x80 | (code & 63)});
    else if (code < 0x10000)
      append(out, {0xE0 | code >> 12, 0x80 | (code >> 6 & 63), 0x80 | (code & 63)});
    else
      append(out, {0xF0 | code >> 18, 0x80 | (code >> 12 & 63), 0x80 | (code >> 6 & 63), 0x80 | (code & 63)});
    return true;
  }

  static void append(std::string* out, std::initializer_list<uint32_t> bytes) {
    for (uint32_t byte : bytes) *out += char(byte);
  }

  // Four hexadecimal digits after the u at p.
  bool hex(uint32_t* out) {
    if (end_ - p_ < 5) return false;
    *out = 0;
    for (int i = 1; i <= 4; ++i) {
      char c = p_[i];
      unsigned value = c >= '0' && c <= '9'   ? unsigned(c - '0')
                       : c >= 'a' && c <= 'f' ? unsigned(c - 'a' + 10)
                       : c >= 'A' && c <= 'F' ? unsigned(c - 'A' + 10)
                                              : 16;
      if (value > 15) return false;
      *out = *out * 16 + value;
    }
    p_ += 5;
    return true;
  }

  // An array or an object, of any depth, gone past: its brackets are kept in a list, not on the call stack.
  bool nested() {
    std::string open;
    Member ignored{0, Kind::null, 0, {}, {}};
    std::string_view skipped;
    for (;;) {
      space();
      if (p_ == end_) return refuse_here(no_value);
      char c = *p_;
      if (c == '[' || c == '{') {
        open += c;
        ++p_;
        space();
        if (p_ < end_ && *p_ == (c == '[' ? ']' : '}')) {
          ++p_;
          open.pop_back();
        } else if (c == '{') {
          if (!name_and_colon(&skipped)) return false;
          continue;
        } else {
          continue;
        }
      } else if (!value(&ignored)) {
        return false;
      }
      // Behind a value: as many closing brackets as there are, then a comma or the end.
      for (;;) {
        if (open.empty()) return true;
        space();
        if (p_ == end_) return refuse_here(no_comma);
        if (*p_ == ']' || *p_ == '}') {
          if ((*p_ == ']') != (open.back() == '[')) return refuse_here(brackets_differ);
          open.pop_back();
          ++p_;
          continue;
        }
        if (*p_ != ',') return refuse_here(no_comma);
        ++p_;
        space();
        if (open.back() == '{' && !name_and_colon(&skipped)) return false;
        break;
      }
    }
  }

  bool name_and_colon(std::string_view* skipped) {
    if (p_ == end_ || *p_ != '"') return refuse_here(no_name);
    if (!string(skipped)) return false;
    space();
    if (p_ == end_ || *p_ != ':') return refuse_here(no_colon);
    ++p_;
    return true;
  }

  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  void space() {
    while (p_ < end_ && is_space(*p_)) ++p_;
  }

  // ---- what a row means ----

  struct NameRole {
    bool dropped, forced, may_be_label, escaped;
    int64_t record;   // in which it was last met
    int32_t feature;  // as a number, or -1
  };

  int32_t name_number(std::string_view name) {
    auto [number, is_new] = name_numbers_.number(0, name);
    if (is_new) {
      std::string lower;
      if (name.size() <= 6)
        for (char c : name) lower += char(c >= 'A' && c <= 'Z' ? c + 32 : c);
      bool may_be_label = lower == "target" || lower == "label" || lower == "class" || lower == "y";
      bool escaped = false;  // as it is written, it cannot be found again by comparing characters
      for (char c : name) escaped |= c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
      names.push_back(name);
      if (has_target_ && name == target) target_name_ = number;
      roles_.push_back({in(options_.dropped, name), in(options_.forced, name), may_be_label, escaped, -1, -1});
    }
    return number;
  }

  static bool in(const std::vector<std::string>& list, std::string_view name) {
    for (const std::string& item : list)
      if (item == name) return true;
    return false;
  }

  // The members of an object that is JSON: false if they are no row.
  bool take() {
    if (half_) {
      half_ = false;
      return refuse(half_of_a_pair, -1);
    }
    for (const Member& member : members_) {
      NameRole& role = roles_[size_t(member.name)];
      if (role.record == record_) return refuse(name_twice, member.name);
      role.record = record_;
    }
    const Member* answer = nullptr;
    if (options_.label != JsonLabel::none) {
      if (!has_target_) {
        for (const Member& member : members_)
          if (roles_[size_t(member.name)].may_be_label) {
            if (answer) return refuse(which_label, -1);
            answer = &member;
          }
        if (!answer) return refuse(which_label, -1);
        target = names[size_t(answer->name)];
        target_name_ = answer->name;
        has_target_ = true;
      } else {
        for (const Member& member : members_)
          if (member.name == target_name_) answer = &member;
      }
      if (!answer || answer->kind == Kind::null) return refuse(json_label_missing, -2);
      if (!check_label(*answer)) return false;
    }
    for (const Member& member : members_) {
      NameRole& role = roles_[size_t(member.name)];
      if (role.dropped || member.kind == Kind::null || member.name == target_name_) continue;
      if (member.kind == Kind::nested) return refuse(nested_value, member.name);
      if (member.kind == Kind::text || role.forced) {
        std::string_view word = member.kind == Kind::text ? member.text : member.written;
        auto kind = member.kind == Kind::text ? FeatureKind::category : FeatureKind::token;
        auto [code, is_new] = words_.number(2 * uint32_t(member.name) + (kind == FeatureKind::token), word);
        if (is_new) {
          word_features_.push_back(int32_t(features.size()));
          features.push_back({member.name, kind, word});
        }
        codes.push_back(word_features_[size_t(code)]);
        values.push_back(1.0);
      } else {
        if (!(std::fabs(member.number) <= options_.largest)) return refuse(value_is_not_finite, member.name, member.written);
        if (role.feature < 0) {
          role.feature = int32_t(features.size());
          features.push_back({member.name, member.kind == Kind::truth ? FeatureKind::truth : FeatureKind::number, {}});
        }
        codes.push_back(role.feature);
        values.push_back(member.number);
      }
    }
    if (answer && label == JsonLabel::text)
      label_codes.push_back(label_words.number(0, answer->text).first);
    else
      labels.push_back(answer ? answer->number : 0.0);
    return true;
  }

  bool check_label(const Member& member) {
    if (member.kind == Kind::nested) return refuse(nested_value, member.name);
    bool is_text = member.kind == Kind::text;
    if (label == JsonLabel::unknown) label = is_text ? JsonLabel::text : JsonLabel::whole;
    if (is_text != (label == JsonLabel::text)) return refuse(is_text ? label_is_text : label_is_no_text, member.name, member.written);
    if (is_text) return true;
    if (!std::isfinite(member.number)) return refuse(json_label_not_finite, member.name, member.written);
    if (label == JsonLabel::whole && (member.number != std::floor(member.number) || std::fabs(member.number) > kLargestWhole))
      return refuse(json_label_not_whole, member.name, member.written);
    return true;
  }

  bool refuse_here(JsonReason reason) { return refuse(reason, -1, {p_, 0}); }

  bool refuse(JsonReason reason, int64_t name, std::string_view at) {
    half_ = false;
    int64_t start = at.data() - text_;
    for (int64_t v : {record_, int64_t(reason), name, start, start + int64_t(at.size())}) refused.push_back(v);
    return false;
  }

  bool refuse(JsonReason reason, int64_t name) { return refuse(reason, name, {p_, 0}); }

  JsonOptions options_;
  bool has_target_ = false, half_ = false;
  const char *text_ = nullptr, *p_ = nullptr, *end_ = nullptr;
  int64_t record_ = 0;
  int32_t target_name_ = -1;
  std::vector<Member> members_;
  std::vector<int32_t> usual_;
  std::vector<NameRole> roles_;
  std::vector<int32_t> word_features_;
  Words name_numbers_, words_;
  std::deque<std::string> pool_;  // strings that had escapes
};

}  // namespace text
