/* Compiled loops over packed bits, and over words: tacit._kernel.
 *
 * Everything here is also done in numpy (tacit.kernel says which of the two is used), so a machine
 * without a compiler loses speed and nothing else.  Only CPython's stable interface of version 3.11
 * is used: one wheel serves that version and all later ones.
 *
 * Every function takes arrays as buffers of bytes and checks their sizes before it looks at them.
 * While one counts, other threads of Python go on; who calls it keeps the arrays as they are.
 */
#include "bits.h"

#define CHUNK 512           /* words that are worked on at once: 4 KB, in the nearest cache */
#define KEPT_AT_ONCE 128    /* words whose slots are looked up at once */
#define FEW 128             /* slots are looked up one by one if at most one in so many is left */
#define MOST 64 /* bitmaps of a conjunction, and ranges */

typedef uint8_t codes_8;
typedef uint16_t codes_16 __attribute__((aligned(1), may_alias));
typedef uint32_t codes_32 __attribute__((aligned(1), may_alias));
typedef uint64_t codes_64 __attribute__((aligned(1), may_alias));
#if defined(__x86_64__)
#include <immintrin.h>
#define SEVERAL_KINDS 1
#define set_all_8(code) _mm512_set1_epi8((char)(code))
#define set_all_16(code) _mm512_set1_epi16((short)(code))
#define set_all_32(code) _mm512_set1_epi32((int)(code))
#define set_all_64(code) _mm512_set1_epi64((long long)(code))
#endif

/* A range of a column's codes, both ends included. */
struct range {
    Py_buffer codes;
    int width; /* bytes of a code */
    unsigned long long low, high;
};

struct conjunction {
    const word *maps[MOST];
    struct range ranges[MOST];
    Py_ssize_t maps_many, ranges_many;
};

/* Few slots are left, far apart: all of a block are sent for before the first is looked at. */
#define KEEP_BETWEEN(width)                                                                        \
    static void keep_##width(word *words, Py_ssize_t many, const codes_##width *codes,             \
                             uint64_t low, uint64_t high)                                          \
    {                                                                                              \
        uint16_t slots[64 * KEPT_AT_ONCE];                                                         \
        for (Py_ssize_t start = 0; start < many; start += KEPT_AT_ONCE) {                          \
            int size = many - start < KEPT_AT_ONCE ? (int)(many - start) : KEPT_AT_ONCE, left = 0; \
            const codes_##width *here = codes + 64 * start;                                        \
            for (int i = 0; i < size; i++)                                                         \
                for (uint64_t bits = words[start + i]; bits; bits &= bits - 1) {                   \
                    slots[left] = (uint16_t)(64 * i + first_one(bits));                            \
                    __builtin_prefetch(here + slots[left++]);                                      \
                }                                                                                  \
            for (int i = 0; i < left; i++) {                                                       \
                uint64_t code = here[slots[i]], out = code < low || code > high;                   \
                words[start + (slots[i] >> 6)] &= ~(out << (slots[i] & 63));                       \
            }                                                                                      \
        }                                                                                          \
    }
KEEP_BETWEEN(8)
KEEP_BETWEEN(16)
KEEP_BETWEEN(32)
KEEP_BETWEEN(64)

/* Clear the bits of slots, from word `at` on, whose codes lie outside a range. */
static void keep_in_range(word *words, Py_ssize_t many, const struct range *range, Py_ssize_t at)
{
    const char *first = (const char *)range->codes.buf + 64 * range->width * at;
    if (range->width == 1)
        keep_8(words, many, (const codes_8 *)first, range->low, range->high);
    else if (range->width == 2)
        keep_16(words, many, (const codes_16 *)first, range->low, range->high);
    else if (range->width == 4)
        keep_32(words, many, (const codes_32 *)first, range->low, range->high);
    else
        keep_64(words, many, (const codes_64 *)first, range->low, range->high);
}

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

#define WITH_MASKS 1
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

/* A range from a tuple, with codes for all words up to `words`.  Released by release_range. */
static int read_range(PyObject *given, Py_ssize_t words, struct range *range)
{
    memset(range, 0, sizeof *range);
    if (!PyArg_ParseTuple(given, "y*iKK", &range->codes, &range->width, &range->low, &range->high))
        return 0;
    int width = range->width;
    if ((width == 1 || width == 2 || width == 4 || width == 8) && words >= 0 &&
        range->codes.len / width / 64 >= words)
        return 1;
    PyErr_SetString(PyExc_ValueError, "there are no codes of that width for all of these words");
    return -1;
}

#define RANGE_DOC "A range is (codes, bytes of a code, low, high)."

PyDoc_STRVAR(set_in_range_doc, "set_in_range(words, at, range)\n--\n\n"
                               "Set the bits of the slots, from word ``at`` on, that lie in a range,\n"
                               "and clear the others.\n\n" RANGE_DOC);

PyDoc_STRVAR(keep_in_range_doc, "keep_in_range(words, at, range)\n--\n\n"
                                "Clear the bits of the slots, from word ``at`` on, that lie outside a\n"
                                "range.  Quick if few are set.\n\n" RANGE_DOC);

static PyObject *change_words(PyObject *arguments, int keep)
{
    Py_buffer words;
    PyObject *given;
    Py_ssize_t at;
    struct range range;
    if (!PyArg_ParseTuple(arguments, "w*nO!", &words, &at, &PyTuple_Type, &given))
        return NULL;
    Py_ssize_t many = words.len / 8;
    int read = read_range(given, at < 0 || at > PY_SSIZE_T_MAX - many ? -1 : at + many, &range);
    if (read > 0) {
        Py_BEGIN_ALLOW_THREADS
        if (keep)
            keep_in_range(words.buf, many, &range, at);
        else
            CALL(in_range, &range, at, many, words.buf);
        Py_END_ALLOW_THREADS
    }
    if (read)
        PyBuffer_Release(&range.codes);
    PyBuffer_Release(&words);
    if (read <= 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *set_words_in_range(PyObject *module, PyObject *arguments)
{
    return change_words(arguments, 0);
}

static PyObject *keep_words_in_range(PyObject *module, PyObject *arguments)
{
    return change_words(arguments, 1);
}

PyDoc_STRVAR(people_in_all_doc,
             "people_in_all(maps, ranges, inner, one_row, words)\n--\n\n"
             "How many people have a slot that is set in all of these bitmaps and lies in all of\n"
             "these ranges, up to a word.\n\n"
             "Up to the word ``one_row`` each slot is a person; of the words from there on,\n"
             "``inner`` are all slots but the last one of each person.\n\n" RANGE_DOC);

static PyObject *people_in_all(PyObject *module, PyObject *arguments)
{
    PyObject *maps, *ranges, *found = NULL;
    Py_ssize_t one_row, words, opened = 0;
    Py_buffer inner, buffers[MOST];
    struct conjunction all = {.ranges_many = 0};
    if (!PyArg_ParseTuple(arguments, "O!O!y*nn", &PyList_Type, &maps, &PyList_Type, &ranges, &inner,
                          &one_row, &words))
        return NULL;
    all.maps_many = PyList_Size(maps);
    Py_ssize_t wanted = PyList_Size(ranges);
    if (all.maps_many > MOST || wanted > MOST || one_row < 0 || words < one_row)
        PyErr_SetString(PyExc_ValueError, "there may be 64 bitmaps and ranges, and words of them");
    else if (has_words(&inner, words - one_row)) {
        for (; !PyErr_Occurred() && opened < all.maps_many; opened++) {
            if (PyObject_GetBuffer(PyList_GetItem(maps, opened), buffers + opened, PyBUF_SIMPLE) < 0)
                break;
            all.maps[opened] = buffers[opened].buf;
            has_words(buffers + opened, words);
        }
        for (; !PyErr_Occurred() && all.ranges_many < wanted; all.ranges_many++)
            if (!read_range(PyList_GetItem(ranges, all.ranges_many), words,
                            all.ranges + all.ranges_many))
                break;
    }
    if (!PyErr_Occurred()) {
        uint64_t people;
        Py_BEGIN_ALLOW_THREADS
        people = CALL(people_in_all, &all, inner.buf, one_row, words);
        Py_END_ALLOW_THREADS
        found = PyLong_FromUnsignedLongLong(people);
    }
    while (all.ranges_many > 0)
        PyBuffer_Release(&all.ranges[--all.ranges_many].codes);
    while (opened > 0)
        PyBuffer_Release(buffers + --opened);
    PyBuffer_Release(&inner);
    return found;
}

PyDoc_STRVAR(shattered_set_doc,
             "shattered_set(cells, above, below, link, row_words, left, check_time)\n--\n\n"
             "``left`` columns that split every cell into all patterns, or None.\n\n"
             "``below`` and ``link`` may be None.  ``check_time`` is called every few milliseconds.");

PyObject *shattered_set(PyObject *module, PyObject *arguments); /* in shattering.c */
PyObject *number_words(PyObject *module, PyObject *arguments);  /* in words.c */
extern const char number_words_doc[];

static int best_kind(void)
{
#ifdef SEVERAL_KINDS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vpopcntdq"))
        return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"))
        return 1;
#endif
    return 0;
}

PyDoc_STRVAR(use_kind_doc, "use_kind(most)\n--\n\n"
                           "Use the loops for processors of at most this kind, for tests: 0 any, 1\n"
                           "with AVX2, 2 with AVX-512.  Returns the kind in use from now on.");

static PyObject *use_kind(PyObject *module, PyObject *arguments)
{
    int most;
    if (!PyArg_ParseTuple(arguments, "i", &most))
        return NULL;
    kind = best_kind();
    kind = kind < most ? kind : most < 0 ? 0 : most;
    return PyLong_FromLong(kind);
}

static PyMethodDef methods[] = {
    {"ones_in_each", ones_in_each, METH_VARARGS, ones_in_each_doc},
    {"people_in_all", people_in_all, METH_VARARGS, people_in_all_doc},
    {"set_in_range", set_words_in_range, METH_VARARGS, set_in_range_doc},
    {"keep_in_range", keep_words_in_range, METH_VARARGS, keep_in_range_doc},
    {"shattered_set", shattered_set, METH_VARARGS, shattered_set_doc},
    {"number_words", number_words, METH_VARARGS, number_words_doc},
    {"use_kind", use_kind, METH_VARARGS, use_kind_doc},
    {NULL, NULL, 0, NULL},
};

static int set_kind(PyObject *module)
{
    kind = best_kind();
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, set_kind}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tacit._kernel", "Compiled loops.", 0, methods, slots,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
