// Coverage-guided fuzzing of the parsers of text (libFuzzer). The first two bytes choose the parser and its options.
//
//   clang++ -std=c++17 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
//       -Isrc/core/text tests/fuzz/fuzz_text.cpp -o fuzz_text
//   ./fuzz_text -max_len=4096 -dict=tests/fuzz/text.dict NEW_INPUTS tests/fuzz/corpus
//
// Beyond crashes it checks what must hold for any text: records end inside it, in order, wherever the text is cut; rows and
// refusals together are the records that are not blank; rows are the same whether records are parsed together or one by one.
// Without a fuzzing compiler, -DKS_REPLAY makes a program that runs the inputs in the files named.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>

#include "csv.hpp"
#include "json.hpp"
#include "libsvm.hpp"
#include "records.hpp"

namespace {

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

using Ends = std::vector<int64_t>;

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

Ends with_the_rest(Ends ends, int64_t size) {
  if (size && (ends.empty() || ends.back() < size)) ends.push_back(size);
  return ends;
}

void check_ends(const Ends& ends, int64_t size) {
  int64_t last = 0;
  for (int64_t end : ends) {
    check(end > last && end <= size, "records end inside the text, in order");
    last = end;
  }
}

void csv(const char* text, int64_t size, uint8_t options) {
  char delimiter = options & 1 ? '\t' : ',';
  Ends ends = text::ends_of_records(text, size, 0, 1 << 30, delimiter, true);
  check_ends(ends, size);
  int64_t cut = size ? options * 37 % size : 0;  // as a pipe may cut it: records that have ended stay
  Ends early = text::ends_of_records(text, cut, 0, 1 << 30, delimiter, false);
  check(early.size() <= ends.size(), "no more records in a part");
  for (size_t i = 0; i < early.size(); ++i) check(early[i] == ends[i], "a part ends its records where the whole does");
  ends = with_the_rest(ends, size);
  uint8_t roles[] = {text::number, text::category, text::label, text::left_out, text::number};
  int32_t places[] = {0, 0, 0, 0, 1};
  text::CsvOptions asked{delimiter, options & 2 ? 3.4e38 : 1.7e308, text::LabelKind(options >> 2 & 3), roles, places,
                         size_t(options >> 4 & 1 ? 5 : 3), 2, 1};
  text::Csv whole(asked);
  whole.run(text, ends.data(), ends.size());
  text::CsvCounts counts(text, ends.data(), ends.size(), asked.columns, delimiter);
  size_t rows = 0, refused = 0, codes = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    int64_t start = i ? ends[i - 1] : 0, end = ends[i] - start;
    text::Csv one(asked);
    one.run(text + start, &end, 1);
    check(one.rows.size() + one.refused.size() / 6 <= 1, "one record, one row or one refusal");
    if (!one.refused.empty()) {
      check(refused < whole.refused.size() / 6, "as many refusals");
      const int64_t* six = &whole.refused[6 * refused++];
      check(six[0] == int64_t(i) && six[1] == one.refused[1] && six[2] == one.refused[2], "the same refusal");
    } else if (!one.rows.empty()) {
      check(rows < whole.rows.size() && whole.rows[rows] == int64_t(i), "the same rows");
      for (size_t j = 0; j < 2; ++j)
        check(asked.columns < 5 && j ? true : same(whole.numbers[2 * rows + j], one.numbers[j]), "the same numbers");
      auto word = whole.words[0].all()[size_t(whole.codes[0][codes++])].text;
      check(word == one.words[0].all()[size_t(one.codes[0][0])].text, "the same category");
      ++rows;
    }
  }
  check(rows == whole.rows.size() && refused == whole.refused.size() / 6, "nothing more");
}

void json(const char* text, int64_t size, uint8_t options) {
  Ends ends = with_the_rest(text::ends_of_lines(text, size, 0, 1 << 30), size);
  check_ends(ends, size);
  text::JsonOptions asked{options & 2 ? 3.4e38 : 1.7e308, text::JsonLabel(options % 5), options & 8 ? "y" : "",
                          {"d"}, options & 16 ? std::vector<std::string>{"c"} : std::vector<std::string>{}};
  text::JsonLines whole(asked);
  whole.run(text, ends.data(), ends.size());
  check(whole.starts.size() == whole.rows.size() + 1 && whole.codes.size() == whole.values.size(), "as many entries");
  for (int32_t code : whole.codes) check(size_t(code) < whole.features.size(), "features are known");
  for (const auto& feature : whole.features)
    check(text::is_utf8(feature.word.data(), feature.word.data() + feature.word.size()) || asked.label == text::JsonLabel::none,
          "words are UTF-8");
  if (asked.label != text::JsonLabel::none && (asked.target.empty() || asked.label == text::JsonLabel::unknown)) return;
  size_t rows = 0, refused = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    int64_t start = i ? ends[i - 1] : 0, end = ends[i] - start;
    text::JsonLines one(asked);
    one.run(text + start, &end, 1);
    if (!one.refused.empty()) {
      check(refused < whole.refused.size() / 5, "as many refusals");
      const int64_t* five = &whole.refused[5 * refused++];
      check(five[0] == int64_t(i) && five[1] == one.refused[1] && five[3] - start == one.refused[3], "the same refusal");
    } else if (!one.rows.empty()) {
      check(rows < whole.rows.size() && whole.rows[rows] == int64_t(i), "the same rows");
      size_t first = size_t(whole.starts[rows]), count = size_t(whole.starts[rows + 1]) - first;
      check(count == one.codes.size(), "the same number of entries");
      for (size_t j = 0; j < count; ++j) {
        const auto &a = whole.features[size_t(whole.codes[first + j])], &b = one.features[size_t(one.codes[j])];
        check(same(whole.values[first + j], one.values[j]) && a.word == b.word && a.kind == b.kind &&
                  whole.names[size_t(a.name)] == one.names[size_t(b.name)],
              "the same entries");
      }
      ++rows;
    }
  }
  check(rows == whole.rows.size() && refused == whole.refused.size() / 5, "nothing more");
}

void libsvm(const char* text, int64_t size, uint8_t options) {
  check_ends(text::ends_of_lines(text, size, 0, 1 << 30), size);
  text::Libsvm reader(text, size, {options & 1 ? 100 : 0, options & 2 ? 3.4e38 : 1.7e308, bool(options & 4), bool(options & 8)});
  reader.run();
  const text::Parsed& p = reader.parsed;
  check(p.starts.size() == p.labels.size() + 1 && p.indices.size() == p.values.size(), "as many entries");
  for (size_t i = 0; i + 1 < p.starts.size(); ++i) {
    check(p.starts[i] <= p.starts[i + 1], "rows in order");
    for (int32_t j = p.starts[i] + 1; j < p.starts[i + 1]; ++j) check(p.indices[j - 1] < p.indices[j], "indices increase");
  }
  for (double value : p.values) check(std::isfinite(value), "values are finite");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::vector<char> text(data + 2, data + size);  // memory of its own: a step beyond its end is seen
  auto run = data[0] % 3 == 0 ? csv : data[0] % 3 == 1 ? json : libsvm;
  run(text.data(), int64_t(text.size()), data[1]);
  return 0;
}

#if defined(KS_REPLAY)
int main(int count, char** names) {
  for (int i = 1; i < count; ++i) {
    std::ifstream file(names[i], std::ios::binary);
    std::vector<char> held((std::istreambuf_iterator<char>(file)), {});
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(held.data()), held.size());
  }
  std::printf("%d inputs\n", count - 1);
}
#endif
