// From text to numbers, for Python: where records end, and rows of LIBSVM, CSV and JSON lines. The parsers are in text/.
// One module for all CPU levels. The interpreter lock is released while text is read, and nothing outside it is kept.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "text/csv.hpp"
#include "text/hashing.hpp"
#include "text/json.hpp"
#include "text/libsvm.hpp"
#include "text/records.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

const char* chars(const Bytes& text) { return reinterpret_cast<const char*>(text.data()); }

// A vector handed over to NumPy without a copy, as a matrix if it has columns.
template <class T> nb::ndarray<nb::numpy, T> give(std::vector<T>&& values, size_t rows, size_t columns) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  static T nothing[1] = {};
  size_t shape[2] = {rows, columns};
  return nb::ndarray<nb::numpy, T>(kept->empty() ? nothing : kept->data(), 2, shape, owner);
}

template <class T> nb::ndarray<nb::numpy, T> give(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  static T nothing[1] = {};
  size_t shape[1] = {kept->size()};
  return nb::ndarray<nb::numpy, T>(kept->empty() ? nothing : kept->data(), 1, shape, owner);
}

// Text for Python; bytes that are not UTF-8, which only refused rows have, are replaced.
nb::object as_str(std::string_view text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data() ? text.data() : "", Py_ssize_t(text.size()), "replace"));
}

nb::list as_list(const text::Words& words, int32_t missing = -1) {
  nb::list list;
  for (const auto& word : words.all()) list.append(as_str(word.text));
  if (missing >= 0) list[size_t(missing)] = nb::none();
  return list;
}

char one_char(const std::string& delimiter) {
  if (delimiter.size() != 1) throw nb::value_error("the delimiter must be one character");
  return delimiter[0];
}

void check_ends(const Bytes& text, const Vector<int64_t>& ends) {
  int64_t last = 0;
  for (size_t i = 0; i < ends.size(); last = ends.data()[i++])
    if (ends.data()[i] <= last || ends.data()[i] > int64_t(text.size())) throw nb::value_error("records must end in the text");
}

nb::ndarray<nb::numpy, int64_t> record_ends(Bytes text, int64_t start, int64_t most, const std::string& delimiter, bool last) {
  if (start < 0 || start > int64_t(text.size())) throw nb::value_error("start lies outside the text");
  std::vector<int64_t> ends;
  {
    nb::gil_scoped_release release;
    if (delimiter.empty())
      ends = text::ends_of_lines(chars(text), int64_t(text.size()), start, most);
    else
      ends = text::ends_of_records(chars(text), int64_t(text.size()), start, most, delimiter[0], last);
  }
  return give(std::move(ends));
}

int64_t line_ends(Bytes text) { return text::count_line_ends(chars(text), chars(text) + text.size()); }

nb::tuple parse_libsvm(Bytes text, int64_t n_features, double largest, bool labelled, bool whole_labels) {
  if (text.size() > size_t(std::numeric_limits<int32_t>::max())) throw nb::value_error("the text is longer than 2 GB");
  text::Libsvm reader(chars(text), int64_t(text.size()), {n_features, largest, labelled, whole_labels});
  {
    nb::gil_scoped_release release;
    reader.run();
  }
  text::Parsed& p = reader.parsed;
  return nb::make_tuple(give(std::move(p.labels)), give(std::move(p.starts)), give(std::move(p.indices)), give(std::move(p.values)),
                        give(std::move(p.refused)));
}

nb::list csv_fields(Bytes record, const std::string& delimiter) {
  const char* begin = chars(record);
  text::Fields fields(begin, text::Fields::before_line_end(begin, begin + record.size()), one_char(delimiter));
  nb::list list;
  if (fields.blank()) return list;
  std::deque<std::string> pool;
  while (fields.next()) {
    std::string_view value = fields.value(pool);
    list.append(nb::bytes(value.data(), value.size()));
  }
  if (fields.fault == text::Fields::text_after_quote) throw nb::value_error("text after the quote that ends a field");
  if (fields.fault == text::Fields::quote_not_closed) throw nb::value_error("a quote is not closed");
  return list;
}

bool is_number(Bytes field) {
  double number;
  text::Number kind = text::field_number({chars(field), field.size()}, &number);
  return kind == text::Number::good || kind == text::Number::not_finite;
}

nb::tuple csv_counts(Bytes text, Vector<int64_t> ends, size_t columns, const std::string& delimiter) {
  check_ends(text, ends);
  text::CsvCounts counts(chars(text), ends.data(), ends.size(), columns, one_char(delimiter));
  return nb::make_tuple(give(std::move(counts.present)), give(std::move(counts.numbers)), give(std::move(counts.whole)));
}

nb::tuple parse_csv(Bytes text, Vector<int64_t> ends, const std::string& delimiter, Vector<uint8_t> roles, Vector<int32_t> places,
                    size_t numbers, size_t categories, double largest, int label_kind) {
  check_ends(text, ends);
  if (places.size() != roles.size()) throw nb::value_error("each column has one role and one place");
  for (size_t i = 0; i < roles.size(); ++i) {
    size_t limit = roles.data()[i] == text::number ? numbers : roles.data()[i] == text::category ? categories : 1;
    if (places.data()[i] < 0 || size_t(places.data()[i]) >= limit) throw nb::value_error("a place lies outside the columns");
  }
  text::CsvOptions options{one_char(delimiter), largest, text::LabelKind(label_kind), roles.data(), places.data(), roles.size(), numbers,
                           categories};
  text::Csv reader(options);
  {
    nb::gil_scoped_release release;
    reader.run(chars(text), ends.data(), ends.size());
  }
  nb::list columns;
  for (size_t i = 0; i < categories; ++i)
    columns.append(nb::make_tuple(give(std::move(reader.codes[i])), as_list(reader.words[i], reader.missing[i])));
  size_t rows = reader.rows.size();
  return nb::make_tuple(
      give(std::move(reader.rows)), give(std::move(reader.numbers), rows, numbers), columns, give(std::move(reader.labels)),
      nb::make_tuple(give(std::move(reader.label_codes)), as_list(reader.words[categories])), give(std::move(reader.refused)));
}

nb::tuple parse_json(Bytes text, Vector<int64_t> ends, double largest, const std::string& target, int label,
                     const std::vector<std::string>& dropped, const std::vector<std::string>& forced) {
  check_ends(text, ends);
  text::JsonLines reader({largest, text::JsonLabel(label), target, dropped, forced});
  {
    nb::gil_scoped_release release;
    reader.run(chars(text), ends.data(), ends.size());
  }
  nb::list names, features;
  for (std::string_view name : reader.names) names.append(as_str(name));
  for (const auto& feature : reader.features)
    features.append(nb::make_tuple(names[size_t(feature.name)], int(feature.kind), as_str(feature.word)));
  return nb::make_tuple(give(std::move(reader.rows)), give(std::move(reader.starts)), give(std::move(reader.codes)),
                        give(std::move(reader.values)), features, give(std::move(reader.labels)),
                        nb::make_tuple(give(std::move(reader.label_codes)), as_list(reader.label_words)), as_str(reader.target),
                        int(reader.label), names, give(std::move(reader.refused)));
}

nb::tuple hash_texts(const std::vector<std::string>& texts, int64_t features) {
  if (features < 1 || features > std::numeric_limits<int32_t>::max()) throw nb::value_error("the number of features is out of range");
  std::vector<int64_t> starts{0};
  std::vector<int32_t> places;
  std::vector<double> values;
  {
    nb::gil_scoped_release release;
    text::HashedText hashed(features, places, values);
    for (const std::string& each : texts) {
      hashed.add(each);
      starts.push_back(int64_t(places.size()));
    }
  }
  return nb::make_tuple(give(std::move(starts)), give(std::move(places)), give(std::move(values)));
}

}  // namespace

NB_MODULE(_text, m) {
  m.doc() = "From text to numbers.";
  m.def("record_ends", &record_ends, "text"_a, "start"_a, "most"_a, "delimiter"_a, "last"_a,
        "Where the first records of text[start:] end, at most so many: lines, or with a delimiter CSV records, where `last` "
        "says that no more text follows.");
  m.def("line_ends", &line_ends, "text"_a, "Line ends in a text: LF, CRLF or CR.");
  m.def("parse_libsvm", &parse_libsvm, "text"_a, "n_features"_a, "largest"_a, "labelled"_a, "whole_labels"_a,
        "Labels, row starts, 0-based indices, values; and six numbers for each line refused.");
  m.def("csv_fields", &csv_fields, "record"_a, "delimiter"_a, "The fields of one CSV record; none if it is blank.");
  m.def("is_number", &is_number, "field"_a, "Whether a CSV field is a number, finite or not.");
  m.def("csv_counts", &csv_counts, "text"_a, "ends"_a, "columns"_a, "delimiter"_a,
        "Of each column how many values are present, are numbers, are whole numbers.");
  m.def("parse_csv", &parse_csv, "text"_a, "ends"_a, "delimiter"_a, "roles"_a, "places"_a, "numbers"_a, "categories"_a, "largest"_a,
        "label_kind"_a,
        "Records of the good rows, numbers, (codes, words) of categories, labels as numbers and as (codes, words); and six "
        "numbers for each record refused.");
  m.def("parse_json", &parse_json, "text"_a, "ends"_a, "largest"_a, "target"_a, "label"_a, "dropped"_a, "forced"_a,
        "Records of the good rows, their starts, feature and value of each entry, features, labels as numbers and as (codes, "
        "words), target, kind of label, names; and five numbers for each line refused.");
  m.def("hash_texts", &hash_texts, "texts"_a, "features"_a,
        "Words and pieces of words of each text, hashed: starts, places and values, as in a CSR matrix.");
}
