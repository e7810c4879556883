// Words numbered in the order in which they are first met.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace text {

// Words belong to groups (columns, names): the same word in two groups is two words. The characters are not copied.
class Words {
 public:
  struct Word {
    uint32_t group;
    std::string_view text;
  };

  // The number of a word, and whether it is new.
  std::pair<int32_t, bool> number(uint32_t group, std::string_view text) {
    if (2 * (words_.size() + 1) > table_.size()) grow();
    for (size_t at = hash(group, text) & (table_.size() - 1);; at = (at + 1) & (table_.size() - 1)) {
      int32_t number = table_[at];
      if (number < 0) {
        table_[at] = int32_t(words_.size());
        words_.push_back({group, text});
        return {table_[at], true};
      }
      const Word& word = words_[size_t(number)];
      if (word.group == group && word.text == text) return {number, false};
    }
  }

  const std::vector<Word>& all() const { return words_; }

 private:
  static size_t hash(uint32_t group, std::string_view text) {
    uint64_t h = (uint64_t(group) + 1) * 0x9E3779B97F4A7C15u ^ text.size();
    const char* p = text.data();
    size_t left = text.size();
    for (; left >= 8; p += 8, left -= 8) {
      uint64_t piece;
      std::memcpy(&piece, p, 8);
      h = mix(h ^ piece);
    }
    uint64_t piece = 0;
    if (left) std::memcpy(&piece, p, left);
    return size_t(mix(h ^ piece));
  }

  static uint64_t mix(uint64_t h) {
    h *= 0xFF51AFD7ED558CCDu;
    return h ^ (h >> 32);
  }

  void grow() {
    table_.assign(table_.empty() ? 64 : 2 * table_.size(), -1);
    for (size_t i = 0; i < words_.size(); ++i) {
      size_t at = hash(words_[i].group, words_[i].text) & (table_.size() - 1);
      while (table_[at] >= 0) at = (at + 1) & (table_.size() - 1);
      table_[at] = int32_t(i);
    }
  }

  std::vector<Word> words_;
  std::vector<int32_t> table_;
};

}  // namespace text
