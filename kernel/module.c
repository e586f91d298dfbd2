/* Compiled loops over packed bits: tacit._kernel.
 *
 * Everything here is also done in numpy (tacit.kernel says which of the two is used), so a machine
 * without a compiler loses speed and nothing else.  Only CPython's stable interface of version 3.11
 * is used: one wheel serves that version and all later ones.
 *
 * Every function takes arrays as buffers of bytes and checks their sizes before it looks at them.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define CHUNK 512 /* words that are worked on at once: 4 KB, which stay in the nearest cache */
#define MOST_MAPS 64

#if defined(__GNUC__) || defined(__clang__)
/* Arrays that are mapped from a file may begin anywhere. */
typedef uint64_t word __attribute__((aligned(1), may_alias));
typedef uint8_t codes_8;
typedef uint16_t codes_16 __attribute__((aligned(1), may_alias));
typedef uint32_t codes_32 __attribute__((aligned(1), may_alias));
typedef uint64_t codes_64 __attribute__((aligned(1), may_alias));
#define ones_of(bits) ((uint64_t)__builtin_popcountll(bits))
#define first_one(bits) __builtin_ctzll(bits)
#if defined(__x86_64__)
#define SEVERAL_KINDS 1
#endif
#else
#error "no compiler that this was tried with: numpy does the same"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "bits are packed for little-endian machines: numpy does the same"
#endif

#define NAME(x) x##_plain
#define TARGET
#include "loops.h"
#undef NAME
#undef TARGET

#ifdef SEVERAL_KINDS
#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,popcnt")))
#include "loops.h"
#undef NAME
#undef TARGET

#define NAME(x) x##_avx512
#define TARGET                                                                                     \
    __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vpopcntdq,popcnt")))
#include "loops.h"
#undef NAME
#undef TARGET
#endif

static int kind; /* of processor: 0 any, 1 with AVX2, 2 with AVX-512 and its bit counts */

#ifdef SEVERAL_KINDS
#define CALL(x, ...) (kind == 2 ? x##_avx512 : kind == 1 ? x##_avx2 : x##_plain)(__VA_ARGS__)
#else
#define CALL(x, ...) x##_plain(__VA_ARGS__)
#endif

static int has_words(const Py_buffer *buffer, Py_ssize_t many)
{
    if (many >= 0 && buffer->len / 8 >= many)
        return 1;
    PyErr_SetString(PyExc_ValueError, "a buffer is shorter than what is asked of it");
    return 0;
}

/* Some rows of bits, of which each has the words from `at` on that are wanted. */
static int has_rows(const Py_buffer *bits, Py_ssize_t row_words, Py_ssize_t at, Py_ssize_t many)
{
    if (row_words > 0 && at >= 0 && many >= 0 && at <= row_words - many &&
        bits->len % (8 * row_words) == 0)
        return 1;
    PyErr_SetString(PyExc_ValueError, "the rows of bits do not have the words that are asked for");
    return 0;
}

PyDoc_STRVAR(ones_in_each_doc,
             "ones_in_each(words, bits, row_words, at)\n--\n\n"
             "For each row of bits, how many of its words from ``at`` on share with ``words``.");

static PyObject *ones_in_each(PyObject *module, PyObject *arguments)
{
    Py_buffer words, bits;
    Py_ssize_t row_words, at;
    PyObject *found = NULL;
    if (!PyArg_ParseTuple(arguments, "y*y*nn", &words, &bits, &row_words, &at))
        return NULL;
    Py_ssize_t many = words.len / 8;
    if (has_rows(&bits, row_words, at, many)) {
        Py_ssize_t rows = bits.len / 8 / row_words;
        found = PyTuple_New(rows);
        for (Py_ssize_t row = 0; found != NULL && row < rows; row++) {
            const word *bit = (const word *)bits.buf + row * row_words + at;
            uint64_t ones = CALL(ones_in_both, words.buf, bit, many);
            PyObject *number = PyLong_FromUnsignedLongLong(ones);
            if (number == NULL || PyTuple_SetItem(found, row, number) < 0)
                Py_CLEAR(found);
        }
    }
    PyBuffer_Release(&words);
    PyBuffer_Release(&bits);
    return found;
}

PyDoc_STRVAR(ones_in_all_doc, "ones_in_all(maps, start, stop)\n--\n\n"
                              "How many bits are set in all of these bitmaps, from word to word.");

static PyObject *ones_in_all(PyObject *module, PyObject *arguments)
{
    PyObject *maps, *found = NULL;
    Py_ssize_t start, stop, opened = 0;
    Py_buffer buffers[MOST_MAPS];
    const word *words[MOST_MAPS];
    if (!PyArg_ParseTuple(arguments, "O!nn", &PyList_Type, &maps, &start, &stop))
        return NULL;
    Py_ssize_t many = PyList_Size(maps);
    if (many < 1 || many > MOST_MAPS || start < 0 || stop < start) {
        PyErr_SetString(PyExc_ValueError, "there must be 1 to 64 bitmaps, and words of them");
        return NULL;
    }
    for (; opened < many; opened++) {
        if (PyObject_GetBuffer(PyList_GetItem(maps, opened), buffers + opened, PyBUF_SIMPLE) < 0)
            break;
        words[opened] = (const word *)buffers[opened].buf + start;
        if (!has_words(buffers + opened, stop)) {
            opened++;
            break;
        }
    }
    if (!PyErr_Occurred())
        found = PyLong_FromUnsignedLongLong(CALL(ones_in_all, words, many, stop - start));
    while (opened > 0)
        PyBuffer_Release(buffers + --opened);
    return found;
}

static int has_codes(const Py_buffer *codes, int width, Py_ssize_t words, Py_ssize_t at)
{
    if ((width == 1 || width == 2 || width == 4 || width == 8) && at >= 0 &&
        codes->len / width / 64 >= at && codes->len / width / 64 - at >= words)
        return 1;
    PyErr_SetString(PyExc_ValueError, "there are no codes of that width for all of these words");
    return 0;
}

PyDoc_STRVAR(codes_between_doc,
             "codes_between(codes, width, at, low, high, words)\n--\n\n"
             "Set the bits of the slots, from word ``at`` on, whose codes lie in [low, high].");

static PyObject *codes_between(PyObject *module, PyObject *arguments)
{
    Py_buffer codes, words;
    int width, good;
    Py_ssize_t at;
    unsigned long long low, high;
    if (!PyArg_ParseTuple(arguments, "y*inKKw*", &codes, &width, &at, &low, &high, &words))
        return NULL;
    Py_ssize_t many = words.len / 8;
    good = has_codes(&codes, width, many, at);
    if (good) {
        const char *first = (const char *)codes.buf + 64 * width * at;
        if (width == 1)
            CALL(between_8, (const codes_8 *)first, many, low, high, words.buf);
        else if (width == 2)
            CALL(between_16, (const codes_16 *)first, many, low, high, words.buf);
        else if (width == 4)
            CALL(between_32, (const codes_32 *)first, many, low, high, words.buf);
        else
            CALL(between_64, (const codes_64 *)first, many, low, high, words.buf);
    }
    PyBuffer_Release(&codes);
    PyBuffer_Release(&words);
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}

static inline uint64_t code_at(const char *codes, int width, Py_ssize_t slot)
{
    switch (width) {
    case 1:
        return ((const codes_8 *)codes)[slot];
    case 2:
        return ((const codes_16 *)codes)[slot];
    case 4:
        return ((const codes_32 *)codes)[slot];
    default:
        return ((const codes_64 *)codes)[slot];
    }
}

PyDoc_STRVAR(keep_between_doc,
             "keep_between(words, codes, width, at, low, high)\n--\n\n"
             "Clear the bits of the slots, from word ``at`` on, whose codes lie outside [low, high].");

static PyObject *keep_between(PyObject *module, PyObject *arguments)
{
    Py_buffer words, codes;
    int width, good;
    Py_ssize_t at;
    unsigned long long low, high;
    if (!PyArg_ParseTuple(arguments, "w*y*inKK", &words, &codes, &width, &at, &low, &high))
        return NULL;
    Py_ssize_t many = words.len / 8;
    good = has_codes(&codes, width, many, at);
    for (Py_ssize_t i = 0; good && i < many; i++) {
        uint64_t left = ((word *)words.buf)[i], kept = left;
        for (; left; left &= left - 1) {
            int bit = first_one(left);
            uint64_t code = code_at(codes.buf, width, 64 * (at + i) + bit);
            kept &= ~((uint64_t)(code < low || code > high) << bit);
        }
        ((word *)words.buf)[i] = kept;
    }
    PyBuffer_Release(&words);
    PyBuffer_Release(&codes);
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(shattered_set_doc,
             "shattered_set(cells, above, below, link, row_words, left, check_time)\n--\n\n"
             "``left`` columns that split every cell into all patterns, or None.\n\n"
             "``below`` and ``link`` may be None.  ``check_time`` is called every few milliseconds.");

PyObject *shattered_set(PyObject *module, PyObject *arguments); /* in shattering.c */

static PyMethodDef methods[] = {
    {"ones_in_each", ones_in_each, METH_VARARGS, ones_in_each_doc},
    {"ones_in_all", ones_in_all, METH_VARARGS, ones_in_all_doc},
    {"codes_between", codes_between, METH_VARARGS, codes_between_doc},
    {"keep_between", keep_between, METH_VARARGS, keep_between_doc},
    {"shattered_set", shattered_set, METH_VARARGS, shattered_set_doc},
    {NULL, NULL, 0, NULL},
};

static int set_kind(PyObject *module)
{
#ifdef SEVERAL_KINDS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vpopcntdq"))
        kind = 2;
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"))
        kind = 1;
#endif
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, set_kind}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tacit._kernel", "Compiled loops over packed bits.", 0, methods, slots,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
