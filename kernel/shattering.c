/* Shattered sets: the memory of the deep search, its signs of life, and how Python calls it.
 *
 * All memory is taken before the search starts.  The search runs without the lock of the
 * interpreter and takes it every few milliseconds, to ask whether it may go on.
 */
#include "bits.h"

#include <stdlib.h>

#define PACKINGS 4              /* nodes of up to three points may be packed */
#define WORK (4 << 20)          /* words between two signs of life: a few milliseconds */
#define MOST_TRIPLES (64 << 20) /* bytes */
#define MOST_LEFT 30
#define MOST_PARTS (4 * MOST_LEFT + 3 * PACKINGS + 8) /* of memory */
#define MOST_SIZE ((Py_ssize_t)1 << 30)               /* of what is counted in 32 bits */

enum outcome { FAILED = -1, NONE = 0, FOUND = 1 };

/* The rows of some cells, each cell in words of its own: which rows, and every point's sides. */
struct packed {
    Py_ssize_t words;
    uint64_t *above, *below; /* below is NULL if every row that is not above is below */
    int32_t *rows;
};

/* A node: its cells (of `length` words each), and the point by which it is split just now. */
struct level {
    int32_t cells, length;
    int32_t *at, *size; /* of each cell: its first word in the columns, and its rows */
    uint64_t *masks, *candidates;
    const struct packed *columns;
    Py_ssize_t point;
};

struct search {
    Py_ssize_t points, point_words, row_words, most_words, work;
    const word *link;                  /* a line of points for each point, or NULL */
    uint64_t *triples;                 /* which points may join two, or NULL if that is too large */
    uint64_t *rows_above, *rows_below; /* a line of points for each row */
    struct level *levels;
    struct packed start, packings[PACKINGS];
    PyObject *check_time;
    PyThreadState *thread;
};

static inline int32_t words_for(int32_t bits) { return (bits + 63) / 64; }

static inline int32_t largest_cell(const struct level *node)
{
    int32_t largest = 1;
    for (int32_t cell = 0; cell < node->cells; cell++)
        if (node->size[cell] > largest)
            largest = node->size[cell];
    return largest;
}

/* Which points after `second` may join the two; first < second. */
static inline uint64_t *triples_of(const struct search *search, Py_ssize_t first, Py_ssize_t second)
{
    return search->triples + (second * (second - 1) / 2 + first) * search->point_words;
}

static int in_time(struct search *search)
{
    search->work = 0;
    PyEval_RestoreThread(search->thread);
    PyObject *nothing = PyObject_CallNoArgs(search->check_time);
    Py_XDECREF(nothing);
    search->thread = PyEval_SaveThread();
    return nothing != NULL;
}

#define NAME(x) x##_plain
#define TARGET
#include "shattering.h"
#undef NAME
#undef TARGET

#if defined(__x86_64__)
#define NAME(x) x##_counting
#define TARGET __attribute__((target("popcnt,bmi,avx2")))
#include "shattering.h"
#undef NAME
#undef TARGET
#endif

static int find(struct search *search, const word *above, const word *below, int left)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("avx2"))
        return find_counting(search, above, below, left);
#endif
    return find_plain(search, above, below, left);
}

/* Memory: everything comes from here, and is given back together. */

struct memory {
    void *parts[MOST_PARTS];
    int many, failed;
};

static void *room(struct memory *memory, Py_ssize_t many, Py_ssize_t each, Py_ssize_t size)
{
    Py_ssize_t items, bytes;
    void *part = NULL;
    if (memory->failed)
        return NULL;
    if (memory->many < MOST_PARTS && !__builtin_mul_overflow(many, each, &items) &&
        !__builtin_mul_overflow(items, size, &bytes))
        part = calloc(bytes > 0 ? (size_t)bytes : 1, 1);
    memory->failed = part == NULL;
    if (part)
        memory->parts[memory->many++] = part;
    return part;
}

static void give_back(struct memory *memory)
{
    while (memory->many > 0)
        free(memory->parts[--memory->many]);
}

/* The root: the given cells, their sizes, and all points as candidates. */
static void set_root(struct search *search, const Py_buffer *cells)
{
    struct level *root = search->levels;
    memcpy(root->masks, cells->buf, cells->len);
    root->length = (int32_t)search->row_words;
    root->columns = &search->start;
    for (int32_t cell = 0; cell < root->cells; cell++)
        for (Py_ssize_t w = 0; w < search->row_words; w++)
            root->size[cell] += (int32_t)ones_of(root->masks[cell * search->row_words + w]);
    for (Py_ssize_t point = 0; point < search->points; point++)
        root->candidates[point / 64] |= (uint64_t)1 << point % 64;
    for (Py_ssize_t row = 0; row < 64 * search->row_words; row++)
        search->start.rows[row] = (int32_t)row;
}

/* The nodes from the root down; each has twice the cells of the one above it, and the root's cells
 * are as long as all rows until they are packed. */
static int has_levels(struct search *search, struct memory *memory, const Py_buffer *cells,
                      int left)
{
    Py_ssize_t many = cells->len / 8 / search->row_words, words = search->row_words;
    search->levels = room(memory, left, 1, sizeof(struct level));
    search->start.rows = room(memory, search->row_words, 64, sizeof(int32_t));
    for (int depth = 0; !memory->failed && depth < left; depth++) {
        struct level *level = search->levels + depth;
        level->at = room(memory, many << depth, 1, sizeof(int32_t));
        level->size = room(memory, many << depth, 1, sizeof(int32_t));
        level->masks = room(memory, many << depth, words, 8);
        level->candidates = room(memory, search->point_words, 1, 8);
        if (depth == 0 && !memory->failed) {
            level->cells = (int32_t)many;
            set_root(search, cells);
            words = words_for(largest_cell(level));
        }
    }
    search->most_words = 2 * many * words;
    return !memory->failed;
}

/* The columns, turned and packed, and the triples if there is room for them and use. */
static int has_columns(struct search *search, struct memory *memory, int with_below, int left)
{
    Py_ssize_t rows = 64 * search->row_words, pairs = search->points * (search->points - 1) / 2;
    search->rows_above = room(memory, rows, search->point_words, 8);
    if (with_below)
        search->rows_below = room(memory, rows, search->point_words, 8);
    /* Cells of one word are not packed again. */
    int packings = search->most_words > 2 * (Py_ssize_t)search->levels->cells ? PACKINGS : 1;
    for (int i = 0; i < packings; i++) {
        struct packed *packed = search->packings + i;
        packed->above = room(memory, search->points, search->most_words, 8);
        if (with_below)
            packed->below = room(memory, search->points, search->most_words, 8);
        packed->rows = room(memory, search->most_words, 64, sizeof(int32_t));
    }
    if (left > 3 && pairs <= MOST_TRIPLES / 8 / search->point_words)
        search->triples = room(memory, pairs, search->point_words, 8);
    return !memory->failed;
}

static PyObject *names(const struct search *search, int many)
{
    PyObject *found = PyTuple_New(many);
    for (int i = 0; found != NULL && i < many; i++) {
        PyObject *name = PyLong_FromSsize_t(search->levels[i].point);
        if (name == NULL || PyTuple_SetItem(found, i, name) < 0)
            Py_CLEAR(found);
    }
    return found;
}

static Py_ssize_t smallest_cell(const Py_buffer *cells, Py_ssize_t words)
{
    Py_ssize_t smallest = 64 * words;
    const word *mask = cells->buf;
    for (Py_ssize_t cell = 0; cell < cells->len / 8 / words; cell++, mask += words) {
        Py_ssize_t size = 0;
        for (Py_ssize_t w = 0; w < words; w++)
            size += (int32_t)ones_of(mask[w]);
        smallest = size < smallest ? size : smallest;
    }
    return smallest;
}

/* The search itself, for arguments whose sizes fit together. */
static PyObject *searched(struct search *search, const Py_buffer *cells, const Py_buffer *above,
                          const Py_buffer *below, int left)
{
    struct memory memory = {{NULL}, 0, 0};
    PyObject *found = NULL;
    if (has_levels(search, &memory, cells, left) &&
        has_columns(search, &memory, below->buf != NULL, left)) {
        search->thread = PyEval_SaveThread();
        int outcome = find(search, above->buf, below->buf, left);
        PyEval_RestoreThread(search->thread);
        if (outcome == FOUND)
            found = names(search, left);
        else if (outcome == NONE)
            found = Py_NewRef(Py_None);
    } else
        PyErr_NoMemory();
    give_back(&memory);
    return found;
}

static int fits(struct search *search, const Py_buffer *cells, const Py_buffer *above,
                const Py_buffer *below, const Py_buffer *link, int left)
{
    Py_ssize_t words = search->row_words;
    if (left < 1 || left > MOST_LEFT || words < 1 || words > MOST_SIZE / 64 ||
        cells->len < 8 * words || cells->len % (8 * words) || above->len % (8 * words) ||
        cells->len / 8 > MOST_SIZE / 2 || cells->len / 8 / words > MOST_SIZE >> left)
        return 0;
    search->points = above->len / 8 / words;
    search->point_words = (search->points + 63) / 64;
    return search->points <= MOST_SIZE && (below->buf == NULL || below->len == above->len) &&
           (link->buf == NULL || link->len == 8 * search->points * search->point_words);
}

PyObject *shattered_set(PyObject *module, PyObject *arguments)
{
    Py_buffer cells, above, below, link;
    struct search search = {0};
    PyObject *found = NULL;
    int left;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*z*z*niO", &cells, &above, &below, &link,
                          &search.row_words, &left, &search.check_time))
        return NULL;
    search.link = link.buf;
    if (!fits(&search, &cells, &above, &below, &link, left))
        PyErr_SetString(PyExc_ValueError, "the sizes of cells, columns and links do not fit");
    else if (search.points < left || smallest_cell(&cells, search.row_words) >> left == 0)
        found = Py_NewRef(Py_None);
    else
        found = searched(&search, &cells, &above, &below, left);
    PyBuffer_Release(&cells);
    PyBuffer_Release(&above);
    PyBuffer_Release(&below);
    PyBuffer_Release(&link);
    return found;
}
