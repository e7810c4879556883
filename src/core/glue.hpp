// nanobind, compiled for size. Between KS_GLUE_BEGIN and KS_GLUE_END stands what is called once per chunk or less; the rounds
// stand elsewhere and are compiled for speed.
#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#if defined(__GNUC__) && !defined(__clang__)
#define KS_GLUE_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize(\"Os\")")
#define KS_GLUE_END _Pragma("GCC pop_options")
#else
#define KS_GLUE_BEGIN
#define KS_GLUE_END
#endif

#include <Python.h>

KS_GLUE_BEGIN
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
KS_GLUE_END
