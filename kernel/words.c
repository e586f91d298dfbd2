/* Numbering the words of a column in the order in which they first come, by a table of hashes.
 *
 * A hash only says where to look first, and equal bytes are equal words, so the numbers are right
 * whatever it does.  It is keyed: nobody who writes rows can choose words that all begin their
 * search at one place.
 */
#include "bits.h"

#define SHORT 12   /* bytes of a word that stand in its view */
#define AT_ONCE 64 /* rows whose words are looked up together */

struct words {
    Py_buffer table;         /* places: 0, or the leading half of a hash with a word's number, from 1 on */
    Py_buffer ends, letters; /* of each word where it ends, and its bytes */
    Py_ssize_t count, most;
    uint64_t key;
};

/* A row's word, and where its search begins. */
struct sought {
    const uint8_t *word;
    uint32_t size;
    uint64_t mark;
};

static uint64_t mixed(uint64_t one, uint64_t other)
{
    __uint128_t product = (__uint128_t)one * other;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t mark_of(const uint8_t *word, uint32_t size, uint64_t key)
{
    uint64_t mark = mixed(key ^ size, 0x9e3779b97f4a7c15u), eight = 0;
    for (; size > 8; size -= 8, word += 8) {
        memcpy(&eight, word, 8);
        mark = mixed(mark ^ eight, key ^ 0xd6e8feb86659fd93u);
    }
    eight = 0;
    memcpy(&eight, word, size);
    return mixed(mark ^ eight, key ^ 0xa0761d6478bd642fu);
}

/* Where a word begins. */
static int64_t start_of(const struct words *all, uint32_t number)
{
    return number == 1 ? 0 : ((const int64_t *)all->ends.buf)[number - 2];
}

/* The number of a word; a new one is entered, or 0 if there is no room for it. */
static uint32_t number_of(struct words *all, const struct sought *sought)
{
    uint64_t *table = all->table.buf, last = all->table.len / 8 - 1;
    uint64_t at = sought->mark & last, tag = sought->mark & ~(uint64_t)UINT32_MAX;
    int64_t *ends = all->ends.buf, begin;
    uint8_t *letters = all->letters.buf;
    for (; table[at] != 0; at = (at + 1) & last) {
        uint32_t number = (uint32_t)table[at];
        if ((table[at] ^ tag) != number)
            continue;
        begin = start_of(all, number);
        if (ends[number - 1] - begin == sought->size &&
            memcmp(letters + begin, sought->word, sought->size) == 0)
            return number;
    }
    begin = start_of(all, (uint32_t)all->count + 1);
    if (all->count == all->most || all->letters.len - begin < (Py_ssize_t)sought->size)
        return 0;
    ends[all->count] = begin + sought->size;
    memcpy(letters + begin, sought->word, sought->size);
    table[at] = tag | (uint64_t)++all->count;
    return (uint32_t)all->count;
}

/* Enter words anew in an empty table. */
static void enter_all(struct words *all)
{
    uint64_t *table = all->table.buf, last = all->table.len / 8 - 1;
    const int64_t *ends = all->ends.buf;
    for (Py_ssize_t i = 0; i < all->count; i++) {
        int64_t begin = start_of(all, (uint32_t)i + 1);
        uint64_t mark = mark_of((const uint8_t *)all->letters.buf + begin,
                                (uint32_t)(ends[i] - begin), all->key);
        uint64_t at = mark & last;
        while (table[at])
            at = (at + 1) & last;
        table[at] = (mark & ~(uint64_t)UINT32_MAX) | (uint64_t)(i + 1);
    }
}

/* Send for what a search will look at, in steps that each need what the one before sent for. */
static void send_for(const struct words *all, const struct sought *sought, int many)
{
    const uint64_t *table = all->table.buf, last = all->table.len / 8 - 1;
    for (int i = 0; i < many; i++)
        __builtin_prefetch(table + (sought[i].mark & last));
    for (int i = 0; i < many; i++) {
        uint32_t number = (uint32_t)table[sought[i].mark & last];
        if (number)
            __builtin_prefetch((const int64_t *)all->ends.buf + number - 1);
    }
    for (int i = 0; i < many; i++) {
        uint32_t number = (uint32_t)table[sought[i].mark & last];
        if (number)
            __builtin_prefetch((const uint8_t *)all->letters.buf + start_of(all, number));
    }
}

/* The words of some rows; how many of them, up to one that lies outside of the texts. */
static int read_rows(const Py_buffer *views, const Py_buffer *texts, Py_ssize_t row, int many,
                     uint64_t key, struct sought *found)
{
    for (int i = 0; i < many; i++) {
        const uint8_t *view = (const uint8_t *)views->buf + 16 * (row + i);
        uint32_t start;
        memcpy(&found[i].size, view, 4);
        memcpy(&start, view + 12, 4);
        found[i].word = view + 4;
        if (found[i].size > SHORT) {
            if (start > texts->len || found[i].size > texts->len - start)
                return i;
            found[i].word = (const uint8_t *)texts->buf + start;
        }
        found[i].mark = mark_of(found[i].word, found[i].size, key);
    }
    return many;
}

const char number_words_doc[] =
    "number_words(views, texts, codes, table, ends, letters, count, key, anew)\n--\n\n"
    "Number words, of which ``count`` are known, until there is no room for a new one.\n\n"
    "Each row has a view of its word, as DuckDB gives it.  ``anew`` says that the table is empty.\n"
    "Returns how many rows have a code, and how many words are known then.";

PyObject *number_words(PyObject *module, PyObject *arguments)
{
    Py_buffer views, texts, codes;
    struct words all;
    struct sought some[AT_ONCE];
    unsigned long long key;
    int anew, fits, full = 0;
    Py_ssize_t row = 0;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*w*w*w*w*nKp", &views, &texts, &codes, &all.table,
                          &all.ends, &all.letters, &all.count, &key, &anew))
        return NULL;
    Py_ssize_t rows = views.len / 16, places = all.table.len / 8;
    all.key = key;
    all.most = all.ends.len / 8 < places / 2 ? all.ends.len / 8 : places / 2;
    fits = places > 0 && (places & (places - 1)) == 0 && codes.len / 4 >= rows && all.count >= 0 &&
           all.count <= all.most && all.most < UINT32_MAX;
    Py_BEGIN_ALLOW_THREADS
    if (fits && anew)
        enter_all(&all);
    while (fits && !full && row < rows) {
        int many = rows - row < AT_ONCE ? (int)(rows - row) : AT_ONCE;
        int read = read_rows(&views, &texts, row, many, key, some);
        send_for(&all, some, read);
        for (int i = 0; i < read && !full; i++) {
            uint32_t number = number_of(&all, some + i);
            full = number == 0;
            if (number)
                ((uint32_t *)codes.buf)[row++] = number;
        }
        fits = full || read == many;
    }
    Py_END_ALLOW_THREADS
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "a buffer is shorter than what is asked of it");
    Py_buffer *opened[] = {&views, &texts, &codes, &all.table, &all.ends, &all.letters};
    for (size_t i = 0; i < sizeof opened / sizeof *opened; i++)
        PyBuffer_Release(opened[i]);
    return fits ? Py_BuildValue("nn", row, all.count) : NULL;
}
