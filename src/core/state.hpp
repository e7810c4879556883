// A model's state as named arrays. One description per model, `describe(state, model)`, serves both ways: `state()` writes the
// arrays, and `restore()` reads them into a copy, which becomes the model when everything fits.
#pragma once
#include "bind.hpp"

KS_GLUE_BEGIN
namespace KS_MODULE {

// A state comes from a file and may hold anything: whatever could lead out of an array or overflow is refused.
inline void fits(bool good) { require(good, "the state does not fit this learner"); }

// A number that can be counted up for ever.
inline int64_t counted(int64_t n) {
  fits(n >= 0 && n < (int64_t(1) << 62));
  return n;
}

class State {
 public:
  nb::dict arrays;

  State() = default;
  explicit State(nb::dict given) : arrays(std::move(given)), reads_(true) {}
  bool reads() const { return reads_; }
  bool has(const std::string& name) const { return arrays.contains(name.c_str()); }

  // An array that is read.
  template <class A> A get(const std::string& name) {
    A array;
    fits(has(name) && nb::try_cast(arrays[name.c_str()], array));
    ++used_;
    return array;
  }
  // How long an array is: as it is read, or as it is to be written.
  int64_t length(const std::string& name, int64_t now) {
    if (!reads_) return now;
    fits(has(name));
    nb::ndarray<nb::ro, nb::device::cpu> array;
    fits(nb::try_cast(arrays[name.c_str()], array) && array.ndim() >= 1);
    return int64_t(array.shape(0));
  }
  // Everything that was given has been read.
  void finish() const { fits(!reads_ || used_ == arrays.size()); }

  // n x columns numbers, at(i, j) being a reference to each.
  template <class V, class At> void grid(const std::string& name, int64_t n, int64_t columns, At at) {
    if (reads_) {
      auto from = get<Matrix<V>>(name);
      fits(int64_t(from.shape(0)) == n && int64_t(from.shape(1)) == columns);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < columns; ++j) at(i, j) = from(size_t(i), size_t(j));
    } else {
      write<V>(name, n, columns, at);
    }
  }
  template <class V, class At> void write(const std::string& name, int64_t n, int64_t columns, At at) {
    V* to;
    arrays[name.c_str()] = make<V>({size_t(n), size_t(columns)}, &to);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < columns; ++j) *to++ = V(at(i, j));
  }
  // n numbers from `data` on.
  template <class V> void line(const std::string& name, V* data, int64_t n) {
    if (reads_) {
      auto from = get<Vector<V>>(name);
      fits(int64_t(from.shape(0)) == n);
      std::copy_n(from.data(), n, data);
      return;
    }
    V* to;
    arrays[name.c_str()] = make<V>({size_t(n)}, &to);
    std::copy_n(data, n, to);
  }
  // A vector whose length may be any.
  template <class V> void line(const std::string& name, std::vector<V>& data) {
    data.resize(size_t(length(name, int64_t(data.size()))));
    line(name, data.data(), int64_t(data.size()));
  }
  // n weights per output.
  template <class T> void weights(const std::string& name, std::vector<Array<T>>& w, int64_t n) {
    if (reads_)
      for (auto& one : w) one.clear();
    grid<T>(name, n, int64_t(w.size()), [&](int64_t i, int64_t c) -> T& { return w[size_t(c)][size_t(i)]; });
  }
  // Points, written as rows; when read, put(rows, j) stores each. Returns how many there are, at most `most`.
  template <class T, class P, class Put>
  int64_t points(const std::string& name, const Points<P>& from, int64_t count, int64_t most, Put put) {
    return rows<T, P>(
        name, count, most, from.width(), from.sparse, [&](int64_t j, std::vector<P>& dense) { return from.row(j, dense); }, put);
  }
  // The same of any rows: shown(j, dense) is row j, whose numbers may be put into `dense`. Sparse ones are written as three arrays;
  // what is read may have been written either way.
  template <class T, class P, class Shown, class Put>
  int64_t rows(const std::string& name, int64_t count, int64_t most, int64_t width, bool sparse, Shown shown, Put put) {
    if (reads_) {
      if (has(name)) {
        auto from = get<Matrix<T>>(name);
        return read_rows(rows_of(from), most, width, put);
      }
      auto values = get<Vector<T>>(name + "_values");
      auto columns = get<Vector<int32_t>>(name + "_columns");
      auto starts = get<Vector<int64_t>>(name + "_starts");
      auto held = HeldRows<T>::csr(values, columns, starts, width);
      return read_rows(held.rows, most, width, put);
    }
    std::vector<P> dense;
    if (!sparse) {
      T* to;
      arrays[name.c_str()] = make<T>({size_t(count), size_t(width)}, &to);
      for (int64_t j = 0; j < count; ++j) shown(j, dense).each(0, [&](int64_t, P v) { *to++ = T(v); });
      return count;
    }
    size_t entries = 0;
    for (int64_t j = 0; j < count; ++j) shown(j, dense).each(0, [&](int64_t, P) { ++entries; });
    T* values;
    int32_t* columns;
    int64_t* starts;
    arrays[(name + "_values").c_str()] = make<T>({entries}, &values);
    arrays[(name + "_columns").c_str()] = make<int32_t>({entries}, &columns);
    arrays[(name + "_starts").c_str()] = make<int64_t>({size_t(count) + 1}, &starts);
    int64_t at = 0;
    *starts++ = 0;
    for (int64_t j = 0; j < count; ++j) {
      shown(j, dense).each(0, [&](int64_t d, P v) {
        *values++ = T(v);
        *columns++ = int32_t(d);
        ++at;
      });
      *starts++ = at;
    }
    return count;
  }

 private:
  template <class T, class Put> static int64_t read_rows(const Rows<T>& rows, int64_t most, int64_t width, Put put) {
    fits(rows.n <= most && rows.width == width);
    for (int64_t j = 0; j < rows.n; ++j) put(rows, j);
    return rows.n;
  }

  bool reads_ = false;
  size_t used_ = 0;
};

// `state` and `restore` of a class whose model has a `describe`.
template <class T, class M> void def_state(nb::class_<Bound<T, M>>& c) {
  using B = Bound<T, M>;
  c.def("state",
        [](B& b) {
          auto guard = b.locked();
          State state;
          describe(state, b.model);
          return state.arrays;
        })
      .def(
          "restore",
          [](B& b, nb::dict arrays) {
            auto guard = b.locked();
            M copy = b.model;
            State state(std::move(arrays));
            describe(state, copy);
            state.finish();
            b.model = std::move(copy);
          },
          "state"_a);
}

}  // namespace KS_MODULE
KS_GLUE_END
