// Which x86-64 level this processor and operating system offer: 2, 3 or 4; 0 on other machines, 1 on older ones.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <initializer_list>

#if defined(__x86_64__) || defined(_M_X64)
#define KS_X86 1
#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

namespace {

#ifdef KS_X86
struct Registers {
  unsigned a, b, c, d;
};

Registers cpuid(unsigned leaf) {
  Registers r{0, 0, 0, 0};
#if defined(_MSC_VER)
  int out[4];
  __cpuidex(out, int(leaf), 0);
  r = {unsigned(out[0]), unsigned(out[1]), unsigned(out[2]), unsigned(out[3])};
#else
  __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);
#endif
  return r;
}

unsigned long long enabled_by_system() {
#if defined(_MSC_VER)
  return _xgetbv(0);
#else
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<unsigned long long>(high) << 32) | low;
#endif
}

bool has(unsigned word, std::initializer_list<int> flags) {
  for (int flag : flags)
    if (!(word >> flag & 1)) return false;
  return true;
}
#endif

int level() {
#ifdef KS_X86
  Registers one = cpuid(1), seven = cpuid(7), extended = cpuid(0x80000001);
  if (!has(one.c, {0, 9, 13, 19, 20, 23}) || !has(extended.c, {0})) return 1;  // SSE3..4.2, CX16, POPCNT, LAHF
  if (!has(one.c, {12, 22, 27, 28, 29}) || !has(seven.b, {3, 5, 8}) || !has(extended.c, {5})) return 2;
  unsigned long long enabled = enabled_by_system();
  if ((enabled & 0x6) != 0x6) return 2;                                        // the system saves AVX registers
  if (!has(seven.b, {16, 17, 28, 30, 31}) || (enabled & 0xE6) != 0xE6) return 3;  // AVX-512 F, DQ, CD, BW, VL
  return 4;
#else
  return 0;
#endif
}

PyObject* py_level(PyObject*, PyObject*) { return PyLong_FromLong(level()); }

PyMethodDef methods[] = {{"level", py_level, METH_NOARGS, "The level."}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_cpu", "The CPU level this machine offers.", 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__cpu() { return PyModuleDef_Init(&definition); }
