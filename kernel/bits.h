/* What all of the compiled loops need: their compiler, and words of bits. */
#ifndef TACIT_BITS_H
#define TACIT_BITS_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if !defined(__GNUC__) && !defined(__clang__)
#error "no compiler that this was tried with: numpy does the same"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "bits are packed for little-endian machines: numpy does the same"
#endif

/* Arrays that are mapped from a file may begin anywhere. */
typedef uint64_t word __attribute__((aligned(1), may_alias));

#define ones_of(bits) ((uint64_t)__builtin_popcountll(bits))
#define first_one(bits) __builtin_ctzll(bits)
#define last_one(bits) (63 - __builtin_clzll(bits))

#endif
