// Where the records of a text end. docs/sources.md states the grammar.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

namespace text {

// The first of one character at or after a place, kept until that place is passed: all searches together read the text once.
class Next {
 public:
  Next(const char* p, const char* stop, char c) : stop_(stop), c_(c) { search(p); }
  const char* from(const char* p) {
    if (at_ < p) search(p);
    return at_;
  }

 private:
  void search(const char* p) {
    const void* hit = p < stop_ ? std::memchr(p, c_, size_t(stop_ - p)) : nullptr;
    at_ = hit ? static_cast<const char*>(hit) : stop_;
  }
  const char *at_ = nullptr, *stop_;
  char c_;
};

// Just after the line end at p; null if a carriage return is the last character so far, and a line feed may follow.
inline const char* after_line_end(const char* p, const char* stop, bool last) {
  if (*p == '\n') return p + 1;
  if (p + 1 == stop) return last ? p + 1 : nullptr;
  return p + (p[1] == '\n' ? 2 : 1);
}

// The line end of a CSV record that has quotes; `stop` if there is none.
inline const char* line_end_of_quoted(const char* p, const char* stop, char delimiter) {
  bool at_start = true, inside = false;  // of a field; of quotes
  for (; p < stop; ++p) {
    if (inside) {
      if (*p != '"') continue;
      if (p + 1 < stop && p[1] == '"')
        ++p;
      else
        inside = false;
    } else if (*p == '\n' || *p == '\r') {
      return p;
    } else {
      inside = *p == '"' && at_start;
      at_start = *p == delimiter;
    }
  }
  return stop;
}

// Where the first `most` complete lines of text[start:] end, just after their line feed.
inline std::vector<int64_t> ends_of_lines(const char* text, int64_t size, int64_t start, int64_t most) {
  std::vector<int64_t> ends;
  const char *p = text + start, *stop = text + size;
  while (p < stop && int64_t(ends.size()) < most) {
    const void* end = std::memchr(p, '\n', size_t(stop - p));
    if (!end) break;
    p = static_cast<const char*>(end) + 1;
    ends.push_back(p - text);
  }
  return ends;
}

// Where the first `most` complete CSV records of text[start:] end, just after their line end (LF, CRLF or CR).
// `last`: no more text follows. A quote that is not closed leaves its record without an end.
inline std::vector<int64_t> ends_of_records(const char* text, int64_t size, int64_t start, int64_t most, char delimiter, bool last) {
  std::vector<int64_t> ends;
  const char *p = text + start, *stop = text + size;
  Next feed(p, stop, '\n'), carriage(p, stop, '\r'), quote(p, stop, '"');
  while (p < stop && int64_t(ends.size()) < most) {
    const char *a = feed.from(p), *b = carriage.from(p);
    const char* end = a < b ? a : b;
    if (quote.from(p) < end) end = line_end_of_quoted(p, stop, delimiter);
    if (end == stop) break;
    const char* after = after_line_end(end, stop, last);
    if (!after) break;
    p = after;
    ends.push_back(p - text);
  }
  return ends;
}

// Line ends in a text, where CRLF is one.
inline int64_t count_line_ends(const char* p, const char* stop) {
  int64_t count = 0;
  for (; p < stop; ++p) count += *p == '\n' || (*p == '\r' && (p + 1 == stop || p[1] != '\n'));
  return count;
}

}  // namespace text
