// Free text as features: words and pieces of words (n-grams of characters), hashed into a fixed number of places.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace text {

// FNV-1a, then mixed (the finalizer of splitmix64): its low bits depend on all of the text.
inline uint64_t hash_of(std::string_view piece, uint64_t seed) {
  uint64_t h = 14695981039346656037u ^ seed;
  for (unsigned char c : piece) h = (h ^ c) * 1099511628211u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

// The words of a text: runs of letters, digits and underscores. A character beyond ASCII is a letter unless it is punctuation.
class HashedText {
 public:
  static constexpr int kShortest = 3, kLongest = 5;  // characters of a piece; a word has a mark at both ends

  HashedText(int64_t features, std::vector<int32_t>& places, std::vector<double>& values)
      : words_(features - features / 2), pieces_(features / 2), out_places_(places), out_values_(values) {}

  // Adds the features of a text, sorted by place. Words and pieces have norm 1 each; a count enters by its root, a sign by its hash.
  void add(std::string_view text) {
    std::string word;
    std::vector<size_t> starts;  // of the word's characters
    size_t at = 0;
    auto finish = [&] {
      if (starts.empty()) return;
      count(words_, 0, std::string_view(word).substr(1), word_counts_);
      word += ' ';
      starts.push_back(word.size() - 1);
      starts.insert(starts.begin(), 0);
      starts.push_back(word.size());
      for (int n = kShortest; n <= kLongest; ++n)
        for (size_t i = 0; i + size_t(n) < starts.size(); ++i)
          count(pieces_, 1, std::string_view(word).substr(starts[i], starts[i + size_t(n)] - starts[i]), piece_counts_);
      starts.clear();
    };
    while (at < text.size()) {
      unsigned char c = static_cast<unsigned char>(text[at]);
      size_t length = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
      if (at + length > text.size()) break;
      if (is_letter(text.substr(at, length))) {
        if (starts.empty()) word = " ";
        starts.push_back(word.size());
        word.append(text.substr(at, length));
      } else {
        finish();
      }
      at += length;
    }
    finish();
    give(word_counts_, 0);
    give(piece_counts_, int32_t(words_));
  }

 private:
  struct Count {
    int32_t place;
    double count;
  };

  static bool is_letter(std::string_view character) {
    auto c = static_cast<unsigned char>(character[0]);
    if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    auto d = static_cast<unsigned char>(character[1]);
    if (c == 0xC2) return d == 0xAA || d == 0xB5 || d == 0xBA;                       // Latin-1: ª µ º
    if (c == 0xC3) return d != 0x97 && d != 0xB7;                                    // but × ÷
    if (c == 0xE2) return d > 0xAF;                                                  // U+2000..U+2BFF: punctuation, signs
    if (c == 0xE3 && d == 0x80) return static_cast<unsigned char>(character[2]) > 0xBF;  // U+3000..U+303F
    return true;
  }

  void count(int64_t features, uint64_t seed, std::string_view piece, std::unordered_map<int32_t, double>& counts) {
    if (!features) return;
    uint64_t h = hash_of(piece, seed);
    counts[int32_t((h >> 1) % uint64_t(features))] += h & 1 ? 1.0 : -1.0;
  }

  void give(std::unordered_map<int32_t, double>& counts, int32_t first) {
    std::vector<Count> sorted;
    for (const auto& [place, value] : counts)
      if (value != 0.0) sorted.push_back({place, value});
    counts.clear();
    std::sort(sorted.begin(), sorted.end(), [](const Count& a, const Count& b) { return a.place < b.place; });
    double squares = 0.0;
    for (const Count& c : sorted) squares += std::fabs(c.count);  // of the roots
    double norm = std::sqrt(squares);
    for (const Count& c : sorted) {
      out_places_.push_back(first + c.place);
      out_values_.push_back(std::copysign(std::sqrt(std::fabs(c.count)) / norm, c.count));
    }
  }

  int64_t words_, pieces_;
  std::vector<int32_t>& out_places_;
  std::vector<double>& out_values_;
  std::unordered_map<int32_t, double> word_counts_, piece_counts_;
};

}  // namespace text
